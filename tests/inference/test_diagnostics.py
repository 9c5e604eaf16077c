"""R-hat and ESS have the numbers of ArviZ, whichever line of it is installed."""

import warnings

import numpy as np
import pytest

from polystick.inference import diagnostics


def chains(n_chains, n_draws, rho, n_entries=5, seed=0):
    """Return autoregressions, one of them rounded, so that it has ties."""
    rng = np.random.default_rng(seed)
    x = np.empty((n_chains, n_draws, n_entries))
    x[:, 0] = rng.standard_normal((n_chains, n_entries))
    for t in range(1, n_draws):
        noise = rng.standard_normal((n_chains, n_entries))
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * noise
    x[..., -1] = np.round(x[..., -1])
    return x


def of_arviz(function, x, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz

        entries = np.ascontiguousarray(np.moveaxis(x, 2, 0))
        return [float(getattr(arviz, function)(entry, **options)) for entry in entries]


SHAPES = [(4, 1000, 0.9), (4, 1000, 0.0), (2, 201, 0.95), (3, 40, 0.99), (4, 100, -0.7), (2, 5, 0)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_same_numbers_as_arviz(shape):
    x = chains(*shape)
    np.testing.assert_allclose(diagnostics.rhat(x), of_arviz("rhat", x), rtol=1e-10)
    np.testing.assert_allclose(diagnostics.bulk_ess(x), of_arviz("ess", x), rtol=1e-10)
    tails = of_arviz("ess", x, method="tail", prob=(0.05, 0.95))
    np.testing.assert_allclose(diagnostics.tail_ess(x), tails, rtol=1e-10)


def test_the_ess_of_an_autoregression_is_what_theory_says():
    x = chains(4, 5000, 0.8, n_entries=20)[..., :-1]
    expected = 4 * 5000 * (1 - 0.8) / (1 + 0.8)
    assert np.mean(diagnostics.bulk_ess(x)) == pytest.approx(expected, rel=0.1)


def test_the_worst_of_many_entries_is_found():
    x = chains(4, 200, 0.3, n_entries=400)
    x[:, :, 123] = chains(4, 200, 0.99, n_entries=2)[..., 0]
    x[..., 77] += np.arange(4)[:, None]
    found = diagnostics.diagnose(x)
    assert found.worst == 77
    assert found.rhat == pytest.approx(diagnostics.rhat(x).max())
    assert found.least in (77, 123)
    both = np.minimum(diagnostics.bulk_ess(x), diagnostics.tail_ess(x))
    assert found.least_ess == pytest.approx(both.min())
    assert found.n_entries == 400


def test_slow_tails_are_seen_where_the_bulk_is_fine():
    """Chains that differ only in their spread."""
    x = chains(4, 500, 0.0, n_entries=2)[..., :1] * np.array([1, 1, 1, 6.0])[:, None, None]
    found = diagnostics.diagnose(x)
    assert found.rhat > 1.1
    assert found.tail_ess < found.ess


def test_chains_that_differ_in_spread_are_found_among_many():
    x = chains(4, 500, 0.0, n_entries=300)
    x[3, :, 41] *= 3.0
    found = diagnostics.diagnose(x)
    assert found.worst == 41
    assert found.rhat == pytest.approx(diagnostics.rhat(x).max())


def test_a_mean_far_away_hides_nothing():
    x = chains(4, 500, 0.0, n_entries=300) + 1e9
    x[..., 7] += np.arange(4)[:, None]
    assert diagnostics.diagnose(x).worst == 7


def test_constants_are_not_diagnosed():
    x = chains(2, 50, 0.0)
    x[..., 1:] = 7.0
    assert diagnostics.diagnose(x).n_entries == 1
    assert diagnostics.diagnose(np.full((2, 50, 3), 7.0)) is None


def test_chains_that_stand_still_apart_are_seen():
    still = np.repeat(np.array([1.0, 2.0])[:, None, None], 50, axis=1)
    assert diagnostics.diagnose(still).rhat == np.inf


def test_entries_of_which_hardly_any_draw_differs():
    x = np.zeros((2, 100, 1))
    x[0, 3] = 1.0
    found = diagnostics.diagnose(x)
    assert np.isfinite([found.ess, found.tail_ess]).all()


def test_rhat_of_moments():
    x = chains(4, 300, 0.5)
    found = diagnostics.rhat_of_moments(x.mean(axis=1), x.var(axis=1, ddof=1), 300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = of_arviz("rhat", x, method="identity")
    np.testing.assert_allclose(found, expected, rtol=1e-10)
