"""The face of multinomial Gaussian processes: its contract, its predictions, its runs."""

import pickle

import numba
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.special import gammaln, logit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from sklearn.model_selection import GridSearchCV

from polystick import Gibbs, MeanField, MultinomialGP, StochasticVI, scores
from polystick.covariances import OnColumns, Separable
from polystick.estimators import process
from polystick.inference.execution import one_blas_thread
from polystick.models import predictive
from statistics_tools import MAX_Z, standard_error, z_scores

JIT = not numba.config.DISABLE_JIT
FIELD = MeanField(tolerance=1e-4)
SHORT = Gibbs(n_draws=2, n_burn=3, n_chains=2)
NAMES = ["ash", "birch", "cedar", "date"]
KERNEL = ConstantKernel(1.5) * Matern(3.0, nu=2.5)
FIXED = {"kernel": KERNEL, "learn": (), "n_jobs": 1, "random_state": 4}


def simulated(n=20, n_trials=40, seed=0):
    """Return inputs, counts and the probabilities behind them, which go up and down over 10 units."""
    rng = np.random.default_rng(seed)
    Z = pd.DataFrame({"time": np.sort(rng.uniform(0, 10, n))})
    t = Z["time"].to_numpy()
    pi = softmax(np.column_stack([np.sin(t), np.cos(t), 0 * t, 0 * t - 1]), axis=1)
    return Z, pd.DataFrame(rng.multinomial(n_trials, pi), columns=NAMES), pi


Z, X, PI = simulated()


@pytest.fixture(params=[FIELD, SHORT], ids=["mean field", "gibbs"])
def model(request):
    return MultinomialGP(inference=request.param, **FIXED)


# scikit-learn's contract


def test_fit_changes_no_parameter_and_returns_self(model):
    before = model.get_params(deep=False)
    assert model.fit(Z, X) is model
    assert model.get_params(deep=False) == before


def test_clone_and_pickle_give_the_same(model):
    expected = model.fit(Z, X).predict_proba(Z)
    np.testing.assert_array_equal(clone(model).fit(Z, X).predict_proba(Z), expected)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(Z), expected)
    np.testing.assert_array_equal(again.score_samples(Z, X), model.score_samples(Z, X))


def test_probabilities_are_probabilities(model):
    new = pd.DataFrame({"time": [-1.0, 0.5, 4.0, 20.0, 0.5]})
    pi, sd, draws = model.fit(Z, X).predict_proba(
        new, return_std=True, return_draws=True, n_draws=7
    )
    assert pi.shape == sd.shape == (5, 4)
    assert draws.shape == (7, 5, 4)
    for values in (pi, draws):
        np.testing.assert_allclose(values.sum(axis=-1), 1.0, rtol=1e-12)
        assert (values > 0).all()
    assert (sd > 0).all()
    for values in (pi, sd, draws[0], draws[6]):
        np.testing.assert_array_equal(values[1], values[4])  # one input, one function
    assert (np.ptp(draws, axis=0) > 0).all()
    np.testing.assert_array_equal(model.predict_proba(new, n_draws=7), pi)


def test_any_container_gives_the_same(model):
    expected = model.fit(Z, X).predict_proba(Z)
    z, x = Z.to_numpy(), X.to_numpy()
    for counts in (x, x.tolist(), scipy.sparse.csr_matrix(x), scipy.sparse.csc_array(x)):
        other = clone(model).fit(z, counts)
        np.testing.assert_array_equal(other.predict_proba(z.tolist()), expected)
        assert list(other.categories_) == [0, 1, 2, 3]
        np.testing.assert_array_equal(other.score_samples(z, counts), model.score_samples(Z, X))


def test_names_travel(model):
    model.fit(Z, X)
    assert list(model.categories_) == NAMES
    assert list(model.feature_names_in_) == ["time"]
    assert model.n_features_in_ == 1
    first = [NAMES[c] for c in model.decomposition_.children[:, 0]]
    assert list(model.posterior_.tree["running"]["stick"].values) == first
    with pytest.raises(ValueError, match="columns seen in fit; got 'The feature names"):
        model.predict_proba(Z.rename(columns={"time": "place"}))
    with pytest.raises(ValueError, match="categories seen in fit; got 'The feature names"):
        model.score(Z, X[NAMES[::-1]])


