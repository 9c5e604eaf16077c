"""Laws that learn their scale: each conditional against brute force, and each step keeps the joint law."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from polystick.association import double_centred
from polystick.conjugate import NormalInverseWishart
from polystick.population import LearnedScale, SparseFactors, gammas, sparse_factors
from statistics_tools import MAX_Z, MIN_P, ks_pvalue, z_scores

CENTRE = np.array([0.5, -1.0, 0.2, 0.0, -0.5])
LEARNED = LearnedScale(CENTRE[:4], scale=1.0, nu=3.0)
FACTORS = SparseFactors(CENTRE, 2, scale=0.7, sparsity=0.5, wide=1.5)
WISHART = NormalInverseWishart(CENTRE[:4], 1.5, 6 * np.eye(4) + 2.0, 12.0)
FREE = LearnedScale(CENTRE[:4], scale=1.0)  # nu is learned too
LAWS = {"wishart": WISHART, "learned": LEARNED, "nu too": FREE, "factors": FACTORS}


@pytest.fixture
def rng():
    return np.random.default_rng(2013)


def rows_of(parameters, n, rng):
    root = np.linalg.cholesky(parameters.cov)
    return parameters.mean + rng.standard_normal((n, len(root))) @ root.T


def statistics(psi):
    return len(psi), psi.sum(axis=0), psi.T @ psi


# draws


def test_standard_deviations_are_half_t(rng):
    """Huang and Wand's: sd_k is half-t with nu degrees, and a correlation uniform for nu = 2."""
    cov = np.array([LEARNED.draw(rng).cov for _ in range(3000)])
    half_t = lambda x: 2 * stats.t(LEARNED.nu).cdf(x / LEARNED.scale) - 1
    assert ks_pvalue(np.sqrt(cov[:, 1, 1]), half_t) > MIN_P
    law = LearnedScale(np.zeros(3), nu=2.0)
    cov = np.array([law.draw(rng).cov for _ in range(3000)])
    correlation = cov[:, 0, 1] / np.sqrt(cov[:, 0, 0] * cov[:, 1, 1])
    assert ks_pvalue(correlation, stats.uniform(-1, 2).cdf) > MIN_P
    assert ks_pvalue(np.sqrt(cov[:, 1, 1]), half_t) < MIN_P


@pytest.mark.parametrize("name", LAWS)
def test_parameters_fit_together(name, rng):
    law = LAWS[name]
    for parameters in (law.draw(rng), law.start(rng), law.recentre(law.start(rng), rng)):
        assert isinstance(parameters, law.parameter_type)
        k = len(law.centre)
        product = parameters.cov @ parameters.precision
        np.testing.assert_allclose(
            product, np.eye(k), atol=1e-5 * np.linalg.cond(parameters.cov) ** 0.5
        )
        np.testing.assert_array_equal(parameters.precision, parameters.precision.T)


def test_scales_are_cut_off(rng, monkeypatch):
    """Half-Cauchy within its ends, drawn jointly with its rate: given it, the rate is an inverse gamma."""
    ends = (0.3, 5.0)
    square, rate = sparse_factors._half_cauchy(ends, 2.0, (20_000,), rng)
    assert square.min() >= ends[0]
    assert square.max() <= ends[1]
    low, high = (np.arctan(np.sqrt(end) / 2.0) for end in ends)
    assert ks_pvalue(np.arctan(np.sqrt(square) / 2.0), stats.uniform(low, high - low).cdf) > MIN_P
    assert ks_pvalue((1 / square + 0.25) / rate, stats.expon.cdf) > MIN_P


GAMMAS = [  # ends, shape, rate
    ((1e-6, 1e6), 0.5, 1.0),
    ((1e-6, 1e6), 75.5, 60.0),
    ((0.0, 1.0), 8.5, 20.0),
    ((0.0, 1.0), 8.5, 2.0),
    ((0.5, 2.0), 8.5, 8.0),
    ((0.0, 1e4), 1.0, 1e-30),
]


@pytest.mark.parametrize("case", GAMMAS, ids=str)
def test_cut_off_inverse_gammas(case, rng):
    ends, shape, rate = case
    drawn = sparse_factors.inverse_gamma_within(ends, shape, np.full(20_000, rate), rng)
    assert drawn.min() >= ends[0]
    assert drawn.max() <= ends[1]
    law, least, most = stats.gamma(shape), rate / ends[1], rate / ends[0] if ends[0] else np.inf
    share = lambda x: (law.cdf(x) - law.cdf(least)) / (law.cdf(most) - law.cdf(least))
    assert ks_pvalue(rate / drawn, share) > MIN_P


