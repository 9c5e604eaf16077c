"""RESULTS_TOPICS.md: the tables of the long topic benchmarks, each line with what it was to reach."""

from pathlib import Path

import numpy as np
from run import machine

from polystick import scores

PATH = Path(__file__).parent / "RESULTS_TOPICS.md"
HEAD = "# Topic models, the long benchmarks\n\nWritten by `make bench-scores`."
SHARES = (0.05, 0.1, 0.25, 0.5)
GAINS = {0.05: 0.03, 0.1: 0.015, 0.25: None, 0.5: -0.01}  # on tuned LDA, to reach
FASTER, MEAN_FIELD_GAP = 25.0, -0.21


def write(*sections):
    """Put sections into the file in place of those with the same title; return the text of these."""
    kept = _sections(PATH.read_text()) if PATH.exists() else {}
    kept |= {_title(section): section for section in sections}
    PATH.write_text("\n\n".join([f"{HEAD} {machine()}", *kept.values()]) + "\n")
    return "\n\n".join(sections)


def _sections(text):
    parts = [f"## {part.rstrip()}" for part in text.split("\n## ")[1:]]
    return {_title(part): part for part in parts}


def _title(section):
    return section.splitlines()[0]


def score_sections(found):
    """Return a section for each comparison whose parts are there."""
    makers = {
        race_section: {"race", "tomotopy_ctm"},
        curve_section: {"correlated", "lda", "tomotopy_lda"},
        mean_field_section: {"mean_field", "correlated"},
        stochastic_section: {"stochastic", "sklearn_online"},
    }
    return [make(found) for make, needed in makers.items() if needed <= set(found)]


def race_section(found):
    lines = [
        "## CPU time to the score of tomotopy's CTM, half of the words seen",
        "",
        "Its score: ten states, after a check (every 40 iterations) gained less than 0.005. Its CPU time: to "
        "the last check that gained, and between the states. Ours: the start, and sweeps until the average "
        "over the later half of the states so far is better.",
        "",
        "| split | tomotopy's score | its CPU | our CPU | ratio | to reach | our score at 200 sweeps |",
        "|---|---|---|---|---|---|---|",
    ]
    for split, (ours, theirs) in enumerate(zip(found["race"], found["tomotopy_ctm"])):
        score = theirs["logs"].sum() / theirs["tokens"].sum()
        better = np.flatnonzero(ours["scores"] > score)
        seconds = ours["seconds"][better[0]] if len(better) else np.inf
        ratio = float(theirs["seconds"] / seconds)
        lines.append(
            f"| {split} | {score:.3f} | {theirs['seconds']:.0f} s | {seconds:.2f} s | "
            f"{ratio:.0f}x{_missed(ratio, FASTER)} | {FASTER:g}x | {ours['scores'][-1]:.3f} |"
        )
    return "\n".join(lines)


def curve_section(found):
    lines = [
        "## SB-CTM against a tuned LDA, over the share of words seen",
        "",
        "Nats per token; both learn their prior (LDA: alpha), same schedule, 40 states each, 3 x 112 "
        "documents. The difference is to the better of the two LDAs, with a 95 % interval by a paired "
        "bootstrap of documents.",
        "",
        "| seen | SB-CTM | our LDA | tomotopy LDA | difference | interval | to reach |",
        "|---|---|---|---|---|---|---|",
    ]
    for i, share in enumerate(SHARES):
        logs = {part: _pooled(found[part], "logs", i) for part in CURVE}
        tokens = _pooled(found["correlated"], "tokens", i)
        means = [logs[part].sum() / tokens.sum() for part in CURVE]
        tuned = CURVE[1 + int(np.argmax(means[1:]))]
        gain = scores.bootstrap_difference(logs["correlated"], logs[tuned], tokens)
        columns = " | ".join(f"{mean:.3f}" for mean in means)
        interval = f"{gain.lower:+.3f} to {gain.upper:+.3f}"
        lines.append(
            f"| {share:.0%} | {columns} | {_reached(gain.estimate, interval, GAINS[share])} |"
        )
    return "\n".join(lines)


CURVE = ("correlated", "lda", "tomotopy_lda")