def test_top_categories(model):
    model.fit(Z, X)
    pi = model.predict_proba(Z)
    best = model.predict(Z)
    assert best.shape == (len(Z), 1)
    assert list(best[:, 0]) == [NAMES[j] for j in pi.argmax(axis=1)]
    two = model.predict(Z, n_top=2)
    assert two.shape == (len(Z), 2)
    assert list(two[3]) == [NAMES[j] for j in np.argsort(-pi[3])[:2]]
    with pytest.raises(ValueError, match="n_top must not exceed the 4 categories; got 5"):
        model.predict(Z, n_top=5)
    with pytest.raises(ValueError, match="n_top must be at least 1; got 0"):
        model.predict(Z, n_top=0)


def test_not_fitted(model):
    for call in (model.predict_proba, model.predict, model.sample_prior):
        with pytest.raises(NotFittedError):
            call(Z)
    for call in (model.score, model.score_samples):
        with pytest.raises(NotFittedError):
            call(Z, X)


def test_works_in_a_grid_search():
    model = MultinomialGP(inference=FIELD, **FIXED)
    search = GridSearchCV(
        model, {"mean": ["zero", "empirical"], "kernel__k2__length_scale": [1.0]}, cv=2
    )
    assert np.isfinite(search.fit(Z, X).best_score_)


def test_a_failed_fit_leaves_the_fitted_model_as_it_was(model):
    expected = model.fit(Z, X).predict_proba(Z)
    with pytest.raises(ValueError, match="Negative"):
        model.fit(Z, -X)
    with pytest.raises(ValueError, match="equally many rows"):
        model.fit(Z[:5], X)
    np.testing.assert_array_equal(model.predict_proba(Z), expected)


def test_nothing_is_shown_unless_asked_for(model, capfd):
    model.fit(Z, X)
    model.predict_proba(Z, return_std=True)
    model.score(Z, X)
    assert capfd.readouterr() == ("", "")


# inputs and counts


def test_repeated_inputs_are_merged_in_any_order(model):
    rng = np.random.default_rng(1)
    z, x = Z.to_numpy().repeat(2, axis=0), X.to_numpy().repeat(2, axis=0)
    x[1::2] = 0
    whole = x[::2].copy()
    x[::2], x[1::2] = whole // 3, whole - whole // 3
    order = rng.permutation(len(z))
    model.fit(z[order], x[order])
    np.testing.assert_array_equal(model.inputs_, Z)
    np.testing.assert_array_equal(model.counts_, X)
    expected = clone(model).fit(Z.to_numpy(), X.to_numpy()).predict_proba(z)
    np.testing.assert_array_equal(model.predict_proba(z), expected)


