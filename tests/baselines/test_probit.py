"""The probit: the sweep keeps its law, would be caught if it did not, and effects are those of a softmax."""

from functools import partial

import numba
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from joint import Law, first_and_second, one_sweep
from polystick import Gibbs, MultinomialRegression
from polystick.baselines import MultinomialProbit
from polystick.baselines.probit import ProbitRegression, Rows, log_win, normal_above
from polystick.keys import Key
from polystick.models.regression_state import RegressionPrior
from statistics_tools import MAX_Z

needs_jit = pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="thousands of sweeps need the compiler"
)
N = 6
X = np.column_stack([np.ones(N), np.linspace(-1, 1, N)])
MEAN = np.array([[-0.5, 0.3, 0.4], [0.2, 0.0, 0.1]])
SEED = 5
NONE = np.zeros((N, 0), int)
RUN = {"inference": Gibbs(300, 150, n_chains=1), "random_state": 1, "n_jobs": 1, "progress": False}


def probit(kind=ProbitRegression):
    return kind(RegressionPrior(MEAN, np.array([0.8, 0.6])))


def sweep(model, everything, i, rng):
    parameters, rows, labels = everything
    (shard,) = model.shards(np.eye(3, dtype=int)[labels], X, NONE)
    parameters, _ = one_sweep(model, parameters, rows, shard, i)
    return parameters, *model.simulate_rows(parameters, X, rng)


def summarise(everything):
    """Use bounded functions, so that their averages have standard errors."""
    parameters, rows, labels = everything
    squashed = np.tanh(rows.utilities[[0, 4]] / 2)
    return first_and_second(
        [np.tanh(parameters.coefficients), squashed, (labels[[1, 5], None] == [0, 1])]
    )


LAW = Law(partial(probit().simulate, X), summarise)


class LosersAreFree(ProbitRegression):
    """Utilities of the others need not be below the winner's."""

    def draw_utilities(self, line, shard, utilities, key):
        drawn = super().draw_utilities(line, shard, utilities, key)
        noise = key.normals("free", shard.rows, line.shape[1])
        mine = np.arange(len(line)), shard.labels
        free = line + noise
        free[mine] = drawn[mine]
        return free


class NoPriorMean(ProbitRegression):
    """Coefficients are drawn as if their prior were about 0."""

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        prior = RegressionPrior(0.0 * self.prior.mean, self.prior.scale)
        return ProbitRegression(prior).draw_parameters(parameters, statistics, key)


@needs_jit
def test_the_sweep_keeps_the_joint_law():
    rng = np.random.default_rng(SEED)
    z = LAW.z(partial(sweep, probit()), 4000, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


@needs_jit
@pytest.mark.parametrize("kind", [LosersAreFree, NoPriorMean])
def test_a_wrong_sweep_is_caught(kind):
    rng = np.random.default_rng(SEED)
    assert LAW.worst_z(partial(sweep, probit(kind)), 4000, rng) > MAX_Z


def test_labels_win_and_streams_belong_to_rows():
    model, labels = probit(), np.array([0, 1, 2, 2, 1, 0])
    counts = np.eye(3, dtype=int)[labels]
    (shard,) = model.shards(counts, X, NONE)
    parameters = model.prior.draw(np.random.default_rng(3))
    rows, _ = model.draw_rows(parameters, shard, Rows(counts + 0.0), Key(1, 2))
    np.testing.assert_array_equal(rows.utilities.argmax(axis=1), labels)
    parts = model.shards(counts, X, NONE, size=4)
    cut = [
        model.draw_rows(parameters, part, Rows(counts[part.rows.astype(int)] + 0.0), Key(1, 2))[0]
        for part in parts
    ]
    np.testing.assert_array_equal(np.concatenate([r.utilities for r in cut]), rows.utilities)


@pytest.mark.parametrize("bound", [-3.0, 0.5, 6.0, 30.0])
def test_normals_above_a_bound_have_their_law(bound):
    rng = np.random.default_rng(SEED)
    drawn = normal_above(np.full(4000, bound), rng.standard_normal(4000))
    tail = np.exp(stats.norm.logsf(drawn) - stats.norm.logsf(bound))  # uniform
    assert (drawn >= bound).all()
    assert stats.kstest(tail, "uniform").pvalue > 1e-4


def test_log_probabilities_are_how_often_each_utility_wins():
    rng = np.random.default_rng(SEED)
    psi = np.array([0.3, -1.2, 1.5, 0.0])
    wins = (psi + rng.standard_normal((100_000, 4))).argmax(axis=1)
    pi = probit().probabilities(psi)
    z = (np.bincount(wins, minlength=4) / len(wins) - pi) / np.sqrt(pi * (1 - pi) / len(wins))
    assert np.abs(z).max() < MAX_Z
    two = np.array([0.4, -0.9])
    np.testing.assert_allclose(log_win(two, 0), stats.norm.logcdf(1.3 / np.sqrt(2)), rtol=1e-9)


@needs_jit
def test_effects_are_those_of_a_softmax_within_what_data_leave_open():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"dose": rng.standard_normal(120), "treated": rng.integers(0, 2, 120)})
    utility = np.column_stack([0.0 * frame["dose"], 0.5 + frame["dose"], frame["treated"] - 0.3])
    labels = np.array(["a", "b", "c"])[(utility + rng.gumbel(size=utility.shape)).argmax(axis=1)]
    ours = MultinomialProbit(**RUN).fit(frame, labels)
    theirs = MultinomialRegression(link="softmax", **RUN).fit(frame, labels)
    for column in frame:
        one, other = (model.effects(column) for model in (ours, theirs))
        width = (other["upper"] - other["lower"]).max()
        assert np.abs(one["estimate"] - other["estimate"]).max() < 0.25 * width
    scores = [model.score(frame, labels) for model in (ours, theirs)]
    assert abs(scores[0] - scores[1]) < 0.02


def test_rows_of_several_counts_are_refused():
    with pytest.raises(ValueError, match="single labels, one for each row; got 3 counts in row 1"):
        MultinomialProbit(**RUN).fit(np.arange(3.0)[:, None], [[1, 0], [2, 1], [0, 1]])
