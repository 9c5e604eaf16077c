"""Diagnostics: a fit that watches and is judged (ours) against one that does neither (peer).

The peer keeps draws and running moments all the same. Diagnostics may cost 3 % of a default run.
"""

import contextlib
import warnings
from unittest import mock

import numpy as np
from timing import in_turns, record

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

TARGET = 1 / 1.03


class Blind:
    """Watches nothing."""

    def __init__(self, model, shards):
        pass

    def take(self, shard, rows, described):
        return {}

    def told(self, parameters, described, taken):
        return {}

    def coords(self, coords):
        return {}


@contextlib.contextmanager
def blind():
    """Let Gibbs sampling watch nothing and judge nothing."""
    silent = mock.Mock(**{"trouble.return_value": None})
    with (
        mock.patch.object(gibbs, "Watching", Blind),
        mock.patch.object(gibbs._Run, "_row_rhats", return_value={}),
        mock.patch.object(Posterior, "verdict", return_value=silent),
    ):
        yield


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
            repeats=3,
        ),
    ]


def compare(case, model, *data, repeats=5):
    model.set_params(random_state=0, n_jobs=1)

    def watched():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(*data)

    def bare():
        with blind():
            watched()

    ours, peer = in_turns(watched, bare, repeats=repeats)
    return record(case, ours, peer, TARGET)


if __name__ == "__main__":
    for line in run():
        print(line, flush=True)