def test_rows_without_counts_change_nothing():
    empty = np.array([[-3.0], [2.22], [30.0]])
    z, x = np.vstack([Z, empty]), np.vstack([X, np.zeros((3, 4), int)])
    exact = MultinomialGP(inference=MeanField(tolerance=1e-9), **FIXED)
    expected = exact.fit(Z.to_numpy(), X.to_numpy()).predict_proba(empty, return_std=True)
    found = clone(exact).fit(z, x).predict_proba(empty, return_std=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_no_counts_at_all_leave_the_prior():
    z, x = np.arange(4.0)[:, None], np.zeros((4, 3), int)
    for inference in (FIELD, SHORT):
        model = MultinomialGP(inference=inference, mean="zero", **FIXED).fit(z, x)
        np.testing.assert_allclose(
            model.predict_proba([[1.5]], collapsed=True), [[0.5, 0.25, 0.25]]
        )
        assert np.isnan(model.score(z, x))


def test_scores_with_and_without_the_coefficient(model):
    model.fit(Z, X)
    x = X.to_numpy()
    coefficient = gammaln(x.sum(1) + 1) - gammaln(x + 1).sum(1)
    with_it, without = (model.score_samples(Z, X, coefficient=c) for c in (True, False))
    np.testing.assert_allclose(with_it - without, coefficient, atol=1e-9)
    assert model.score(Z, X) == pytest.approx(without.sum() / x.sum())
    assert model.score(Z, X, coefficient=True) == pytest.approx(with_it.sum() / x.sum())
    nothing = model.score_samples(Z, 0 * X)
    np.testing.assert_allclose(nothing, 0.0, atol=1e-12)


def test_a_row_does_not_depend_on_its_neighbours(model, monkeypatch):
    model.fit(Z, X)
    whole = model.predict_proba(Z, return_std=True, return_draws=True)
    values, order = model.score_samples(Z, X), np.random.default_rng(0).permutation(len(Z))
    some = model.predict_proba(Z.iloc[order[:9]], return_std=True)
    for part, everything in zip(some, whole):
        np.testing.assert_allclose(part, everything[order[:9]], rtol=1e-9)
    shuffled = model.score_samples(Z.iloc[order], X.iloc[order])
    np.testing.assert_allclose(shuffled, values[order], rtol=1e-9)
    monkeypatch.setattr("polystick.estimators.process._NUMBERS_AT_ONCE", 7 * len(Z))
    for part, everything in zip(
        model.predict_proba(Z, return_std=True, return_draws=True), whole, strict=True
    ):
        np.testing.assert_allclose(part, everything, rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(Z, X), values, rtol=1e-9)


# predictions


def test_finds_the_probabilities_behind_the_counts(model):
    test_z, test_x, _ = simulated(n=60, seed=8)
    model.set_params(inference=Gibbs(40, 30, n_chains=2) if model.inference is SHORT else FIELD)
    model.set_params(kernel=None, learn=("kernel",)).fit(Z, X)
    assert model.kernel is None  # the default is made at fit
    pi, sd = model.predict_proba(Z, return_std=True, n_draws=64)
    raw = X.to_numpy() / X.to_numpy().sum(axis=1, keepdims=True)
    assert np.mean((pi - PI) ** 2) < 0.5 * np.mean((raw - PI) ** 2)
    away = (pi - PI) / sd
    assert 0.4 < np.mean(away**2) < 1.8
    shares = X.to_numpy().sum(axis=0) / X.to_numpy().sum()
    assert model.score(test_z, test_x) > scores.expected_log_score(
        np.tile(shares, (60, 1)), test_x.to_numpy()
    )


def test_uncertainty_grows_away_from_the_data(model):
    model.fit(Z, X)
    new = pd.DataFrame({"time": [5.0, 11.0, 13.0, 1e4]})
    pi, sd = model.predict_proba(new, return_std=True)
    assert (np.diff(sd[:, 0]) > 0).all()
    level = model.model_.level
    variance = model.kernel_(np.zeros((1, 1)))[0, 0]
    rng = np.random.default_rng(0)
    psi = level + np.sqrt(variance) * rng.standard_normal((40_000, 3))
    prior = model.decomposition_.probabilities(psi).mean(axis=0)
    np.testing.assert_allclose(pi[3], prior, atol=0.02)  # far away nothing is known but the level


def per_state(model, new, collapsed):
    """Return E[pi] and E[pi^2] under each posterior state, (states, 2, n, K)."""
    shards = model.model_.shards(model.counts_) if collapsed else None
    states = model._states(10**6, collapsed)
    with one_blas_thread():
        laws = [
            predictive.latent_at(model.model_, state, new, shards, model.seed_, number)
            for number, state in enumerate(states)
        ]
    at_once = predictive.Latent(*(np.concatenate(parts, axis=1) for parts in zip(*laws)))
    moments = predictive.expected_moments(model.decomposition_, at_once)
    return np.stack([m.reshape(len(states), len(new), -1) for m in moments], axis=1)


@pytest.mark.skipif(not JIT, reason="minutes without the compiler")
def test_collapsed_and_uncollapsed_agree():
    """Appendix B: the same expectations, the collapsed ones with less noise."""
    z, x, _ = simulated(n=15, n_trials=12, seed=3)
    inference = Gibbs(400, 50, thin=2, n_chains=1)
    model = MultinomialGP(inference=inference, **FIXED).fit(z.to_numpy(), x)
    new = np.array([[0.5], [5.0], [11.0]])
    collapsed, drawn = (per_state(model, new, choice) for choice in (True, False))
    gap = collapsed - drawn
    assert np.abs(gap.mean(axis=0) / standard_error(gap)).max() < MAX_Z
    assert collapsed[:, 0].var(axis=0).mean() < 0.5 * drawn[:, 0].var(axis=0).mean()
    wrong = collapsed[:, 1] - np.square(drawn[:, 0])  # no variance, as in the authors' code
    assert np.abs(wrong.mean(axis=0) / standard_error(wrong)).max() > MAX_Z
    for choice, expected in ((True, collapsed), (False, drawn)):
        found = model.predict_proba(new, n_draws=20, collapsed=choice)
        used = np.linspace(0, 399, 20).round().astype(int)
        if not choice:  # what is not drawn anew can be compared
            np.testing.assert_allclose(found, expected[used, 0].mean(axis=0), rtol=1e-9)
        error = standard_error(expected[:, 0]) * np.sqrt(400 / 20)
        assert (np.abs(found - expected[:, 0].mean(axis=0)) < MAX_Z * error).all()


def test_the_predictive_variance_is_used(monkeypatch):
    """The authors' code leaves it at zero; draws, squares and evidence would not agree then."""
    model = MultinomialGP(inference=FIELD, **FIXED).fit(Z, X)
    new, seen = np.array([[5.0], [13.0]]), np.array([[2, 0, 3, 1], [4, 1, 0, 0]])
    n = 4000 if JIT else 1000
    pi, sd, draws = model.predict_proba(
        pd.DataFrame(new, columns=["time"]), return_std=True, return_draws=True, n_draws=n
    )
    assert np.abs(z_scores(draws, pi)).max() < MAX_Z
    assert np.abs(z_scores((draws - pi) ** 2, sd**2)).max() < MAX_Z
    likelihood = np.prod(draws**seen, axis=2)
    table = pd.DataFrame(new, columns=["time"]), pd.DataFrame(seen, columns=NAMES)
    assert (
        np.abs(z_scores(likelihood, np.exp(model.score_samples(*table, coefficient=False)))).max()
        < MAX_Z
    )
    latent_at = predictive.latent_at

    def sabotaged(*given):
        latent = latent_at(*given)
        return latent._replace(variance=0 * latent.variance)

    monkeypatch.setattr(predictive, "latent_at", sabotaged)
    assert np.abs(z_scores(draws, model.predict_proba(table[0]))).max() > MAX_Z
    wrong = np.exp(model.score_samples(*table, coefficient=False))
    assert np.abs(z_scores(likelihood, wrong)).max() > MAX_Z


def test_prior_draws_have_the_law_of_the_prior():
    model = MultinomialGP(inference=FIELD, mean=[0.5, -1.0, 0.0], **FIXED).fit(Z, X)
    new = pd.DataFrame({"time": [0.0, 3.0, 0.0, 100.0]})
    pi = model.sample_prior(new, 400)
    assert pi.shape == (400, 4, 4)
    np.testing.assert_array_equal(pi[:, 0], pi[:, 2])
    np.testing.assert_array_equal(model.sample_prior(new, 5), pi[:5])
    psi = model.decomposition_.psi(pi) - [0.5, -1.0, 0.0]
    assert np.abs(z_scores(psi, 0.0)).max() < MAX_Z
    cov = KERNEL(new.to_numpy())
    products = np.einsum("rik,rjk->rkij", psi, psi)
    assert np.abs(z_scores(products, cov)).max() < MAX_Z
    assert np.abs(z_scores(products, cov - 0.5)).max() > MAX_Z


def test_learned_parameters_have_a_prior_too():
    model = MultinomialGP(KERNEL, learn=("kernel", "mean"), inference=SHORT, random_state=1).fit(
        Z, X
    )
    fixed = MultinomialGP(inference=SHORT, **FIXED).fit(Z, X)
    far = pd.DataFrame({"time": 1000.0 * np.arange(40)})
    spread = [np.var(m.decomposition_.psi(m.sample_prior(far, 20))) for m in (model, fixed)]
    assert spread[0] > spread[1] + 0.3


# what is learned


def test_the_kernel_is_that_of_the_mean_parameters(model):
    model.set_params(learn=("kernel",)).fit(Z, X)
    theta = model.posterior_["theta"]
    np.testing.assert_allclose(model.kernel_.theta, theta.mean(axis=(0, 1)))
    assert not np.array_equal(model.kernel_.theta, KERNEL.theta)
    assert list(model.posterior_.tree["posterior"]["kernel_parameter"].values) == [
        "k1__constant_value",
        "k2__length_scale",
    ]
    model.set_params(learn=()).fit(Z, X)
    np.testing.assert_allclose(model.kernel_.theta, KERNEL.theta)


@pytest.mark.parametrize(
    "learn", [("mean",), ["scale"], {"mean", "scale"}, ("kernel", "mean", "scale")]
)
@pytest.mark.filterwarnings("ignore:mean field did not converge")
def test_levels_and_scales_are_learned_if_asked_for(model, learn):
    if model.inference is FIELD:
        model.set_params(inference=MeanField(max_sweeps=3))
    model.set_params(learn=learn).fit(Z, X)
    level, scale = (model.posterior_.running(name)[0] for name in ("mean", "scale"))
    assert np.array_equal(level, model.model_.level) == ("mean" not in learn)
    assert np.array_equal(scale, np.ones(3)) == ("scale" not in learn)


def test_means(model):
    model.fit(Z, X)
    weights = X.sum().sort_values(ascending=False, kind="stable").to_numpy() + 1
    sticks = weights[:3] / weights[::-1].cumsum()[::-1][:3]
    np.testing.assert_allclose(model.model_.level, logit(sticks))
    assert (model.set_params(mean="zero").fit(Z, X).model_.level == 0).all()
    given = [1.0, 2.0, -3.0]
    np.testing.assert_array_equal(model.set_params(mean=given).fit(Z, X).model_.level, given)


def test_the_default_kernel_knows_the_units():
    model = MultinomialGP(inference=FIELD, learn=(), random_state=0)
    expected = model.fit(Z, X).predict_proba(Z)
    np.testing.assert_allclose(
        clone(model).fit(1e4 * Z, X).predict_proba(1e4 * Z), expected, rtol=1e-6
    )
    constant = Z.assign(height=3.0)
    np.testing.assert_allclose(
        clone(model).fit(constant, X).predict_proba(constant), expected, rtol=1e-6
    )


@pytest.mark.parametrize("solver", ["auto", "dense", "unstructured", "markov"])
def test_solvers_agree(solver):
    model = MultinomialGP(inference=FIELD, solver=solver, **FIXED).fit(Z, X)
    assert model.solver_ == ("dense" if solver == "auto" else solver)
    expected = MultinomialGP(inference=FIELD, **FIXED).fit(Z, X).predict_proba(Z, return_std=True)
    np.testing.assert_allclose(model.predict_proba(Z, return_std=True), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "decomposition", ["given", "balanced", [3, 1, 0, 2], ((("ash", "birch"), "cedar"), "date")]
)
def test_any_decomposition(decomposition):
    model = MultinomialGP(decomposition=decomposition, inference=FIELD, **FIXED).fit(Z, X)
    assert np.abs(model.predict_proba(Z) - PI).mean() < 0.05


# bad parameters


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"kernel": "rbf"}, TypeError, r"kernel must be .*Separable\(\.\.\.\) or None; got 'rbf'"),
        ({"kernel": RBF}, TypeError, "kernel must be"),
        ({"mean": "median"}, ValueError, '"empirical", "zero" or 3 numbers.*got \'median\''),
        ({"mean": [0.0, 1.0]}, ValueError, "3 numbers, one for each split of the 4 categories"),
        ({"mean": [0.0, 1.0, np.nan]}, ValueError, "mean must be finite"),
        ({"mean": None}, ValueError, "or 3 numbers"),
        ({"learn": ("kernel", "level")}, ValueError, 'learn must be a tuple with any of "kernel"'),
        ({"learn": "kernel"}, ValueError, r'as \("kernel",\); got \'kernel\''),
        ({"decomposition": "sticks?"}, ValueError, "sticks"),
        ({"solver": "magic"}, ValueError, "solver must be 'auto' or one of dense"),
        ({"solver": "separable"}, ValueError, "needs a product of OnColumns kernels"),
        ({"solver": "dense", "tolerance": 1e-6}, ValueError, 'no use to solver="dense"'),
        ({"learn": ("scale",), "prior_sd": 2.0}, ValueError, "prior_sd is of no use"),
        ({"tolerance": 0.0}, ValueError, r"tolerance must be finite and above 0; got 0\.0"),
        ({"inference": "gibbs"}, TypeError, r"inference must be Gibbs\(\.\.\.\)"),
        ({"inference": StochasticVI(batch_size=8)}, TypeError, "MultinomialGP needs inference=Gibbs"),
        ({"random_state": 1.5}, TypeError, "random_state must be an integer"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"progress": "yes"}, TypeError, "progress must be"),
        ({"checkpoint": 5}, TypeError, "checkpoint must be the path of a folder"),
    ],
)  # fmt: skip
def test_bad_parameters(model, parameters, error, message):
    model.set_params(**parameters)
    with pytest.raises(error, match=message):
        model.fit(Z, X)
    assert not hasattr(model, "posterior_")


