"""The faces of models of sequences: one table over all of them, and what each promises by itself."""

import pickle

import numba
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.special import gammaln
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import naive_hidden_markov as naive
from polystick import Gibbs, MeanField, scores
from polystick.baselines.sequence_models import (
    LogisticNormalLDS,
    MultinomialHMM,
    RawLDS,
    SmoothedUnigram,
)
from polystick.baselines.unigram import Unigram
from polystick.estimators.sequence_face import Filtered, Forecast, SequenceEstimator
from statistics_tools import MAX_Z

PLAIN = bool(numba.config.DISABLE_JIT)
needs_jit = pytest.mark.skipif(PLAIN, reason="thousands of steps need the compiler")
SHORT = Gibbs(n_draws=3, n_burn=6, n_chains=2)
RUN = {"inference": SHORT, "random_state": 7, "n_jobs": 1}
PARTICLES = 10 if PLAIN else 200
K = 4
FACES = {
    "hmm": MultinomialHMM(2, emission_concentration=1.0, **RUN),
    "logistic normal": LogisticNormalLDS(2, n_particles=5, **RUN),
    "raw": RawLDS(2, floor=1e-3, **RUN),
    "unigram": SmoothedUnigram(0.5, random_state=7),
}


def few(face, n=PARTICLES):
    """Return how many particles a filter has, if it has any."""
    return {"n_particles": n} if isinstance(face, LogisticNormalLDS) else {}


