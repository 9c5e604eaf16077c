"""Make process_nuts.json: what NUTS says of the posterior of a multinomial Gaussian process on a line.

The model is written here a second time, in NumPyro and without polystick, with the covariance by its
formula. To write the file anew, in about three minutes:

    make .venv/.reference && .venv/bin/python tests/references/make_process_reference.py
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from nuts import log_stick_breaking, main, run

PLACES = np.round(10 * np.random.default_rng(30).random(30), 2)
INPUTS = np.sort(PLACES).tolist()
TOTALS = np.random.default_rng(31).choice([0, 1, 4, 12, 40], 30)
LEVEL = [-0.4, 0.3]
THETA = {"centre": [np.log(1.5), np.log(1.2)], "sd": 0.5}  # log variance, log length; Matern 3/2
SHOWN = [0, 7, 15, 22, 29]  # inputs whose probabilities are recorded
NAMES = ["theta", "probabilities", "log_likelihood"]


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


def make_reference(settings):
    """Return all that the file holds."""
    counts = make_counts()
    theta = {"centre": list(map(float, THETA["centre"])), "sd": THETA["sd"]}
    facts = {"inputs": INPUTS, "counts": counts.tolist(), "level": LEVEL, "theta": theta}
    found = run(settings, model, (jnp.array(INPUTS), jnp.array(counts)), NAMES)
    return {**facts, "shown": SHOWN, **found}


if __name__ == "__main__":
    main(make_reference, "process_nuts.json", __doc__)
