"""Regressions of counts: effective draws beside NUTS, coverage of average effects, lopsided tables, LOO.

    python benchmarks/regression.py [PART ...]        for example: draws loo

Effective draws are rank-normalised bulk ESS for each CPU second. Ours are two chains in one thread, timed
after the burn-in with all that a run records; NUTS is one chain on the same law, timed without compilation
and warm-up. Of both the quickest stretches count, for others may use the machine too.

All of RESULTS_REGRESSION.md is written, or those parts of it that are named.
"""

import importlib.util
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mixing import DIAGNOSTICS, N_CHAINS, Stopwatch, line
from regression_cases import CHANGES, Design, draw_lopsided, draw_table, true_effects
from threadpoolctl import threadpool_limits

from polystick import Gibbs, MultinomialRegression

PATH = Path(__file__).parent / "RESULTS_REGRESSION.md"
LEVEL = 0.9
QUANTITIES = ("coefficients", "sd of groups", "sd of overdispersion")


class Case(NamedTuple):
    """A table whose posterior NUTS draws too, and what ours must have of its effective draws, in times.

    targets : quantity -> least ratios of the smallest and of the median; None where there is none
    """

    title: str
    design: Design
    targets: dict
    n_burn: int
    n_draws: int
    nuts_warmup: int
    nuts_draws: int


CASES = (
    Case(
        "500 rows of about 20 in 30 groups, K = 6, p = 5, no overdispersion",
        Design(500, 6, 5, 20, n_groups=30),
        {"coefficients": (30, 8), "sd of groups": (30, 10)},
        500, 2000, 500, 1000,
    ),
    Case(
        "120 rows of about 60, K = 5, p = 3, full overdispersion",
        Design(120, 5, 3, 60, sd_noise=0.5),
        {"coefficients": (None, 20), "sd of overdispersion": (None, 20)},
        500, 2000, 500, 1000,
    ),
)  # fmt: skip


