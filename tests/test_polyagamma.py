import math

import numba
import numpy as np
import pytest
from scipy import integrate

from naive_polyagamma import cdf_fourier, cdf_one, cdf_series
from polystick import polyagamma
from statistics_tools import MIN_P, ks_pvalue

JIT = not numba.config.DISABLE_JIT
LAWS = [(1, 0.0), (1, 3.0), (1.5, 20.0), (2, 0.7), (7.25, 1.0), (20, 5.0), (21, 0.0), (100, 1.5)]
LAWS += [(1000, 40.0), (10_000, 2.0), (10_000, 300.0)]


def scale(b, z):
    return polyagamma.mean(b, z), math.sqrt(polyagamma.var(b, z))


# ----------------------------------------------------------------------------------------- moments


@pytest.mark.parametrize("z", [0.0, 1e-9, 0.3, -1.999, 2.001, 8.0, 50.0])
def test_moments_are_those_of_the_definition(z):
    k = np.arange(200_000) + 0.5
    weights = 1 / (2 * np.pi**2 * (k**2 + z**2 / (4 * np.pi**2)))
    rest = 1 / (2 * np.pi**2 * len(k))  # the integral of the terms left out
    assert polyagamma.mean(3.5, z) == pytest.approx(3.5 * (weights.sum() + rest), rel=1e-9)
    assert polyagamma.var(3.5, z) == pytest.approx(3.5 * np.sum(weights**2), rel=1e-12)


def test_moments_at_the_ends():
    z = np.array([0.0, 5e-324, 1e-160, 1e5, 1e200, 1.7e308, np.inf, np.nan, -np.inf])
    mean, var = polyagamma.mean(4, z), polyagamma.var(24, z)
    np.testing.assert_array_equal(mean[:3], 1.0)
    np.testing.assert_array_equal(var[:3], 1.0)
    np.testing.assert_allclose(mean[3:6], 2 / z[3:6], rtol=1e-15)
    np.testing.assert_array_equal(mean[[6, 8]], 0.0)
    np.testing.assert_array_equal(var[[4, 5, 6, 8]], 0.0)
    assert np.isnan(mean[7])
    assert np.isnan(var[7])


def test_moments_broadcast():
    b, z = [[0.0], [2.0]], [0.0, 1.0, 2.0]
    assert polyagamma.mean(b, z).shape == polyagamma.var(b, z).shape == (2, 3)
    np.testing.assert_array_equal(polyagamma.mean(b, z)[0], 0.0)
    assert isinstance(polyagamma.mean(1, 0), float)


# ----------------------------------------------------------------------- density and distribution


@pytest.mark.parametrize(("b", "z"), LAWS)
def test_density_integrates_to_one_and_to_the_mean(b, z):
    mean, deviation = scale(b, z)
    low, high = max(mean - 12 * deviation, 1e-3 * mean), mean + 40 * deviation
    x = np.linspace(np.log(low), np.log(high), 801)
    f = np.exp(polyagamma.logpdf(np.exp(x), b, z) + x)
    assert integrate.simpson(f, x=x) == pytest.approx(1.0, abs=1e-7)
    assert integrate.simpson(f * np.exp(x), x=x) == pytest.approx(mean, rel=1e-7)


@pytest.mark.parametrize(("b", "z"), LAWS)
def test_distribution_is_the_integral_of_the_density(b, z):
    mean, deviation = scale(b, z)
    low = max(mean - 3 * deviation, 0.05 * mean)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    for left, right in zip(*(np.linspace(low, mean + 5 * deviation, 6)[i:][:5] for i in (0, 1))):
        x = left + 0.5 * (nodes + 1) * (right - left)
        mass = 0.5 * (right - left) * weights @ np.exp(polyagamma.logpdf(x, b, z))
        between = polyagamma.cdf(right, b, z) - polyagamma.cdf(left, b, z)
        assert between == pytest.approx(mass, abs=1e-10)


@pytest.mark.parametrize(
    ("b", "z"), [(1, 0.0), (1, 6.0), (1.7, 1.0), (3, 0.4), (6, 2.0), (2, 60.0)]
)
def test_distribution_agrees_with_the_series(b, z):
    mean, deviation = scale(b, z)
    for x in mean + deviation * np.array([-1.5, -0.5, 0.0, 1.0]):
        if x > 0:
            assert polyagamma.cdf(x, b, z) == pytest.approx(cdf_series(x, b, z), abs=1e-12)


