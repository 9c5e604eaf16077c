"""Make dynamics_nuts.json: what NUTS says of the posterior of a multinomial linear dynamical system.

The model is written here a second time, in NumPyro and without polystick: one state that moves for 20
steps behind counts of 3 categories. To write the file anew, in about two minutes:

    make .venv/.reference && .venv/bin/python tests/references/make_dynamics_reference.py
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

N_STEPS = 20
TOTALS = np.random.default_rng(40).choice([0, 1, 5, 15, 40], N_STEPS)
PRIOR = {
    # Q ~ InverseGamma(degrees / 2, scale / 2), A | Q ~ N(mean, Q / strength)
    "dynamics": {"mean": 0.6, "strength": 5.0, "scale": 5.0, "degrees": 12.0},
    # the same of the variance and the mean of the first state
    "initial": {"mean": 0.0, "strength": 1.0, "scale": 10.0, "degrees": 12.0},
    "level": [-0.4, 0.3],  # of the bias, whose scale comes second
    "scales": [1.0, 0.7],
}
SHOWN = [0, 5, 9, 14, 19]  # steps whose probabilities are recorded
NAMES = [
    "probabilities",
    "parts",  # e_j z_t: what the state adds to psi, whatever its sign and scale
    "bias",
    "dynamics",
    "noise",  # e_i e_j Q
    "log_variances",  # of Q and of the first state: the scale that the priors give to states
    "log_likelihood",
]
SETTINGS = {
    "n_draws": 5000,
    "n_warmup": 1500,
    "n_chains": 4,
    "target_accept": 0.95,
    "seed": 20150618,
}


def make_counts():
    """Draw counts around a wave: any will do, if they are not flat."""
    wave = 1.5 * np.sin(np.arange(N_STEPS) / 3)
    psi = np.array([-0.7, 0.2]) + np.outer(wave, [1.2, -0.8])
    pi = np.exp(np.asarray(log_stick_breaking(jnp.array(psi))))
    return np.random.default_rng(41).multinomial(TOTALS, pi / pi.sum(axis=1, keepdims=True))


def draw_variance_and_mean(name, mean, strength, scale, degrees):
    variance = 1.0 / numpyro.sample(f"{name}_precision", dist.Gamma(degrees / 2, scale / 2))
    noise = numpyro.sample(f"{name}_noise", dist.Normal())
    return variance, mean + jnp.sqrt(variance / strength) * noise


def model(counts, prior):
    """Sample e sqrt(Q) and z / sqrt(Q), which the counts know, so that Q is nearly free of both.

    Sampled by themselves, e, z and Q lie on a ridge, and as functions of noise states explode where A does:
    NUTS then diverges.
    """
    Q, A = draw_variance_and_mean("dynamics", **prior["dynamics"])
    first_variance, first_mean = draw_variance_and_mean("initial", **prior["initial"])
    k, root, (emission_scale, bias_scale) = counts.shape[1] - 1, jnp.sqrt(Q), prior["scales"]
    steep = dist.Normal(0.0, emission_scale * root).expand([k]).to_event(1)
    e = numpyro.sample("white_emission", steep) / root
    d = numpyro.sample("bias", dist.Normal(jnp.array(prior["level"]), bias_scale).to_event(1))
    anywhere = dist.ImproperUniform(dist.constraints.real_vector, (), (len(counts),))
    white = numpyro.sample("white_states", anywhere)
    first = dist.Normal(first_mean / root, jnp.sqrt(first_variance) / root)
    numpyro.factor("first", first.log_prob(white[0]))
    numpyro.factor("others", dist.Normal(A * white[:-1]).log_prob(white[1:]).sum())
    z = root * white
    log_pi = log_stick_breaking(d + jnp.outer(z, e))
    law = dist.Multinomial(counts.sum(axis=1), logits=log_pi)
    numpyro.sample("counts", law.to_event(1), obs=counts)
    shown = jnp.array(SHOWN)
    numpyro.deterministic("probabilities", jnp.exp(log_pi[shown]))
    numpyro.deterministic("parts", jnp.outer(z[shown], e))
    numpyro.deterministic("dynamics", A)
    numpyro.deterministic("noise", Q * jnp.outer(e, e)[jnp.triu_indices(k)])
    numpyro.deterministic("log_variances", jnp.log(jnp.array([Q, first_variance])))
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
    mcmc.run(jax.random.PRNGKey(settings["seed"]), jnp.array(counts), PRIOR)
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
        "counts": counts.tolist(),
        "prior": PRIOR,
        "shown": SHOWN,
        "quantities": {
            name: {what: np.asarray(value).tolist() for what, value in quantity.items()}
            for name, quantity in quantities.items()
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("dynamics_nuts.json"))
    for name, value in SETTINGS.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    settings = vars(parser.parse_args())
    out = settings.pop("out")
    out.write_text(json.dumps(make_reference(settings), indent=1) + "\n")


if __name__ == "__main__":
    main()
