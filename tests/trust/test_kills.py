"""Twenty kills of each model by each inference, in Python and as a command: the bits of an unstopped run."""

import contextlib
import random
import time

import numba
import numpy as np
import pytest
from click.testing import CliRunner

import polystick as ps
from polystick.cli import main
from victims import SERVER, start

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),  # they are short
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without the compiler"),
]
KILLS = 20
RNG = np.random.default_rng(5)
COUNTS = RNG.multinomial(30, RNG.dirichlet(np.ones(4)), size=30)
WORDS = RNG.poisson(0.5, (40, 30))
TIMES = np.repeat(np.arange(4), 10)
PLACES = np.arange(30.0)[:, None]
STEPS = [RNG.integers(0, 4, 40).tolist() for _ in range(3)]
GIBBS = ps.Gibbs(25, 10, n_chains=2)
CLIMB = ps.MeanField(tolerance=1e-12, max_sweeps=40, n_draws=10)
BATCHES = ps.StochasticVI(batch_size=8, n_passes=8, n_draws=10)
RUNS = {
    "multinomial": (ps.CorrelatedMultinomial, (), GIBBS, (COUNTS,), {}),
    "multinomial, mean field": (ps.CorrelatedMultinomial, (), CLIMB, (COUNTS,), {}),
    "topics": (ps.CorrelatedTopicModel, (3,), GIBBS, (WORDS,), {}),
    "topics, mean field": (ps.CorrelatedTopicModel, (3,), CLIMB, (WORDS,), {}),
    "topics, batches": (ps.CorrelatedTopicModel, (3,), BATCHES, (WORDS,), {}),
    "dynamic topics": (ps.DynamicTopicModel, (3,), GIBBS, (WORDS,), {"times": TIMES}),
    "gp": (ps.MultinomialGP, (), GIBBS, (PLACES, COUNTS), {}),
    "gp, mean field": (ps.MultinomialGP, (), CLIMB, (PLACES, COUNTS), {}),
    "lds": (ps.MultinomialLDS, (2,), GIBBS, (STEPS,), {}),
    "lds, mean field": (ps.MultinomialLDS, (2,), CLIMB, (STEPS,), {}),
    "compositions": (ps.DynamicMultinomial, (), GIBBS, (COUNTS,), {}),
    "hidden Markov": (ps.MultinomialHMM, (3,), GIBBS, (STEPS,), {}),
    "lda": (ps.LDA, (3,), GIBBS, (WORDS,), {}),
}


def fit(name, folder, progress=False):
    kind, sizes, inference, arguments, about = RUNS[name]
    options = {"random_state": 1, "n_jobs": 1, "checkpoint": folder, "progress": progress}
    resume = folder is not None
    return kind(*sizes, inference=inference, **options).fit(*arguments, resume=resume, **about)


def same(one, other):
    for group in one.tree.children:
        for name, values in one.tree[group].data_vars.items():
            np.testing.assert_array_equal(values, other.tree[group][name])


def killed_until_done(begin, join, rng):
    """Begin a run again and again, and kill it at any time; return how often it was killed."""
    kills, longest = 0, 1.0
    while True:
        victim = begin()
        begun = time.monotonic()
        victim.join(rng.uniform(0.0, longest))
        if kills < KILLS and victim.is_alive():
            victim.kill()
            kills += 1
        victim.join()
        longest = max(longest, 0.7 * (time.monotonic() - begun))
        join()
        if victim.exitcode == 0:
            return kills


@pytest.mark.parametrize("name", RUNS)
def test_a_killed_fit_has_the_same_bits(name, tmp_path):
    rng, pipes, total, number = random.Random(name), [], 0, 0

    def begin():
        victim, told = start(fit, name, tmp_path / str(number))
        with contextlib.suppress(EOFError):  # there was nothing left to do
            told.recv()  # it has begun
        pipes.append(told)
        return victim

    whole = fit(name, None).posterior_
    while total < KILLS:
        total += killed_until_done(begin, lambda: pipes.pop().close(), rng)
        same(fit(name, tmp_path / str(number)).posterior_, whole)
        number += 1


def command(arguments):
    assert CliRunner().invoke(main, arguments).exit_code == 0


FILES = {
    "multinomial": (COUNTS, []),
    "topics": (WORDS, ["--topics", "3", "--keep-checkpoint"]),
    "gp": (np.c_[PLACES.astype(int), COUNTS], ["--inputs", "w0"]),
    "lds": (COUNTS, ["--states", "2"]),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_killed_command_has_the_same_bits(kind, tmp_path):
    rows, more = FILES[kind]
    header = ",".join(f"w{j}" for j in range(rows.shape[1]))
    path = tmp_path / "counts.csv"
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]))
    sizes = ["--draws", "40", "--burn", "10", "--chains", "2", "--min-ess", "0", "--seed", "1"]
    fit_to = ["fit", kind, str(path), *more, *sizes, "--threads", "1"]
    fit_to += ["--checkpoint-every", "1e-9", "--out"]
    command([*fit_to, str(tmp_path / "whole")])
    whole = ps.Posterior.load(tmp_path / "whole" / "draws.nc")
    rng, total, number = random.Random(kind), 0, 0
    while total < KILLS:
        out = tmp_path / str(number)

        def begin(out=out):
            victim = SERVER.Process(target=command, args=([*fit_to, str(out), "--resume"],))
            victim.start()
            return victim

        total += killed_until_done(begin, lambda: None, rng)
        same(ps.Posterior.load(out / "draws.nc"), whole)
        number += 1