@pytest.mark.parametrize("z", [0.0, 1.0, 9.0])
def test_distribution_agrees_with_the_poles(z):
    for x in (0.15, 0.4, 1.0, 2.5):
        assert polyagamma.cdf(x, 1, z) == pytest.approx(cdf_one(x, z), abs=1e-12)


@pytest.mark.parametrize(("b", "z"), [(9, 0.0), (40, 1.5), (300, 4.0), (2000.5, 0.3)])
def test_distribution_agrees_with_fourier_inversion(b, z):
    mean, deviation = scale(b, z)
    for x in mean + deviation * np.array([-2.0, 0.0, 0.7, 4.0]):
        assert polyagamma.cdf(x, b, z) == pytest.approx(cdf_fourier(x, b, z), abs=1e-10)


def test_tails_keep_their_relative_accuracy():
    """P(omega <= x) for b = 1, z = 0 and small x is 2 erfc(1 / sqrt(8 x))."""
    for x in (0.004, 0.001, 0.0005):
        assert polyagamma.cdf(x, 1, 0) == pytest.approx(2 * math.erfc((8 * x) ** -0.5), rel=1e-9)
    far = polyagamma.logpdf([50.0, 100.0], 1, 0)  # one pole is left: a straight line
    assert far[1] - far[0] == pytest.approx(-50 * np.pi**2 / 2, rel=1e-12)


@pytest.mark.parametrize(("b", "z"), [(1, 2.0), (50, 0.0)])
def test_outside_the_support(b, z):
    x = np.array([-np.inf, -1.0, 0.0, 1e-300, 1e6, np.inf, np.nan])
    cdf, logpdf = polyagamma.cdf(x, b, z), polyagamma.logpdf(x, b, z)
    np.testing.assert_array_equal(cdf, [0, 0, 0, 0, 1, 1, np.nan])
    np.testing.assert_array_equal(logpdf[[0, 1, 2, 5, 6]], [-np.inf] * 4 + [np.nan])
    assert (logpdf[3:5] < -1e5).all()


def test_infinite_tilt_is_a_point_mass_at_zero():
    np.testing.assert_array_equal(polyagamma.cdf([-1.0, 0.0, 1.0], 3, np.inf), [0, 1, 1])
    assert polyagamma.logpdf(1.0, 3, np.inf) == -np.inf
    assert np.isnan(polyagamma.cdf(1.0, 3, np.nan))


def test_density_depends_on_the_absolute_tilt():
    assert polyagamma.logpdf(0.4, 2, -3.0) == polyagamma.logpdf(0.4, 2, 3.0)
    assert polyagamma.cdf(0.4, 2, -3.0) == polyagamma.cdf(0.4, 2, 3.0)


def test_density_broadcasts():
    assert polyagamma.cdf([[0.1], [0.2]], 1, [0.0, 1.0, 2.0]).shape == (2, 3)
    assert isinstance(polyagamma.cdf(0.1, 1, 0), float)


@pytest.mark.parametrize("function", [polyagamma.cdf, polyagamma.logpdf])
def test_density_wants_b_of_one_or_more(function):
    with pytest.raises(ValueError, match=r"b must be at least 1; got values from 0\.5 to 2\.0"):
        function(1.0, [0.5, 2.0], 0.0)


# ------------------------------------------------------------------------------------------- draws


def test_draws_broadcast():
    assert polyagamma.draw([[1], [5]], [0.0, 1.0, 2.0], seed=1).shape == (2, 3)
    assert polyagamma.draw(2, 1.0, seed=1, size=(4, 2)).shape == (4, 2)
    assert polyagamma.draw([2, 3], 1.0, seed=1, size=(4, 2)).shape == (4, 2)
    assert polyagamma.draw([], 1.0, seed=1).shape == (0,)
    assert polyagamma.draw(1, 1.0, seed=1, size=0).shape == (0,)
    assert isinstance(polyagamma.draw(2, 1.0, seed=1), float)


