"""Make multinomial_nuts.json: what NUTS says of the posterior of correlated multinomials.

The model is written here a second time, in NumPyro and without polystick, so that an error would
have to be made twice to pass. To write the file anew, in about two minutes:

    make .venv/.reference && .venv/bin/python tests/references/make_multinomial_reference.py

The same versions and seed on the same kind of machine give the same numbers.
"""

import argparse
import json
import platform
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import MCMC, NUTS

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
SETTINGS = {
    "n_draws": 6000,
    "n_warmup": 1500,
    "n_chains": 4,
    "target_accept": 0.95,
    "seed": 20150618,
}


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


def log_stick_breaking(psi):
    """Return log pi_j = log sigmoid(psi_j) + sum over i < j of log sigmoid(-psi_i).

    The last category takes all that is left: sigmoid(psi_K) = 1.
    """
    taken = jnp.pad(jax.nn.log_sigmoid(psi), ((0, 0), (0, 1)))
    left = jnp.pad(jnp.cumsum(jax.nn.log_sigmoid(-psi), axis=1), ((0, 0), (1, 0)))
    return taken + left


def record(mean, cov, log_pi, log_likelihood):
    """Name the quantities to compare; logarithms of variances and correlations have light tails."""
    sd = jnp.sqrt(jnp.diag(cov))
    above = jnp.triu_indices(len(sd), 1)
    numpyro.deterministic("mean", mean)
    numpyro.deterministic("log_variance", 2 * jnp.log(sd))
    numpyro.deterministic("correlation", (cov / jnp.outer(sd, sd))[above])
    numpyro.deterministic("probabilities", jnp.exp(log_pi[jnp.array(ROWS)]))
    numpyro.deterministic("log_likelihood", log_likelihood)


def draw(settings):
    """Run NUTS; return name -> draws (chain, draw, ...) and the number of divergences."""
    kernel = NUTS(model, target_accept_prob=settings["target_accept"], dense_mass=True)
    mcmc = MCMC(
        kernel,
        num_warmup=settings["n_warmup"],
        num_samples=settings["n_draws"],
        num_chains=settings["n_chains"],
        chain_method="sequential",
        progress_bar=False,
    )
    mcmc.run(jax.random.PRNGKey(settings["seed"]), jnp.array(COUNTS), PRIOR)
    draws = mcmc.get_samples(group_by_chain=True)
    n_divergences = int(mcmc.get_extra_fields()["diverging"].sum())
    return {name: np.asarray(draws[name]) for name in NAMES}, n_divergences


def summarise(draws):
    """Return moments of draws (chain, draw, ...) with their Monte Carlo standard errors.

    The error of the sd is that of the mean squared deviation, divided by 2 sd (delta method).
    """
    mean = draws.mean(axis=(0, 1))
    squares = (draws - mean) ** 2
    sd = np.sqrt(squares.mean(axis=(0, 1)))
    ess, ess_of_squares = effective_sample_size(draws), effective_sample_size(squares)
    return {
        "mean": mean,
        "sd": sd,
        "mcse_mean": sd / np.sqrt(ess),
        "mcse_sd": squares.std(axis=(0, 1)) / np.sqrt(ess_of_squares) / (2 * sd),
        "ess": np.minimum(ess, ess_of_squares),
        "rhat": split_gelman_rubin(draws),
    }


def make_reference(settings):
    """Return all that the file holds, once the chains agree."""
    numpyro.enable_x64()
    draws, n_divergences = draw(settings)
    quantities = {name: summarise(values) for name, values in draws.items()}
    worst = max(np.max(quantity["rhat"]) for quantity in quantities.values())
    assert worst < 1.01, f"R-hat must be below 1.01; got {worst}; try more draws"
    assert n_divergences <= 1e-4 * settings["n_chains"] * settings["n_draws"], n_divergences
    return {
        "settings": settings,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "jax": jax.__version__,
            "numpyro": numpyro.__version__,
        },
        "n_divergences": n_divergences,
        "counts": COUNTS,
        "prior": PRIOR,
        "rows": ROWS,
        "quantities": {
            name: {what: np.asarray(value).tolist() for what, value in quantity.items()}
            for name, quantity in quantities.items()
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).with_name("multinomial_nuts.json")
    parser.add_argument("--out", type=Path, default=default)
    for name, value in SETTINGS.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    settings = vars(parser.parse_args())
    out = settings.pop("out")
    out.write_text(json.dumps(make_reference(settings), indent=1) + "\n")


if __name__ == "__main__":
    main()
