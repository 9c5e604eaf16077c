"""The laws of mixing.py in NumPyro, and a run of NUTS that is timed without compilation and warm-up.

NUTS gets a geometry that is fair to it: psi in units of its standard error about the empirical logits, or of
the prior of a Gaussian process, and precisions by their Bartlett roots.
"""

import os
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false " + os.environ.get("XLA_FLAGS", "")

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from numpyro.infer import NUTS
from timing import undisturbed

numpyro.enable_x64()
JITTER = 1e-8


def run(case, estimator, data, seed=0):
    """Return draws by name (1, draw, ...) of a chain, log likelihoods, CPU seconds, and steps of a draw."""
    law = LAWS[case.nuts](estimator, data)
    kernel = NUTS(law, max_tree_depth=case.nuts_depth)
    state = kernel.init(jax.random.PRNGKey(seed), case.nuts_warmup, None, (), {})
    step = jax.jit(lambda state: kernel.sample(state, (), {}))
    for _ in range(case.nuts_warmup):
        state = step(state)
    kept, n_steps, times = [], [], [time.process_time()]
    for _ in range(case.nuts_draws):
        state = jax.block_until_ready(step(state))
        times.append(time.process_time())
        kept.append(state.z)
        n_steps.append(int(state.num_steps))
    seconds = undisturbed(np.diff(times), np.array(n_steps))
    stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *kept)
    told = jax.lax.map(kernel.postprocess_fn((), {}), stacked)
    drawn = {
        name: np.asarray(told[name])[None]
        for name in ("mean", "cov", "theta", "psi", "log_likelihood")
        if name in told
    }
    return drawn, drawn.pop("log_likelihood"), seconds, np.mean(n_steps)


def splits_of(decomposition, counts):
    """Return successes and trials, and an offset and a unit for psi that suit NUTS."""
    successes, trials = (jnp.array(part, float) for part in decomposition.split(counts))
    yes, no = successes + 0.5, trials - successes + 0.5
    return successes, trials, jnp.log(yes / no), 1.0 / jnp.sqrt(yes * no / (yes + no) + 1.0)


def sample_root(name, prior):
    """Sample a covariance by the root of its precision; return both roots."""
    law = dist.WishartCholesky(prior.degrees, rate_matrix=jnp.array(prior.scale))
    precision_root = numpyro.sample(name, law)
    root = solve_triangular(precision_root, jnp.eye(len(prior.scale)), lower=True).T
    return precision_root, root


def sample_normal(prior, name):
    """Sample a mean and a covariance from a normal-inverse-Wishart law; return roots too."""
    precision_root, root = sample_root(f"{name}_root", prior)
    noise = numpyro.sample(f"{name}_noise", dist.Normal().expand([len(prior.mean)]).to_event(1))
    return jnp.array(prior.mean) + root @ noise / jnp.sqrt(prior.strength), precision_root, root


def sample_free(centre, unit):
    flat = dist.ImproperUniform(dist.constraints.real_matrix, (), centre.shape)
    return centre + unit * numpyro.sample("offsets", flat)


def add_normal(name, deviations, precision_root):
    """Count in the normal density of rows of deviations."""
    log_det = len(deviations) * jnp.log(jnp.diag(precision_root)).sum()
    numpyro.factor(name, log_det - 0.5 * jnp.square(deviations @ precision_root).sum())


def add_counts(successes, trials, psi):
    value = jnp.sum(successes * psi - trials * jax.nn.softplus(psi))
    numpyro.factor("counts", value)
    numpyro.deterministic("log_likelihood", value)
    numpyro.deterministic("psi", psi)


def rows(estimator, data):
    """Return the law of correlated multinomials."""
    successes, trials, centre, unit = splits_of(estimator.decomposition_, data[0])
    prior = estimator.model_.prior

    def law():
        mean, precision_root, root = sample_normal(prior, "rows")
        psi = sample_free(centre, unit)
        add_normal("psi_given_all", psi - mean, precision_root)
        add_counts(successes, trials, psi)
        numpyro.deterministic("mean", mean)
        numpyro.deterministic("cov", root @ root.T)

    return law


def walk(estimator, data):
    """Return the law of compositions that walk."""
    successes, trials, centre, unit = splits_of(estimator.decomposition_, data[0])
    steps, first = estimator.model_.dynamics_prior, estimator.model_.initial_prior

    def law():
        precision_root, root = sample_root("step_root", steps)
        mean, first_root, _ = sample_normal(first, "first")
        psi = sample_free(centre, unit)
        add_normal("walk", psi[1:] - psi[:-1], precision_root)
        add_normal("start", psi[:1] - mean, first_root)
        add_counts(successes, trials, psi)
        numpyro.deterministic("cov", root @ root.T)

    return law


def process(estimator, data):
    """Return the law of a Gaussian process with a constant times a Matern kernel of smoothness 5/2."""
    model, inputs = estimator.model_, jnp.array(estimator.inputs_[:, 0])
    successes, trials, *_ = splits_of(estimator.decomposition_, estimator.counts_)
    theta0, bounds = jnp.array(model.family.theta0), jnp.array(model.family.bounds)
    level, distance = jnp.array(model.level), jnp.abs(inputs[:, None] - inputs)

    def law():
        between = {"low": bounds[:, 0], "high": bounds[:, 1]}
        prior = dist.TruncatedNormal(theta0, model.prior_sd, **between).to_event(1)
        theta = numpyro.sample("theta", prior)
        r = jnp.sqrt(5.0) * distance / jnp.exp(theta[1])
        cov = jnp.exp(theta[0]) * (1.0 + r + r * r / 3.0) * jnp.exp(-r)
        root = jnp.linalg.cholesky(cov + JITTER * jnp.eye(len(inputs)))
        white = numpyro.sample("white", dist.Normal().expand(successes.shape).to_event(2))
        add_counts(successes, trials, level + root @ white)

    return law


LAWS = {"rows": rows, "walk": walk, "process": process}
