"""What a million documents take on one machine, and what two workers give.

    python benchmarks/scale.py [N]

Documents have 100 tokens each, of 20,000 words, from 50 correlated topics. They are made in a temporary
folder, in parts of 50,000. Each line has a process of its own, on one thread, which says how much memory it
held at most; times are of the processor, but for those of the cluster.
"""

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import corpora
import numpy as np
import scipy.sparse

from polystick import Corpus, CorrelatedTopicModel, Gibbs, StochasticVI, cluster
from polystick.corpus import CorpusWriter

PATH = Path(__file__).parent / "RESULTS_SCALE.md"
N_WORDS, N_TOPICS, PART = 20_000, 50, 50_000
SMALL, LARGE, MIDDLE = 20_000, 1_000_000, 100_000
MOST_GIGABYTES = {"Gibbs": 4.0, "SVI": 2.0, "transform": 2.0}
MOST_GROWTH, LEAST_GAIN, LEAST_PACKED = 1.15, 1.4, 20.0
N_SWEEPS = 8  # on the cluster and without it
N_TEXTS = 150_000


# the corpora


def write_corpus(folder, n):
    """Write n documents in parts."""
    writer, blocks = CorpusWriter(folder, N_WORDS), corpora.synthetic_blocks(n, n_words=N_WORDS)
    while part := list(itertools.islice(blocks, PART // corpora.BLOCK)):
        writer.add(scipy.sparse.vstack(part, format="csr"))
    writer.close(None)


def write_texts(path, n):
    """Write n lines of JSON with texts of about 100 words by Zipf's law."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words = ["".join(rng.choice(letters, rng.integers(2, 10))) for _ in range(30_000)]
    law = 1.0 / np.arange(1, len(words) + 1)
    edges = np.cumsum(law / law.sum())
    with open(path, "w") as file:
        for _ in range(n):
            drawn = np.minimum(np.searchsorted(edges, rng.random(100)), len(words) - 1)
            file.write(json.dumps({"text": " ".join(words[i] for i in drawn)}) + "\n")


# what is measured, each in a process of its own


def measure_fit(name, folder):
    """Fit a corpus and return what a pass took; small corpora are gone through more often."""
    corpus = Corpus(folder)
    more = max(1, SMALL * 5 // len(corpus))
    if name == "Gibbs":
        inference = Gibbs(n_draws=3 * more, n_burn=2, n_chains=1)
    else:
        inference = StochasticVI(n_passes=more, n_draws=8)
    ticks, whole = fit(inference, corpus, time.process_time)
    tick = float(np.median(np.diff(ticks)[1:]))
    per_pass = len(ticks) / more if name == "SVI" else 1
    return {"micros": 1e6 * tick * per_pass / len(corpus), "whole": whole}


def measure_transform(folder):
    """Fit a few documents and transform all."""
    corpus, model = Corpus(folder), make_model(Gibbs(n_draws=3, n_burn=2, n_chains=1))
    model.fit(corpora.synthetic(2000, n_words=N_WORDS))
    start = time.process_time()
    shares = model.transform(corpus)
    whole = time.process_time() - start
    assert shares.shape == (len(corpus), N_TOPICS)
    return {"micros": 1e6 * whole / len(corpus), "whole": whole}


def measure_pack(path, out):
    """Pack texts, by the command line."""
    command = [sys.executable, "-m", "polystick", "pack", path, "--out", out]
    subprocess.run(command, check=True, capture_output=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, megabytes = used.ru_utime + used.ru_stime, Path(path).stat().st_size / 1e6
    return {"megabytes": megabytes, "seconds": seconds, "gigabytes": used.ru_maxrss / 2**20}


def measure_cluster(folder):
    """Return the wall time of a sweep on one thread here, and on two workers of one thread."""
    corpus, inference = Corpus(folder), Gibbs(n_draws=N_SWEEPS, n_burn=2, n_chains=1)
    alone = np.diff(fit(inference, corpus, time.perf_counter)[0])
    with cluster(workers=2):
        shared = np.diff(fit(inference, corpus, time.perf_counter)[0])
    return {"alone": float(np.median(alone)), "shared": float(np.median(shared))}


def fit(inference, corpus, clock):
    """Return the time after which each step ended, and that of the whole fit."""
    start, ticks = clock(), []
    make_model(inference, lambda _: ticks.append(clock() - start)).fit(corpus)
    return ticks, clock() - start


def make_model(inference, progress=False):
    options = {"random_state": 0, "n_jobs": 1, "progress": progress}
    return CorrelatedTopicModel(N_TOPICS, inference=inference, **options)


MEASURES = {
    "Gibbs": lambda folder: measure_fit("Gibbs", folder),
    "SVI": lambda folder: measure_fit("SVI", folder),
    "transform": measure_transform,
    "pack": measure_pack,
    "cluster": measure_cluster,
}


def in_process(name, *paths):
    """Measure in a fresh process, so that its memory is its own."""
    command = [sys.executable, __file__, "--measure", name, *map(str, paths)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def measured(name, paths):
    """Measure in this process, after a fit of nothing that compiles kernels."""
    warnings.simplefilter("ignore")
    if name != "pack":
        few = corpora.synthetic(600, n_words=500)
        inference = StochasticVI(n_passes=1) if name == "SVI" else Gibbs(1, 1, n_chains=1)
        make_model(inference).fit(few)
    found = MEASURES[name](*paths)
    return {"gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20} | found


# the report


def report(n):
    """Make the corpora, measure, and return the text of the report."""
    with tempfile.TemporaryDirectory() as place:
        folders = {size: Path(place) / str(size) for size in (SMALL, MIDDLE, n)}
        for size, folder in folders.items():
            write_corpus(folder, size)
        lines = [
            {"name": name, "n": size, **in_process(name, folders[size])}
            for name in MOST_GIGABYTES
            for size in (SMALL, n)
        ]
        shared = in_process("cluster", folders[MIDDLE])
        texts = Path(place) / "texts.jsonl"
        write_texts(texts, N_TEXTS)
        packed = in_process("pack", texts, Path(place) / "packed")
    return "\n".join([*_head(), *_fits(lines), *_cluster(shared), *_pack(packed)])


def _head():
    from run import machine  # with all peers, which the processes that are measured don't need

    return ["# A million documents", "", f"Written by `make bench-scale`. {machine()}", ""]


def _fits(lines):
    first = {line["name"]: line["micros"] for line in reversed(lines)}
    yield from (
        "## Out of core",
        "",
        *__doc__.splitlines()[4:7],
        "",
        "| | documents | CPU µs per document and pass | against the smaller | peak memory | all of it |",
        "|---|---|---|---|---|---|",
    )
    for line in lines:
        growth, most = line["micros"] / first[line["name"]], MOST_GIGABYTES[line["name"]]
        cells = [
            line["name"],
            f"{line['n']:,}",
            f"{line['micros']:.1f}",
            f"{growth:.2f}{_missed(growth > MOST_GROWTH)}",
            f"{line['gigabytes']:.2f} GB{_missed(line['gigabytes'] > most)}",
            f"{line['whole']:.0f} s",
        ]
        yield f"| {' | '.join(cells)} |"
    bars = ", ".join(f"{most:g} GB for {name}" for name, most in MOST_GIGABYTES.items())
    yield from (
        "",
        f"To reach: at most {bars}; a cost that grows by {MOST_GROWTH - 1:.0%} at most.",
        "",
    )


def _cluster(found):
    gain = found["alone"] / found["shared"]
    yield from (
        "## Two workers of one thread",
        "",
        f"{MIDDLE:,} such documents by Gibbs: a sweep takes {found['alone']:.2f} s on one thread, "
        f"{found['shared']:.2f} s on two workers (wall time, medians of {N_SWEEPS}): {gain:.2f}x"
        f"{_missed(gain < LEAST_GAIN)}; to reach: {LEAST_GAIN:g}x.",
        "",
    )


def _pack(found):
    speed = found["megabytes"] / found["seconds"]
    yield from (
        "## Packing",
        "",
        f"{found['megabytes']:.0f} MB of text: {speed:.1f} MB per CPU second"
        f"{_missed(speed < LEAST_PACKED)}, {found['gigabytes']:.2f} GB; to reach: {LEAST_PACKED:g} MB.",
    )


def _missed(missed):
    return " **missed**" if missed else ""


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured(sys.argv[2], sys.argv[3:])))
    else:
        text = report(int(sys.argv[1]) if sys.argv[1:] else LARGE)
        PATH.write_text(text + "\n")
        print(text)