BAD_TABLES = [
    (Z["time"], X, r"two axes.*got shape \(20,\); reshape a single column"),
    (Z.where(Z > 1), X, "inputs must be finite; got .*NaN"),
    (Z, X[:7], "equally many rows.*got 20 inputs and 7 rows"),
    (Z, X["ash"].to_numpy(), "2D array"),
    (Z, X[["ash"]], "at least 2 categories"),
    (Z, -X, "counts must be at least 0"),
    (Z, X.where(X > 3), "counts must be finite"),
]


@pytest.mark.parametrize(("z", "x", "message"), BAD_TABLES, ids=range(len(BAD_TABLES)))
def test_bad_tables(model, z, x, message):
    with pytest.raises(ValueError, match=message):
        model.fit(z, x)
    model.fit(Z, X)
    if len(x) == len(z) and np.ndim(x) == 2 and np.shape(x)[1] == 4:
        with pytest.raises(ValueError, match=message):
            model.score(z, x)


def test_other_widths_than_in_fit(model):
    model.fit(Z.to_numpy(), X.to_numpy())
    with pytest.raises(ValueError, match="inputs must have the 1 columns seen in fit; got 2"):
        model.predict_proba(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="categories seen in fit; got 'X has 3 features"):
        model.score(Z.to_numpy(), X.to_numpy()[:, :3])
    with pytest.raises(ValueError, match="n_draws must be at least 1; got 0"):
        model.predict_proba(Z.to_numpy(), n_draws=0)