def fitted(frame, counts, run, **options):
    """Return a fitted regression, without what it says of short chains."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MultinomialRegression(inference=run, random_state=0, n_jobs=1, **options).fit(
            frame, counts
        )


def table(head, rows):
    return "\n".join(line(cells) for cells in (head, ["---"] * len(head), *rows))


# effective draws


def quantities(drawn):
    """Return name -> draws (chain, draw, entry)."""
    found = {}
    for new, old in zip(QUANTITIES, ("coefficients", "group_cov", "noise_cov")):
        if old in drawn:
            draws = np.asarray(drawn[old], dtype=np.float64)
            if old != "coefficients":
                draws = np.sqrt(np.diagonal(draws, axis1=-2, axis2=-1))
            found[new] = np.ascontiguousarray(draws.reshape(*draws.shape[:2], -1))
    return found


def rates(drawn, seconds):
    """Return quantity -> smallest and median effective draws for each CPU second, and the largest R-hat."""
    found = {}
    for name, draws in quantities(drawn).items():
        each = DIAGNOSTICS.bulk_ess(draws) / seconds
        found[name] = np.nanmin(each), np.nanmedian(each), np.nanmax(DIAGNOSTICS.rhat(draws))
    return found


def measure(case):
    """Return our rates, those of NUTS, and what is to be said of the runs."""
    made = draw_table(case.design, seed=1)
    watch = Stopwatch(case.n_burn)
    run = Gibbs(case.n_draws, case.n_burn, n_chains=N_CHAINS)
    noise = "full" if case.design.sd_noise else None
    options = {"groups": made.groups, "overdispersion": noise, "decomposition": "given"}
    with threadpool_limits(1):
        model = fitted(made.frame, made.counts, run, progress=watch, **options)
    posterior = model.posterior_
    ours = rates({name: posterior[name] for name in posterior.names()}, watch.seconds)
    if importlib.util.find_spec("numpyro") is None:
        return ours, {}, "Without NUTS: NumPyro is not installed."
    theirs, said = _nuts(case, model, made)
    ms = 1e3 * watch.seconds / (N_CHAINS * case.n_draws)
    return (
        ours,
        theirs,
        f"Ours: {case.n_draws} draws of each chain after {case.n_burn}, {ms:.3g} ms each. {said}",
    )


def _nuts(case, model, made):
    """Return the rates of NUTS in the units that suit it better, and what it did."""
    import regression_nuts

    frame = made.frame.drop(columns="group", errors="ignore")
    places = made.frame.get("group")
    given = model.design_.matrix(frame), None if places is None else places.to_numpy(), made.counts
    tries = {"units of its law": False}
    if case.design.sd_noise:
        tries["units of its standard error about the counts"] = True
    found = {}
    for name, about_data in tries.items():
        with threadpool_limits(1):
            drawn, seconds, steps = regression_nuts.run(
                model, *given, warmup=case.nuts_warmup, draws=case.nuts_draws, about_data=about_data
            )
        found[name] = rates(drawn, seconds), steps
        print("NUTS in", name, *found[name], file=sys.stderr, flush=True)
    best = max(found, key=lambda name: min(low for low, *_ in found[name][0].values()))
    told, steps = found[best]
    said = f"NUTS: {case.nuts_draws} draws after {case.nuts_warmup}, {steps:.0f} steps each"
    return told, f"{said}, psi in {best}, the better of two." if len(tries) > 1 else f"{said}."


OF_TARGETS = (
    "The targets were set when NUTS was timed with the compilation of its sampling loop: about 6 CPU seconds "
    "whatever is drawn, on these tables more than the sampling itself. Here it is left out, as in "
    "RESULTS_MIXING.md."
)


def effective_draws():
    head = ["quantity", "ours: smallest / median", "R-hat", "NUTS: smallest / median", "R-hat",
            "ours / NUTS: smallest", "median"]  # fmt: skip
    parts = [" ".join(__doc__.split("\n\n")[2].split("\n")), OF_TARGETS]
    for case in CASES:
        ours, theirs, said = measure(case)
        rows = []
        for name, (low, middle, rhat) in ours.items():
            row = [name, f"{low:.3g} / {middle:.3g}", f"{rhat:.3f}"]
            if name in theirs:
                their_low, their_middle, their_rhat = theirs[name]
                ratios = low / their_low, middle / their_middle
                row += [f"{their_low:.3g} / {their_middle:.3g}", f"{their_rhat:.3f}"]
                row += [judged(*pair) for pair in zip(ratios, case.targets[name])]
            rows.append(row + [""] * (len(head) - len(row)))
        parts += [f"### {case.title}", table(head, rows), said]
        print(*parts[-3:], sep="\n", file=sys.stderr, flush=True)
    return parts


def judged(value, target):
    """Tell a ratio and the least that it should be."""
    if target is None:
        return f"{value:.3g}x"
    return f"{value:.3g}x of {target:g}x{'' if value >= target else ' **missed**'}"


# lopsided tables, and leaving rows out

LOPSIDED = Gibbs(2000, 500, n_chains=1)
LEAST_SHARE, MOST_BAD = 10.0, 10.0  # percent


def lopsided():
    """Return smallest ESS as a share of draws, under trees that a lopsided table is hard or easy for."""
    frame, counts = draw_lopsided()
    rows = []
    for tree in ("frequency", "balanced"):
        watch = Stopwatch(LOPSIDED.n_burn)
        model = fitted(frame, counts, LOPSIDED, decomposition=tree, progress=watch)
        posterior = model.posterior_
        for name, draws in quantities({n: posterior[n] for n in posterior.names()}).items():
            share = 100 * DIAGNOSTICS.bulk_ess(draws) / LOPSIDED.n_draws
            ok = "" if share.min() >= LEAST_SHARE else " **missed**"
            rows.append([tree, name, f"{share.min():.1f} of {LEAST_SHARE:g}{ok}", f"{np.median(share):.0f}",
                         f"{1e3 * watch.seconds / LOPSIDED.n_draws:.2g}"])  # fmt: skip
    head = ["tree", "quantity", "smallest ESS, percent of draws", "median", "ms a sweep"]
    return [
        f"{len(counts)} rows with totals from 50 to 20,000 on K = {counts.shape[1]} categories whose shares "
        f"fall to 1e-4 ({100 * (counts == 0).mean():.0f} % of the cells are 0); two covariates, full "
        "overdispersion.",
        table(head, rows),
    ]


def left_out():
    """Return the share of rows whose Pareto k is above 0.7, with noise integrated out."""
    import arviz

    made = draw_table(CASES[1].design, seed=1)
    tables = {
        CASES[1].title: (made.frame, made.counts),
        "the lopsided table": draw_lopsided(),
    }
    rows = []
    for title, (frame, counts) in tables.items():
        model = fitted(frame, counts, Gibbs(1000, 500, n_chains=2))
        data = model.to_arviz(frame, counts, log_likelihood=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            k = np.asarray(arviz.loo(data, pointwise=True).pareto_k)
        bad, lost = 100 * (k > 0.7).mean(), int((~np.isfinite(k)).sum())
        missed = " **missed**" if bad > MOST_BAD or lost else ""
        rows.append(
            [
                title,
                f"{len(k)}",
                f"{bad:.1f} of at most {MOST_BAD:g}{missed}",
                f"{k.max():.2f}",
                str(lost),
            ]
        )
    head = ["table", "rows", "percent with k above 0.7", "largest k", "rows lost"]
    return [table(head, rows)]


# coverage

N_REPLICATES = 40
COVERED = Design(250, 5, 4, 30, n_groups=20, sd_noise=0.4)
SHORT = Gibbs(400, 150, n_chains=1)
TRUTHS = {  # law of the data, what is fitted, and where coverage should be
    "the same tree": ("stick", {"decomposition": "given"}, (0.87, 0.93)),
    "softmax, by sticks": ("softmax", {}, None),
}


def covered(truth, seed):
    """Return whether intervals of a replicate cover, how wide they are, and how wrong estimates."""
    link, options, _ = TRUTHS[truth]
    made = draw_table(COVERED._replace(link=link), seed=1000 + seed)
    model = fitted(made.frame, made.counts, SHORT, groups="group", overdispersion="full", **options)
    told = []
    for column, change in CHANGES.items():
        found, true = (
            model.effects(column, change, level=LEVEL, n_draws=150),
            true_effects(made, column),
        )
        inside = (found["lower"] <= true) & (true <= found["upper"])
        told.append(
            np.stack([inside, found["upper"] - found["lower"], np.abs(found["estimate"] - true)])
        )
    return np.stack(told)  # (columns, what, categories)


def coverage():
    rows = []
    for truth, (_, _, wanted) in TRUTHS.items():
        start = time.process_time()
        with threadpool_limits(1):
            found = np.stack(list(map(partial(covered, truth), range(N_REPLICATES))))
        inside = found[:, :, 0].mean(axis=(1, 2))
        mean, error = inside.mean(), inside.std(ddof=1) / np.sqrt(N_REPLICATES)
        kinds = [found[:, part, 0].mean() for part in (slice(0, 2), slice(2, 3))]
        missed = " **missed**" if wanted and not wanted[0] <= mean <= wanted[1] else ""
        aim = f" of {wanted[0]} to {wanted[1]}" if wanted else ""
        rows.append([truth, f"{mean:.3f} ({error:.3f}){aim}{missed}", *(f"{kind:.2f}" for kind in kinds),
                     f"{found[:, :, 1].mean():.3f}", f"{found[:, :, 2].mean():.4f}"])  # fmt: skip
        print(*rows[-1], f"{time.process_time() - start:.0f} s", file=sys.stderr, flush=True)
    head = [
        "truth, and what is fitted",
        "coverage",
        "continuous",
        "two values",
        "mean width",
        "mean error",
    ]
    return [
        f"{N_REPLICATES} replicates of {COVERED.n} rows of about {COVERED.mean_total} in {COVERED.n_groups} "
        f"groups, K = {COVERED.n_categories}, three covariates, full overdispersion of {COVERED.sd_noise}, "
        f"with coefficients and groups of their own; {len(CHANGES)} effects on each category. In brackets "
        f"standard errors over replicates. {SHORT.n_draws} draws after {SHORT.n_burn}.",
        table(head, rows),
        "Linear on sticks is another law than linear behind a softmax, so where the truth is a softmax "
        'intervals by sticks do not know what their law cannot say. `link="softmax"` is the check.',
    ]  # fmt: skip


TITLES = {
    "draws": "Effective draws for each CPU second",
    "lopsided": "A lopsided table",
    "loo": "Leaving rows out, with overdispersion integrated out",
    "coverage": f"Coverage of {100 * LEVEL:.0f} % intervals of average effects",
}
PARTS = {"draws": effective_draws, "lopsided": lopsided, "loo": left_out, "coverage": coverage}


def stored():
    """Return what RESULTS_REGRESSION.md says, part by part."""
    text = PATH.read_text() if PATH.exists() else ""
    found = {}
    for part in text.split("\n## ")[1:]:
        name = next(name for name, title in TITLES.items() if part.startswith(title))
        found[name] = f"## {part.strip()}"
    return found


def main(chosen):
    if unknown := {*chosen} - {*PARTS}:
        raise SystemExit(
            f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}"
        )
    from run import machine  # and all peers, which no part needs

    found = stored()
    for name in chosen or PARTS:
        found[name] = "\n\n".join([f"## {TITLES[name]}", *PARTS[name]()])
        print(found[name], flush=True)
        head = ["# Regressions of counts", f"Written by `make bench`. {machine()}"]
        PATH.write_text("\n\n".join([*head, *(found[n] for n in PARTS if n in found)]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
