import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

from polystick.conjugate_dynamics import InverseGamma, MatrixNormalInverseWishart
from statistics_tools import MAX_Z, ks_pvalue, z_scores

N_DRAWS = 10_000


def spd(d, rng):
    roots = rng.normal(size=(d, d + 2))
    return roots @ roots.T / d + 0.5 * np.eye(d)


def law(d=2, p=3, seed=0):
    rng = np.random.default_rng(seed)
    return MatrixNormalInverseWishart(rng.normal(size=(d, p)), spd(p, rng), spd(d, rng), d + 6.5)


def pairs(n, d=2, p=3, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    return x, x @ rng.normal(size=(p, d)) + rng.normal(size=(n, d))


def statistics(x, y):
    return len(x), x.T @ x, y.T @ x, y.T @ y


def log_density(mniw, A, Q):
    """Return the log density of (A, Q) by SciPy."""
    columns = np.linalg.inv(mniw.strength)
    normal = stats.matrix_normal(mniw.mean, Q, columns).logpdf(A)
    return normal + stats.invwishart(mniw.degrees, mniw.scale).logpdf(Q)


def predictive(mniw, x, y):
    """Return the log density of one y given x: a multivariate t."""
    d = len(y)
    freedom = mniw.degrees - d + 1
    spread = 1.0 + x @ np.linalg.solve(mniw.strength, x)
    return stats.multivariate_t(mniw.mean @ x, mniw.scale * spread / freedom, freedom).logpdf(y)


def evidence(prior, posterior, n):
    return posterior.log_normaliser - prior.log_normaliser - 0.5 * n * 2 * np.log(2 * np.pi)


@pytest.fixture(scope="module")
def sampled():
    mniw, rng = law(), np.random.default_rng(2)
    return mniw, [np.array(part) for part in zip(*(mniw.draw(rng) for _ in range(N_DRAWS)))]


# ---- MatrixNormalInverseWishart


def cross_moments(A, mean):
    return np.einsum("nik,njl->nijkl", A - mean, A - mean)


def expected_cross(Q, columns):
    return np.einsum("ij,kl->ijkl", Q, columns)


def test_draws_have_the_known_moments(sampled):
    mniw, (A, Q) = sampled
    expected_cov = mniw.scale / (mniw.degrees - 3)
    assert np.abs(z_scores(A, mniw.mean)).max() < MAX_Z
    assert np.abs(z_scores(Q, expected_cov)).max() < MAX_Z
    columns = np.linalg.inv(mniw.strength)
    z = z_scores(cross_moments(A, mniw.mean), expected_cross(expected_cov, columns))
    assert np.abs(z).max() < MAX_Z
    precision = np.linalg.inv(Q)
    assert np.abs(z_scores(precision, mniw.degrees * np.linalg.inv(mniw.scale))).max() < MAX_Z


def test_the_noise_of_a_draw_fits_its_own_covariance(sampled):
    """Given Q the whitened A is standard normal, which the moments above average over."""
    mniw, (A, Q) = sampled
    root = np.linalg.cholesky(mniw.strength)
    white = np.linalg.solve(np.linalg.cholesky(Q), A - mniw.mean) @ root
    assert ks_pvalue(white, stats.norm.cdf) > 1e-5
    assert ks_pvalue(np.sum(white**2, axis=(1, 2)), stats.chi2(6).cdf) > 1e-5


def test_wrong_draws_are_seen(sampled):
    """Negative controls: strength for its inverse; the rows of A without their covariance."""
    mniw, (A, _) = sampled
    expected_cov = mniw.scale / (mniw.degrees - 3)
    moments = cross_moments(A, mniw.mean)
    assert np.abs(z_scores(moments, expected_cross(expected_cov, mniw.strength))).max() > MAX_Z
    columns = np.linalg.inv(mniw.strength)
    assert np.abs(z_scores(moments, expected_cross(np.eye(2), columns))).max() > MAX_Z


def test_posterior_is_bayes_rule():
    """Prior times likelihood over posterior is the same number, the evidence, at any (A, Q)."""
    prior, (x, y) = law(), pairs(12)
    posterior = prior.posterior(*statistics(x, y))
    rng = np.random.default_rng(3)
    for _ in range(5):
        A, Q = posterior.draw(rng)
        likelihood = stats.multivariate_normal(np.zeros(2), Q).logpdf(y - x @ A.T).sum()
        ratio = log_density(prior, A, Q) + likelihood - log_density(posterior, A, Q)
        np.testing.assert_allclose(ratio, evidence(prior, posterior, 12), rtol=1e-10)


def chain_rule(prior, x, y):
    """Return the log evidence as a sum of predictive densities, and the last law."""
    total, mniw = 0.0, prior
    for one_x, one_y in zip(x, y):
        total += predictive(mniw, one_x, one_y)
        mniw = mniw.posterior(*statistics(one_x[None], one_y[None]))
    return total, mniw


def test_evidence_is_the_chain_rule_of_predictive_densities():
    prior, (x, y) = law(), pairs(9)
    total, last = chain_rule(prior, x, y)
    batch = prior.posterior(*statistics(x, y))
    np.testing.assert_allclose(total, evidence(prior, batch, 9), rtol=1e-10)
    for name in ("mean", "strength", "scale", "degrees"):
        np.testing.assert_allclose(getattr(last, name), getattr(batch, name), rtol=1e-9)


def test_wrong_statistics_are_seen():
    """Negative controls: a missing row, y x' of other pairs."""
    prior, (x, y) = law(), pairs(9)
    total, _ = chain_rule(prior, x, y)
    n, xx, yx, yy = statistics(x, y)
    for wrong in ((n - 1, xx, yx, yy), (n, xx, y[::-1].T @ x, yy)):
        assert abs(evidence(prior, prior.posterior(*wrong), 9) - total) > 1e-3


def test_a_good_prior_mean_does_not_cancel():
    """With tiny noise around a known matrix the scale keeps its digits."""
    x, _ = pairs(50)
    prior = law()
    noise = 1e-6 * np.random.default_rng(4).normal(size=(50, 2))
    tight = MatrixNormalInverseWishart(prior.mean, 1e9 * np.eye(3), 1e-12 * np.eye(2), 8.0)
    y = x @ prior.mean.T + noise
    posterior = tight.posterior(*statistics(x, y))
    np.testing.assert_allclose(posterior.scale, noise.T @ noise, rtol=1e-2, atol=2e-12)


def test_one_dimension_is_the_inverse_gamma():
    mniw = MatrixNormalInverseWishart([[0.3]], [[2.0]], [[1.5]], 6.0)
    rng = np.random.default_rng(5)
    A, Q = (np.ravel(part) for part in zip(*(mniw.draw(rng) for _ in range(4000))))
    assert ks_pvalue(Q, stats.invgamma(3.0, scale=0.75).cdf) > 1e-5
    assert ks_pvalue(A, stats.t(6.0, 0.3, np.sqrt(1.5 / 6.0 / 2.0)).cdf) > 1e-5


def test_expectations_are_means_of_draws(sampled):
    mniw, (A, Q) = sampled
    precision = np.linalg.inv(Q)
    assert np.abs(z_scores(precision, mniw.expected_precision)).max() < MAX_Z
    log_dets = np.linalg.slogdet(precision)[1]
    assert np.abs(z_scores(log_dets, mniw.expected_log_det_precision)) < MAX_Z
    quadratic = A.swapaxes(1, 2) @ precision @ A
    known = mniw.mean.T @ mniw.expected_precision @ mniw.mean
    assert np.abs(z_scores(quadratic, known + mniw.expected_excess)).max() < MAX_Z
    assert np.abs(z_scores(quadratic, known)).max() > MAX_Z
    assert np.abs(z_scores(quadratic, known + 1.5 * mniw.expected_excess)).max() > MAX_Z


def test_kl_is_the_mean_of_log_ratios(sampled):
    mniw, draws = sampled
    other = law(seed=7)
    pairs_ = list(zip(*draws))[:400]
    ratios = np.array([log_density(mniw, *one) - log_density(other, *one) for one in pairs_])
    assert np.abs(z_scores(ratios, mniw.kl(other))) < MAX_Z
    assert np.abs(z_scores(ratios, other.kl(mniw))) > MAX_Z
    assert mniw.kl(mniw) == pytest.approx(0.0, abs=1e-12)


def test_kl_of_posterior_and_prior_closes_the_evidence():
    """E_q log p(y | A, Q) - KL(q || prior) is the log evidence at the posterior q: an exact check."""
    prior, (x, y) = law(), pairs(12)
    n, xx, yx, yy = statistics(x, y)
    q = prior.posterior(n, xx, yx, yy)
    precision, M = q.expected_precision, q.mean
    gap = yy - M @ yx.T - yx @ M.T + M @ xx @ M.T
    fit = n * (q.expected_log_det_precision - 2 * np.log(2 * np.pi)) - np.vdot(precision, gap)
    fit = 0.5 * (fit - np.vdot(q.expected_excess, xx))
    np.testing.assert_allclose(fit - q.kl(prior), evidence(prior, q, n), rtol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": np.zeros(3)}, "mean must be a matrix"),
        ({"strength": np.eye(2)}, r"strength must be \(3, 3\)"),
        ({"strength": -np.eye(3)}, "strength must be positive definite"),
        ({"mean": np.full((2, 3), np.nan)}, "must be finite"),
        ({"scale": np.eye(3)}, r"scale must be \(2, 2\)"),
        ({"degrees": 1.0}, "degrees must exceed 1"),
    ],
)
def test_improper_laws_are_refused(change, message):
    good = {"mean": np.zeros((2, 3)), "strength": np.eye(3), "scale": np.eye(2), "degrees": 5.0}
    with pytest.raises(ValueError, match=message):
        MatrixNormalInverseWishart(**(good | change))