def test_gibbs_needs_whole_counts_and_mean_field_has_no_draws():
    with pytest.raises(ValueError, match=r"whole numbers for Gibbs.*got .*\.5; .*MeanField"):
        MultinomialGP(inference=SHORT).fit(Z, X + 0.5)
    model = MultinomialGP(inference=FIELD, **FIXED).fit(Z, X + 0.5)
    assert np.isfinite(model.score(Z, X + 0.5))
    with pytest.raises(ValueError, match=r"collapsed=False needs draws.*Gibbs\(\.\.\.\)"):
        model.predict_proba(Z, collapsed=False)


def test_kernels_that_are_none():
    class Cosine(RBF):
        """Not positive definite."""

        def __call__(self, X, Y=None, eval_gradient=False):
            return 2 * super().__call__(X, Y) - 1.0

    with pytest.raises(
        ValueError, match=r"kernel must be positive definite; .* has an eigenvalue of"
    ):
        MultinomialGP(Cosine(1.0), inference=SHORT).fit(Z, X)


def test_few_kept_states_are_enough():
    """Where memory is short states are thinned, and predictions use those that are left."""
    tight = Gibbs(n_draws=8, n_burn=2, n_chains=2, max_bytes=4 * 2 * 3 * 20 * 8)
    model = MultinomialGP(inference=tight, **FIXED).fit(Z, X)
    assert model.posterior_["white"].shape[1] == 4
    pi, draws = model.predict_proba(Z, n_draws=20, return_draws=True)
    assert draws.shape == (20, 20, 4)
    assert len(np.unique(draws[:, 0, 0])) == 20
    np.testing.assert_allclose(pi, model.predict_proba(Z, n_draws=8))