@pytest.mark.parametrize(
    ("rate", "ends", "end"),
    [(1e-9, (1e-6, 1e6), 1e-6), (1e12, (1e-6, 1e6), 1e6), (1e5, (0.0, 1.0), 1.0)],
)
def test_beyond_an_end_draws_are_near_that_end(rate, ends, end, rng):
    """However improbable: a tail that is no number must not send them to the other end."""
    drawn = sparse_factors.inverse_gamma_within(ends, 75.5, np.full(1000, rate), rng)
    np.testing.assert_allclose(drawn, end, rtol=0.2)


# conditionals of the learned scale


def test_scales_given_mean_and_cov_have_the_joint_density(rng):
    """Ratios of the joint density along each scale are those of the law that it is drawn from."""
    p = LEARNED.draw(rng)
    k, gap = 4, p.mean - LEARNED.centre

    def joint(spread, strength):
        value = stats.invgamma(0.5, scale=LEARNED.scale**-2).logpdf(spread).sum()
        scale = np.diag(2 * LEARNED.nu / spread)
        value += stats.invwishart(LEARNED.nu + k - 1, scale).logpdf(p.cov)
        value += stats.gamma(LEARNED.SHAPE, scale=1 / LEARNED.RATE).logpdf(strength)
        return value + stats.multivariate_normal(LEARNED.centre, p.cov / strength).logpdf(p.mean)

    rate = LEARNED.nu * np.diag(p.precision) + LEARNED.scale**-2
    of_spread = stats.invgamma(0.5 * (LEARNED.nu + k), scale=rate)
    of_strength = stats.gamma(
        LEARNED.SHAPE + k / 2, scale=1 / (LEARNED.RATE + 0.5 * gap @ p.precision @ gap)
    )
    for _ in range(5):
        spread, strength = np.exp(rng.normal(size=k)), np.exp(rng.normal())
        expected = joint(spread, strength) - joint(p.spread, p.strength)
        found = (of_spread.logpdf(spread) - of_spread.logpdf(p.spread)).sum()
        found += of_strength.logpdf(strength) - of_strength.logpdf(p.strength)
        assert found == pytest.approx(expected, rel=1e-8)
    drawn = [LEARNED.redraw_scales(p, rng) for _ in range(3000)]
    for i in range(k):
        one = stats.invgamma(0.5 * (LEARNED.nu + k), scale=rate[i])
        assert ks_pvalue([d.spread[i] for d in drawn], one.cdf) > MIN_P
    assert ks_pvalue([d.strength for d in drawn], of_strength.cdf) > MIN_P


def test_nu_has_the_evidence_of_the_rows(rng):
    """By Bayes's rule at one mean and cov: prior times likelihood over posterior."""
    p = FREE.draw(rng)
    psi = rows_of(p, 7, rng)
    told = FREE._given(p.spread, p.strength, 3.0)
    scatter = told.posterior(*statistics(psi)).scale - told.scale
    root = np.sqrt(np.diag(p.spread))
    found = FREE._log_marginal(7, np.linalg.eigvalsh(root @ scatter @ root))

    def log_density(law):
        of_mean = stats.multivariate_normal(law.mean, p.cov / law.strength)
        return stats.invwishart(law.degrees, law.scale).logpdf(p.cov) + of_mean.logpdf(p.mean)

    expected = []
    for nu in FREE.nus:
        prior = FREE._given(p.spread, p.strength, nu)
        expected.append(log_density(prior) - log_density(prior.posterior(*statistics(psi))))
    np.testing.assert_allclose(found - found[0], np.subtract(expected, expected[0]), atol=1e-8)


def test_nu_tells_dependent_rows_from_others(rng):
    k, n = 12, 150
    law, common = LearnedScale(np.zeros(k)), rng.normal(size=(n, 1))
    for psi, low, high in ((rng.normal(size=(n, k)), 64, 1024), (0.5 * common, 2, 32)):
        psi = psi + 0.5 * rng.normal(size=(n, k))
        parameters, nus = law.start(rng), []
        for _ in range(60):
            parameters = law.redraw(parameters, *statistics(psi), rng)
            nus.append(float(parameters.nu))
        assert low <= np.median(nus[20:]) <= high


# sums over factors that are never drawn


def explicit_sums(p, psi, rng):
    """Draw the factors of each row by Bayes's rule, and add up."""
    h, d = p.loadings.shape[1], psi - p.mean
    cov = np.linalg.inv(np.eye(h) + p.loadings.T @ np.diag(1 / p.noise) @ p.loadings)
    mean = d @ np.diag(1 / p.noise) @ p.loadings @ cov
    factors = mean + rng.multivariate_normal(np.zeros(h), cov, size=len(psi))
    known = np.column_stack([np.ones(len(psi)), factors])
    return known.T @ known, known.T @ d


