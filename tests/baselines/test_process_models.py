"""The baselines of multinomial Gaussian processes: what they learn, and the face that they share."""

from dataclasses import replace

import numba
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from polystick import scores
from polystick.baselines.process_models import LogisticNormalGP, RawGP, Static
from polystick.baselines.process_regression import Grid, Regression, fit
from polystick.covariances import OnColumns, Separable
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from statistics_tools import MAX_Z, z_scores

PLAIN = bool(numba.config.DISABLE_JIT)
TIME, PLACE = ConstantKernel(2.0) * Matern(3.0, nu=2.5), RBF([1.5, 1.0])
KERNEL = Separable(OnColumns(TIME, 0), OnColumns(PLACE, [1, 2]))
PLACES = np.array([[0.0, 0.0], [1.0, 0.5], [0.3, 2.0]])
GRID = np.array([[t, *place] for place in PLACES for t in (2.0, 0.0, 1.0, 4.5)])
LATER = np.array([9.0, 0.0, 0.0])


@pytest.fixture
def rng():
    return np.random.default_rng(2015)


def counts_at(inputs, rng, n_trials=40):
    """Return probabilities and counts of 4 categories that drift with time."""
    slopes = np.array([0.5, 0.0, -0.3, 0.1])
    psi = np.array([1.0, 0.5, 0.0, -1.0]) + inputs[:, :1] * slopes + 0.3 * inputs[:, 1:2]
    pi = np.exp(psi) / np.exp(psi).sum(axis=1, keepdims=True)
    return pi, rng.multinomial(n_trials, pi)


# regression


def as_one_axis(grid):
    return Grid(grid.kernel, grid.inputs, (grid.inputs,), np.arange(len(grid.inputs)))


@pytest.fixture(params=["grid", "one axis", "three axes"])
def regression(request, rng):
    kernel = KERNEL
    if request.param == "three axes":
        parts = (OnColumns(RBF(1.0 + i), i) for i in range(3))
        kernel = Separable(*parts)
    inputs = GRID
    if request.param == "three axes":
        inputs = np.array([[t, x, y] for x in (0, 1) for t in (3, 0, 1) for y in (0.0, 0.7)])
    grid = Grid.of(kernel, inputs)
    assert len(grid.axes) == (3 if request.param == "three axes" else 2)
    if request.param == "one axis":
        grid = as_one_axis(grid)
    return Regression(grid, 0.3, rng.normal(size=(len(inputs), 5)))


def test_evidence_is_the_gaussian_one(regression):
    grid = regression.grid
    cov = grid.kernel(grid.inputs) + 0.3 * np.eye(len(grid.inputs))
    expected = stats.multivariate_normal(cov=cov).logpdf(regression.targets.T).sum()
    assert regression.log_evidence() == pytest.approx(expected, rel=1e-12)


def test_gradient_is_that_of_the_evidence(regression):
    kernel, step = regression.grid.kernel, 1e-5

    def value(point):
        grid = replace(regression.grid, kernel=kernel.clone_with_theta(point[:-1]))
        return replace(regression, grid=grid, noise=np.exp(point[-1])).log_evidence()

    point = np.append(kernel.theta, np.log(0.3))
    units = step * np.eye(len(point))
    slopes = [(value(point + unit) - value(point - unit)) / (2 * step) for unit in units]
    np.testing.assert_allclose(regression.gradient(), slopes, rtol=1e-6, atol=1e-6)


