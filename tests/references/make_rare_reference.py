"""Make rare_nuts.json: what NUTS says of the posterior where categories are rare and totals are large.

26 rows of 5 categories, three of them near one in a million. Chains that move by Pólya-gamma steps alone
hardly move there. The prior is `NormalInverseWishart.weak` about a uniform Dirichlet law, and the order of
the sticks that of `CorrelatedMultinomial`; both are written here a second time, without polystick. (Under
laws that learn their scale NUTS diverges on this table.) To write the file anew, in about ten
minutes:

    make .venv/.reference && .venv/bin/python tests/references/make_rare_reference.py

The same versions and seed on the same kind of machine give the same numbers.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from nuts import log_stick_breaking, main, run
from scipy.special import digamma, gammaln, polygamma

SHARES = [1e-6, 0.62, 3e-6, 0.38, 4e-7]
N_ROWS, TOTALS, ROW_SD = 26, (1e5, 2e6), 1.2
NAMES = ["mean", "log_variance", "correlation", "log_probabilities", "log_likelihood"]


def simulate(seed=20150619):
    """Return counts (26, 5): log-uniform totals, log-normal effects of rows, some of them shared."""
    rng = np.random.default_rng(seed)
    totals = np.exp(rng.uniform(*np.log(TOTALS), N_ROWS)).astype(int)
    shared, own = rng.standard_normal((N_ROWS, 1)), rng.standard_normal((N_ROWS, len(SHARES)))
    sides = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    weights = np.exp(np.log(SHARES) + ROW_SD * (0.6 * shared * sides + 0.8 * own))
    return rng.multinomial(totals, weights / weights.sum(axis=1, keepdims=True))


def weak_prior(n_categories):
    """Centre psi where sticks of a uniform Dirichlet law have it: psi_j = logit of Beta(1, K - j).

    E[cov] is the diagonal of their variances, with as few degrees as have an expectation.
    """
    behind = np.arange(n_categories - 1, 0, -1)
    variance = polygamma(1, 1) + polygamma(1, behind)
    return {
        "mean": (digamma(1) - digamma(behind)).tolist(),
        "strength": 0.1,
        "scale": np.diag(variance).tolist(),
        "degrees": n_categories - 1 + 2.0,
    }


def model(counts, prior, coefficient):
    """Sample the precision's root, the mean, and psi about its empirical value in units of its error."""
    n, k = counts.shape[0], counts.shape[1] - 1
    trials = jnp.cumsum(counts[:, ::-1], axis=1)[:, ::-1][:, :-1]
    yes, no = counts[:, :-1] + 0.5, trials - counts[:, :-1] + 0.5
    unit = 1.0 / jnp.sqrt(1.0 / (1.0 / yes + 1.0 / no) + 0.3)
    precision_root = numpyro.sample(
        "precision_root",
        dist.WishartCholesky(prior["degrees"], rate_matrix=jnp.array(prior["scale"])),
    )
    root = solve_triangular(precision_root, jnp.eye(k), lower=True).T  # cov = root root'
    noise = numpyro.sample("noise", dist.Normal().expand([k]).to_event(1))
    mean = jnp.array(prior["mean"]) + root @ noise / jnp.sqrt(prior["strength"])
    flat = dist.ImproperUniform(dist.constraints.real_matrix, (), (n, k))
    psi = jnp.log(yes / no) + unit * numpyro.sample("offsets", flat)
    white = (psi - mean) @ precision_root
    log_det = n * jnp.log(jnp.diag(precision_root)).sum()
    numpyro.factor("rows", log_det - 0.5 * jnp.square(white).sum())
    log_pi = log_stick_breaking(psi)
    log_likelihood = jnp.sum(counts * log_pi)
    numpyro.factor("counts", log_likelihood)
    record(mean, root @ root.T, log_pi, coefficient + log_likelihood)


def record(mean, cov, log_pi, log_likelihood):
    sd = jnp.sqrt(jnp.diag(cov))
    numpyro.deterministic("mean", mean)
    numpyro.deterministic("log_variance", 2 * jnp.log(sd))
    numpyro.deterministic("correlation", (cov / jnp.outer(sd, sd))[jnp.triu_indices(len(sd), 1)])
    numpyro.deterministic("log_probabilities", log_pi)
    numpyro.deterministic("log_likelihood", log_likelihood)


def make_reference(settings):
    """Return all that the file holds; log probabilities are in the order of the sticks."""
    counts = simulate()
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    prior = weak_prior(len(order))
    coefficient = (gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1)).sum()
    arguments = (jnp.array(counts[:, order], float), prior, coefficient)
    found = run(settings, model, arguments, NAMES, dense_mass=True)
    return {"counts": counts.tolist(), "order": order.tolist(), "prior": prior, **found}


if __name__ == "__main__":
    main(make_reference, "rare_nuts.json", __doc__, n_draws=5000, target_accept=0.99)