def accuracy_section(corpus, found):
    """Tell the gain on our LDA, and those on peers by our fold-in and by their own."""
    seeds = sorted(set(found["correlated"]) & set(found["lda"]))
    lines = [
        f"## Completion through the public face: {corpus.title}",
        "",
        f"Defaults of `CorrelatedTopicModel` and `LDA` (alpha learned), {len(seeds)} splits of "
        f"{corpus.n_test} documents, nats per token. Others: what ours is better by, with shares of topics "
        "found as ours are, and by their own inference. Intervals: 95 %, paired bootstrap of documents. "
        "Gains are between averages over three chains; beside them those between single chains, with as many "
        "states of each, as the targets were measured.",
        "",
        "| seen | ours | our LDA | gain | interval | single chains | to reach | "
        + " | ".join(f"{PEERS[peer]}: our fold-in | its own" for peer in PEERS if peer in found)
        + " |",
        "|" + "---|" * (7 + 2 * sum(peer in found for peer in PEERS)),
    ]
    for i, share in enumerate(SHARES):
        ours, tokens, plain = (
            _of_splits(found[part], name, i, seeds)
            for part, name in (("correlated", "logs"), ("correlated", "tokens"), ("lda", "logs"))
        )
        gain = scores.bootstrap_difference(ours, plain, tokens)
        interval = f"{gain.lower:+.3f} to {gain.upper:+.3f}"
        means = f"{ours.sum() / tokens.sum():.3f} | {plain.sum() / tokens.sum():.3f}"
        others = [
            f"{_gain_on(found, peer, name, i):+.3f}"
            for peer in PEERS
            if peer in found
            for name in ("logs", "own")
        ]
        alone = [_of_splits(found[part], "alone", i, seeds) for part in ("correlated", "lda")]
        single = (alone[0] - alone[1]).sum() / tokens.sum()
        interval = f"{interval} | {single:+.3f}{_missed(single, corpus.gains[i])}"
        told = " | ".join([_reached(gain.estimate, interval, corpus.gains[i]), *others])
        lines.append(f"| {share:.0%} | {means} | {told} |")
    return "\n".join(lines)


PEERS = {
    "tomotopy_lda": "tomotopy LDA",
    "sklearn_lda": "scikit-learn LDA",
    "tomotopy_ctm": "tomotopy CTM",
}


def _of_splits(part, name, i, seeds):
    return np.concatenate([part[seed][name][i] for seed in seeds])


def _gain_on(found, peer, name, i):
    seeds = sorted(set(found["correlated"]) & set(found[peer]))
    ours, tokens = (_of_splits(found["correlated"], key, i, seeds) for key in ("logs", "tokens"))
    return (ours - _of_splits(found[peer], name, i, seeds)).sum() / tokens.sum()


def mean_field_section(found):
    field = _pooled(found["mean_field"], "logs")
    gibbs = _pooled(found["correlated"], "logs", SHARES.index(0.5))
    tokens = _pooled(found["mean_field"], "tokens")
    gain = scores.bootstrap_difference(field, gibbs, tokens)
    seconds = np.mean([part["seconds"] for part in found["mean_field"]])
    interval = f"{gain.lower:+.3f} to {gain.upper:+.3f}"
    return "\n".join(
        [
            "## Mean field with its default start against Gibbs, half of the words seen",
            "",
            "| mean field | Gibbs | difference | interval | to reach |",
            "|---|---|---|---|---|",
            f"| {field.sum() / tokens.sum():.3f} ({seconds:.0f} s CPU) | {gibbs.sum() / tokens.sum():.3f} | "
            f"{_reached(gain.estimate, interval, MEAN_FIELD_GAP)} |",
        ]
    )


def stochastic_section(found):
    ours, theirs = (_points(found[part]) for part in ("stochastic", "sklearn_online"))
    folded = [score for _, score in _points(found["sklearn_online"], "folded")]
    lines = [
        "## Stochastic VI against scikit-learn's online LDA at equal CPU time, half of the words seen",
        "",
        "scikit-learn after each pass (batches of 128), and the longest of our runs that took no more CPU "
        "time, start included. Shares of topics of the test documents are scikit-learn's own (plug-in) and, "
        "given its topics, as ours are found; the difference is to the better. Means of 3 splits.",
        "",
        "| scikit-learn: CPU | score | shares as ours | ours: CPU | score | difference | to reach |",
        "|---|---|---|---|---|---|---|",
    ]
    for (seconds, plain), other in zip(theirs, folded):
        score = max(plain, other)
        within = [point for point in ours if point[0] <= seconds]
        if within:
            mine = f"{within[-1][0]:.1f} s | {within[-1][1]:.3f}"
            verdict = f"{within[-1][1] - score:+.3f}{_missed(within[-1][1], score)} | +0"
        else:
            mine, verdict = " | not started yet", " | "
        lines.append(f"| {seconds:.1f} s | {plain:.3f} | {other:.3f} | {mine} | {verdict} |")
    longest = ", ".join(f"{score:.3f} ({seconds:.1f} s)" for seconds, score in ours)
    return "\n".join([*lines, "", f"All of our runs: {longest}."])


def _points(parts, name="logs"):
    """Return (CPU seconds, score) after each run or pass, means over splits."""
    seconds = np.mean([part["seconds"] for part in parts], axis=0)
    logs = sum(part[name].sum(axis=1) for part in parts)
    return list(zip(seconds, logs / sum(part["tokens"].sum() for part in parts)))


def _pooled(parts, name, *index):
    """Join the documents of all splits."""
    return np.concatenate([part[name][index] if index else part[name] for part in parts])


def _reached(value, interval, target):
    wanted = "" if target is None else f"{target:+g}"
    return f"{value:+.3f}{_missed(value, target)} | {interval} | {wanted}"


def _missed(value, target):
    return " **missed**" if target is not None and value < target else ""
