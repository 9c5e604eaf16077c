"""Turns of a regression's sweep under one omega: effects or noise, then the law of their spread.

Between two turns there is nothing but a few small matrices, so a kernel makes several. Models make the same
turns one by one where groups have several factors, systems are large or rows are in several blocks.
"""

import numpy as np

from polystick.kernels import gaussian, kernel, linalg, regression, spreads, streams


@kernel(inline="always")
def _sum_groups(group_weight, group_linear, cross, b, groups, outer, curvature, slope):
    """Write sums over groups that say of their covariance and of their scales, as `tell_of_scales` does."""
    m, k = groups.shape
    outer[:] = 0.0
    curvature[:] = 0.0
    slope[:] = 0.0
    for g in range(m):
        for i in range(k):
            slope[i] += groups[g, i] * (group_linear[g, i] - linalg.dot(cross[g, i], b))
            for j in range(k):
                both = groups[g, i] * groups[g, j]
                outer[i, j] += both
                curvature[i, j] += both * group_weight[g, i, j]


@kernel
def turn_groups(
    prior_weight, prior_linear, weight, linear, group_weight, group_linear, cross, noise, group_noise,
    normals, gammas, nu, scale, cov, size, b, groups,
):  # fmt: skip
    """Draw B (d,), d = q k, and groups (m, k) | cov, then cov and its scales | groups, a few times over.

    prior_weight, prior_linear        : (q, k, k), (d,) of B
    weight, linear                    : (d, d), (d,) what rows tell of B
    group_weight, group_linear, cross : (m, k, k), (m, k), (m, k, d) of the groups, and of both
    noise, group_noise                : (turns, d), (turns, m, k)
    normals, gammas                   : (turns, k + 1, k), (turns, 2 k) as step_in_place has them
    cov, size                         : (k, k), (k,) of the groups; drawn anew in place
    b, groups                         : out
    """
    m, k = groups.shape
    precision, none = np.empty((k, k)), np.zeros((m, k))
    by, slope, outer, curvature = np.empty(k), np.empty(k), np.empty((k, k)), np.empty((k, k))
    for turn in range(noise.shape[0]):
        spreads.invert(cov, precision)
        regression.draw_line(
            prior_weight, prior_linear, precision, none, weight, linear, group_weight, group_linear,
            cross, noise[turn], group_noise[turn], b, groups,
        )  # fmt: skip
        _sum_groups(group_weight, group_linear, cross, b, groups, outer, curvature, slope)
        law = nu, scale, False, normals[turn], gammas[turn]
        spreads.step_in_place(outer, curvature, slope, *law, cov, size, by)
        for g in range(m):
            for i in range(k):
                groups[g, i] *= by[i]


@kernel(inline="always")
def draw_noise(kappa, omega, key, rows, cov, e, outer, curvature, slope):
    """Draw noise e (n, k) ~ N(0, cov) | its potentials; add up what it says of its law and of its scales.

    key, rows               : whose streams have the normals
    outer, curvature, slope : (k, k), (k, k), (k,) added to
    """
    n, k = kappa.shape
    normals, log_det, precision = np.empty((n, k)), np.empty(n), np.empty((k, k))
    streams.fill_normals(key, rows, normals)
    spreads.invert(cov, precision)
    given = precision, np.zeros(k), kappa, omega
    gaussian.draw_rows(*given, normals.reshape(n, 1, k), e.reshape(n, 1, k), log_det)
    for row in range(n):
        for i in range(k):
            slope[i] += e[row, i] * kappa[row, i]
            curvature[i, i] += omega[row, i] * e[row, i] ** 2
            for j in range(i + 1):
                outer[i, j] += e[row, i] * e[row, j]
    for i in range(k):
        for j in range(i):
            outer[j, i] = outer[i, j]


@kernel
def turn_noise(kappa, omega, keys, rows, normals, gammas, nu, scale, is_diagonal, cov, size, e):
    """Draw noise (n, k) | cov, then cov and its scales | noise, a few times over.

    kappa, omega    : (n, k) the potential of noise
    keys, rows      : (turns,), (n,)
    normals, gammas : (turns, k + 1, k), (turns, 2 k) as step_in_place has them
    cov, size       : (k, k), (k,) drawn anew in place
    e               : (n, k) out
    """
    k = len(size)
    outer, curvature, slope, by = np.empty((k, k)), np.empty((k, k)), np.empty(k), np.empty(k)
    for turn in range(len(keys)):
        outer[:] = 0.0
        curvature[:] = 0.0
        slope[:] = 0.0
        draw_noise(kappa, omega, keys[turn], rows, cov, e, outer, curvature, slope)
        law = nu, scale, is_diagonal, normals[turn], gammas[turn]
        spreads.step_in_place(outer, curvature, slope, *law, cov, size, by)
        for row in range(len(e)):
            for i in range(k):
                e[row, i] *= by[i]