# ---- InverseGamma


SHAPES, SCALES = np.array([3.5, 6.0, 0.7]), np.array([[1.2], [0.01]])


def test_draws_follow_the_law_of_each_entry():
    gamma, rng = InverseGamma(SHAPES, SCALES), np.random.default_rng(6)
    draws = np.array([gamma.draw(rng) for _ in range(N_DRAWS)])
    assert draws.shape == (N_DRAWS, 2, 3)
    for i in range(2):
        for j in range(3):
            cdf = stats.invgamma(SHAPES[j], scale=SCALES[i, 0]).cdf
            assert ks_pvalue(draws[:, i, j], cdf) > 1e-6
    assert ks_pvalue(draws[:, 0, 0], stats.invgamma(SHAPES[0], scale=1 / SCALES[0, 0]).cdf) < 1e-6
    assert np.abs(z_scores(1.0 / draws, gamma.expected_precision)).max() < MAX_Z
    assert np.abs(z_scores(np.log(draws), gamma.expected_log)).max() < MAX_Z
    assert np.abs(z_scores(1.0 / draws, 1.1 * gamma.expected_precision)).max() > MAX_Z
    assert np.abs(z_scores(np.log(draws), -gamma.expected_log)).max() > MAX_Z


def student_evidence(gamma, values):
    """Return the log evidence as a sum of predictive densities, each a t."""
    total = 0.0
    for value in values:
        spread = np.sqrt(gamma.scale / gamma.shape)
        total += stats.t(2.0 * gamma.shape, scale=spread).logpdf(value)
        gamma = gamma.posterior(1, value**2)
    return total