def test_prediction_is_that_of_scikit_learn(regression, rng):
    new = rng.normal(size=(6, 3))
    grid = regression.grid
    twin = GaussianProcessRegressor(grid.kernel, alpha=0.3, optimizer=None)
    mean, std = twin.fit(grid.inputs, regression.targets).predict(new, return_std=True)
    found, variance = regression.predict(new)
    np.testing.assert_allclose(found, mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(variance, std[:, 0] ** 2, rtol=1e-8, atol=1e-10)


def test_the_climb_ends_at_the_top(rng):
    regression = Regression(Grid.of(KERNEL, GRID), 1.0, _targets(KERNEL, GRID, 40, rng))
    best, settled = fit(regression)
    assert settled
    assert best.log_evidence() > regression.log_evidence() + 1.0
    scale = np.abs(best.log_evidence())
    assert np.abs(best.gradient()).max() < 1e-4 * scale
    kernel = KERNEL + WhiteKernel(1.0)
    twin = GaussianProcessRegressor(kernel, alpha=0.0).fit(GRID, regression.targets)
    assert best.log_evidence() > twin.log_marginal_likelihood_value_ - 1e-3
    other, _ = fit(replace(regression, grid=as_one_axis(regression.grid)))
    assert other.log_evidence() == pytest.approx(best.log_evidence(), abs=1e-3)


def _targets(kernel, inputs, n, rng, noise=0.2):
    root = np.linalg.cholesky(kernel(inputs) + noise * np.eye(len(inputs)))
    return root @ rng.normal(size=(len(inputs), n))


def test_the_climb_finds_the_truth(rng):
    inputs = np.array([[t, x, y] for t in range(12) for x, y in rng.normal(size=(8, 2))])
    inputs[:, 1:] = np.tile(rng.normal(size=(8, 2)), (12, 1))
    regression = Regression(Grid.of(KERNEL, inputs), 2.0, _targets(KERNEL, inputs, 200, rng))
    assert len(regression.grid.axes) == 2
    best, _ = fit(regression)
    np.testing.assert_allclose(best.grid.kernel.theta, KERNEL.theta, atol=0.15)
    assert best.noise == pytest.approx(0.2, rel=0.05)


class Mute(RBF):
    """A kernel that keeps its gradient to itself."""

    def __call__(self, X, Y=None):
        return super().__call__(X, Y)


def test_a_kernel_without_gradient_climbs_too(rng):
    targets = _targets(RBF(1.5), GRID, 30, rng)
    found = [fit(Regression(Grid.of(k, GRID), 1.0, targets))[0] for k in (Mute(1.0), RBF(1.0))]
    assert found[0].log_evidence() == pytest.approx(found[1].log_evidence(), abs=1e-3)


def test_a_grid_with_a_hole_is_one_axis():
    assert len(Grid.of(KERNEL, GRID[1:]).axes) == 1
    assert len(Grid.of(RBF(1.0), GRID).axes) == 1


def test_white_noise_is_of_inputs_not_of_places():
    kernel = Separable(OnColumns(Matern(1.0) + WhiteKernel(0.1), 0), OnColumns(PLACE, [1, 2]))
    assert len(Grid.of(kernel, GRID).axes) == 1


def test_a_kernel_that_is_none_is_refused(rng):
    class Wrong(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return -super().__call__(X, Y)

    with pytest.raises(ValueError, match="positive semi-definite"):
        RawGP(Wrong(1.0), learn=False).fit(GRID, counts_at(GRID, rng)[1])


# RawGP


def test_raw_gp_regresses_logits_of_smoothed_frequencies(rng):
    """Step by step, with sticks in the given order."""
    _, counts = counts_at(GRID, rng)
    model = RawGP(KERNEL, noise=0.4, learn=False, decomposition="given").fit(GRID, counts)
    smooth = (counts + 0.1) / (counts + 0.1).sum(axis=1, keepdims=True)
    left = 1 - np.cumsum(smooth, axis=1) + smooth
    logits = np.log(smooth[:, :-1] / (left - smooth)[:, :-1])
    twin = GaussianProcessRegressor(KERNEL, alpha=0.4, optimizer=None)
    twin.fit(GRID, logits - logits.mean(axis=0))
    new = np.array([[5.0, 0.0, 0.0], [1.5, 0.6, 0.6]])
    mean, std = twin.predict(new, return_std=True)
    noise = rng.standard_normal((100_000, 2, 3))
    split = expit(mean + logits.mean(axis=0) + std * noise)
    rest = np.cumprod(1 - split, axis=-1)
    before = np.concatenate([np.ones((len(split), 2, 1)), rest], axis=-1)
    draws = np.concatenate([split, np.ones((len(split), 2, 1))], axis=-1) * before
    found, spread = model.predict_proba(new, return_std=True)
    assert np.abs(z_scores(draws, found)).max() < MAX_Z
    assert np.abs(z_scores(draws**2, found**2 + spread**2)).max() < MAX_Z


def test_raw_gp_hands_its_kernel_on(rng):
    _, counts = counts_at(GRID, rng)
    model = RawGP(KERNEL).fit(GRID, counts)
    assert isinstance(model.kernel_, Separable)
    assert (model.kernel_.theta != KERNEL.theta).any()
    fixed = RawGP(model.kernel_, noise=model.noise_, learn=False).fit(GRID, counts)
    assert fixed.log_evidence_ == pytest.approx(model.log_evidence_)
    settings = Gibbs(2, 0, n_chains=1)
    other = LogisticNormalGP(model.kernel_, inference=settings, random_state=0).fit(GRID, counts)
    np.testing.assert_array_equal(other.kernel_.theta, model.kernel_.theta)


def test_raw_gp_leaves_out_inputs_without_counts(rng):
    _, counts = counts_at(GRID, rng)
    counts[3] = 0
    some = np.arange(len(GRID)) != 3
    models = [RawGP(KERNEL).fit(GRID, counts), RawGP(KERNEL).fit(GRID[some], counts[some])]
    left, right = (model.predict_proba(GRID) for model in models)
    np.testing.assert_allclose(left, right, rtol=1e-12)
    with pytest.raises(ValueError, match="must have counts"):
        RawGP(KERNEL).fit(GRID, 0 * counts)


# LogisticNormalGP


def test_logistic_normal_gp_finds_the_probabilities(rng):
    inputs = np.linspace(0, 4, 20 if PLAIN else 60).reshape(-1, 1)
    pi, counts = counts_at(np.hstack([inputs, 0 * inputs]), rng, 200)
    settings = Gibbs(60 if PLAIN else 600, 30 if PLAIN else 200, n_chains=2)
    model = LogisticNormalGP(RBF(2.0), inference=settings, random_state=1).fit(inputs, counts)
    new = inputs[:-1] + 0.02
    mean, std = model.predict_proba(new, return_std=True)
    truth = 0.5 * (pi[1:] + pi[:-1])
    assert np.abs(mean - truth).max() < 0.06
    assert np.sqrt(np.mean(((mean - truth) / std) ** 2)) < 2.0
    assert std.max() < 0.1
    rough = (counts / 200 - pi).std()
    assert (mean - truth).std() < rough


def test_logistic_normal_gp_scores_as_its_draws_say(rng):
    """The weights are about the counts' mode; plain draws from the same law must agree."""
    _, counts = counts_at(GRID, rng)
    settings = Gibbs(40, 10, n_chains=1)
    model = LogisticNormalGP(KERNEL, inference=settings, random_state=1).fit(GRID, counts)
    new, x = np.array([[5.0, 0.0, 0.0], [0.5, 3.0, 3.0]]), np.array([[3, 0, 1, 0], [0, 2, 0, 1]])
    n_draws = 400 if PLAIN else 8000
    *_, pi = model.predict_proba(new, return_draws=True, n_draws=n_draws)
    plain = np.prod(pi**x, axis=-1)
    error = plain.std(axis=0) / plain.mean(axis=0) / np.sqrt(n_draws)
    found = model.score_samples(new, x, coefficient=False, n_draws=40)
    weights_error = 1.0 / np.sqrt(8 * 40)  # they vary by less than their mean
    gap = found - np.log(plain.mean(axis=0))
    assert np.abs(gap / np.hypot(error, weights_error)).max() < MAX_Z
    assert np.abs(gap).max() < (0.5 if PLAIN else 0.1)


def test_logistic_normal_gp_bits_do_not_depend_on_threads(rng):
    _, counts = counts_at(GRID, rng)
    made = [
        LogisticNormalGP(
            KERNEL, inference=Gibbs(3, 2, n_chains=2), random_state=7, n_jobs=n_jobs
        ).fit(GRID, counts)
        for n_jobs in (1, 2)
    ]
    for left, right in zip(*(m.predict_proba(GRID, return_std=True) for m in made)):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("mean", ["zero", "empirical", [0.0, 1.0, 0.0, -1.0]])
def test_logistic_normal_gp_far_from_all_data_is_its_mean(mean, rng):
    _, counts = counts_at(GRID, rng)
    model = LogisticNormalGP(1e-6 * RBF(1.0), mean=mean, inference=Gibbs(2, 0), random_state=0)
    found = model.fit(GRID, counts).predict_proba([[1e6, 0.0, 0.0]])[0]
    weights = {"zero": np.ones(4), "empirical": counts.sum(axis=0) + 1.0}
    expected = np.exp(mean) if isinstance(mean, list) else weights[mean]
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-3)


def test_logistic_normal_gp_refuses_what_it_cannot_do(rng):
    _, counts = counts_at(GRID, rng)
    for options, error, words in [
        ({"inference": MeanField()}, TypeError, "Gibbs"),
        ({"mean": "median"}, ValueError, "4 numbers"),
        ({"mean": [0.0, 1.0, 2.0]}, ValueError, "4 numbers"),
        ({"mean": [0.0, 1.0, 2.0, np.inf]}, ValueError, "finite"),
        ({"kernel": "rbf"}, TypeError, "kernel must be"),
        ({"tolerance": 0.0}, ValueError, "tolerance"),
    ]:
        with pytest.raises(error, match=words):
            LogisticNormalGP(**{"kernel": KERNEL, **options}).fit(GRID, counts)
    with pytest.raises(ValueError, match="whole numbers"):
        LogisticNormalGP(KERNEL).fit(GRID, counts + 0.5)


def test_logistic_normal_gp_resumes(rng, tmp_path):
    _, counts = counts_at(GRID, rng)
    make = lambda n, **options: LogisticNormalGP(
        KERNEL, inference=Gibbs(n, 1, n_chains=1), random_state=3, **options
    )
    whole = make(4).fit(GRID, counts)
    make(2, checkpoint=tmp_path).fit(GRID, counts)
    resumed = make(4, checkpoint=tmp_path).fit(GRID, counts, resume=True)
    np.testing.assert_array_equal(whole.posterior_["white"], resumed.posterior_["white"])


# Static


def test_static_repeats_the_last_time_of_each_place():
    inputs = np.array([[2000, 5.0], [2001, 5.0], [2001, 7.0], [1999, 7.0], [2002, 7.0]])
    counts = np.array([[9, 1], [2, 6], [4, 0], [1, 1], [0, 0]])
    new = np.array([[2050, 5.0], [1900, 7.0]])
    model = Static().fit(inputs, counts)
    np.testing.assert_allclose(model.predict_proba(new), [[3 / 10, 7 / 10], [5 / 6, 1 / 6]])
    wide = Static(window=2).fit(inputs, counts)
    np.testing.assert_allclose(wide.predict_proba(new), [[12 / 20, 8 / 20], [6 / 8, 2 / 8]])
    turned = Static(time_column=1).fit(inputs[:, ::-1], counts)
    np.testing.assert_allclose(turned.predict_proba(new[:, ::-1]), model.predict_proba(new))
    rough = Static(smoothing=0.5).fit(inputs, counts)
    np.testing.assert_allclose(rough.predict_proba(new[:1]), [[2.5 / 9, 6.5 / 9]])


def test_static_without_places_repeats_the_last_time():
    model = Static().fit([[1.0], [3.0], [2.0]], [[5, 0], [1, 2], [0, 7]])
    np.testing.assert_allclose(model.predict_proba([[9.0]]), [[2 / 5, 3 / 5]])


def test_static_says_so_where_it_does_not_know_a_place():
    model = Static().fit([[1.0, 0.0], [1.0, 1.0]], [[5, 0], [1, 2]])
    with pytest.warns(RuntimeWarning, match="1 of 2 inputs are at places that were not in the fit"):
        found = model.predict_proba([[2.0, 1.0], [2.0, 8.0]])
    np.testing.assert_allclose(found, [[2 / 5, 3 / 5], [7 / 10, 3 / 10]])


def test_static_refuses_a_column_that_is_not_there():
    with pytest.raises(ValueError, match="time_column"):
        Static(time_column=2).fit(np.zeros((3, 2)), np.ones((3, 2)))


# what all have


FACES = {
    "lnm": LogisticNormalGP(KERNEL, inference=Gibbs(8, 4, n_chains=2), random_state=0),
    "raw": RawGP(KERNEL),
    "static": Static(),
}


@pytest.fixture(params=FACES)
def face(request):
    return clone(FACES[request.param])


def test_probabilities_and_draws_have_their_shapes(face, rng):
    new = GRID[[2, 5, 2]] + LATER
    face.fit(GRID, counts_at(GRID, rng)[1])
    mean, std, draws = face.predict_proba(new, return_std=True, return_draws=True, n_draws=5)
    assert mean.shape == std.shape == (3, 4)
    assert draws.shape == (5, 3, 4)
    np.testing.assert_allclose(mean.sum(axis=1), 1.0)
    np.testing.assert_allclose(draws.sum(axis=2), 1.0)
    np.testing.assert_array_equal(face.predict_proba(new), face.predict_proba(new))
    np.testing.assert_array_equal(mean[0], mean[2])
    assert (std >= 0).all()


def test_draws_are_about_the_mean(face, rng):
    new = GRID[:2] + LATER
    face.fit(GRID, counts_at(GRID, rng)[1])
    n_draws = 2000
    mean, std, draws = face.predict_proba(new, return_std=True, return_draws=True, n_draws=n_draws)
    if isinstance(face, Static):
        np.testing.assert_array_equal(draws, np.broadcast_to(mean, draws.shape))
        return
    error = np.hypot(draws.std(axis=0) / np.sqrt(n_draws), std / 10)  # the mean has an error too
    assert (np.abs(draws.mean(axis=0) - mean) / error).max() < MAX_Z
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.5)


