"""What the scripts of this folder share: sticks in JAX, a run of NUTS, and the file that it leaves."""

import argparse
import json
import platform
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import MCMC, NUTS

SETTINGS = {
    "n_draws": 5000,
    "n_warmup": 1500,
    "n_chains": 4,
    "target_accept": 0.95,
    "seed": 20150618,
}


def log_stick_breaking(psi):
    """Return log pi_j = log sigmoid(psi_j) + sum over i < j of log sigmoid(-psi_i).

    The last category takes all that is left: sigmoid(psi_K) = 1.
    """
    taken = jnp.pad(jax.nn.log_sigmoid(psi), ((0, 0), (0, 1)))
    left = jnp.pad(jnp.cumsum(jax.nn.log_sigmoid(-psi), axis=1), ((0, 0), (1, 0)))
    return taken + left


def run(settings, model, arguments, names, *, dense_mass=False):
    """Return what NUTS says of these names, as a part of the file, once the chains agree."""
    mcmc = MCMC(
        NUTS(model, target_accept_prob=settings["target_accept"], dense_mass=dense_mass),
        num_warmup=settings["n_warmup"],
        num_samples=settings["n_draws"],
        num_chains=settings["n_chains"],
        chain_method="sequential",
        progress_bar=False,
    )
    mcmc.run(jax.random.PRNGKey(settings["seed"]), *arguments)
    draws = mcmc.get_samples(group_by_chain=True)
    quantities = {name: summarise(np.asarray(draws[name])) for name in names}
    worst = max(np.max(quantity["rhat"]) for quantity in quantities.values())
    assert worst < 1.01, f"R-hat must be below 1.01; got {worst}; try more draws"
    n_divergences = int(mcmc.get_extra_fields()["diverging"].sum())
    # a short run may have one or two
    few = max(3, 1e-4 * settings["n_chains"] * settings["n_draws"])
    assert n_divergences <= few, n_divergences
    return {
        "n_divergences": n_divergences,
        "quantities": {
            name: {what: np.asarray(value).tolist() for what, value in quantity.items()}
            for name, quantity in quantities.items()
        },
    }


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


def main(make_reference, file, description, **settings):
    """Write make_reference(settings) into the file, which the command line may change."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name(file))
    for name, value in (SETTINGS | settings).items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    chosen = vars(parser.parse_args())
    out = chosen.pop("out")
    numpyro.enable_x64()
    versions = {m.__name__: m.__version__ for m in (np, jax, numpyro)}
    head = {"settings": chosen, "versions": {"python": platform.python_version(), **versions}}
    out.write_text(json.dumps(head | make_reference(chosen), indent=1) + "\n")