def moments(gram, cross):
    parts = gram[np.triu_indices(len(gram))], cross.ravel()
    values = np.concatenate(parts)
    return np.concatenate([values, values**2, values[1:] * values[:-1], values[4:] * values[:-4]])


@pytest.mark.parametrize("n", [1, 2, 4, 6, 7, 30])
def test_sums_have_the_law_of_explicit_factors(n, rng):
    p = FACTORS.start(rng)
    psi = rows_of(p, n, rng)
    about = sparse_factors._about(p.mean, *statistics(psi))
    direct = np.column_stack([np.ones(n), psi - p.mean])
    np.testing.assert_allclose(about, direct.T @ direct, atol=1e-10)
    ours = np.array([moments(*sparse_factors._factor_sums(p, n, about, rng)) for _ in range(1500)])
    theirs = np.array([moments(*explicit_sums(p, psi, rng)) for _ in range(1500)])
    varies = theirs.std(axis=0) > 1e-9
    z = z_scores(
        ours[:, varies],
        theirs[:, varies].mean(axis=0),
        theirs[:, varies].std(axis=0) / np.sqrt(1500),
    )
    assert np.abs(z).max() < MAX_Z
    np.testing.assert_allclose(
        ours[:, ~varies].mean(axis=0), theirs[:, ~varies].mean(axis=0), atol=1e-9
    )


def test_too_few_directions_would_be_seen(rng):
    """Negative control: E'E without what lies outside the span of the rows."""
    p = FACTORS.start(rng)
    psi = rows_of(p, 30, rng)
    about = sparse_factors._about(p.mean, *statistics(psi))
    ours = np.array([moments(*sparse_factors._factor_sums(p, 24, about, rng)) for _ in range(1000)])
    theirs = np.array([moments(*explicit_sums(p, psi, rng)) for _ in range(1000)])
    z = z_scores(
        ours[:, 1:], theirs[:, 1:].mean(axis=0), theirs[:, 1:].std(axis=0) / np.sqrt(1000) + 1e-12
    )
    assert np.abs(z).max() > MAX_Z


def test_factors_drawn_for_columns_have_the_same_law(rng):
    p = FACTORS.start(rng)
    psi = rows_of(p, 8, rng)
    ours = []
    for _ in range(1500):
        known = FACTORS.draw_factors(p, psi, rng.standard_normal((8, 2)))
        ours.append(moments(known.T @ known, known.T @ (psi - p.mean)))
    theirs = np.array([moments(*explicit_sums(p, psi, rng)) for _ in range(1500)])
    varies = theirs.std(axis=0) > 1e-9
    error = theirs[:, varies].std(axis=0) / np.sqrt(1500)
    z = z_scores(np.array(ours)[:, varies], theirs[:, varies].mean(axis=0), error)
    assert np.abs(z).max() < MAX_Z


# steps keep the joint law of parameters and rows


def summarise(law, parameters, psi):
    """Return bounded functions of all that a law holds, and of rows."""
    mean, cov, _, *scales = parameters
    sd = np.sqrt(np.diag(cov))
    i, j = np.triu_indices(len(sd), 1)
    about = np.tanh((mean - law.centre) / 3)
    values = [
        about,
        about**2,
        about.mean() ** 2,
        np.tanh(np.log(sd) / 2),
        cov[i, j] / (sd[i] * sd[j]),
    ]
    far = np.tanh((psi - mean) / (2 * sd))
    values += [far.mean(axis=0), (far**2).mean(axis=0), (far[:, i] * far[:, j]).mean(axis=0)]
    for scale in scales:
        positive = np.abs(scale) + 1e-12
        values += [np.tanh(np.log(positive) / 4), np.tanh(scale)]
    return np.concatenate([np.ravel(value) for value in values])


def drift_z(law, step, n_starts, n_rows, rng, n_steps=3):
    """Return z-scores of what steps change on average, from starts that have the law."""
    changes = []
    for _ in range(n_starts):
        parameters = law.draw(rng)
        psi = rows_of(parameters, n_rows, rng)
        before = summarise(law, parameters, psi)
        for _ in range(n_steps):
            parameters, psi = step(parameters, psi, rng)
        changes.append(summarise(law, parameters, psi) - before)
    changes = np.array(changes)
    error = changes.std(axis=0, ddof=1) / np.sqrt(n_starts)
    return changes.mean(axis=0)[error > 0] / error[error > 0]


def gibbs(law):
    def step(parameters, psi, rng):
        return law.redraw(parameters, *statistics(psi), rng), psi

    return step


def levels(law):
    """Level of the law, then levels of rows at once, as the model has it; contrasts of rows are held."""

    def step(parameters, psi, rng):
        moved = law.recentre(parameters, rng)
        weight = moved.precision.sum(axis=0)
        noise = rng.standard_normal((len(psi), 1)) / np.sqrt(weight.sum())
        return moved, psi + noise - ((psi - moved.mean) @ weight / weight.sum())[:, None]

    return step


