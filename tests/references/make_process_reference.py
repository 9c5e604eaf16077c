"""Make process_nuts.json: what NUTS says of the posterior of a multinomial Gaussian process on a line.

The model is written here a second time, in NumPyro and without polystick, with the covariance by its
formula. To write the file anew, in about three minutes:

    make .venv/.reference && .venv/bin/python tests/references/make_process_reference.py
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
from make_multinomial_reference import log_stick_breaking, summarise
from numpyro.infer import MCMC, NUTS

PLACES = np.round(10 * np.random.default_rng(30).random(30), 2)
INPUTS = np.sort(PLACES).tolist()
TOTALS = np.random.default_rng(31).choice([0, 1, 4, 12, 40], 30)
LEVEL = [-0.4, 0.3]
THETA = {"centre": [np.log(1.5), np.log(1.2)], "sd": 0.5}  # log variance, log length; Matern 3/2
SHOWN = [0, 7, 15, 22, 29]  # inputs whose probabilities are recorded
NAMES = ["theta", "probabilities", "log_likelihood"]
SETTINGS = {
    "n_draws": 5000,
    "n_warmup": 1500,
    "n_chains": 4,
    "target_accept": 0.95,
    "seed": 20150618,
}


def make_counts():
    """Draw counts around two waves: any will do, if they are not flat."""
    rng, x = np.random.default_rng(32), np.array(INPUTS)
    weights = np.exp(np.stack([np.sin(x), np.cos(x / 2), 0 * x], axis=1))
    return rng.multinomial(TOTALS, weights / weights.sum(axis=1, keepdims=True))


def model(inputs, counts):
    theta = numpyro.sample(
        "theta", dist.Normal(jnp.array(THETA["centre"]), THETA["sd"]).to_event(1)
    )
    distance = jnp.sqrt(3.0) * jnp.abs(inputs[:, None] - inputs) / jnp.exp(theta[1])
    cov = jnp.exp(theta[0]) * (1.0 + distance) * jnp.exp(-distance)
    root = jnp.linalg.cholesky(cov + 1e-9 * jnp.eye(len(inputs)))
    noise = numpyro.sample("noise", dist.Normal().expand([len(inputs), 2]).to_event(2))
    log_pi = log_stick_breaking(jnp.array(LEVEL) + root @ noise)
    law = dist.Multinomial(counts.sum(axis=1), logits=log_pi)
    numpyro.sample("counts", law.to_event(1), obs=counts)
    numpyro.deterministic("probabilities", jnp.exp(log_pi[jnp.array(SHOWN)]))
    numpyro.deterministic("log_likelihood", law.log_prob(counts).sum())


def draw(settings, counts):
    """Run NUTS; return name -> draws (chain, draw, ...) and the number of divergences."""
    mcmc = MCMC(
        NUTS(model, target_accept_prob=settings["target_accept"]),
        num_warmup=settings["n_warmup"],
        num_samples=settings["n_draws"],
        num_chains=settings["n_chains"],
        chain_method="sequential",
        progress_bar=False,
    )
    mcmc.run(jax.random.PRNGKey(settings["seed"]), jnp.array(INPUTS), jnp.array(counts))
    draws = mcmc.get_samples(group_by_chain=True)
    n_divergences = int(mcmc.get_extra_fields()["diverging"].sum())
    return {name: np.asarray(draws[name]) for name in NAMES}, n_divergences


def make_reference(settings):
    """Return all that the file holds, once the chains agree."""
    numpyro.enable_x64()
    counts = make_counts()
    draws, n_divergences = draw(settings, counts)
    quantities = {name: summarise(values) for name, values in draws.items()}
    worst = max(np.max(quantity["rhat"]) for quantity in quantities.values())
    assert worst < 1.01, f"R-hat must be below 1.01; got {worst}; try more draws"
    assert n_divergences <= 1e-4 * settings["n_chains"] * settings["n_draws"], n_divergences
    versions = {m.__name__: m.__version__ for m in (np, jax, numpyro)}
    return {
        "settings": settings,
        "versions": {"python": platform.python_version(), **versions},
        "n_divergences": n_divergences,
        "inputs": INPUTS,
        "counts": counts.tolist(),
        "level": LEVEL,
        "theta": {"centre": list(map(float, THETA["centre"])), "sd": THETA["sd"]},
        "shown": SHOWN,
        "quantities": {
            name: {what: np.asarray(value).tolist() for what, value in quantity.items()}
            for name, quantity in quantities.items()
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("process_nuts.json"))
    for name, value in SETTINGS.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    settings = vars(parser.parse_args())
    out = settings.pop("out")
    out.write_text(json.dumps(make_reference(settings), indent=1) + "\n")


if __name__ == "__main__":
    main()
