"""Turns of a regression's sweep under one omega: effects or noise, then the law of their spread.

Between two turns there is nothing but a few small matrices, so a kernel makes several. Models make the same
turns one by one where groups have several factors, systems are large or rows are in several blocks.
"""

import numpy as np

from polystick.kernels import gaussian, kernel, linalg, regression, spreads, streams


@kernel(inline="always")
def _sum_groups(told, b, groups, sums):
    """Write sums over groups that say of their covariance and of their scales, as `tell_of_scales` does."""
    m, k = groups.shape
    sums.outer[:] = 0.0
    sums.curvature[:] = 0.0
    sums.slope[:] = 0.0
    for g in range(m):
        for i in range(k):
            rest = told.group_linear[g, i] - linalg.dot(told.cross[g, i], b)
            sums.slope[i] += groups[g, i] * rest
            for j in range(k):
                both = groups[g, i] * groups[g, j]
                sums.outer[i, j] += both
                sums.curvature[i, j] += both * told.group_weight[g, i, j]


@kernel
def turn_groups(law, told, noise, group_noise, of_spread, chance, spread, b, groups):
    """Draw B (d,) and groups (m, k) | cov, then cov and its scales | groups, a few times over.

    law, told          : regression.Law, but for the weight of groups, and regression.Told
    noise, group_noise : (turns, d), (turns, m, k)
    of_spread, chance  : spreads.Law and the spreads.Chance of all turns
    spread             : spreads.Spread of the groups, drawn anew in place
    b, groups          : out
    """
    m, k = groups.shape
    precision, by = np.empty((k, k)), np.empty(k)
    sums = spreads.Sums(np.empty((k, k)), np.empty((k, k)), np.empty(k))
    for turn in range(noise.shape[0]):
        spreads.invert(spread.cov, precision)
        regression.draw_line(law, told, precision, noise[turn], group_noise[turn], b, groups)
        _sum_groups(told, b, groups, sums)
        given = chance.normals[turn], chance.gammas[turn]
        spreads.step_in_place(of_spread, sums, *given, spread, by)
        for g in range(m):
            for i in range(k):
                groups[g, i] *= by[i]


@kernel(inline="always")
def draw_noise(kappa, omega, key, rows, cov, e, sums):
    """Draw noise e (n, k) ~ N(0, cov) | its potentials; write what it says of its law and of its scales.

    key, rows : whose streams have the normals
    """
    n, k = kappa.shape
    normals, log_det, precision = np.empty((n, k)), np.empty(n), np.empty((k, k))
    streams.fill_normals(key, rows, normals)
    spreads.invert(cov, precision)
    given = precision, np.zeros(k), kappa, omega
    gaussian.draw_rows(*given, normals.reshape(n, 1, k), e.reshape(n, 1, k), log_det)
    sums.outer[:] = 0.0
    sums.curvature[:] = 0.0
    sums.slope[:] = 0.0
    for row in range(n):
        for i in range(k):
            sums.slope[i] += e[row, i] * kappa[row, i]
            sums.curvature[i, i] += omega[row, i] * e[row, i] ** 2
            for j in range(i + 1):
                sums.outer[i, j] += e[row, i] * e[row, j]
    for i in range(k):
        for j in range(i):
            sums.outer[j, i] = sums.outer[i, j]


@kernel
def turn_noise(kappa, omega, keys, rows, of_spread, chance, spread, e):
    """Draw noise (n, k) | cov, then cov and its scales | noise, a few times over.

    kappa, omega      : (n, k) the potential of noise
    keys, rows        : (turns,), (n,)
    of_spread, chance : spreads.Law and the spreads.Chance of all turns
    spread            : spreads.Spread of noise, drawn anew in place
    e                 : (n, k) out
    """
    k, by = e.shape[1], np.empty(e.shape[1])
    sums = spreads.Sums(np.empty((k, k)), np.empty((k, k)), np.empty(k))
    for turn in range(len(keys)):
        draw_noise(kappa, omega, keys[turn], rows, spread.cov, e, sums)
        given = chance.normals[turn], chance.gammas[turn]
        spreads.step_in_place(of_spread, sums, *given, spread, by)
        for row in range(len(e)):
            for i in range(k):
                e[row, i] *= by[i]
