"""What ArviZ is given: groups of one shape, rows by their names, and a loo that is leave-one-out."""

import warnings

import matplotlib
import matplotlib.pyplot
import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from polystick import (
    CorrelatedMultinomial,
    Gibbs,
    MeanField,
    MultinomialGP,
    NormalInverseWishart,
    Posterior,
    decompose,
)
from polystick.estimators.row_names import labels_of
from polystick.scores import log_coefficients, log_mean_exp

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import arviz as az

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
TREE = decompose("given", n_categories=3)
SHORT = Gibbs(n_draws=40, n_burn=40, n_chains=2)


def rows_of_counts(n, seed, low=15, high=40):
    rng = np.random.default_rng(seed)
    psi = rng.multivariate_normal([-0.7, 0.1], [[0.8, 0.5], [0.5, 0.9]], n)
    return rng.multinomial(rng.integers(low, high, n), TREE.probabilities(psi))


def fitted(X, n_draws=1000, seed=0, **options):
    settings = Gibbs(n_draws=n_draws, n_burn=100, n_chains=2, **options)
    return CorrelatedMultinomial(decomposition=TREE, inference=settings, random_state=seed).fit(X)


def group(data, name):
    """Return a group as a dataset, in both lines of ArviZ."""
    found = data[name]
    return found.to_dataset() if hasattr(found, "to_dataset") else found


def groups_of(data):
    return set(data.children) if hasattr(data, "children") else set(data.groups())


def loo_of(values):
    """Return elpd and its parts (n,) for log likelihoods (chain, draw, n), in both lines of ArviZ."""
    import xarray as xr

    from polystick.inference.posterior import suited_to_arviz

    def variable(array, *words):
        return xr.Dataset({"counts": (("chain", "draw", *words), array)})

    groups = {"posterior": variable(values[..., 0]), "log_likelihood": variable(values, "row")}
    return left_out(suited_to_arviz(xr.DataTree.from_dict(groups)))


def left_out(data):
    """Return what `az.loo` says of each row; ArviZ has warnings of its own, about k and about pandas."""
    loo = quietly(az.loo, data, pointwise=True)
    return np.asarray(loo.elpd_i if hasattr(loo, "elpd_i") else loo.loo_i).ravel()


def quietly(function, *given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*given, **options)


# leave-one-out


def exact_left_out(X, places, n_draws=400):
    """Return the log predictive of some rows, each under a fit without it."""
    return np.array(
        [
            fitted(np.delete(X, i, axis=0), n_draws).score_samples(
                X[i : i + 1], coefficient=True, n_draws=4096
            )[0]
            for i in places
        ]
    )


def test_loo_is_leave_one_out():
    X = rows_of_counts(12, seed=3)
    places = [0, 5, 9]
    model = fitted(X, 800, keep=("probabilities",))
    data = model.to_arviz(X, log_likelihood=True)
    values = group(data, "log_likelihood")["counts"].values
    found = left_out(data)[places]
    exact = exact_left_out(X, places)
    limit = 0.3  # nats: 3 standard errors of the exact fits and of importance sampling
    assert abs(found.sum() - exact.sum()) < limit

    # controls: in-sample, given each row's own psi, and a total that is taken for a row
    pi = model.posterior_["probabilities"]
    conditional = (X * np.log(pi)).sum(axis=-1) + log_coefficients(X)
    wrong = [
        log_mean_exp(values.reshape(-1, len(X)), axis=0)[places].sum(),
        loo_of(conditional)[places].sum(),
        loo_of(model.posterior_.log_likelihood[..., None]).sum() * len(places) / len(X),
    ]
    assert all(abs(value - exact.sum()) > limit for value in wrong)


@pytest.mark.slow
def test_loo_is_leave_one_out_of_each_row():
    X = rows_of_counts(16, seed=5)
    found = left_out(fitted(X, 2000).to_arviz(X, log_likelihood=True))
    exact = exact_left_out(X, range(len(X)), 1500)
    assert np.sqrt(np.mean((found - exact) ** 2)) < 0.15
    assert abs(found.sum() - exact.sum()) < 0.5


