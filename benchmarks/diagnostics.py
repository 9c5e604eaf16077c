"""Diagnostics: a run with them (ours) against what is left of it without the time that they take (peer).

That time is taken by the clock around all that watches and judges, for two fits one after the other differ
by more. Diagnostics may cost 3 % of a run.
"""

import contextlib
import time
import warnings
from unittest import mock

import numpy as np
from timing import record

from polystick import (
    CorrelatedMultinomial,
    CorrelatedTopicModel,
    DynamicMultinomial,
    Gibbs,
    MultinomialGP,
    datasets,
)
from polystick.inference import gibbs
from polystick.inference.posterior import Posterior
from polystick.inference.watching import Watching

TARGET = 1 / 1.03
TIMED = [
    (Watching, "__init__"),
    (Watching, "take"),
    (Watching, "told"),
    (Watching, "described"),
    (Watching, "coords"),
    (gibbs._Run, "_row_rhats"),
    (gibbs._Run, "_look"),
    (Posterior, "verdict"),
]


@contextlib.contextmanager
def timed():
    """Yield a list whose sum is the time that diagnostics have taken so far, in one thread."""
    spent = []

    def around(function):
        def call(*arguments, **options):
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                spent.append(time.perf_counter() - start)

        return call

    with contextlib.ExitStack() as stack:
        for owner, name in TIMED:
            stack.enter_context(mock.patch.object(owner, name, around(getattr(owner, name))))
        yield spent


def run():
    names = datasets.load_names("M", n_names=20, years=[1970, 1990, 2010])
    state = datasets.load_names("F", n_names=6).xs("NM", level="state")
    years = state.index.to_numpy().reshape(-1, 1)
    words = datasets.load_state_of_the_union().counts[::8]
    small = np.random.default_rng(0).multinomial(250, [0.3, 0.3, 0.2, 0.1, 0.1], size=26)
    return [
        compare("rows, 26 x 5, default", CorrelatedMultinomial(), small),
        compare("rows, 153 x 20, default", CorrelatedMultinomial(), names),
        compare(
            "process, 54 x 6", MultinomialGP(inference=Gibbs(250, 100)), years, state, repeats=3
        ),
        compare("composition, 54 x 6", DynamicMultinomial(inference=Gibbs(1000, 300)), state),
        compare(
            "topics, 561 documents, T = 20",
            CorrelatedTopicModel(20, inference=Gibbs(200, 200, n_chains=2)),
            words,
        ),
    ]


def compare(case, model, *data, repeats=3):
    """Return the run with the smallest share of diagnostics."""
    model.set_params(random_state=0, n_jobs=1)
    found = [fit(model, data) for _ in range(repeats + 1)][1:]
    whole, spent = min(found, key=lambda times: times[1] / times[0])
    return record(case, whole, whole - spent, TARGET)


def fit(model, data):
    """Return the seconds of a fit, and those of its diagnostics."""
    with warnings.catch_warnings(), timed() as spent:
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(*data)
        return time.perf_counter() - start, sum(spent)


if __name__ == "__main__":
    for line in run():
        print(line, flush=True)