def simulated(seed=0):
    """Return tokens and rows of counts whose law changes now and then, with gaps."""
    rng = np.random.default_rng(seed)
    laws = np.array([[0.6, 0.2, 0.15, 0.05], [0.1, 0.1, 0.3, 0.5]])
    tokens = [rng.choice(K, p=laws[t // 6 % 2]) for t in range(24)]
    tokens[5] = tokens[6] = -1
    counts = np.stack([rng.multinomial(3, laws[t // 5 % 2]) for t in range(12)])
    counts[4] = 0
    return [np.array(tokens), counts]


X = simulated()
NEW = simulated(1)


@pytest.fixture(scope="module")
def fitted():
    """Fit each face once, when it is first asked for."""
    kept = {}

    def fit(name):
        if name not in kept:
            kept[name] = clone(FACES[name]).fit(X)
        return kept[name]

    return fit


@pytest.fixture(params=FACES)
def face(request, fitted):
    return fitted(request.param)


# scikit-learn's contract


@pytest.mark.parametrize("name", FACES)
def test_parameters_clone_and_repr(name):
    model = FACES[name]
    params = model.get_params(deep=False)
    assert clone(model).get_params(deep=False) == params
    assert repr(model).startswith(type(model).__name__ + "(")
    assert model.set_params(**params) is model
    with pytest.raises(NotFittedError):
        model.predict_proba(X)
    for method in (model.filter, model.score, model.score_samples, model.score_steps):
        with pytest.raises(NotFittedError):
            method(X)
    with pytest.raises(NotFittedError):
        model.forecast(2)
    with pytest.raises(NotFittedError):
        model.simulate(2)
    assert not hasattr(model, "sequences_")


def test_attributes(face):
    assert face.n_features_in_ == K
    np.testing.assert_array_equal(face.categories_, np.arange(K))
    np.testing.assert_array_equal(face.sequences_[0], X[0])
    np.testing.assert_array_equal(face.sequences_[1].toarray(), X[1])
    assert face.seed_ == 7
    if not isinstance(face, SmoothedUnigram):
        assert face.n_iter_ == 9
        assert face.posterior_.log_likelihood.shape == (2, 3)
        assert face.posterior_.tree.attrs["n_sweeps"] == 9


def test_pickle_gives_the_same(face):
    again = pickle.loads(pickle.dumps(face))
    for mine, other in zip(
        face.predict_proba(NEW, **few(face)), again.predict_proba(NEW, **few(face))
    ):
        np.testing.assert_array_equal(mine, other)


def test_a_fit_changes_no_parameter_and_a_failed_one_nothing(face):
    before = face.get_params(deep=False)
    expected = face.score(NEW, **few(face))
    with pytest.raises(ValueError, match=r"tokens must be 0, 1, \.\.\., or -1"):
        face.fit([[0, 1, -7]])
    with pytest.raises(ValueError, match="nothing but missing"):
        face.fit(0 * X[1])
    assert face.score(NEW, **few(face)) == expected
    assert face.get_params(deep=False) == before


def test_nothing_is_shown_unless_asked_for(face, capfd):
    face.score(NEW, **few(face))
    face.forecast(2, **few(face))
    assert capfd.readouterr() == ("", "")


# shapes


def test_shapes_and_sums(face):
    n_states = {SmoothedUnigram: 0}.get(type(face), 2)
    found = face.filter(NEW, **few(face))
    assert len(found) == 2
    for each, length in zip(found, (24, 12)):
        assert isinstance(each, Filtered)
        assert each.states.shape == each.states_sd.shape == (length, n_states)
        assert (each.states_sd >= 0).all()
        assert each.probabilities.shape == (length, K)
        np.testing.assert_allclose(each.probabilities.sum(axis=1), 1.0)
    for pi, length in zip(face.predict_proba(NEW, **few(face)), (24, 12)):
        assert pi.shape == (length, K)
        np.testing.assert_allclose(pi.sum(axis=1), 1.0)
        assert (pi > 0).all()
    assert face.score_samples(NEW, **few(face)).shape == (2,)
    assert isinstance(face.score(NEW, **few(face)), float)


def test_one_sequence_gives_a_list_of_one(face):
    for sequence in X:
        (alone,) = face.predict_proba(sequence, **few(face))
        (listed,) = face.predict_proba([sequence], **few(face))
        np.testing.assert_array_equal(alone, listed)


def test_forms_do_not_matter(face):
    counts = pd.DataFrame(NEW[1])
    forms = [NEW[0].tolist(), counts], [pd.Series(NEW[0]), scipy.sparse.csr_array(NEW[1])]
    expected = face.score_samples(NEW, **few(face))
    for form in forms:
        np.testing.assert_array_equal(face.score_samples(form, **few(face)), expected)


# scores


def test_one_step_ahead_is_what_was_expected_of_each_token(face):
    (pi,), tokens = face.predict_proba(NEW[0], **few(face)), NEW[0]
    seen = np.flatnonzero(tokens >= 0)
    expected = np.log(pi[seen, tokens[seen]])
    np.testing.assert_allclose(face.score_samples(tokens, **few(face)), expected.sum())
    assert face.score(tokens, **few(face)) == pytest.approx(expected.mean())
    later = np.log(pi[seen, tokens[seen]])[seen >= 10]
    assert face.score(tokens, n_seen=10, **few(face)) == pytest.approx(later.mean())


def test_steps_of_draws_make_the_scores(face):
    steps = face.score_steps(NEW, **few(face))
    assert [each.shape[1] for each in steps] == [24, 12]
    missing = NEW[0] < 0
    assert missing.any()
    np.testing.assert_array_equal(steps[0][:, missing], 0.0)
    ahead = [scores.log_mean_exp(each, axis=0).sum() for each in steps]
    np.testing.assert_allclose(ahead, face.score_samples(NEW, **few(face)))
    if not isinstance(face, SmoothedUnigram):
        joint = [scores.log_mean_exp(each.sum(axis=1), axis=0) for each in steps]
        np.testing.assert_allclose(joint, face.score_samples(NEW, joint=True, **few(face)))


def test_what_was_seen_is_given(face):
    whole = face.score_samples(NEW, **few(face))
    first = face.score_samples([NEW[0][:9], NEW[1][:4]], **few(face))
    rest = face.score_samples(NEW, n_seen=[9, 4], **few(face))
    np.testing.assert_allclose(first + rest, whole)
    nothing = face.score_samples(NEW, n_seen=[24, 12], **few(face))
    np.testing.assert_array_equal(nothing, 0.0)
    assert np.isnan(face.score(NEW, n_seen=[24, 12], joint=True, **few(face)))
    n_held_out = (NEW[0][9:] >= 0).sum() + NEW[1][4:].sum()
    assert face.score(NEW, n_seen=[9, 4], **few(face)) == pytest.approx(rest.sum() / n_held_out)


def test_joint_and_one_step_agree_on_a_single_step(face):
    for options in ({}, {"n_draws": 1}):
        ahead, joint = (
            face.score_samples(NEW, n_seen=[23, 11], joint=j, **options, **few(face))
            for j in (False, True)
        )
        np.testing.assert_allclose(ahead, joint)
    if not isinstance(face, SmoothedUnigram):
        ahead, joint = (face.score(NEW, joint=j, **few(face)) for j in (False, True))
        assert ahead != pytest.approx(joint, rel=1e-6)
        one, one_joint = (face.score(NEW, joint=j, n_draws=1, **few(face)) for j in (False, True))
        assert one == pytest.approx(one_joint)  # one draw: the chain rule


def test_missing_steps_say_nothing(face):
    gaps = [np.append(NEW[0], [-1, -1]), np.vstack([NEW[1], 0 * NEW[1][:2]])]
    whole, longer = (face.score_samples(x, **few(face)) for x in (NEW, gaps))
    np.testing.assert_allclose(whole, longer)
    ahead, now = face.predict_proba(NEW, **few(face)), face.filter(NEW, **few(face))
    for i, step in ((0, 5), (0, 6), (1, 4)):
        np.testing.assert_allclose(ahead[i][step], now[i].probabilities[step], rtol=1e-9)
    assert np.abs(ahead[0][8] - now[0].probabilities[8]).max() > 1e-4


def test_order_matters_where_there_are_dynamics(face):
    turned = [NEW[0][::-1], NEW[1][::-1]]
    there, back = (face.score(x, **few(face)) for x in (NEW, turned))
    assert (there == pytest.approx(back)) == isinstance(face, SmoothedUnigram)


# forecasts


def test_forecast(face):
    found = face.forecast(3, n_draws=40, **few(face))
    assert len(found) == 2
    for each in found:
        assert isinstance(each, Forecast)
        assert each.draws.shape == (40, 3, K)
        np.testing.assert_allclose(each.draws.sum(axis=2), 1.0)
        np.testing.assert_allclose(each.mean, each.draws.mean(axis=0))
        assert (each.lower <= each.mean).all()
        assert (each.mean <= each.upper).all()
        assert (np.ptp(each.draws, axis=0) > 0).all()
    again = face.forecast(3, X, n_draws=40, **few(face))
    other = face.forecast(3, NEW, n_draws=40, level=0.5, **few(face))
    for i in range(2):
        np.testing.assert_array_equal(found[i].draws, again[i].draws)
        half = np.quantile(other[i].draws, [0.25, 0.75], axis=0)
        np.testing.assert_allclose((other[i].lower, other[i].upper), half)
    assert face.forecast(1, NEW, n_draws=7, **few(face))[0].draws.shape == (7, 1, K)


def refuse_floor(face):
    if isinstance(face, RawLDS):
        pytest.skip("raising to the floor and averaging do not commute; see test_raw_dynamics")


def test_forecast_is_what_missing_steps_are_expected_to_be(face):
    """Paths, on average, are one step ahead of gaps that were appended."""
    refuse_floor(face)
    n_draws = 600 if PLAIN else 6000
    gaps = [np.append(NEW[0], [-1, -1]), np.vstack([NEW[1], 0 * NEW[1][:2]])]
    many = few(face, PARTICLES if PLAIN else 2000)
    found = face.forecast(2, NEW, n_draws=n_draws, **many)
    expected = face.predict_proba(gaps, **many)
    for each, pi in zip(found, expected):
        error = each.draws.std(axis=0) * np.sqrt(1 / n_draws + 1 / (2000 * 6))
        assert np.abs((each.mean - pi[-2:]) / error).max() < MAX_Z


def test_simulate(face):
    (tokens,) = face.simulate(30)
    assert tokens.shape == (30,)
    assert tokens.min() >= 0
    assert tokens.max() < K
    totals = [np.array([2, 0, 5]), np.array([1])]
    counts = face.simulate(totals, random_state=1)
    for table, total in zip(counts, totals):
        np.testing.assert_array_equal(table.sum(axis=1), total)
    for mine, other in zip(counts, face.simulate(totals, random_state=1)):
        np.testing.assert_array_equal(mine, other)
    many = [np.full(6, 9)] * 3
    one, two = (np.stack(face.simulate(many, random_state=seed)) for seed in (1, 2))
    assert (one != two).any()
    assert (one[0] != one[1]).any()


def test_simulated_steps_are_as_expected_of_nothing_seen(face):
    refuse_floor(face)
    n = 100 if PLAIN else 1500
    drawn = np.stack(face.simulate([np.full(3, 50)] * n, random_state=3)) / 50
    many = PARTICLES if PLAIN else 4000
    (expected,) = face.predict_proba([-1, -1, -1], **few(face, many))
    error = drawn.std(axis=0) * np.sqrt(1 / n + (1 / (many * 6)))
    assert np.abs((drawn.mean(axis=0) - expected) / error).max() < MAX_Z


# runs


@pytest.mark.parametrize("name", FACES)
def test_same_bits_on_any_number_of_threads(name, fitted):
    if name == "unigram":
        pytest.skip("it makes no runs")
    one, two = fitted(name), clone(FACES[name]).set_params(n_jobs=2).fit(X)
    for variable in one.posterior_.names():
        np.testing.assert_array_equal(one.posterior_[variable], two.posterior_[variable])
    for mine, other in zip(one.filter(NEW, **few(one)), two.filter(NEW, **few(two))):
        for part in ("states", "states_sd", "probabilities"):
            np.testing.assert_array_equal(getattr(mine, part), getattr(other, part))
    for mine, other in zip(one.forecast(2, **few(one)), two.forecast(2, **few(two))):
        np.testing.assert_array_equal(mine.draws, other.draws)
    for joint in (False, True):
        mine, other = (m.score_samples(NEW, joint=joint, **few(m)) for m in (one, two))
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("name", ["hmm", "raw"])
def test_a_fit_goes_on_from_its_checkpoint(name, fitted, tmp_path):
    model = clone(FACES[name]).set_params(checkpoint=tmp_path, inference=Gibbs(1, 6, n_chains=2))
    model.fit(X)
    resumed = model.set_params(inference=SHORT).fit(X, resume=True)
    whole = fitted(name)
    for variable in whole.posterior_.names():
        np.testing.assert_array_equal(whole.posterior_[variable], resumed.posterior_[variable])


@needs_jit
@pytest.mark.parametrize("name", FACES)
def test_learns_what_lasts(name):
    """Blocks of one category: who sees dynamics predicts better than frequencies."""
    rng = np.random.default_rng(3)
    blocks = np.repeat(rng.integers(3, size=40), 10)
    tokens = np.where(rng.random(400) < 0.1, rng.integers(3, size=400), blocks)
    model = clone(FACES[name])
    if name != "unigram":
        model.set_params(inference=Gibbs(30, 70, n_chains=1), n_states=3)
    if name == "logistic normal":
        model.set_params(n_particles=30)
    score = model.fit(tokens).score(tokens, n_seen=300, **few(model))
    static = SmoothedUnigram().fit(tokens).score(tokens, n_seen=300)
    assert (score > static + 0.2) == (name != "unigram")


def test_the_likeliest_categories_are_those_of_all(face):
    whole = face.predict_proba(NEW, **few(face))
    for n_top in (1, 3, 9):
        found = face.predict_proba(NEW, n_top=n_top, **few(face))
        for pi, top in zip(whole, found):
            n = min(n_top, K)
            order = np.argsort(-pi, axis=1, kind="stable")[:, :n]
            np.testing.assert_array_equal(top.categories, order)
            np.testing.assert_array_equal(top.probabilities, np.take_along_axis(pi, order, 1))
            assert list(top.to_frame()["probability"].columns) == list(range(1, n + 1))
    with pytest.raises(ValueError, match="n_top must be at least 1"):
        face.predict_proba(NEW, n_top=0)


# one by one


def test_hmm_scores_are_those_of_the_forward_algorithm(fitted):
    model, tokens = fitted("hmm"), NEW[0]
    draws = model._draws(32)
    assert len(draws) == 6

    def evidence(draw, stop):
        law = draw["emission"].T, draw["initial"], draw["transition"]
        return naive.log_evidence(tokens[:stop], *law) if stop else 0.0

    logs = np.array([[evidence(draw, t) for t in range(25)] for draw in draws])
    joint = scores.log_mean_exp(logs[:, 24] - logs[:, 8], axis=0)
    np.testing.assert_allclose(model.score_samples(tokens, n_seen=8, joint=True), joint)
    ahead = scores.log_mean_exp(np.diff(logs, axis=1), axis=0)
    np.testing.assert_allclose(model.score_samples(tokens, n_seen=8), ahead[8:].sum())
    assert model.score(tokens, n_seen=8) == pytest.approx(ahead[8:].sum() / 16)


def test_hmm_states_have_the_spread_of_indicators(fitted):
    """However many draws: the mean of p is all there is to know of a state that is there or not."""
    for n_draws in (1, 32):
        for each in fitted("hmm").filter(NEW, n_draws=n_draws):
            states, sd = each.states, each.states_sd
            np.testing.assert_allclose(states.sum(axis=1), 1.0)
            np.testing.assert_allclose(sd, np.sqrt(states * (1 - states)), atol=1e-7)


def particle_values(draw, tokens, n_particles, rng):
    """Return estimates of log p(x_t | before) of a hidden Markov model by particles of its states."""
    values, law = [], np.tile(draw["initial"], (n_particles, 1))
    for token in tokens:
        states = (rng.random((n_particles, 1)) > np.cumsum(law, axis=1)[:, :-1]).sum(axis=1)
        weights = draw["emission"][states, token] if token >= 0 else np.ones(n_particles)
        values.append(np.log(weights.mean()))
        kept = rng.choice(n_particles, n_particles, p=weights / weights.sum())
        law = draw["transition"][states[kept]]
    return values


def test_an_hmm_scored_by_particles_has_the_exact_score(fitted):
    """So models that have only particles are scored by the same estimator as those that are exact."""
    model, tokens, rng = fitted("hmm"), NEW[0], np.random.default_rng(0)
    for joint in (False, True):
        exact = model.score_samples(tokens, n_seen=8, joint=joint)[0]
        found = []
        for _ in range(20):
            values = [particle_values(d, tokens, 500, rng) for d in model._draws(32)]
            found.append(scores.held_out_steps(values, [0, 24], 8, joint=joint)[0])
        assert np.abs(np.mean(found) - exact) < MAX_Z * np.std(found, ddof=1) / np.sqrt(20)
        assert np.std(found) < 0.2


def test_unigram_by_hand():
    model = SmoothedUnigram(0.5, n_categories=3).fit([[0, 0, 1], [1, 0, -1]])
    np.testing.assert_array_equal(model.counts_, [3, 2, 0])
    pi = np.array([3.5, 2.5, 0.5]) / 6.5
    np.testing.assert_allclose(model.probabilities_, pi)
    np.testing.assert_allclose(model.predict_proba([2, -1])[0], [pi, pi])
    assert model.score([0, 2, 2]) == pytest.approx(np.log(pi[[0, 2, 2]]).mean())
    # all at once: a token makes its like more probable
    joint = np.log(3.5 / 6.5 * 0.5 / 7.5 * 1.5 / 8.5)
    assert model.score_samples([0, 2, 2], joint=True)[0] == pytest.approx(joint)
    assert model.score_samples([0, 2, 2], n_seen=1, joint=True)[0] == pytest.approx(
        np.log(0.5 / 6.5 * 1.5 / 7.5)
    )
    row = model.score_samples([[[1, 0, 2]]])[0]  # a row of counts is one step
    assert row == pytest.approx(joint)
    now = np.array([3.5, 2.5, 1.5]) / 7.5
    np.testing.assert_allclose(model.filter([2])[0].probabilities, [now])


def relative_error(draws):
    return draws.std(axis=0) / draws.mean(axis=0) / np.sqrt(len(draws))


def test_unigram_is_what_the_estimator_tends_to():
    """Draws of pi, scored like any model, come to the closed forms, both of them."""
    model, rng = SmoothedUnigram(0.5).fit(X), np.random.default_rng(2)
    pi = rng.dirichlet(model.model_.concentration, 200_000)
    values = (NEW[1] @ np.log(pi).T).T
    steps = np.exp(values[:, 2:])
    errors = [relative_error(steps).sum(), relative_error(steps.prod(axis=1))]
    for joint, error in zip((False, True), errors):
        found = scores.held_out_steps(values, [0, 12], 2, joint=joint)[0]
        exact = model.score_samples(NEW[1], n_seen=2, joint=joint)[0]
        assert abs(found - exact) < MAX_Z * error
        assert error < 0.02
    ahead, joint = (model.score_samples(NEW[1], joint=j)[0] for j in (False, True))
    assert abs(ahead - joint) > 0.03
    counts, a = NEW[1].sum(axis=0), model.model_.concentration
    whole = gammaln(a + counts).sum() - gammaln(a).sum() + gammaln(a.sum())
    assert joint == pytest.approx(whole - gammaln(a.sum() + counts.sum()))


def test_names_travel():
    names = ["a", "c", "g", "t"]
    table = pd.DataFrame(X[1], columns=names)
    model = SmoothedUnigram().fit(table)
    assert list(model.categories_) == names
    assert np.isfinite(model.score(X[1]))
    with pytest.raises(ValueError, match="same categories in the same order"):
        model.score(table[names[::-1]])
    hmm = clone(FACES["hmm"]).fit(table)
    assert list(hmm.posterior_.tree["posterior"]["category"].values) == names


# errors


def test_what_comes_later_must_be_like_the_fit(face):
    for method in (face.filter, face.predict_proba, face.score, face.score_samples):
        with pytest.raises(ValueError, match=r"tokens must be 0..3.*step 1 of sequence 0 has 4"):
            method([0, 4])
        with pytest.raises(
            ValueError, match="4 categories seen in fit as columns; sequence 1 has 3"
        ):
            method([X[1], X[1][:, :3]])
        with pytest.raises(ValueError, match="has no inputs; got inputs"):
            method(X, [np.zeros((24, 1)), np.zeros((12, 1))])
        with pytest.raises(ValueError, match="n_draws must be at least 1; got 0"):
            method(X, n_draws=0)
    with pytest.raises(ValueError, match="has no inputs; got inputs"):
        face.fit(X, [np.zeros((24, 1)), np.zeros((12, 1))])
    with pytest.raises(ValueError, match="has no inputs; got new_inputs"):
        face.forecast(2, new_inputs=np.zeros((2, 1)))
    with pytest.raises(ValueError, match="sequences must have at least 2 steps; sequence 1 has 1"):
        face.fit([X[0], [1]])
    with pytest.raises(
        ValueError, match="between 0 and the number of steps; got 13 for sequence 1"
    ):
        face.score(X, n_seen=13)
    with pytest.raises(ValueError, match="n_steps must be at least 1"):
        face.forecast(0)
    with pytest.raises(ValueError, match="below 1"):
        face.forecast(2, level=1.5)
    with pytest.raises(ValueError, match="inputs must come with their X"):
        face.forecast(2, inputs=np.zeros((3, 1)))
    wrong = "n_particles must be at least 1" if few(face) else "exact filter.*leave it out"
    with pytest.raises(ValueError, match=wrong):
        face.score(X, n_particles=0)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (MultinomialHMM(0), ValueError, "n_states must be at least 1"),
        (MultinomialHMM(2.5), TypeError, "n_states must be an integer"),
        (
            MultinomialHMM(transition_concentration=0),
            ValueError,
            "transition_concentration must be",
        ),
        (MultinomialHMM(inference=MeanField()), TypeError, "MultinomialHMM needs inference=Gibbs"),
        (MultinomialHMM(n_categories=1), ValueError, "n_categories must be at least 2"),
        (MultinomialHMM(n_categories=3), ValueError, "tokens must be 0..2"),
        (MultinomialHMM(n_jobs=0), ValueError, "n_jobs must not be 0"),
        (MultinomialHMM(random_state=-1), ValueError, "random_state must not be negative"),
        (LogisticNormalLDS(n_particles=1), ValueError, "n_particles must be at least 2"),
        (LogisticNormalLDS(bias_scale=-1.0), ValueError, "bias_scale must be"),
        (LogisticNormalLDS(emission_scale=0), ValueError, "emission_scale must be"),
        (RawLDS(floor=0.0), ValueError, "floor must be finite and above 0"),
        (RawLDS(floor=2), ValueError, "floor must be a probability below 1"),
        (SmoothedUnigram(0), ValueError, "concentration must be finite and above 0"),
    ],
    ids=lambda v: str(v)[:40],
)
def test_wrong_settings(model, error, message):
    with pytest.raises(error, match=message):
        model.fit([0, 1, 2, 3])


# inputs, where a model has them


class Echo(Unigram):
    """Takes inputs, and hands them back as probabilities."""

    def shards(self, sequences, inputs=None):
        self.seen.append(inputs)
        return super().shards(sequences)

    def forecast(self, after, n_steps, key, n_paths, inputs=None):
        self.seen.append(inputs)
        return super().forecast(after, n_steps, key, n_paths)

    def simulate(self, totals, rng, inputs=None):
        self.seen.append(inputs)
        return super().simulate(totals, rng)


class WithInputs(SmoothedUnigram):
    _takes_inputs = True

    def _learn(self, resume):
        super()._learn(resume)
        self.model_ = Echo(self.model_.concentration)
        object.__setattr__(self.model_, "seen", [])

    def _log_probabilities(self, *args):
        return SequenceEstimator._log_probabilities(self, *args)


def test_inputs_reach_the_model():
    u = [np.arange(24.0)[:, None], np.ones((12, 1))]
    model = WithInputs(random_state=0).fit(X, u)
    assert model.n_inputs_ == 1
    seen = model.model_.seen
    for call in (model.filter, model.predict_proba, model.score, model.score_samples):
        call(X, u)
        np.testing.assert_array_equal(seen.pop()[0], u[0])
    model.forecast(3, new_inputs=np.full((3, 1), 5.0))
    np.testing.assert_array_equal(seen.pop(), np.full((2, 3, 1), 5.0))
    np.testing.assert_array_equal(seen.pop()[0], u[0])
    model.forecast(3, X, u, new_inputs=[np.zeros((3, 1)), np.ones((3, 1))])
    np.testing.assert_array_equal(seen.pop()[:, 0, 0], [0.0, 1.0])
    model.simulate([np.ones(2, int), np.ones(1, int)], [np.zeros((2, 1)), np.ones((1, 1))])
    np.testing.assert_array_equal(seen.pop(), [[[1.0]]])


def test_inputs_must_be_those_of_the_fit():
    u = [np.zeros((24, 2)), np.ones((12, 2))]
    model = WithInputs(random_state=0).fit(X, u)
    for call in (model.filter, model.predict_proba, model.score, model.score_samples):
        with pytest.raises(ValueError, match="inputs must be given, for the fit had 2 of them"):
            call(X)
        with pytest.raises(ValueError, match="inputs must have 2 columns, like those of the fit"):
            call(X, [table[:, :1] for table in u])
        with pytest.raises(ValueError, match="those of sequence 1 have 11 rows for 12 steps"):
            call(X, [u[0], u[1][:-1]])
    with pytest.raises(ValueError, match="new_inputs must be given, for the fit had 2"):
        model.forecast(3)
    with pytest.raises(ValueError, match="new_inputs must have a row for each step"):
        model.forecast(3, new_inputs=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="inputs must be given"):
        model.simulate(3)
    without = WithInputs(random_state=0).fit(X)
    with pytest.raises(ValueError, match="inputs must not be given, for the fit had none"):
        without.score(X, u)
