"""The loops of `chain` for several sequences, one after the other, and a filter that goes forward.

Sequence i is the steps from starts[i] up to starts[i + 1]; all share the dynamics and the law of
their first states. Arrays are those of `chain`, over the steps of all sequences.
"""

import numpy as np

from polystick.kernels import chain, kernel, products


@kernel
def pass_back_in_place(dynamics, bias, start, spread, starts, message, factor, log_integral, tiled):
    """Turn potentials into messages; write the log of the integral of each sequence.

    log_integral : (n,) out
    """
    for i in range(log_integral.shape[0]):
        a, b = starts[i], starts[i + 1]
        log_integral[i] = chain.pass_back_in_place(
            dynamics, bias[a:b], start, spread, message[a:b], factor[a:b], tiled
        )


@kernel
def draw_forward(dynamics, bias, start, spread, starts, factor, message, noise, states):
    """Write the whitened states, an affine function of the noise; zeros give the mean."""
    for i in range(starts.shape[0] - 1):
        a, b = starts[i], starts[i + 1]
        chain.draw_forward(
            dynamics,
            bias[a:b],
            start,
            spread,
            factor[a:b],
            message[a:b],
            noise[a:b],
            states[a:b],
        )


@kernel
def moments_forward(dynamics, spread, starts, factor, cov, cross):
    """Write the whitened covariances.

    cross : (steps that have one before them, D, D) out: of each with the one before it
    """
    at = 0
    for i in range(starts.shape[0] - 1):
        a, b = starts[i], starts[i + 1]
        end = at + max(b - a - 1, 0)
        chain.moments_forward(dynamics, spread, factor[a:b], cov[a:b], cross[at:end])
        at = end


# ---- forward


@kernel
def filter_forward(
    dynamics, bias, start, spread, starts, linear, precision, means, covs, log_integral
):
    """Write the whitened moments of each state given the potentials up to its step, or before it.

    means, covs  : (2, S, D), (2, S, D, D) out: given the steps before, and with the step itself
    log_integral : (S,) out: log of the integral of the step's potential given those before
    """
    d = linear.shape[1]
    mean, root = np.empty(d), np.empty((d, d))
    for i in range(starts.shape[0] - 1):
        for s in range(starts[i], starts[i + 1]):
            if s == starts[i]:
                products.copy(spread, root)
                for p in range(d):
                    mean[p] = start[p]
            else:
                _predict(dynamics, bias[s], mean, root)
            for p in range(d):
                means[0, s, p] = mean[p]
            _square(root, covs[0, s])
            log_integral[s] = _update(linear[s], precision[s], mean, root)
            for p in range(d):
                means[1, s, p] = mean[p]
            _square(root, covs[1, s])


@kernel(inline="always")
def _predict(dynamics, bias, mean, root):
    """Turn the mean and a root of the covariance of a state into those of the next."""
    d = mean.shape[0]
    x, excess = np.empty(d), np.empty(d)
    products.multiply(dynamics, mean, x)
    for i in range(d):
        mean[i] = x[i] + bias[i]
    moved, square, turned = np.zeros((d, d)), np.zeros((d, d)), dynamics.copy()
    products.transpose_in_place(turned)
    products.add_product_in_place(moved, root, turned, False)
    products.add_product_in_place(square, moved, moved, True)
    chain.factor_in_place(square, excess)
    for i in range(d):
        for j in range(d):
            root[i, j] = square[j, i] if j <= i else 0.0


@kernel(inline="always")
def _update(linear, precision, mean, root):
    """Condition w = mean + root u, u ~ N(0, I), on a potential; return the log of its integral."""
    d = mean.shape[0]
    b, g, x = precision.copy(), linear.copy(), np.empty(d)
    half, turned, product = np.zeros((d, d)), np.zeros((d, d)), np.empty((d, d))
    log_integral = chain.begin_in_place(mean, root, b, g, half, product)
    chain.solve_half(b, g)
    chain.solve_other_half(b, g)
    products.multiply(root, g, x)
    for i in range(d):
        mean[i] += x[i]
        for j in range(d):
            half[j, i] = b[i, j] if j < i else 0.0
            turned[j, i] = root[i, j]
        half[i, i] = 1.0 / b[i, i]
    root[:] = 0.0
    products.add_product_in_place(root, half, turned, False)
    products.transpose_in_place(root)
    return log_integral


@kernel
def _square(root, cov):
    """Write root root' into cov."""
    turned = root.copy()
    products.transpose_in_place(turned)
    cov[:] = 0.0
    products.add_product_in_place(cov, turned, turned, True)
    products.mirror_in_place(cov)