def test_posterior_by_the_chain_rule():
    prior, values = InverseGamma(2.5, 0.8), np.random.default_rng(7).normal(size=7)
    posterior = prior.posterior(7, np.sum(values**2))
    gain = posterior.log_normaliser - prior.log_normaliser - 3.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(gain, student_evidence(prior, values), rtol=1e-12)
    wrong = InverseGamma(prior.shape + 7, posterior.scale)  # n for n / 2
    gap = wrong.log_normaliser - prior.log_normaliser - 3.5 * np.log(2 * np.pi)
    assert abs(gap - student_evidence(prior, values)) > 1e-3


def test_posterior_is_broadcast():
    posterior = InverseGamma(2.0, 1.0).posterior(np.array([0, 3]), np.array([0.0, 5.0]))
    np.testing.assert_array_equal(posterior.shape, [2.0, 3.5])
    np.testing.assert_array_equal(posterior.scale, [1.0, 3.5])


def test_kl_by_quadrature():
    p, q = InverseGamma(3.0, 2.0), InverseGamma(1.7, 0.9)
    left, right = (stats.invgamma(g.shape, scale=g.scale) for g in (p, q))
    for law_, other, ours in ((left, right, p.kl(q)), (right, left, q.kl(p))):

        def integrand(log_q, law_=law_, other=other):
            value = np.exp(log_q)
            return value * law_.pdf(value) * (law_.logpdf(value) - other.logpdf(value))

        expected, _ = integrate.quad(integrand, -6.0, 25.0, limit=200)
        np.testing.assert_allclose(ours, expected, rtol=1e-7)
    assert p.kl(p) == 0.0
    assert InverseGamma(SHAPES, SCALES).kl(p).shape == (2, 3)


def test_log_normaliser_is_that_of_scipy():
    gamma = InverseGamma(SHAPES, SCALES)
    value = 0.4
    ours = -(gamma.shape + 1) * np.log(value) - gamma.scale / value - gamma.log_normaliser
    theirs = stats.invgamma(SHAPES, scale=SCALES).logpdf(value)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    np.testing.assert_allclose(InverseGamma(3.0, 1.0).log_normaliser, gammaln(3.0))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_improper_variances_are_refused(bad):
    with pytest.raises(ValueError, match="shape must be positive"):
        InverseGamma([1.0, bad], 1.0)
    with pytest.raises(ValueError, match="scale must be positive"):
        InverseGamma(1.0, bad)
