"""Make regression_nuts.json: what NUTS says of the posterior of regressions with groups and overdispersion.

The models are written here a second time, in NumPyro and without polystick, so that an error would have to be
made twice to pass. To write the file anew, in some minutes:

    make .venv/.reference && .venv/bin/python tests/references/make_regression_reference.py

The same versions and seed on the same kind of machine give the same numbers.
"""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.nn import log_softmax
from jax.scipy.linalg import solve_triangular
from nuts import log_stick_breaking, main, run

COUNTS = [
    [0, 0, 0], [1, 0, 0], [2, 1, 0], [0, 4, 1], [7, 2, 3], [3, 9, 1], [12, 4, 6], [2, 15, 8],
    [0, 0, 2], [5, 5, 0], [9, 1, 4], [1, 11, 2], [14, 3, 0], [6, 18, 3], [0, 1, 1], [8, 8, 9],
    [20, 2, 7], [4, 22, 1], [3, 0, 0], [10, 6, 5],
]  # fmt: skip
SLOPE = [-1.4, -1.2, -1.1, 0.9, -0.6, 0.7, -0.8, 1.2, -0.3, 0.1, -0.9, 1.0, -1.3, 0.8, 0.3, 0.2,
         -1.0, 1.3, -0.5, 0.0]  # fmt: skip
GROUPS = [0, 1, 2, 3, 0, 1, 2, 3, 4, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
PRIOR = {"intercept_sd": 1.5, "slope_sd": 1.0, "spread": 0.8, "nu": 2.0}
ROWS = [0, 1, 7, 17]  # whose probabilities are recorded: empty, one count, many
NAMES = ["coefficients", "log_sd_of_groups", "log_sd_of_noise", "correlation", "probabilities"]


def spread(name, k, prior):
    """Sample d D-wise: cov = D Q D, d ~ half N(0, spread^2), Q ~ InverseWishart(nu I, nu + k - 1)."""
    size = numpyro.sample(f"{name}_size", dist.HalfNormal(prior["spread"]).expand([k]).to_event(1))
    rate = prior["nu"] * jnp.eye(k)
    root = numpyro.sample(
        f"{name}_root", dist.WishartCholesky(prior["nu"] + k - 1, rate_matrix=rate)
    )
    return size[:, None] * solve_triangular(root, jnp.eye(k), lower=True).T  # cov = found found'


def model(link, counts, slope, groups, prior):
    """Everything in units of its scale, for counts are few."""
    k = counts.shape[1] - (link == "stick")
    x = jnp.stack([jnp.ones(len(slope)), slope], axis=1)
    sd = jnp.array([prior["intercept_sd"], prior["slope_sd"]])
    b = sd[:, None] * numpyro.sample("b", dist.Normal().expand([2, k]).to_event(2))
    of_groups, of_noise = spread("groups", k, prior), spread("noise", k, prior)
    u = numpyro.sample("u", dist.Normal().expand([5, k]).to_event(2)) @ of_groups.T
    e = numpyro.sample("e", dist.Normal().expand([len(slope), k]).to_event(2)) @ of_noise.T
    psi = x @ b + u[groups] + e
    log_pi = log_stick_breaking(psi) if link == "stick" else log_softmax(psi)
    law = dist.Multinomial(counts.sum(axis=1), logits=log_pi)
    numpyro.sample("counts", law.to_event(1), obs=counts)
    record(link, b, of_groups, of_noise, log_pi)


def record(link, b, of_groups, of_noise, log_pi):
    """Name the quantities to compare; behind a softmax without the level that counts do not see."""
    k = b.shape[1]
    centre = jnp.eye(k) - (1.0 / k if link == "softmax" else 0.0)
    covs = [centre @ root @ root.T @ centre for root in (of_groups, of_noise)]
    sds = [jnp.sqrt(jnp.diag(cov)) for cov in covs]
    numpyro.deterministic("coefficients", b @ centre)
    numpyro.deterministic("log_sd_of_groups", jnp.log(sds[0]))
    numpyro.deterministic("log_sd_of_noise", jnp.log(sds[1]))
    numpyro.deterministic("correlation", covs[1][0, 1] / (sds[1][0] * sds[1][1]))
    numpyro.deterministic("probabilities", jnp.exp(log_pi[jnp.array(ROWS)]))


def make_reference(settings):
    """Return all that the file holds."""
    data = jnp.array(COUNTS), jnp.array(SLOPE), jnp.array(GROUPS), PRIOR
    found = {link: run(settings, model, (link, *data), NAMES) for link in ("stick", "softmax")}
    given = {"counts": COUNTS, "slope": SLOPE, "groups": GROUPS, "prior": PRIOR, "rows": ROWS}
    return given | found


if __name__ == "__main__":
    main(
        make_reference,
        "regression_nuts.json",
        __doc__,
        n_draws=2500,
        n_warmup=800,
        target_accept=0.99,
    )
