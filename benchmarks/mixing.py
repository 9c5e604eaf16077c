"""Effective draws for each CPU second, of the worst quantity and of the median: ours beside NumPyro's NUTS.

    python benchmarks/mixing.py [CASE ...] [--no-nuts]        for example: rare names

ESS is rank-normalised bulk ESS. "all" are parameters and log probabilities; the other lines are of one
quantity each. Ours is a run of the estimator, two chains in one thread, timed after the burn-in with all that
a run records; NUTS is one chain on the same law, timed without compilation and warm-up. Of both the quickest
stretches count, for others may use the machine too.

With all cases, RESULTS_MIXING.md is written. Figures of an older commit, for the gain over it, are those of

    PYTHONPATH=OTHER_CHECKOUT/src python benchmarks/mixing.py --baseline

in mixing_baseline.json, which holds how fast the machine was too, as the time of a fixed piece of work.
"""

import argparse
import importlib.util
import json
import time
import warnings
from pathlib import Path

import numpy as np
from corpora import MissingDataError
from mixing_cases import CASES, quantities
from threadpoolctl import threadpool_limits
from timing import undisturbed

from polystick import Gibbs

HERE = Path(__file__).parent
BASELINE = HERE / "mixing_baseline.json"
N_CHAINS = 2
MEASURES = ("worst", "median")
TARGETS = {  # worst against NUTS; gain of the worst and of the median over 17a151f
    ("rare", "all"): (6.0, 30.0, 0.75),
    ("names", "all"): (15.0, 20.0, 0.75),
    ("low", "all"): (8.0, None, 0.75),
    ("low", "psi"): (None, 4.0, None),
    ("low", "mean"): (None, 15.0, None),
    ("walk", "all"): (12.0, 8.0, 0.75),
    ("process", "all"): (60.0, 80.0, 0.75),
    ("process", "theta"): (None, 5.0, None),
    ("grid", "all"): (None, 10.0, 0.75),
    ("nothing", "all"): (6.0, 0.8, 0.75),
}
TARGET_HEAD = ["quantity", "worst against NUTS", "worst against 17a151f", "median against 17a151f"]
HEAD = ["quantity", "ours: worst / median", "R-hat", "NUTS: worst / median", "R-hat",
        "ours / NUTS", "gain over 17a151f"]  # fmt: skip
APART = ("psi", "log likelihood")  # neither parameters nor log probabilities


