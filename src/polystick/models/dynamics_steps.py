"""What a sweep of dynamics does with the steps of a block: sums and potentials."""

import numpy as np

from polystick.kernels import emissions

LARGEST_STATE = 1e100  # of draws from the prior, whose dynamics may explode


def packed_products(vectors):
    """Return x x' of each row x of vectors (n, E), packed."""
    n, e = vectors.shape
    products = np.empty((n, e * (e + 1) // 2))
    emissions.pack_products(vectors, products)
    return products


def active_psi(shard, rows, u):
    """Return psi of the active sticks of each step."""
    psi = np.empty(len(shard.splits.nodes))
    emissions.multiply_active(*shard.active, rows, u, psi)
    return psi


def less_offsets(potential, offsets):
    """Return the potential of psi less what is known of it, as one of the rest."""
    return potential._replace(kappa=potential.kappa - potential.omega * offsets)


def draw_half_cauchy(values, scale, rng):
    """Draw the scale of values ~ N(0, scale^2) that is half-Cauchy a priori, given them and what it was.

    With a, scale^2 | a ~ InverseGamma(1/2, 1/a) and a ~ InverseGamma(1/2, 1).
    """
    inverse = rng.standard_gamma(1.0) / (1.0 + scale**-2.0)  # 1 / a
    rate, shape = inverse + 0.5 * np.sum(values * values), 0.5 * (len(values) + 1)
    return np.sqrt(rate / rng.standard_gamma(shape))


def pull_back(shard, potential, rows, products, n_dims):
    """Return the potential of each step's states: linear, precision and constant."""
    n = shard.n_steps
    parts = np.empty((n, n_dims)), np.empty((n, n_dims, n_dims)), np.empty(n)
    emissions.pull_back(*shard.active, *potential, rows, products, shard.known, *parts)
    return parts


def path(first, dynamics, shocks):
    """Return states (T, D) from the first one, each the dynamics times the one before plus a shock.

    Where they would overflow they are scaled down: then only their directions matter.
    """
    return switching_path(first, [dynamics] * len(shocks), shocks)


def switching_path(first, dynamics, shocks):
    """Do as in `path` with dynamics of its own for each step."""
    states = np.empty((len(shocks) + 1, len(first)))
    states[0] = first
    for t, (matrix, shock) in enumerate(zip(dynamics, shocks)):
        state = matrix @ states[t] + shock
        size = np.abs(state).max()
        states[t + 1] = state if size < LARGEST_STATE else state * (LARGEST_STATE / size)
    return states


def paths(parameters, dynamics, shifts, lengths, rng):
    """Draw states (T, D) of sequences of these lengths, one after another in shifts (S, D)."""
    roots = map(np.linalg.cholesky, (parameters.initial_cov, parameters.dynamics_cov))
    (first_root, root), states, stop = roots, [], 0
    for length in lengths:
        start, stop = stop, stop + length
        noise = rng.standard_normal((length, len(root)))
        first = parameters.initial_mean + first_root @ noise[0]
        shocks = noise[1:] @ root.T + shifts[start + 1 : stop]
        states.append(path(first, dynamics, shocks))
    return states


def spectral_radius(matrix):
    """Return the largest size of an eigenvalue."""
    return float(np.abs(np.linalg.eigvals(matrix)).max())


def named_columns(columns, has_one, one, several):
    """Return the first of columns by the one name where it is there, the rest by the other."""
    first = {one: columns[:, 0]} if has_one else {}
    rest = columns[:, int(has_one) :]
    return first | ({several: rest} if rest.shape[1] else {})


def raise_unless_finite(states, prior, key):
    """Name the sweep and the dynamics if states overflow."""
    if not np.isfinite(states).all():
        raise FloatingPointError(
            f"the states overflow in sweep {key.sweep}: the dynamics have spectral radius "
            f"{spectral_radius(prior.chain.dynamics):.3g}; try "
            "fewer states, shorter sequences or inputs of smaller size"
        )
