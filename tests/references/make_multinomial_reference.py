"""Make multinomial_nuts.json: what NUTS says of the posterior of correlated multinomials.

The model is written here a second time, in NumPyro and without polystick, so that an error would
have to be made twice to pass. To write the file anew, in about two minutes:

    make .venv/.reference && .venv/bin/python tests/references/make_multinomial_reference.py

The same versions and seed on the same kind of machine give the same numbers.
"""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from nuts import log_stick_breaking, main, run

COUNTS = [  # by rising total
    [0, 0, 0, 0],
    [0, 1, 0, 0],
    [1, 0, 0, 1],
    [0, 2, 1, 0],
    [3, 0, 0, 2],
    [4, 3, 1, 0],
    [0, 0, 9, 3],
    [12, 5, 0, 3],
    [7, 11, 14, 8],
    [60, 0, 25, 5],
    [31, 90, 42, 17],
    [220, 130, 3, 87],
]
PRIOR = {  # cov ~ InverseWishart(scale, degrees), mean | cov ~ N(mean, cov / strength)
    "mean": [0.5, -0.3, 0.2],
    "strength": 0.8,
    "scale": [[6.0, 2.0, -1.0], [2.0, 8.0, 1.5], [-1.0, 1.5, 5.0]],
    "degrees": 9.0,
}
MANY = 20  # counts from which a row is sampled in its own coordinates; the law is the same
ROWS = [0, 1, 6, 11]  # whose probabilities are recorded: empty, one count, some, many
NAMES = ["mean", "log_variance", "correlation", "probabilities", "log_likelihood"]


def model(counts, prior):
    """Sample the precision's root from NumPyro's Wishart, then mean and psi.

    A row of few counts is sampled as standard normals, a row of many as psi itself: each is then
    nearly independent of cov, and NUTS does not diverge.
    """
    k, n_few = counts.shape[1] - 1, sum(sum(row) < MANY for row in COUNTS)
    scale = jnp.array(prior["scale"])
    precision_root = numpyro.sample(
        "precision_root", dist.WishartCholesky(prior["degrees"], rate_matrix=scale)
    )
    root = solve_triangular(precision_root, jnp.eye(k), lower=True).T  # cov = root root'
    mean_noise = numpyro.sample("mean_noise", dist.Normal().expand([k]).to_event(1))
    few_noise = numpyro.sample("few_noise", dist.Normal().expand([n_few, k]).to_event(2))
    mean = jnp.array(prior["mean"]) + root @ mean_noise / jnp.sqrt(prior["strength"])
    cov = root @ root.T
    many = dist.MultivariateNormal(mean, cov).expand([len(counts) - n_few]).to_event(1)
    psi = jnp.concatenate([mean + few_noise @ root.T, numpyro.sample("psi_of_many", many)])
    log_pi = log_stick_breaking(psi)
    law = dist.Multinomial(counts.sum(axis=1), logits=log_pi)
    numpyro.sample("counts", law.to_event(1), obs=counts)
    record(mean, cov, log_pi, law.log_prob(counts).sum())


def record(mean, cov, log_pi, log_likelihood):
    """Name the quantities to compare; logarithms of variances and correlations have light tails."""
    sd = jnp.sqrt(jnp.diag(cov))
    above = jnp.triu_indices(len(sd), 1)
    numpyro.deterministic("mean", mean)
    numpyro.deterministic("log_variance", 2 * jnp.log(sd))
    numpyro.deterministic("correlation", (cov / jnp.outer(sd, sd))[above])
    numpyro.deterministic("probabilities", jnp.exp(log_pi[jnp.array(ROWS)]))
    numpyro.deterministic("log_likelihood", log_likelihood)


def make_reference(settings):
    """Return all that the file holds."""
    found = run(settings, model, (jnp.array(COUNTS), PRIOR), NAMES, dense_mass=True)
    return {"counts": COUNTS, "prior": PRIOR, "rows": ROWS, **found}


if __name__ == "__main__":
    main(make_reference, "multinomial_nuts.json", __doc__, n_draws=6000)
