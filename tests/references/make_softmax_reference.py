"""Make softmax_nuts.json: what NUTS says of rows behind a softmax whose covariance learns its scale.

26 rows of 6 lopsided categories. The law is that of `LearnedScale`, written here a second time, without
polystick. Counts see only contrasts of psi: mean, covariance and rows are sampled as these. To write the
file anew, in a few minutes:

    make .venv/.reference && .venv/bin/python tests/references/make_softmax_reference.py

The same versions and seed on the same kind of machine give the same numbers.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from nuts import main, run
from scipy.linalg import helmert
from scipy.special import gammaln

SHARES = [0.002, 0.5, 0.01, 0.3, 0.15, 0.038]
N_ROWS, TOTALS, ROW_SD = 26, (30, 5000), 1.0
LAW = {"scale": 2.0, "nu": 2.0, "shape": 1.0, "rate": 4.0}
NAMES = ["mean", "log_variance", "correlation", "log_probabilities", "log_likelihood"]


def simulate(seed=20150620):
    """Return counts (26, 6): log-uniform totals, log-normal effects of rows, some of them shared."""
    rng = np.random.default_rng(seed)
    totals = np.exp(rng.uniform(*np.log(TOTALS), N_ROWS)).astype(int)
    shared, own = rng.standard_normal((N_ROWS, 1)), rng.standard_normal((N_ROWS, len(SHARES)))
    sides = np.array([1.0, -1.0, 1.0, 0.0, 0.0, -1.0])
    weights = np.exp(np.log(SHARES) + ROW_SD * (0.6 * shared * sides + 0.8 * own))
    return rng.multinomial(totals, weights / weights.sum(axis=1, keepdims=True))


def model(counts, coefficient):
    """Sample scales, a root of the contrasts' precision, their mean, and rows about what counts say.

    Of an inverse Wishart covariance with d degrees, that of k - 1 contrasts is one with d - 1.
    """
    n, k = counts.shape
    contrasts = jnp.array(helmert(k))  # (k - 1, k)
    flat = partial(dist.ImproperUniform, dist.constraints.real_matrix, ())
    half = LAW["scale"] ** -2.0
    spread = numpyro.sample("spread", dist.InverseGamma(0.5, half).expand([k]).to_event(1))
    outer = jnp.linalg.cholesky(contrasts / spread @ contrasts.T * 2 * LAW["nu"])
    inner = numpyro.sample("root", dist.WishartCholesky(LAW["nu"] + k - 2, jnp.eye(k - 1)))
    root = solve_triangular(inner, outer.T, lower=True).T  # cov of contrasts = root root'
    cov = root @ root.T
    strength = numpyro.sample("strength", dist.Gamma(LAW["shape"], LAW["rate"]))
    start = jnp.log(counts + 0.5) @ contrasts.T
    mean = start.mean(axis=0) + numpyro.sample("mean_offset", flat((1, k - 1)))[0]
    unit = 1.0 / jnp.sqrt(0.3 + 1.0 / ((1.0 / (counts + 0.5)) @ contrasts.T**2))
    rows = start + unit * numpyro.sample("offsets", flat((n, k - 1)))
    centre = jnp.zeros(k - 1)
    of_mean = dist.MultivariateNormal(centre, cov / strength).log_prob(mean)
    numpyro.factor("mean_law", of_mean)
    numpyro.factor("rows", dist.MultivariateNormal(mean, cov).log_prob(rows).sum())
    log_pi = jax.nn.log_softmax(rows @ contrasts, axis=1)
    log_likelihood = jnp.sum(counts * log_pi)
    numpyro.factor("counts", log_likelihood)
    record(mean @ contrasts, contrasts.T @ cov @ contrasts, log_pi, coefficient + log_likelihood)


def record(mean, cov, log_pi, log_likelihood):
    """Tell mean and covariance of centred log-ratios."""
    sd = jnp.sqrt(jnp.diag(cov))
    numpyro.deterministic("mean", mean)
    numpyro.deterministic("log_variance", 2 * jnp.log(sd))
    numpyro.deterministic("correlation", (cov / jnp.outer(sd, sd))[jnp.triu_indices(len(mean), 1)])
    numpyro.deterministic("log_probabilities", log_pi)
    numpyro.deterministic("log_likelihood", log_likelihood)


def make_reference(settings):
    """Return all that the file holds."""
    counts = simulate()
    coefficient = (gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1)).sum()
    found = run(settings, model, (jnp.array(counts, float), coefficient), NAMES, dense_mass=True)
    return {"counts": counts.tolist(), "law": LAW, **found}


if __name__ == "__main__":
    main(
        make_reference,
        "softmax_nuts.json",
        __doc__,
        n_draws=2500,
        n_warmup=1000,
        target_accept=0.98,
    )
