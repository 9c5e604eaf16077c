"""The faces of dynamics: what they learn, say and refuse, beyond what all faces of sequences share."""

import numba
import numpy as np
import pytest

from polystick import DynamicMultinomial, Gibbs, MeanField, MultinomialLDS, StochasticVI
from polystick.models import gauge

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="hundreds of sweeps need the compiler")
SHORT = Gibbs(12, 8, n_chains=2)
TOKENS = [np.arange(30) // 5 % 3, np.arange(12) // 4 % 3]


@pytest.fixture(scope="module")
def fitted():
    return MultinomialLDS(2, inference=SHORT, random_state=0).fit(TOKENS)


def test_smoothing_the_fit_and_the_same_sequences_anew(fitted):
    kept, anew = fitted.smooth(), fitted.smooth(TOKENS)
    for one, other, tokens in zip(kept, anew, TOKENS):
        assert one.probabilities.shape == other.probabilities.shape == (len(tokens), 3)
        assert one.states.shape == one.states_sd.shape == (len(tokens), 2)
        assert (one.lower <= one.probabilities).all()
        assert (one.probabilities <= one.upper).all()
        np.testing.assert_allclose(other.probabilities.sum(axis=1), 1)


@needs_jit
def test_smoothing_anew_agrees_with_the_fit():
    rng = np.random.default_rng(3)
    psi = np.cumsum(0.3 * rng.standard_normal(80))
    counts = rng.multinomial(30, np.column_stack([1 / (1 + np.exp(-psi)), 1 / (1 + np.exp(psi))]))
    model = MultinomialLDS(1, inference=Gibbs(200, 200, n_chains=2), random_state=0).fit(counts)
    kept, anew = (model.smooth(X, n_draws=100)[0] for X in (None, counts))
    gap = np.abs(kept.probabilities - anew.probabilities)
    width = (kept.upper - kept.lower) / 3.3  # about a standard deviation
    assert (gap < 6 * width * np.sqrt(2 / 25)).all(), (
        gap / width
    ).max()  # 25: draws are correlated


def test_a_turn_leaves_the_law_alone_and_brings_draws_together(fitted):
    draw = fitted._draws(4)[0]
    u, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))
    away = {**draw, "emission": draw["emission"] @ u}
    for name in ("dynamics", "dynamics_cov", "initial_cov"):
        away[name] = u.T @ draw[name] @ u
    away["initial_mean"] = u.T @ draw["initial_mean"]
    back = gauge.turn(away, draw, np.ones(2))
    for name in back:
        np.testing.assert_allclose(back[name], draw[name], atol=1e-12)


def test_inputs_push_states_or_emissions():
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal((len(tokens), 2)) for tokens in TOKENS]
    names = {"states": {"dynamics_input"}, "emissions": {"emission_input"}}
    names["both"] = names["states"] | names["emissions"]
    for place, expected in names.items():
        model = MultinomialLDS(2, inputs_on=place, inference=SHORT, random_state=0)
        model.fit(TOKENS, inputs)
        found = set(model.posterior_.names())
        assert found & names["both"] == expected
        assert model.smooth()[1].probabilities.shape == (12, 3)
        ahead = model.forecast(3, new_inputs=np.zeros((3, 2)), n_draws=8)
        assert ahead[0].draws.shape == (8, 3, 3)
        assert np.isfinite(model.score(TOKENS, inputs, n_seen=5))


@needs_jit
def test_inputs_that_tell_all_are_used():
    rng = np.random.default_rng(2)
    inputs = rng.standard_normal((400, 1))
    tokens = (inputs[:, 0] + 0.3 * rng.logistic(size=400) > 0).astype(int)
    schedule = Gibbs(60, 60, n_chains=2)
    told = MultinomialLDS(
        1, inputs_on="emissions", bias_scale=5.0, inference=schedule, random_state=0
    )
    blind = MultinomialLDS(1, inference=schedule, random_state=0)
    told.fit(tokens[:300], inputs[:300])
    blind.fit(tokens[:300])
    gain = told.score(tokens, inputs, n_seen=300) - blind.score(tokens, n_seen=300)
    assert gain > 0.2


