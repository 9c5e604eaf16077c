"""Make softmax_nuts.json: what NUTS says of rows behind a softmax whose covariance learns its scale.

26 rows of 6 lopsided categories. The law is that of `LearnedScale`, written here a second time, without
polystick. Counts see only contrasts of psi: rows are sampled as these. To write the file anew, in about ten
minutes:

    make .venv/.reference && .venv/bin/python tests/references/make_softmax_reference.py

The same versions and seed on the same kind of machine give the same numbers.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
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
    """Sample scales, the precision's root in their units, the mean, and contrasts about what counts say."""
    n, k = counts.shape
    half, everywhere = LAW["scale"] ** -2.0, dist.constraints.real_matrix
    spread = numpyro.sample("spread", dist.InverseGamma(0.5, half).expand([k]).to_event(1))
    unit_root = numpyro.sample("root", dist.WishartCholesky(LAW["nu"] + k - 1, jnp.eye(k)))
    precision_root = jnp.sqrt(spread / (2 * LAW["nu"]))[:, None] * unit_root
    cov = jnp.linalg.inv(precision_root @ precision_root.T)
    strength = numpyro.sample("strength", dist.Gamma(LAW["shape"], LAW["rate"]))
    noise = numpyro.sample("noise", dist.Normal().expand([k]).to_event(1))
    mean = jnp.linalg.solve(precision_root.T, noise) / jnp.sqrt(strength)
    contrasts = jnp.array(helmert(k))  # (k - 1, k)
    unit = 1.0 / jnp.sqrt(0.3 + 1.0 / ((1.0 / (counts + 0.5)) @ contrasts.T**2))
    start = jnp.log(counts + 0.5) @ contrasts.T
    seen = start + unit * numpyro.sample(
        "offsets", dist.ImproperUniform(everywhere, (), (n, k - 1))
    )
    law = dist.MultivariateNormal(contrasts @ mean, contrasts @ cov @ contrasts.T)
    numpyro.factor("rows", law.log_prob(seen).sum())
    log_pi = jax.nn.log_softmax(seen @ contrasts, axis=1)
    log_likelihood = jnp.sum(counts * log_pi)
    numpyro.factor("counts", log_likelihood)
    record(mean, cov, log_pi, coefficient + log_likelihood)


def record(mean, cov, log_pi, log_likelihood):
    """Tell the law of centred log-ratios."""
    k = len(mean)
    centre = jnp.eye(k) - 1.0 / k
    cov = centre @ cov @ centre
    sd = jnp.sqrt(jnp.diag(cov))
    numpyro.deterministic("mean", centre @ mean)
    numpyro.deterministic("log_variance", 2 * jnp.log(sd))
    numpyro.deterministic("correlation", (cov / jnp.outer(sd, sd))[jnp.triu_indices(k, 1)])
    numpyro.deterministic("log_probabilities", log_pi)
    numpyro.deterministic("log_likelihood", log_likelihood)


def make_reference(settings):
    """Return all that the file holds."""
    counts = simulate()
    coefficient = (gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1)).sum()
    found = run(settings, model, (jnp.array(counts, float), coefficient), NAMES, dense_mass=True)
    return {"counts": counts.tolist(), "law": LAW, **found}


if __name__ == "__main__":
    main(make_reference, "softmax_nuts.json", __doc__, n_draws=4000, n_warmup=1000)