def test_top_categories_have_their_names(face, rng):
    counts = pd.DataFrame(counts_at(GRID, rng)[1], columns=list("abcd"))
    face.fit(GRID, counts)
    probabilities = face.predict_proba(GRID[:3])
    top = face.predict(GRID[:3], n_top=2)
    assert top.shape == (3, 2)
    assert (top[:, 0] == np.array(list("abcd"))[probabilities.argmax(axis=1)]).all()
    with pytest.raises(ValueError, match="n_top must not exceed the 4 categories"):
        face.predict(GRID[:3], n_top=5)


def test_scores_are_log_probabilities(face, rng):
    _, counts = counts_at(GRID, rng)
    face.fit(GRID, counts)
    new, x = GRID[:3] + LATER / 18, np.array([[5, 2, 1, 0], [0, 0, 0, 0], [1, 0, 0, 9]])
    plain = face.score_samples(new, x)
    whole = face.score_samples(new, x, coefficient=True)
    np.testing.assert_allclose(whole - plain, scores.log_coefficients(x))
    assert face.score(new, x) == pytest.approx(plain.sum() / 18)
    assert face.score(new, x, coefficient=True) == pytest.approx(whole.sum() / 18)
    assert plain[1] == pytest.approx(0.0, abs=1e-12)
    # by Jensen the joint probability of many is at least that of the expected probabilities, about
    one = face.score_samples(new[:1], [[0, 1, 0, 0]], coefficient=False)
    assert one[0] == pytest.approx(np.log(face.predict_proba(new[:1])[0, 1]), abs=0.05)


