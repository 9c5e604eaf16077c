"""Scalar random walks, many at once: messages back, values forward.

    x_1 ~ N(initial_mean, initial_variance),    x_s = x_{s-1} + N(0, step_variance),

with the potential exp(kappa x - omega x^2 / 2) at each step, which may be 0. A message (h, j) goes
back through a step of variance q as (h, j) / (1 + q j), so nothing divides by a variance or by omega
and both may be 0. The walks are independent and last; one block of BLOCK walks after the other passes
through all the steps, so that its messages stay in the cache and the loop over it is vectorised.
"""

import math

import numpy as np

from polystick.kernels import kernel

BLOCK = 128


@kernel
def draw_walks(initial_mean, initial_variance, step_variance, kappa, omega, noise, out):
    """Write the walks given the potentials, an affine function of the noise; zeros give the mean.

    initial_mean, initial_variance, step_variance : (M,)
    kappa, omega                                  : (S, M) the potential
    noise                                         : (S, M) standard normals
    out                                           : (S, M)
    """
    n_steps, n_walks = kappa.shape
    message = np.empty((2, min(BLOCK, n_walks)))
    shrinkage = np.empty((n_steps, min(BLOCK, n_walks)))
    for first in range(0, n_walks, BLOCK):
        last = min(first + BLOCK, n_walks)
        j, h = message[0, : last - first], message[1, : last - first]
        j[:] = 0.0
        h[:] = 0.0
        q0, q = initial_variance[first:last], step_variance[first:last]
        for s in range(n_steps - 1, -1, -1):
            r, x = shrinkage[s, : last - first], out[s, first:last]
            _gather_in_place(j, h, kappa[s, first:last], omega[s, first:last], x)
            _pass_in_place(j, h, q if s > 0 else q0, r)
        past = initial_mean[first:last]
        for s in range(n_steps):
            r, x = shrinkage[s, : last - first], out[s, first:last]
            _draw_step_in_place(x, past, q if s > 0 else q0, r, noise[s, first:last])
            past = x


# The loops are many and small because LLVM vectorises only those that touch few arrays.


@kernel(inline="always")
def _gather_in_place(j, h, kappa, omega, linear):
    """Add a step's potential to its message (h, j); keep h in linear."""
    for i in range(j.shape[0]):
        j[i] += omega[i]
    for i in range(j.shape[0]):
        h[i] += kappa[i]
    for i in range(j.shape[0]):
        linear[i] = h[i]


@kernel(inline="always")
def _pass_in_place(j, h, variance, shrinkage):
    """Pass the message (h, j) back through noise; keep 1 / (1 + variance j) in shrinkage."""
    for i in range(j.shape[0]):
        shrinkage[i] = 1.0 / (1.0 + variance[i] * j[i])
    for i in range(j.shape[0]):
        j[i] *= shrinkage[i]
    for i in range(j.shape[0]):
        h[i] *= shrinkage[i]


@kernel(inline="always")
def _draw_step_in_place(x, past, variance, shrinkage, noise):
    """Turn x, the message h of a step, into a draw of it given the past one."""
    for i in range(x.shape[0]):
        mean = shrinkage[i] * (past[i] + variance[i] * x[i])
        x[i] = mean + math.sqrt(variance[i] * shrinkage[i]) * noise[i]