def test_a_kernel_without_parameters():
    fixed = ConstantKernel(1.5, "fixed") * Matern(3.0, "fixed", nu=2.5)
    several = Gibbs(n_draws=4, n_burn=1, n_chains=2)
    model = MultinomialGP(fixed, inference=several, random_state=4, n_jobs=1).fit(Z, X)
    assert model.posterior_["theta"].shape[2] == 0
    assert model.kernel_ == fixed
    assert "over log_likelihood" in model.posterior_.summary()


def test_blocks_of_new_inputs_shrink_with_the_grid(monkeypatch):
    """A hole is predicted from all cells, so that these and not the inputs fill the memory."""
    corners = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0], [3.0, 3.0], [4.0, 4.0]])
    kernel = Separable(OnColumns(RBF(1.0), 0), OnColumns(RBF(1.0), 1))
    settings = {"solver": "separable", "learn": (), "random_state": 0, "n_jobs": 1}
    model = MultinomialGP(kernel, inference=SHORT, **settings).fit(corners, X[:5])
    assert model.model_.family.n_crossed == 25
    monkeypatch.setattr(process, "_NUMBERS_AT_ONCE", 50)
    blocks, latent_at = [], predictive.latent_at
    monkeypatch.setattr(
        predictive, "latent_at", lambda m, s, z, *a: blocks.append(len(z)) or latent_at(m, s, z, *a)
    )
    model.predict_proba(corners, n_draws=1)
    assert blocks == [2, 2, 1]


def test_bounds_matter_where_the_kernel_is_learned():
    outside = RBF(1.0, (2.0, 5.0))
    MultinomialGP(outside, learn=(), inference=FIELD).fit(Z, X).sample_prior(Z)
    with pytest.raises(
        ValueError, match=r"length_scale .* must lie within its bounds, 2 to 5; got 1"
    ):
        MultinomialGP(outside, inference=FIELD).fit(Z, X)
