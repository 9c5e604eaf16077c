"""The law of a fitted regression on sticks in NumPyro, and a run of NUTS without compilation and warm-up.

Groups are in units of their scales. Noise is too, or psi in units of its standard error about the empirical
logits: NUTS gets what suits it better.
"""

import os
import time

os.environ["XLA_FLAGS"] = (
    "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 "
    + os.environ.get("XLA_FLAGS", "")
)

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.linalg import solve_triangular
from numpyro.infer import NUTS
from timing import undisturbed

numpyro.enable_x64()


def run(estimator, x, places, counts, *, warmup, draws, seed=0, depth=10, about_data=False):
    """Return draws by name (1, draw, ...), their CPU seconds, and steps of a draw."""
    law = regression(estimator.model_, x, places, counts, about_data)
    kernel = NUTS(law, max_tree_depth=depth)
    state = kernel.init(jax.random.PRNGKey(seed), warmup, None, (), {})
    step = jax.jit(lambda state: kernel.sample(state, (), {}))
    for _ in range(warmup):
        state = step(state)
    jax.block_until_ready(state)
    kept, n_steps, times = [], [], [time.process_time()]
    for _ in range(draws):
        state = jax.block_until_ready(step(state))
        times.append(time.process_time())
        kept.append(state.z)
        n_steps.append(int(state.num_steps))
    seconds = undisturbed(np.diff(times), np.array(n_steps))
    stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *kept)
    told = jax.lax.map(kernel.postprocess_fn((), {}), stacked)
    names = ("coefficients", "group_cov", "noise_cov")
    return (
        {name: np.asarray(told[name])[None] for name in names if name in told},
        seconds,
        np.mean(n_steps),
    )


def regression(model, x, places, counts, about_data):
    """Return the law of a `StickRegression` with at most one factor of groups."""
    prior, x = model.prior, jnp.array(x)
    successes, trials = (jnp.array(part, float) for part in model.decomposition.split(counts))
    yes, no = successes + 0.5, trials - successes + 0.5
    centre, unit = jnp.log(yes / no), 1.0 / jnp.sqrt(yes * no / (yes + no) + 1.0)
    mean, scale = jnp.array(prior.mean), jnp.array(prior.scale)[:, None]
    if prior.overdispersion == "diagonal" or len(prior.n_groups) > 1:
        raise ValueError("NUTS has full overdispersion or none, and one factor of groups or none")

    def law():
        z = numpyro.sample("z", dist.Normal().expand(mean.shape).to_event(2))
        psi = x @ numpyro.deterministic("coefficients", mean + scale * z)
        if prior.n_groups:
            size, root = spread("group", prior)
            of_groups = size * in_units("group", prior.n_groups[0], root)
            psi = psi + of_groups[jnp.array(places)]
        if prior.overdispersion == "full":
            size, root = spread("noise", prior)
            if about_data:
                flat = dist.ImproperUniform(dist.constraints.real_matrix, (), centre.shape)
                line, psi = psi, centre + unit * numpyro.sample("offsets", flat)
                log_det = jnp.log(jnp.diag(root)).sum() - jnp.log(size).sum()
                whitened = ((psi - line) / size) @ root
                density = len(centre) * log_det - 0.5 * jnp.square(whitened).sum()
                numpyro.factor("psi_given_line", density)
            else:
                psi = psi + size * in_units("noise", len(centre), root)
        numpyro.factor("counts", jnp.sum(successes * psi - trials * jax.nn.softplus(psi)))

    return law


def spread(name, prior):
    """Sample scales (k,) and the root of the inverse of Q, as `HuangWand` has them."""
    law, k = prior.laws[-1], prior.k
    size = numpyro.sample(f"{name}_size", dist.HalfNormal(law.scale).expand([k]).to_event(1))
    wishart = dist.WishartCholesky(law.nu + k - 1.0, scale_tril=jnp.eye(k) / np.sqrt(law.nu))
    root = numpyro.sample(f"{name}_root", wishart)
    inner = solve_triangular(root, jnp.eye(k), lower=True)
    numpyro.deterministic(f"{name}_cov", size[:, None] * (inner.T @ inner) * size)
    return size, root


def in_units(name, n, root):
    """Sample n rows ~ N(0, (root root')^-1) by standard normals."""
    z = numpyro.sample(f"{name}_z", dist.Normal().expand([n, len(root)]).to_event(2))
    return solve_triangular(root, z.T, lower=True, trans=1).T