def test_without_a_bias_the_paper_is_followed():
    model = MultinomialLDS(2, emission_bias=False, inference=SHORT, random_state=0).fit(TOKENS)
    assert "emission_bias" not in model.posterior_.names()
    assert np.isfinite(model.score(TOKENS))


@pytest.mark.parametrize("dynamics", ["walk", "return"])
def test_compositions_over_time(dynamics):
    rng = np.random.default_rng(0)
    share = 1 / (1 + np.exp(-np.linspace(-2, 2, 25)))
    counts = rng.multinomial(200, np.column_stack([share, 0.7 * (1 - share), 0.3 * (1 - share)]))
    counts[10] = 0  # nothing was seen
    n = 8 if PLAIN else 150
    model = DynamicMultinomial(dynamics, inference=Gibbs(n, n, n_chains=2), random_state=0)
    model.fit(counts)
    smooth, ahead = model.smooth()[0], model.forecast(4)[0]
    assert smooth.probabilities.shape == (25, 3)
    assert ahead.mean.shape == (4, 3)
    if not PLAIN:
        assert np.abs(smooth.probabilities[:, 0] - share).max() < 0.1
        assert ((smooth.lower[:, 0] <= share) & (share <= smooth.upper[:, 0])).mean() > 0.7
        assert (np.diff(ahead.upper[:, 0] - ahead.lower[:, 0]) > -0.05).all()
        assert ahead.mean[0, 0] > 0.7


@pytest.mark.parametrize(
    ("model", "fitting", "said"),
    [
        (MultinomialLDS(0), {}, "n_states must be at least 1"),
        (MultinomialLDS(inputs_on="all"), {}, "inputs_on must be None"),
        (MultinomialLDS(inputs_on="states"), {}, "needs inputs in fit"),
        (MultinomialLDS(), {"inputs": [np.zeros((30, 1)), np.zeros((12, 1))]}, "no use for inputs"),
        (MultinomialLDS(emission_bias=False, bias_scale=2.0), {}, "bias_scale is of no use"),
        (MultinomialLDS(input_scale=2.0), {}, "input_scale is of no use without inputs"),
        (MultinomialLDS(emission_scale=0), {}, "emission_scale must be finite and above 0"),
        (MultinomialLDS(decomposition="nothing"), {}, "decomposition"),
        (MultinomialLDS(inference=StochasticVI()), {}, "needs inference=Gibbs"),
        (DynamicMultinomial(inference=MeanField()), {}, "needs inference=Gibbs"),
        (DynamicMultinomial("jump"), {}, 'dynamics must be "walk" or "return"'),
        (DynamicMultinomial(step_scale=-1.0), {}, "step_scale must be finite and above 0"),
    ],
)  # fmt: skip
def test_what_is_refused(model, fitting, said):
    with pytest.raises((ValueError, TypeError), match=said):
        model.fit(TOKENS, **fitting)


def test_a_run_is_judged_by_probabilities(fitted):
    draws = fitted.probability_draws(n_steps=4, n_top=2)
    pi = draws["probabilities"]
    assert pi.shape == (2, 12, 4, 2)
    assert "over log_likelihood, probabilities" in draws.summary()
    kept = fitted._kept_states(10_000)  # all 24, turned, which does not matter
    expected = np.stack([p.probabilities(z, np.ones((len(z), 1))) for p, z in kept])
    steps = draws.tree["posterior"]["step"].values
    top = draws.tree["posterior"]["category"].values.astype(int)
    found = pi.reshape(24, 4, 2)
    np.testing.assert_allclose(found, expected[:, steps][:, :, top])


@needs_jit
def test_mean_field_has_the_same_face():
    tree = MultinomialLDS(
        2, decomposition="balanced", inference=MeanField(tolerance=1e-2), random_state=0
    )
    tree.fit([np.tile(tokens, 3) for tokens in TOKENS])
    assert np.isfinite(tree.score(TOKENS))
    assert tree.smooth()[0].probabilities.shape == (90, 3)
    assert tree.forecast(2)[1].mean.shape == (2, 3)
