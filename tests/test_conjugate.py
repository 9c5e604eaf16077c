import numpy as np
import pytest
from scipy import stats

from naive_gaussian import wishart_posterior
from polystick.conjugate import InverseWishart, NormalInverseWishart

N_DRAWS = 10_000
SIGMAS = 5.0


def law(k=3, seed=0, strength=1.7, degrees=None):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(k, k + 2))
    scale = roots @ roots.T + np.eye(k)
    return NormalInverseWishart(rng.normal(size=k), strength, scale, degrees or k + 6.5)


def statistics(rows):
    return len(rows), rows.sum(axis=0), rows.T @ rows


def parameters(niw):
    return niw.mean, niw.strength, niw.scale, niw.degrees


def assert_same(left, right, rtol=1e-10):
    for ours, theirs in zip(parameters(left), parameters(right)):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-12)


def assert_mean(values, expected):
    """Assert that the values' mean is within 5 standard errors of the expected one."""
    values = np.asarray(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    assert np.all(np.abs(values.mean(axis=0) - expected) < SIGMAS * error)


@pytest.fixture(scope="module")
def sampled():
    niw, rng = law(), np.random.default_rng(1)
    draws = [niw.draw(rng) for _ in range(N_DRAWS)]
    return niw, [np.array(part) for part in zip(*draws)]


def log_density(niw, mean, cov):
    """Return the log density of (mean, cov) by SciPy."""
    normal = stats.multivariate_normal(niw.mean, cov / niw.strength).logpdf(mean)
    return normal + stats.invwishart(niw.degrees, niw.scale).logpdf(cov)


# ---- draws


def test_draws_have_the_known_moments(sampled):
    niw, (mean, cov, precision) = sampled
    assert_mean(mean, niw.mean)
    assert_mean(cov, niw.expected_cov)
    assert_mean(precision, niw.expected_precision)
    assert_mean((mean - niw.mean)[:, :, None] * (mean - niw.mean)[:, None], niw.expected_cov / 1.7)


def test_cov_and_precision_are_inverse(sampled):
    _, (_, cov, precision) = sampled
    np.testing.assert_allclose(
        cov[:100] @ precision[:100], np.tile(np.eye(3), (100, 1, 1)), atol=1e-9
    )


def test_draws_follow_the_law_of_scipy(sampled):
    """Entries of an inverse Wishart: a'cov a / a'Psi a is inverse chi-square, for any direction."""
    niw, (_, cov, _) = sampled
    k, nu = 3, niw.degrees
    for direction in (np.eye(3)[0], np.eye(3)[2], np.array([1.0, -2.0, 0.5])):
        ratio = (direction @ niw.scale @ direction) / (cov @ direction @ direction)
        assert stats.kstest(ratio, stats.chi2(nu - k + 1).cdf).pvalue > 1e-5
    det = np.linalg.slogdet(cov)[1]
    theirs = stats.invwishart(nu, niw.scale).rvs(4000, random_state=np.random.default_rng(2))
    assert stats.ks_2samp(det, np.linalg.slogdet(theirs)[1]).pvalue > 1e-5


def test_a_wrong_bartlett_fails(sampled):
    """Negative control: the degrees of the diagonal in the wrong order."""
    niw, _ = sampled
    rng = np.random.default_rng(3)

    class Wrong:
        def standard_normal(self, size):
            return rng.standard_normal(size)

        def chisquare(self, degrees):
            return rng.chisquare(degrees[::-1])

    covs = [niw.draw(Wrong()).cov for _ in range(N_DRAWS)]
    with pytest.raises(AssertionError):
        assert_mean(covs, niw.expected_cov)


def test_one_dimension():
    niw = NormalInverseWishart([0.3], 2.0, [[1.5]], 6.0)
    rng = np.random.default_rng(4)
    covs = [niw.draw(rng).cov[0, 0] for _ in range(4000)]
    assert stats.kstest(covs, stats.invgamma(3.0, scale=0.75).cdf).pvalue > 1e-5


# ---- expectations


def test_expectations(sampled):
    niw, (mean, _, precision) = sampled
    linear = np.einsum("nij,nj->ni", precision, mean)
    assert_mean(linear, niw.expected_linear)
    assert_mean(np.sum(linear * mean, axis=1), niw.expected_quadratic)
    assert_mean(np.linalg.slogdet(precision)[1], niw.expected_log_det_precision)


def test_expectations_that_forget_a_term_fail(sampled):
    """Negative controls: k / r left out; nu - k - 1 for nu."""
    niw, (mean, _, precision) = sampled
    linear = np.einsum("nij,nj->ni", precision, mean)
    with pytest.raises(AssertionError):
        assert_mean(np.sum(linear * mean, axis=1), niw.mean @ niw.expected_linear)
    with pytest.raises(AssertionError):
        assert_mean(precision, np.linalg.inv(niw.expected_cov))


# ---- updates


def test_posterior_equals_the_textbook():
    prior, rows = law(), np.random.default_rng(5).normal(3.0, 2.0, size=(40, 3))
    expected = NormalInverseWishart(*wishart_posterior(prior, rows))
    assert_same(prior.posterior(*statistics(rows)), expected)


def test_sequential_equals_batch():
    prior, rows = law(), np.random.default_rng(6).normal(size=(30, 3))
    sequential = prior
    for row in rows:
        sequential = sequential.posterior(*statistics(row[None]))
    assert_same(sequential, prior.posterior(*statistics(rows)))


def test_no_rows_leave_the_prior():
    prior = law()
    assert_same(prior.posterior(0, np.zeros(3), np.zeros((3, 3))), prior, rtol=0)


def test_evidence_equals_the_product_of_student_predictives():
    prior, rows = law(), np.random.default_rng(7).normal(size=(12, 3))
    posterior = prior.posterior(*statistics(rows))
    ours = posterior.log_normaliser - prior.log_normaliser - 12 * 3 / 2 * np.log(2 * np.pi)
    theirs, current = 0.0, prior
    for row in rows:
        df = current.degrees - 2
        shape = current.scale * (current.strength + 1) / (current.strength * df)
        theirs += stats.multivariate_t(current.mean, shape, df=df).logpdf(row)
        current = current.posterior(*statistics(row[None]))
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def natural(niw):
    m, r = niw.mean, niw.strength
    return r, r * m, niw.scale + r * np.outer(m, m), niw.degrees


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_blend_is_linear_in_natural_parameters(rate):
    left, right = law(seed=8), law(seed=9, strength=20.0, degrees=55.0)
    blended = left.blend(right, rate)
    for mixed, one, other in zip(natural(blended), natural(left), natural(right)):
        np.testing.assert_allclose(mixed, (1 - rate) * one + rate * other, rtol=1e-12)


def test_blend_at_rate_one_is_the_other_to_the_bit():
    left, right = law(seed=8), law(seed=9, strength=20.3, degrees=55.1)
    for ours, theirs in zip(parameters(left.blend(right, 1.0)), parameters(right)):
        np.testing.assert_array_equal(ours, theirs)


# ---- divergence


def test_kl_is_zero_at_equality_and_positive_elsewhere():
    laws = [law(seed=s, strength=0.5 + s, degrees=5.0 + s) for s in range(6)]
    for one in laws:
        for other in laws:
            if one is other:
                np.testing.assert_allclose(one.kl(other), 0.0, atol=1e-12)
            else:
                assert one.kl(other) > 0.01


def test_kl_equals_monte_carlo(sampled):
    niw, (mean, cov, _) = sampled
    other = law(seed=10, strength=0.8, degrees=7.0)
    ratios = [log_density(niw, m, c) - log_density(other, m, c) for m, c in zip(mean, cov[:1500])]
    assert_mean(ratios, niw.kl(other))
    with pytest.raises(AssertionError):
        assert_mean(ratios, other.kl(niw))


# ---- construction


def test_weak_has_the_given_expected_cov():
    prior = NormalInverseWishart.weak(np.zeros(4), [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(prior.expected_cov, np.diag([1.0, 2.0, 3.0, 4.0]))
    assert prior.degrees == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strength": 0.0}, "strength must be positive"),
        ({"strength": np.inf}, "strength must be positive"),
        ({"degrees": 2.0}, "degrees must exceed 2"),
        ({"degrees": np.nan}, "degrees must exceed 2"),
        ({"scale": -np.eye(3)}, "scale must be positive definite"),
        ({"scale": np.eye(2)}, r"scale must be \(3, 3\)"),
        ({"scale": np.full((3, 3), np.nan)}, "must be finite"),
        ({"mean": [0.0, np.inf, 0.0]}, "must be finite"),
    ],
)
def test_an_improper_law_is_refused(change, message):
    arguments = {"mean": np.zeros(3), "strength": 1.0, "scale": np.eye(3), "degrees": 5.0} | change
    with pytest.raises(ValueError, match=message):
        NormalInverseWishart(**arguments)


def test_an_infinite_expected_cov_is_refused():
    with pytest.raises(ValueError, match="degrees above 4"):
        _ = NormalInverseWishart(np.zeros(3), 1.0, np.eye(3), 3.0).expected_cov


# ---- InverseWishart


def test_the_covariance_alone_has_the_density_of_scipy():
    """The log density is -(nu + k + 1) / 2 log|cov| - tr(scale cov^-1) / 2 - the normaliser."""
    rng = np.random.default_rng(11)
    law = InverseWishart(spread(3, rng), 6.5)
    for cov in (law.draw(rng) for _ in range(5)):
        kernel = -0.5 * (6.5 + 3 + 1) * np.linalg.slogdet(cov)[1]
        kernel -= 0.5 * np.trace(np.linalg.solve(cov, law.scale))
        theirs = stats.invwishart(6.5, law.scale).logpdf(cov)
        np.testing.assert_allclose(kernel - law.log_normaliser, theirs)


def test_the_covariance_alone_given_rows_of_known_mean():
    """Bayes' rule: prior times likelihood over posterior is the same wherever it is looked at."""
    rng = np.random.default_rng(12)
    prior, x = InverseWishart(spread(3, rng), 6.5), rng.normal(size=(7, 3))
    posterior = prior.posterior(len(x), x.T @ x)
    found = [
        stats.invwishart(prior.degrees, prior.scale).logpdf(cov)
        + stats.multivariate_normal(np.zeros(3), cov).logpdf(x).sum()
        - stats.invwishart(posterior.degrees, posterior.scale).logpdf(cov)
        for cov in (prior.draw(rng) for _ in range(4))
    ]
    np.testing.assert_allclose(found, found[0])


def test_draws_of_the_covariance_alone_are_those_of_the_joint_law():
    """The same numbers in the same order: models that hold the mean share streams with those that do not."""
    joint = NormalInverseWishart(np.zeros(2), 1.0, np.diag([1.0, 3.0]), 5.0)
    alone = joint.of_cov.draw(np.random.default_rng(4))
    np.testing.assert_array_equal(alone, joint.draw(np.random.default_rng(4)).cov)


@pytest.mark.parametrize("scale", [np.ones(3), np.ones((2, 3)), [[1.0, 0.5], [0.0, 1.0]]])
def test_a_scale_that_is_no_covariance_is_refused(scale):
    with pytest.raises(ValueError, match="scale must be"):
        InverseWishart(scale, 9.0)


def spread(k, rng):
    roots = rng.normal(size=(k, k + 2))
    return roots @ roots.T
