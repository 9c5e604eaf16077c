"""`MultinomialLDS(n_regimes=...)`: what it says, and that it finds regimes that are there."""

import numba
import numpy as np
import pytest

from polystick import Gibbs, MeanField, MultinomialLDS

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="hundreds of sweeps need the compiler")
SHORT = Gibbs(6, 8, n_chains=2)
TOKENS = [np.arange(30) // 5 % 3, np.arange(12) // 4 % 3]
RUN = {"inference": SHORT, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    return MultinomialLDS(2, n_regimes=2, **RUN).fit(TOKENS)


def test_all_methods_speak(fitted):
    draws = fitted.posterior_
    assert draws["dynamics"].shape == (2, 6, 2, 2, 2)
    np.testing.assert_allclose(draws["transition"].sum(axis=-1), 1.0)
    for law, tokens in zip(fitted.regimes_, TOKENS):
        assert law.shape == (len(tokens), 2)
        np.testing.assert_allclose(law.sum(axis=1), 1.0)
    for method in (
        fitted.smooth,
        lambda: fitted.smooth(TOKENS, n_draws=4),
        lambda: fitted.filter(TOKENS),
    ):
        for found, tokens in zip(method(), TOKENS):
            assert found.states.shape == (len(tokens), 2)
            np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    assert fitted.forecast(4, n_draws=10)[1].draws.shape == (10, 4, 3)
    assert np.isfinite(fitted.score(TOKENS, n_particles=50))
    assert fitted.predict_counts(n_draws=2)[0].shape == (2, 30, 3)
    assert fitted.sample_prior(7)[0].shape == (1, 7, 3)
    assert len(fitted.simulate(9)[0]) == 9
    assert fitted.probability_draws(n_steps=3)["probabilities"].shape[-2:] == (3, 3)


def test_streams_equal_batches(fitted):
    tokens = TOKENS[1]
    whole = fitted.predict_proba(tokens, n_draws=3, n_particles=40)[0]
    state, parts = fitted.filter_state(n_draws=3, n_particles=40), []
    for piece in np.split(tokens, [1, 7]):
        state, pi, _ = fitted.update(state, piece)
        parts.append(pi)
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-12)


def test_same_bits_on_any_number_of_threads(fitted):
    again = MultinomialLDS(2, n_regimes=2, n_jobs=2, **RUN).fit(TOKENS)
    for name in ("dynamics", "emission", "transition"):
        np.testing.assert_array_equal(again.posterior_[name], fitted.posterior_[name])
    for one, other in zip(again.regimes_, fitted.regimes_):
        np.testing.assert_array_equal(one, other)
    assert again.score(TOKENS, n_draws=3) == fitted.score(TOKENS, n_draws=3)


def test_inputs_push_the_states_of_each_regime():
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal((len(tokens), 2)) for tokens in TOKENS]
    model = MultinomialLDS(2, n_regimes=3, inputs_on="both", **RUN).fit(TOKENS, inputs)
    assert model.posterior_["dynamics_input"].shape == (2, 6, 3, 2, 2)
    ahead = model.forecast(3, new_inputs=np.zeros((3, 2)), n_draws=8)
    assert ahead[0].draws.shape == (8, 3, 3)


def test_one_regime_is_the_model_that_there_was():
    plain, one = (MultinomialLDS(2, **more, **RUN).fit(TOKENS) for more in ({}, {"n_regimes": 1}))
    np.testing.assert_array_equal(plain.posterior_["dynamics"], one.posterior_["dynamics"])
    assert [law.shape for law in one.regimes_] == [(30, 1), (12, 1)]


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"n_regimes": 0}, ValueError, "n_regimes must be at least 1"),
        ({"n_regimes": 2.5}, TypeError, "n_regimes must be an integer"),
        ({"n_regimes": 2, "inference": MeanField()}, ValueError, "regimes need inference=Gibbs"),
    ],
)
def test_what_is_refused(more, error, message):
    with pytest.raises(error, match=message):
        MultinomialLDS(2, **more).fit(TOKENS)


def switching_counts(rng, n_steps=300, total=60):
    """Return counts of three categories whose logits rest for a while and then swing, and when they swing."""
    swings = np.arange(n_steps) // 50 % 2 == 1
    turn = np.array([[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]])
    state, psi = np.array([1.0, 0.0]), np.empty((n_steps, 2))
    for t in range(n_steps):
        step = 0.98 * turn if swings[t] else 0.99 * np.eye(2)
        state = step @ state + rng.normal(0, 0.25 if swings[t] else 0.02, 2)
        psi[t] = 1.5 * state
    odds = np.exp(np.column_stack([psi, np.zeros(n_steps)]))
    return rng.multinomial(total, odds / odds.sum(axis=1, keepdims=True)), swings


@needs_jit
def test_regimes_that_are_there_are_found():
    counts, swings = switching_counts(np.random.default_rng(4))
    schedule = Gibbs(100, 300, n_chains=2)
    model = MultinomialLDS(2, n_regimes=2, inference=schedule, random_state=1).fit([counts])
    (law,) = model.regimes_
    restless = law[:, 1] > 0.5  # the second, for regimes are named by how far psi goes
    assert np.mean(restless == swings) > 0.9
    stays = model.posterior_.flat("transition")[:, [0, 1], [0, 1]].mean(axis=0)
    assert (stays > 0.9).all()
    plain = MultinomialLDS(2, inference=schedule, random_state=1).fit([counts])
    later, _ = switching_counts(np.random.default_rng(5))
    assert model.score([later], n_draws=8) > plain.score([later], n_draws=8)
