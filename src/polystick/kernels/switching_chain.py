"""The loops of `chain` for dynamics that differ from step to step: one of several, by regimes::

    w_1 = start[r_1] + spread[r_1] u,    w_s = dynamics[r_{s-1}, r_s] w_{s-1} + bias_s + e_s

with standard normal u and e_s. States are whitened by the noise of their own regime, so the dynamics depend
on the regime before it too. Arrays are those of `chain` and `sequences`, over the steps of all sequences.

regimes       : (S,) int32
dynamics      : (R, R, D, D) from the first regime to the second
start, spread : (R, D), (R, D, D)
"""

import numpy as np

from polystick.kernels import chain, kernel, products


@kernel
def pass_back_in_place(dynamics, bias, start, spread, starts, regimes, message, factor):
    """Turn potentials into messages."""
    d = message.shape[1]
    excess, x, drift = np.empty(d), np.empty(d), np.empty(d)
    n, product = np.empty((d, d)), np.empty((d, d))
    for i in range(starts.shape[0] - 1):
        for s in range(starts[i + 1] - 1, starts[i], -1):
            move = dynamics[regimes[s - 1], regimes[s]]
            chain.factor_in_place(factor[s], excess)
            chain.shrink(factor[s], excess, n)
            for p in range(d):
                x[p] = message[s, p]
            chain.solve_half(factor[s], x)
            chain.solve_other_half(factor[s], x)
            products.multiply(n, bias[s], drift)
            for p in range(d):
                x[p] -= drift[p]
            products.add_transposed_in_place(message[s - 1], move, x)
            products.sandwich_in_place(factor[s - 1], move, n, product)
        if starts[i] < starts[i + 1]:
            s = starts[i]
            r = regimes[s]
            chain.begin_in_place(start[r], spread[r], factor[s], message[s], product, n)


@kernel
def draw_forward(dynamics, bias, start, spread, starts, regimes, factor, message, noise, states):
    """Write the whitened states, an affine function of the noise; zeros give the mean.

    noise, states : (S, D) standard normals; out
    """
    d = message.shape[1]
    x, y = np.empty(d), np.empty(d)
    for i in range(starts.shape[0] - 1):
        for s in range(starts[i], starts[i + 1]):
            if s > starts[i]:
                products.multiply(dynamics[regimes[s - 1], regimes[s]], states[s - 1], x)
                for p in range(d):
                    x[p] += message[s, p] + bias[s, p]
            else:
                for p in range(d):
                    x[p] = message[s, p]
            chain.solve_half(factor[s], x)
            for p in range(d):
                x[p] += noise[s, p]
            chain.solve_other_half(factor[s], x)
            if s == starts[i]:
                products.multiply(spread[regimes[s]], x, y)
                for p in range(d):
                    x[p] = start[regimes[s], p] + y[p]
            for p in range(d):
                states[s, p] = x[p]
