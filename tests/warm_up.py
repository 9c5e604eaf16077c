"""Compiles once what the tests need, before workers start and each compiles it for itself.

`start_if_cold` compiles what users' first fits need (`polystick.warm_up`), then runs this file in two
processes, one for each share: tiny fits of what else the tests call.
Nothing depends on it but time: what it leaves out is compiled by the first test that wants it.
"""

import contextlib
import hashlib
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np

from polystick import warm_up

TESTS = Path(__file__).parent
KERNELS = TESTS.parent / "src" / "polystick" / "kernels"


def is_wanted(config):
    """Say whether pytest is about to start workers, for the whole suite."""
    option = config.option
    starts_workers = getattr(option, "numprocesses", None) and not hasattr(config, "workerinput")
    whole = any(Path(argument).resolve() == TESTS for argument in config.args)
    selects = option.collectonly or option.keyword
    return bool(starts_workers and whole and not selects and not numba.config.DISABLE_JIT)


def start_if_cold():
    """Run all shares at the same time and wait, unless that was done since kernels last changed."""
    stamp = KERNELS / "__pycache__" / f"warm-{digest()}"
    if stamp.exists():
        return
    warm_up()
    command, environment = [sys.executable, __file__], {**os.environ, "PYTHONPATH": path()}
    running = [subprocess.Popen([*command, name], env=environment) for name in SHARES]
    codes = [process.wait() for process in running]
    if not any(codes):
        with contextlib.suppress(OSError):  # sources that can't be written to are warmed each time
            stamp.parent.mkdir(exist_ok=True)
            for old in stamp.parent.glob("warm-*"):
                old.unlink()
            stamp.touch()


def digest():
    """Return a name for all that decides what is compiled."""
    sources = [Path(__file__), *sorted(KERNELS.glob("*.py")), *sorted(KERNELS.glob("*.npz"))]
    content = b"".join(source.read_bytes() for source in sources)
    return hashlib.sha256(content + f"{numba.__version__} {sys.version}".encode()).hexdigest()[:16]


def path():
    """Return where these tests import from, for processes that must not import from elsewhere."""
    return os.pathsep.join(entry for entry in sys.path if entry)


def topics():
    from polystick import (
        LDA,
        CorrelatedTopicModel,
        DynamicTopicModel,
        Gibbs,
        LogisticNormalTopicModel,
        MeanField,
        StochasticVI,
    )

    counts = np.random.default_rng(0).poisson(0.5, (30, 12))
    short, field = Gibbs(2, 2, n_chains=1), MeanField(max_sweeps=2, n_draws=2)
    dated = {"times": np.arange(30) // 10}
    models = [
        CorrelatedTopicModel(3, inference=short),
        CorrelatedTopicModel(3, inference=field),
        CorrelatedTopicModel(3, inference=StochasticVI(10, n_passes=1, n_draws=2)),
        CorrelatedTopicModel(3, inference=short, word_tree="similar"),
        LDA(3, inference=short),
        LDA(20, inference=short),
        LogisticNormalTopicModel(3, inference=short),
        LogisticNormalTopicModel(3, inference=field),
    ]
    for model in models:
        model.fit(counts).score(counts)
    for evolving in (False, True):
        DynamicTopicModel(3, inference=short, evolving=evolving).fit(counts, **dated)


def sequences():
    from polystick import (
        DynamicMultinomial,
        Gibbs,
        LogisticNormalLDS,
        MeanField,
        MultinomialHMM,
        MultinomialLDS,
        RawLDS,
    )

    rng = np.random.default_rng(0)
    counts = [rng.multinomial(5, np.full(4, 0.25), 12) for _ in range(2)]
    short = Gibbs(2, 2, n_chains=1)
    models = [
        MultinomialLDS(2, inference=MeanField(max_sweeps=2, n_draws=2)),
        LogisticNormalLDS(2, inference=short),
        MultinomialHMM(2, inference=short),
        RawLDS(2, inference=short),
        MultinomialLDS(9, inference=short),
    ]
    for model in models:
        model.fit(counts).score(counts)
    rare = [rng.multinomial(500, [0.5, 0.495, 0.005], 12)]
    DynamicMultinomial(inference=Gibbs(2, 12, n_chains=1)).fit(rare)  # matches sites


def others():
    from polystick import CorrelatedMultinomial, Gibbs, MeanField, MultinomialGP
    from polystick.baselines.process_models import LogisticNormalGP

    rng = np.random.default_rng(0)
    counts, inputs = rng.poisson(2.0, (20, 4)), np.arange(20.0)[:, None]
    short, field = Gibbs(2, 2, n_chains=1), MeanField(max_sweeps=2, n_draws=2)
    for inference in (short, field):
        CorrelatedMultinomial(inference=inference).fit(counts).score(counts)
        CorrelatedMultinomial(inference=inference).fit(rng.poisson(2.0, (20, 20)))
        CorrelatedMultinomial(inference=inference).fit(rng.poisson(2.0, (600, 4)))  # two blocks
        for solver in ("dense", "markov"):
            MultinomialGP(inference=inference, solver=solver).fit(inputs, counts).predict_proba(
                inputs
            )
            MultinomialGP(inference=inference, solver=solver).fit(inputs, [999, 9, 0, 1] * counts)
    for covariance in ("full", "factor"):
        softmax = CorrelatedMultinomial(link="softmax", covariance=covariance, inference=short)
        softmax.fit(counts).score(counts)
    LogisticNormalGP(inference=short).fit(inputs, counts).predict_proba(inputs)


SHARES = {"rows": (others, topics), "sequences": (sequences,)}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for family in SHARES[sys.argv[1]]:
        family()