def test_seeds_repeat_and_differ():
    first, again, other = (polyagamma.draw(2, np.zeros(100), seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first, other).any()
    assert polyagamma.draw(2, 0.0) != polyagamma.draw(2, 0.0)
    assert polyagamma.draw(2, 0.0, seed=np.int64(3)) == polyagamma.draw(2, 0.0, seed=3)
    assert polyagamma.draw(2, 0.0, seed=2**200) > 0


def test_longer_arrays_begin_like_shorter_ones():
    long = polyagamma.draw(3, np.ones(1000), seed=5)
    np.testing.assert_array_equal(polyagamma.draw(3, np.ones(70), seed=5), long[:70])
    assert len(np.unique(long)) == 1000


def test_draws_follow_the_law_across_streams():
    draws = polyagamma.draw(4, np.full(200_000 if JIT else 2000, 1.1), seed=6)
    assert ks_pvalue(draws[:50_000], lambda x: polyagamma.cdf(x, 4, 1.1)) > MIN_P
    lag = np.corrcoef(draws[:-1], draws[1:])[0, 1]
    assert abs(lag) * math.sqrt(len(draws)) < 5


@pytest.mark.parametrize(
    "kind", [np.int8, np.uint16, np.int64, np.uint64, np.float32, float, object]
)
def test_trials_of_any_kind_give_the_same_draws(kind):
    b, z = np.arange(100), np.linspace(-3.0, 3.0, 100)
    expected = polyagamma.draw(b.tolist(), z, seed=1)
    np.testing.assert_array_equal(polyagamma.draw(b.astype(kind), z, seed=1), expected)


def test_arrays_of_any_layout_give_the_same_draws():
    b, z = np.arange(60).reshape(6, 10), np.linspace(-3.0, 3.0, 60).reshape(6, 10)
    expected, kept = polyagamma.draw(b, z, seed=1), b.copy()
    for one, other in ((b, np.asfortranarray(z)), (np.repeat(b, 2, axis=1)[:, ::2], z)):
        np.testing.assert_array_equal(polyagamma.draw(one, other, seed=1), expected)
    for array in (b, z):
        array.flags.writeable = False
    np.testing.assert_array_equal(polyagamma.draw(b, z, seed=1), expected)
    np.testing.assert_array_equal(b, kept)


@pytest.mark.parametrize(
    "b", [np.array([1, -1]), np.array([1, 10**9 + 1]), np.array([0, 2**63], np.uint64)], ids=str
)
def test_whole_numbers_out_of_range_are_refused(b):
    with pytest.raises(ValueError, match="whole numbers from 0 to 1,000,000,000; got values from"):
        polyagamma.draw(b, 0.0)


def test_no_trials_give_no_draws():
    assert polyagamma.draw(np.zeros((0, 3), int), 1.0, seed=1).shape == (0, 3)


def test_whole_floats_and_zero_are_trials():
    assert polyagamma.draw(3.0, 1.0, seed=1) == polyagamma.draw(3, 1.0, seed=1)
    np.testing.assert_array_equal(polyagamma.draw([0, 0.0], [1.0, np.inf], seed=1), 0.0)
    assert polyagamma.draw(10**9, 0.0, seed=1) == pytest.approx(2.5e8, rel=1e-3)


@pytest.mark.parametrize("b", [1.5, -1, 10**9 + 1, np.nan, np.inf])
def test_other_trials_are_refused(b):
    with pytest.raises(ValueError, match="b must be whole numbers from 0 to 1,000,000,000; got"):
        polyagamma.draw([1, b], 0.0)


@pytest.mark.parametrize("values", ["many", [1, "x"], object(), 1j])
def test_what_is_not_a_number_is_refused(values):
    with pytest.raises(TypeError, match="must be a real number or an array of them; got"):
        polyagamma.draw(1, values)
    with pytest.raises(TypeError, match="b must be a real number"):
        polyagamma.draw(values, 0.0)


def test_other_seeds_are_refused():
    with pytest.raises(ValueError, match="seed must be a non-negative int or None; got -1"):
        polyagamma.draw(1, 0.0, seed=-1)
    for seed in (1.5, "1", np.random.default_rng(0), [1]):
        with pytest.raises(TypeError, match="seed must be a non-negative int or None; got"):
            polyagamma.draw(1, 0.0, seed=seed)