def test_log_likelihood_by_row_is_that_of_quadrature():
    X = rows_of_counts(6, seed=1)
    model = fitted(X, 20)
    values = group(model.to_arviz(X, log_likelihood=True), "log_likelihood")["counts"].values
    state = {name: model.posterior_[name][1, 7] for name in ("mean", "cov")}
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    grid = np.stack(np.meshgrid(points, points), axis=-1).reshape(-1, 2)
    psi = state["mean"] + grid @ np.linalg.cholesky(state["cov"]).T
    log_pi = TREE.log_probabilities(psi)
    weight = np.outer(weights, weights).ravel() / (2 * np.pi)
    expected = np.log(np.exp(X @ log_pi.T) @ weight) + log_coefficients(X)
    np.testing.assert_allclose(values[1, 7], expected, atol=0.05)


def test_loo_of_a_process_is_leave_one_out():
    rng = np.random.default_rng(0)
    Z = np.linspace(0, 3, 10)[:, None]
    X = rng.multinomial(30, TREE.probabilities(np.column_stack([np.sin(2 * Z), 0.5 * Z])))

    def fit(rows, n_draws):
        kernel = ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed")
        settings = Gibbs(n_draws=n_draws, n_burn=50, n_chains=2)
        model = MultinomialGP(kernel, decomposition=TREE, mean="zero", learn=(), solver="dense",
                              inference=settings, random_state=0)  # fmt: skip
        return model.fit(Z[rows], X[rows])

    everything, places = np.arange(len(Z)), [0, 5, 9]
    model = fit(everything, 400)
    found = left_out(model.to_arviz(log_likelihood=True, n_draws=400))[places]
    exact = [
        fit(np.delete(everything, i), 200).score_samples(
            Z[[i]], X[[i]], coefficient=True, n_draws=100
        )[0]
        for i in places
    ]
    assert np.abs(found - exact).max() < 0.15
    pi = np.stack([model.model_.probabilities_of(s) for s in model.posterior_.states(
        ("theta", "white", "mean", "scale"), model.posterior_.even_draws(("white",), None))])  # fmt: skip
    own = ((X * np.log(pi)).sum(axis=-1) + log_coefficients(X))[:, places]
    assert np.abs(log_mean_exp(own, axis=0) - exact).max() > 0.15  # in-sample: the test can fail


def test_compare_ranks_the_better_model_first():
    rng = np.random.default_rng(0)
    psi = rng.multivariate_normal([0, 0], [[2.0, 1.9], [1.9, 2.0]], 40)
    X = rng.multinomial(40, TREE.probabilities(psi))
    other = decompose(((0, 1), 2), n_categories=3)
    narrow = NormalInverseWishart(np.zeros(2), 50.0, 0.05 * np.eye(2), 200.0)
    options = {"inference": Gibbs(n_draws=300, n_burn=100, n_chains=2), "random_state": 0}
    models = {
        "narrow": CorrelatedMultinomial(decomposition=TREE, prior=narrow, **options).fit(X),
        "given": CorrelatedMultinomial(decomposition=TREE, **options).fit(X),
        "other tree": CorrelatedMultinomial(decomposition=other, **options).fit(X),
    }
    data = {name: model.to_arviz(X, log_likelihood=True) for name, model in models.items()}
    table = quietly(az.compare, data)
    assert list(table.index)[-1] == "narrow"


def test_factors_have_no_leave_one_out():
    X = rows_of_counts(8, seed=0)
    model = CorrelatedMultinomial(inference=MeanField(), random_state=0).fit(X)
    with pytest.raises(ValueError, match="needs draws from the posterior"):
        model.to_arviz(X, log_likelihood=True)
    data = model.to_arviz(X, posterior_predictive=True, n_draws=30)
    assert group(data, "posterior_predictive")["counts"].shape == (1, 30, 8, 3)


# groups, and the names of rows