def test_rows_that_share_their_inputs_are_added(face, rng):
    _, counts = counts_at(GRID, rng)
    part = counts // 3
    twice = np.concatenate([part, counts - part])
    order = rng.permutation(2 * len(GRID))
    left = clone(face).fit(GRID, counts).predict_proba(GRID)
    right = clone(face).fit(np.tile(GRID, (2, 1))[order], twice[order]).predict_proba(GRID)
    np.testing.assert_allclose(left, right, rtol=1e-9)


def test_bad_input_is_refused(face, rng):
    _, counts = counts_at(GRID, rng)
    with pytest.raises(NotFittedError):
        face.predict_proba(GRID)
    with pytest.raises(ValueError, match="equally many rows"):
        face.fit(GRID, counts[1:])
    with pytest.raises(ValueError, match="finite"):
        face.fit(np.where(GRID == 2.0, np.nan, GRID), counts)
    with pytest.raises(ValueError, match="Negative"):
        face.fit(GRID, -counts)
    assert not hasattr(face, "categories_")
    face.fit(GRID, counts)
    with pytest.raises(ValueError, match="3 columns seen in fit"):
        face.predict_proba(GRID[:, :2])
    with pytest.raises(ValueError, match="categories seen in fit"):
        face.score(GRID, counts[:, :3])
    with pytest.raises(ValueError, match="n_draws"):
        face.predict_proba(GRID, n_draws=0)


def test_a_kernel_may_be_left_to_the_model(rng):
    inputs = np.arange(30.0).reshape(-1, 1)
    counts = rng.multinomial(20, [0.5, 0.3, 0.2], size=30)
    for model in (RawGP(), LogisticNormalGP(inference=Gibbs(4, 2), random_state=0)):
        assert model.fit(inputs, counts).predict_proba([[31.0]]).shape == (1, 3)


def test_any_kernel_will_do(rng):
    _, counts = counts_at(GRID, rng)
    model = RawGP(RBF(1.0) + DotProduct(1.0)).fit(GRID, counts)
    assert np.isfinite(model.score(GRID, counts))
