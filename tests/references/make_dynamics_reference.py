"""Make dynamics_nuts.json: what NUTS says of the posterior of a multinomial linear dynamical system.

The model is written here a second time, in NumPyro and without polystick: one state that moves for 20
steps behind counts of 3 categories. To write the file anew, in about two minutes:

    make .venv/.reference && .venv/bin/python tests/references/make_dynamics_reference.py
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from nuts import log_stick_breaking, main, run

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


def make_reference(settings):
    """Return all that the file holds."""
    counts = make_counts()
    found = run(settings, model, (jnp.array(counts), PRIOR), NAMES)
    return {"counts": counts.tolist(), "prior": PRIOR, "shown": SHOWN, **found}


if __name__ == "__main__":
    main(make_reference, "dynamics_nuts.json", __doc__)