def test_groups_share_chains_and_draws(tmp_path):
    X = pd.DataFrame(
        rows_of_counts(6, seed=2),
        columns=["a", "b", "c"],
        index=pd.MultiIndex.from_product([["CA", "NY"], [1990, 1991, 1992]]),
    )
    model = CorrelatedMultinomial(inference=SHORT, random_state=0).fit(X)
    data = model.to_arviz(
        X, log_likelihood=True, posterior_predictive=True, prior_predictive=True, n_draws=30
    )
    expected = np.linspace(0, 39, 15).round().astype(int)
    for name in ("posterior", "sample_stats", "log_likelihood", "posterior_predictive",
                 "prior_predictive", "watched"):  # fmt: skip
        there = group(data, name)
        assert list(there["chain"].values) == [0, 1]
        assert list(there["draw"].values) == list(expected)
    kept = group(data, "posterior")["mean"].values
    np.testing.assert_array_equal(kept, model.posterior_["mean"][:, expected])
    for name in ("observed_data", "log_likelihood", "posterior_predictive", "running"):
        assert list(group(data, name)["row"].values)[::5] == ["CA, 1990", "NY, 1992"]
    np.testing.assert_array_equal(group(data, "observed_data")["counts"].values, X)
    assert "log_likelihood" not in group(data, "sample_stats")

    path = model.posterior_.save(tmp_path / "draws.nc")
    assert list(Posterior.load(path).tree["running"]["row"].values) == list(labels_of(X))
    assert "row NY, 1991" in " ".join(model.posterior_.tree["watched"]["cell_of_psi"].values)


def test_nothing_asked_is_the_posterior_as_it_is():
    X = rows_of_counts(6, seed=2)
    model = CorrelatedMultinomial(inference=SHORT, random_state=0).fit(X)
    data = model.to_arviz()
    assert "observed_data" not in groups_of(data)
    np.testing.assert_array_equal(group(data, "posterior")["cov"].values, model.posterior_["cov"])
    assert "observed_data" in groups_of(model.to_arviz(X))


def test_errors_say_what_is_missing():
    X = rows_of_counts(6, seed=2)
    model = CorrelatedMultinomial(inference=SHORT, random_state=0).fit(X)
    with pytest.raises(ValueError, match="need X, the rows of the fit"):
        model.to_arviz(posterior_predictive=True)
    with pytest.raises(ValueError, match="the rows of the fit, in their order"):
        model.to_arviz(X[::-1], log_likelihood=True)
    with pytest.raises(ValueError, match='"new"'):
        model.to_arviz(X, posterior_predictive="old")
    with pytest.raises(ValueError, match="totals must be whole numbers"):
        model.predict_counts(X, totals=[1.5] * 6)
    with pytest.raises(ValueError, match="ask for fewer draws"):
        model.predict_counts(np.zeros((10**7, 3), dtype=int), totals=5, n_draws=80)


@pytest.mark.parametrize(
    ("index", "labels"),
    [
        (pd.RangeIndex(3), None),
        (pd.Index(["a", "b", "a"]), None),
        (pd.Index([1, "1", 2]), None),
        (pd.Index([1990, 1991, 1993]), [1990, 1991, 1993]),
        (pd.Index(["a", None, 2.5]), ["a", "None", "2.5"]),
        (pd.MultiIndex.from_tuples([("CA", 1), ("CA", 2), ("NY", 1)]), ["CA, 1", "CA, 2", "NY, 1"]),
        (pd.date_range("2020-01-01", periods=3), ["2020-01-01", "2020-01-02", "2020-01-03"]),
        (pd.period_range("2020", periods=3, freq="Y"), ["2020", "2021", "2022"]),
    ],
)
def test_labels_of_rows(index, labels):
    found = labels_of(pd.DataFrame(np.eye(3), index=index))
    assert found is None if labels is None else list(found) == labels
    assert found is None or found.dtype.kind in "iU"


def test_arrays_have_no_names():
    assert labels_of(np.eye(3)) is None
    assert labels_of([[1, 2], [3, 4]]) is None


# pictures, in both lines of ArviZ


def draw_ppc(data):
    matplotlib.use("Agg")
    if hasattr(az, "plot_ppc_dist"):
        return quietly(az.plot_ppc_dist, data, num_samples=20)
    return quietly(az.plot_ppc, data, num_pp_samples=20, random_seed=0)


def test_ppc_is_drawn(tmp_path):
    X = rows_of_counts(20, seed=4)
    model = CorrelatedMultinomial(inference=SHORT, random_state=0).fit(X)
    draw_ppc(model.to_arviz(X, posterior_predictive=True))
    picture = matplotlib.pyplot.gcf()
    picture.savefig(tmp_path / "ppc.png")
    assert (tmp_path / "ppc.png").stat().st_size > 5_000
    assert any(len(axes.lines) > 10 or axes.collections for axes in picture.axes)
    matplotlib.pyplot.close("all")