@pytest.mark.parametrize("n_rows", [3, 12])
@pytest.mark.parametrize("kind", [gibbs, levels])
@pytest.mark.parametrize("name", LAWS)
def test_steps_keep_the_joint_law(name, kind, n_rows, rng):
    law = LAWS[name]
    z = drift_z(law, kind(law), 700, n_rows, rng)
    assert np.abs(z).max() < MAX_Z, np.sort(np.abs(z))[-5:]


def test_levels_change_no_contrast(rng):
    """Of the mean, of the covariance, nor of rows."""
    for law in LAWS.values():
        before = law.draw(rng)
        after = law.recentre(before, rng)
        scale = np.abs(before.cov).max()
        np.testing.assert_allclose(np.diff(after.mean), np.diff(before.mean), atol=1e-9)
        np.testing.assert_allclose(
            double_centred(after.cov), double_centred(before.cov), atol=1e-9 * scale
        )
        assert after.mean[0] != before.mean[0]


@dataclass(frozen=True, eq=False)
class LevelTooSure(SparseFactors):
    """The level is drawn with half its error."""

    def recentre(self, parameters, rng):
        found = [super(LevelTooSure, self).recentre(parameters, rng) for _ in range(4)]
        mean = np.mean([p.mean for p in found], axis=0)
        return found[0]._replace(mean=mean)


@dataclass(frozen=True, eq=False)
class NoiseOffByHalf(SparseFactors):
    """The noise has shape n / 2, not (n + 1) / 2."""

    def redraw(self, parameters, n, total, outer, rng):
        right = sparse_factors.inverse_gamma_within
        less = lambda ends, shape, *rest: right(
            ends, shape - 0.5 * (ends is sparse_factors.NOISE), *rest
        )
        sparse_factors.inverse_gamma_within = less
        try:
            return super().redraw(parameters, n, total, outer, rng)
        finally:
            sparse_factors.inverse_gamma_within = right


@dataclass(frozen=True, eq=False)
class FixedStrength(LearnedScale):
    """The strength of the mean is drawn from its prior."""

    def redraw_scales(self, parameters, rng):
        drawn = super().redraw_scales(parameters, rng)
        return drawn._replace(strength=np.asarray(rng.gamma(self.SHAPE) / self.RATE))


@dataclass(frozen=True, eq=False)
class ShapeOffByHalf(LearnedScale):
    def redraw_scales(self, parameters, rng):
        rate = self.nu * np.diag(parameters.precision) + self.scale**-2.0
        shape = 0.5 * (self.nu + len(rate)) + 0.5
        spread = gammas.inverse_gamma(shape, rate, rng)
        return super().redraw_scales(parameters, rng)._replace(spread=spread)


@dataclass(frozen=True, eq=False)
class RowTooMany(LearnedScale):
    """Nu is drawn as if there were one row more."""

    def _log_marginal(self, n, eigenvalues):
        return super()._log_marginal(n + 1, eigenvalues)


@pytest.mark.parametrize(
    ("law", "kind"),
    [
        (RowTooMany(CENTRE[:4], scale=1.0), gibbs),
        (LevelTooSure(CENTRE, 2, scale=0.7, sparsity=0.5, wide=1.5), levels),
        (NoiseOffByHalf(CENTRE, 2, scale=0.7, sparsity=0.5, wide=1.5), gibbs),
        (FixedStrength(CENTRE[:4], scale=1.0, nu=3.0), gibbs),
        (ShapeOffByHalf(CENTRE[:4], scale=1.0, nu=3.0), gibbs),
    ],
    ids=lambda x: type(x).__name__ if not callable(x) else "",
)
def test_a_sabotaged_step_loses_the_law(law, kind, rng):
    assert np.abs(drift_z(law, kind(law), 1200, 3, rng)).max() > MAX_Z


def test_no_rows_leave_the_law(rng):
    """Steps given nothing go through the prior."""
    for name in ("learned", "nu too", "factors"):
        law = LAWS[name]
        nothing = lambda p, psi, rng, law=law: (
            law.redraw(p, 0, np.zeros(len(p.mean)), np.zeros_like(p.cov), rng),
            psi,
        )
        parts = lambda p, psi: summarise(law, p, p.mean + 0 * psi)  # noqa: B023
        changes = []
        for _ in range(600):
            p = law.draw(rng)
            psi = np.zeros((1, len(p.mean)))
            changes.append(parts(nothing(p, psi, rng)[0], psi) - parts(p, psi))
        changes = np.array(changes)
        error = changes.std(axis=0, ddof=1) / np.sqrt(600)
        assert np.abs(changes.mean(axis=0)[error > 0] / error[error > 0]).max() < MAX_Z
