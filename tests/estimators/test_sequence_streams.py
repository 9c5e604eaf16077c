"""Filters that go on: the same numbers as in one run, whatever the pieces are."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest

from polystick import DynamicMultinomial, Gibbs, MultinomialLDS
from polystick.baselines.sequence_models import (
    LogisticNormalLDS,
    MultinomialHMM,
    RawLDS,
    SmoothedUnigram,
)
from polystick.estimators.sequence_results import Likeliest

RUN = {"inference": Gibbs(4, 6, n_chains=2), "random_state": 7, "n_jobs": 1}
TOKENS = np.array([0, 0, 1, 3, -1, 2, 3, 3, 1, 0, 0, 1])
COUNTS = np.random.default_rng(0).multinomial(4, [0.4, 0.3, 0.2, 0.1], 10)
COUNTS[3] = 0
INPUTS = np.random.default_rng(1).normal(size=(12, 2))
FACES = {
    "states": (MultinomialLDS(2, **RUN), TOKENS, None),
    "states of counts": (MultinomialLDS(2, **RUN), COUNTS, None),
    "inputs": (MultinomialLDS(2, inputs_on="both", **RUN), TOKENS, INPUTS),
    "memory": (MultinomialLDS(2, memory="both", **RUN), TOKENS, None),
    "composition": (DynamicMultinomial(**RUN), COUNTS, None),
    "hmm": (MultinomialHMM(2, **RUN), TOKENS, None),
    "hmm of counts": (MultinomialHMM(2, **RUN), COUNTS, None),
    "raw": (RawLDS(2, **RUN), TOKENS, None),
    "unigram": (SmoothedUnigram(random_state=7), TOKENS, None),
}


@pytest.fixture(scope="module")
def fitted():
    kept = {}

    def fit(name):
        if name not in kept:
            face, X, inputs = FACES[name]
            kept[name] = face.fit(X, inputs) if inputs is not None else face.fit(X)
        return kept[name], *FACES[name][1:]

    return fit


def given(inputs, a, b):
    return () if inputs is None else (inputs[a:b],)


@pytest.mark.parametrize("name", FACES)
@pytest.mark.parametrize("cuts", [(0, 4, 10), tuple(range(11)), (0, 1, 10)])
def test_streams_equal_batches(name, cuts, fitted):
    face, X, inputs = fitted(name)
    X = X[:10]
    whole = face.predict_proba(X, *given(inputs, 0, 10))[0]
    state = face.filter_state()
    for a, b in itertools.pairwise(cuts):
        ahead = face.predict_next(state, *given(inputs, a, a + 1))
        np.testing.assert_allclose(ahead, whole[a], rtol=1e-12, atol=1e-15)
        before, (state, pi, values) = state, face.update(state, X[a:b], *given(inputs, a, b))
        assert before.n_steps == a
        np.testing.assert_allclose(pi, whole[a:b], rtol=1e-12, atol=1e-15)
        for t in range(a, b):
            one = face.score_samples(X[: t + 1], *given(inputs, 0, t + 1), n_seen=t)
            np.testing.assert_allclose(values[t - a], one[0], rtol=1e-11, atol=1e-12)
    assert state.n_steps == 10
    ahead = {} if inputs is None else {"new_inputs": np.ones((3, 2))}
    batch = face.forecast(3, X, *given(inputs, 0, 10), n_draws=40, **ahead)[0]
    stream = face.forecast(3, state, n_draws=40, **ahead)[0]
    np.testing.assert_allclose(stream.draws, batch.draws, rtol=1e-12, atol=1e-15)
    pd.testing.assert_index_equal(stream.index, batch.index)


def test_a_state_is_changed_by_nothing(fitted):
    face, X, _ = fitted("states")
    state = face.filter_state(X[:5])
    one, other = (face.update(state, tokens) for tokens in ([0, 1], [3, 3]))
    again = face.update(state, [0, 1])
    np.testing.assert_array_equal(one.log_probabilities, again.log_probabilities)
    assert (one.log_probabilities != other.log_probabilities).any()
    later = (face.update(each.state, [2]).probabilities for each in (one, again))
    np.testing.assert_array_equal(*later)
    packed = pickle.loads(pickle.dumps(one.state))
    np.testing.assert_array_equal(face.predict_next(packed), face.predict_next(one.state))
    assert repr(state) == "<FilterState after 5 steps, 8 draws>"


def test_a_state_with_few_particles_keeps_them(fitted):
    face, X, _ = fitted("states")
    state = face.filter_state(X[:3], n_draws=2, n_particles=20)
    whole = face.predict_proba(X[:6], n_draws=2, n_particles=20)[0]
    found = face.update(state, X[3:6]).probabilities
    np.testing.assert_allclose(found, whole[3:], rtol=1e-12)


def test_single_tokens_tables_and_the_likeliest(fitted):
    face, X, _ = fitted("states")
    state = face.filter_state(X[:5])
    one, several = face.update(state, 3), face.update(state, [3])
    np.testing.assert_array_equal(one.probabilities, several.probabilities)
    top = face.update(state, 3, n_top=2).probabilities
    assert isinstance(top, Likeliest)
    np.testing.assert_array_equal(top.categories[0], np.argsort(-one.probabilities[0])[:2])
    assert face.predict_next(state, n_top=1).probabilities[0, 0] == one.probabilities.max()


def test_what_is_refused(fitted):
    face, X, _ = fitted("states")
    state = face.filter_state()
    with pytest.raises(ValueError, match="a state is that of one; got 2"):
        face.update(state, [[0, 1], [1, 0]])
    with pytest.raises(
        TypeError, match="state must be what filter_state or update returned; got list"
    ):
        face.update([0, 1], [0])
    with pytest.raises(ValueError, match="needs a step that it has seen"):
        face.forecast(2, state)
    with pytest.raises(ValueError, match=r"tokens must be 0\.\.3"):
        face.update(state, [7])
    hmm, *_ = fitted("hmm")
    with pytest.raises(ValueError, match="exact filter, without particles"):
        hmm.filter_state(n_particles=10)
    short = Gibbs(1, 1, n_chains=1)
    normal = LogisticNormalLDS(1, n_particles=3, inference=short, random_state=0, n_jobs=1).fit(X)
    with pytest.raises(TypeError, match="no filter that goes on from a state"):
        normal.filter_state(X)


@pytest.mark.parametrize("freq", ["D", "ME", "B"])
def test_dates_go_on_from_a_state(freq, fitted):
    face, X, _ = fitted("states")
    tokens = pd.Series(X[:9], pd.date_range("2026-01-30", periods=9, freq=freq, name="when"))
    whole = face.forecast(3, tokens)[0]
    assert list(whole.index) == list(pd.date_range(tokens.index[-1], periods=4, freq=freq)[1:])
    state = face.filter_state()
    for a, b in [(0, 4), (4, 8), (8, 9)]:
        state = face.update(state, tokens.iloc[a:b]).state
    pd.testing.assert_index_equal(face.forecast(3, state)[0].index, whole.index)
    later = face.update(state, 3).state
    assert list(face.forecast(2, later)[0].index) == [10, 11]  # no date for the last step