def load_diagnostics():
    """Load this checkout's, whichever checkout is measured."""
    path = HERE.parent / "src/polystick/inference/diagnostics.py"
    spec = importlib.util.spec_from_file_location("diagnostics_of_draws", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DIAGNOSTICS = load_diagnostics()


def machine_seconds(repeats=5):
    """Return the CPU seconds that a fixed piece of work takes now: the least of some."""
    rng = np.random.default_rng(0)
    matrix, numbers = np.eye(120) + 0.01 * rng.random((120, 120)), rng.random(200_000)
    best = np.inf
    with threadpool_limits(1):
        for _ in range(repeats):
            start = time.process_time()
            for _ in range(20):
                np.linalg.cholesky(matrix @ matrix.T)
                np.log(np.exp(numbers) + 1.0).sum()
            best = min(best, time.process_time() - start)
    return best


class Stopwatch:
    """A callback that takes the CPU time of each sweep after the burn-in."""

    def __init__(self, n_burn):
        self.n_burn, self.times = n_burn, []

    def __call__(self, progress):
        if progress.sweep >= self.n_burn:
            self.times.append(time.process_time())

    @property
    def seconds(self):
        spent = np.diff(self.times)
        return undisturbed(spent, np.ones(len(spent)))


def run_ours(case, data):
    """Return the fitted estimator, and CPU seconds of the sweeps that were kept."""
    watch = Stopwatch(case.n_burn)
    inference = Gibbs(case.n_draws, case.n_burn, n_chains=N_CHAINS, keep=case.keep, max_bytes=2**33)
    estimator = case.estimator(inference=inference, random_state=0, n_jobs=1, progress=watch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(*data)
    return estimator, watch.seconds


def measured(found, seconds):
    """Return name -> effective draws for each CPU second, worst and median, and the largest R-hat."""
    ess, rhat = {}, {}
    for name, draws in found.items():
        draws = np.ascontiguousarray(draws, dtype=np.float64)
        ess[name], rhat[name] = DIAGNOSTICS.bulk_ess(draws), DIAGNOSTICS.rhat(draws)
    named = [name for name in ess if name not in APART] or list(ess)
    for values in (ess, rhat):
        values["all"] = np.concatenate([values[name] for name in named])
    return {
        name: {
            "worst": float(np.nanmin(ess[name]) / seconds),
            "median": float(np.nanmedian(ess[name]) / seconds),
            "rhat": float(np.nanmax(rhat[name])),
        }
        for name in ("all", *found)
    }


def measure(name, with_nuts):
    """Return all that is known of a case."""
    case, machine = CASES[name], machine_seconds()
    data = case.load()
    estimator, seconds = run_ours(case, data)
    decomposition = getattr(estimator, "decomposition_", None)
    counts = getattr(estimator, "counts_", data[-1])  # processes may sort their inputs
    counts = counts if isinstance(counts, np.ndarray) else None
    drawn = case.drawn(estimator), estimator.posterior_.log_likelihood
    found = {
        "machine": min(machine, machine_seconds()),
        "ms": 1e3 * seconds / (N_CHAINS * case.n_draws),
        "ours": measured(quantities(*drawn, decomposition, counts), seconds),
    }
    if with_nuts and case.nuts:
        import mixing_nuts

        with threadpool_limits(1):  # LAPACK's threads would cost NUTS forty times the CPU time
            *drawn, seconds, found["steps"] = mixing_nuts.run(case, estimator, data)
        found["nuts"] = measured(quantities(*drawn, decomposition, counts), seconds)
    return found


def rows_of(name, found, baseline):
    """Return a line for each quantity of a case, as cells of the report."""
    rows = []
    for quantity, ours in found["ours"].items():
        theirs = found.get("nuts", {}).get(quantity)
        gain = gains(found, baseline.get(name), quantity)
        rows.append(
            [
                f"{name}: {f'**{quantity}**' if quantity == 'all' else quantity}",
                f"{ours['worst']:.3g} / {ours['median']:.3g}",
                f"{ours['rhat']:.3f}",
                f"{theirs['worst']:.3g} / {theirs['median']:.3g}" if theirs else "",
                f"{theirs['rhat']:.3f}" if theirs else "",
                both(ours[m] / theirs[m] for m in MEASURES) if theirs else "",
                both(gain) if gain else "",
            ]
        )
    return rows


def both(numbers):
    return " / ".join(f"{number:.3g}x" for number in numbers)


def gains(found, before, quantity):
    """Return how many times the effective draws of the baseline, worst and median, or None."""
    if before is None or quantity not in before["ours"]:
        return None
    now, then = found["ours"][quantity], before["ours"][quantity]
    slower = found["machine"] / before["machine"]  # the machine, than it was
    return [slower * now[m] / then[m] for m in MEASURES]


def line(cells):
    return f"| {' | '.join(cells)} |"


def table(rows):
    return "\n".join([line(HEAD), line(["---"] * len(HEAD)), *(line(row) for row in rows)])


def verdicts(found, baseline):
    """Return a line for each target of a case, and whether it is reached."""
    rows = []
    for (name, quantity), (ratio, worst_gain, median_gain) in TARGETS.items():
        if name not in found:
            continue
        ours, theirs = (found[name].get(who, {}).get(quantity) for who in ("ours", "nuts"))
        gain = gains(found[name], baseline.get(name), quantity) or (None, None)
        reached = (
            (ours["worst"] / theirs["worst"] if theirs else None, ratio),
            (gain[0], worst_gain),
            (gain[1], median_gain),
        )
        rows.append([f"{name}: {quantity}", *(judged(*pair) for pair in reached)])
    return rows


def judged(value, target):
    if value is None or target is None:
        return ""
    return f"{value:.3g}x of {target:g}x{'' if value >= target else ' **missed**'}"


def write_report(found, sentences, baseline):
    """Write RESULTS_MIXING.md."""
    from run import machine  # and all peers, which a look at some cases need not have

    paragraphs = __doc__.split("\n\n")
    targets = [line(TARGET_HEAD), line(["---"] * len(TARGET_HEAD))]
    targets += [line(row) for row in verdicts(found, baseline)]
    parts = [
        "# Effective draws for each CPU second",
        f"Written by `make bench`. {machine()}",
        " ".join(paragraphs[2].split("\n")),
        "## To reach",
        "\n".join(targets),
    ]
    for name, one in found.items():
        case = CASES[name]
        parts += [f"## {case.title}", table(rows_of(name, one, baseline)), told(case, one)]
    (HERE / "RESULTS_MIXING.md").write_text("\n\n".join([*parts, *sentences]) + "\n")


def told(case, found):
    """Say how long the runs were."""
    said = (
        f"Ours: {case.n_draws} draws of each chain after {case.n_burn}, {found['ms']:.3g} ms each."
    )
    if "nuts" not in found:
        return said
    return f"{said} NUTS: {case.nuts_draws} draws after {case.nuts_warmup}, {found['steps']:.0f} steps each."


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--no-nuts", action="store_true")
    parser.add_argument("--baseline", action="store_true", help="write mixing_baseline.json")
    chosen = parser.parse_args(arguments)
    if unknown := {*chosen.cases} - {*CASES}:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    with_nuts = not chosen.no_nuts and importlib.util.find_spec("numpyro") is not None
    sentences = [] if with_nuts else ["Without NUTS: NumPyro is not installed, or was not wanted."]
    print(table([]), *sentences, sep="\n", flush=True)
    measures = {}
    for name in chosen.cases or CASES:
        try:
            measures[name] = found = measure(name, with_nuts)
        except MissingDataError as error:
            sentences.append(f"Without {name}: {error}.")
            print(sentences[-1], flush=True)
            continue
        print(*(line(row) for row in rows_of(name, found, baseline)), sep="\n", flush=True)
        print(told(CASES[name], found), flush=True)
        if chosen.baseline:
            BASELINE.write_text(json.dumps(baseline | measures, indent=1) + "\n")
    print(*(line(row) for row in verdicts(measures, baseline)), sep="\n", flush=True)
    if not (chosen.cases or chosen.baseline):
        write_report(measures, sentences, baseline)


if __name__ == "__main__":
    main()
