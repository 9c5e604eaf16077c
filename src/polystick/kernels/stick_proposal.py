"""Particles behind binary splits: how a step's particles are proposed and weighed (`stick_filter`).

Given its past, particle i has the law N(m_i, I). At a step that tells much it is drawn from the mixture

    (1 - DEFENSIVE) N(J^-1 (m_i + h), J^-1) + DEFENSIVE N(m_i, I),    J = I + P,

where exp(h' w - w' P w / 2) is the likelihood to second order about the mode that it has with the mean
of the m_i: one matrix for all particles. Weights are exact, and at most the likelihood / DEFENSIVE,
however bad the expansion. Particles are the last axis, along which the loops run.

sticks           : (rows (A, D), offsets (A,), successes (A,), trials (A,)) of one step, float64, of
                   which the first n_sticks are read; psi = rows w + offsets
means, particles : (D, N)
"""

import math

import numpy as np

from polystick.kernels import kernel, linalg
from polystick.kernels.particle_gibbs import exp_below
from polystick.kernels.streams import normal, uniform

DEFENSIVE = 0.1
NEAR = 0.25  # a way to the mode whose square, in standard deviations, needs no other expansion
MOST_EXPANSIONS = 20
MOST_HALVINGS = 30
FACTORS = 512  # numbers up to 2 whose product cannot overflow
LOG_GUIDED, LOG_DEFENSIVE = math.log1p(-DEFENSIVE), math.log(DEFENSIVE)

# ---- the expansion


@kernel
def _log_posterior(n_sticks, sticks, centre, state):
    """Return log N(state; centre, I) + log likelihood, up to a constant."""
    rows, offsets, successes, trials = sticks
    total = 0.0
    for p in range(centre.shape[0]):
        total -= 0.5 * (state[p] - centre[p]) ** 2
    for j in range(n_sticks):
        psi = offsets[j]
        for p in range(centre.shape[0]):
            psi += rows[j, p] * state[p]
        total += successes[j] * psi - trials[j] * (max(psi, 0.0) + math.log1p(math.exp(-abs(psi))))
    return total


@kernel(inline="always")
def _expand(n_sticks, sticks, state, gradient, precision, omega):
    """Write the gradient of the log likelihood, and minus its second derivatives (upper triangle)."""
    rows, offsets, successes, trials = sticks
    d = state.shape[0]
    gradient[:] = 0.0
    precision[:] = 0.0
    for j in range(n_sticks):
        psi = offsets[j]
        for p in range(d):
            psi += rows[j, p] * state[p]
        e = math.exp(-abs(psi))
        success = (1.0 if psi >= 0.0 else e) / (1.0 + e)
        omega[j] = trials[j] * e / ((1.0 + e) * (1.0 + e))
        linalg.add_multiple_in_place(gradient, successes[j] - trials[j] * success, rows[j])
    whole = n_sticks - n_sticks % 4
    for j in range(0, whole, 4):
        for p in range(d):
            c0, c1 = omega[j] * rows[j, p], omega[j + 1] * rows[j + 1, p]
            c2, c3 = omega[j + 2] * rows[j + 2, p], omega[j + 3] * rows[j + 3, p]
            for q in range(p, d):
                first = c0 * rows[j, q] + c1 * rows[j + 1, q]
                precision[p, q] += first + (c2 * rows[j + 2, q] + c3 * rows[j + 3, q])
    for j in range(whole, n_sticks):
        for p in range(d):
            c0 = omega[j] * rows[j, p]
            for q in range(p, d):
                precision[p, q] += c0 * rows[j, q]


@kernel
def find_proposal(n_sticks, sticks, centre, linear, factor, omega):
    """Write h and the factor of J, expanded near the mode; return log|J| and how far the mode is.

    The mode is that under N(centre, I). Steps are Newton's, halved until they go up. How far it is
    from the centre is as the first of them says: the square of the distance in standard deviations.
    """
    d = centre.shape[0]
    state, moved, way = centre.copy(), np.empty(d), np.empty(d)
    value = _log_posterior(n_sticks, sticks, centre, state)
    distance = 0.0
    for expansion in range(MOST_EXPANSIONS):
        _expand(n_sticks, sticks, state, way, factor, omega)
        for p in range(d):
            linear[p] = way[p]
            way[p] -= state[p] - centre[p]
            for q in range(d):
                linear[p] += (factor[p, q] if q >= p else factor[q, p]) * state[q]
        for p in range(d):
            factor[p, p] += 1.0
        linalg.cholesky_in_place(factor)
        linalg.solve_lower_in_place(factor, way)
        rest = 0.0
        for p in range(d):
            rest += way[p] * way[p]
        if expansion == 0:
            distance = rest
        if not rest > NEAR:
            break
        linalg.solve_upper_in_place(factor, way)
        for _ in range(MOST_HALVINGS):
            for p in range(d):
                moved[p] = state[p] + way[p]
                way[p] *= 0.5
            risen = _log_posterior(n_sticks, sticks, centre, moved)
            if risen > value:
                break
        for p in range(d):
            state[p] = moved[p]
        value = risen
    return linalg.log_det(factor), distance


# ---- moves


@kernel
def guide(means, linear, factor, log_det, particles, log_weights, scratch, s0, s1):
    """Draw each particle from the mixture; add log(prior density / its density) to log_weights.

    scratch : (2, D, N)
    """
    d, n = means.shape
    y, noise = scratch[0], scratch[1]  # y = L^-1 (m + h), so that a guided draw is L^-T (y + noise)
    for p in range(d):
        for i in range(n):
            noise[p, i], s0, s1 = normal(s0, s1)
    for p in range(d):
        for i in range(n):
            y[p, i] = means[p, i] + linear[p]
        for q in range(p):
            c = factor[q, p]
            for i in range(n):
                y[p, i] -= c * y[q, i]
        c = 1.0 / factor[p, p]
        for i in range(n):
            y[p, i] *= c
    for p in range(d - 1, -1, -1):
        for i in range(n):
            particles[p, i] = y[p, i] + noise[p, i]
        for q in range(p + 1, d):
            c = factor[p, q]
            for i in range(n):
                particles[p, i] -= c * particles[q, i]
        c = 1.0 / factor[p, p]
        for i in range(n):
            particles[p, i] *= c
    s0, s1 = _defend_in_place(means, factor, y, noise, particles, s0, s1)
    _add_ratios_in_place(means, noise, particles, 0.5 * log_det + LOG_GUIDED, log_weights)
    return s0, s1


@kernel(inline="always")
def _defend_in_place(means, factor, y, noise, particles, s0, s1):
    """Draw the share DEFENSIVE of the particles from N(its mean, I) instead, spread evenly.

    Their noise becomes that with which the guided law would have drawn them.
    """
    d, n = means.shape
    place, s0, s1 = uniform(s0, s1)
    for i in range(n):
        place += DEFENSIVE
        if place >= 1.0:
            place -= 1.0
            for p in range(d):
                particles[p, i] = means[p, i] + noise[p, i]
            for p in range(d):
                total = -y[p, i]
                for q in range(p, d):
                    total += factor[p, q] * particles[q, i]
                noise[p, i] = total
    return s0, s1


@kernel(inline="always")
def _add_ratios_in_place(means, noise, particles, level, log_weights):
    """Add -log(exp(level + (|particle - mean|^2 - |noise|^2) / 2) + DEFENSIVE) to log_weights."""
    d, n = means.shape
    log_ratio = np.empty(n)
    for i in range(n):
        log_ratio[i] = level
    for p in range(d):
        for i in range(n):
            gap = particles[p, i] - means[p, i]
            log_ratio[i] += 0.5 * (gap * gap - noise[p, i] * noise[p, i])
    for i in range(n):
        top, low = max(log_ratio[i], LOG_DEFENSIVE), min(log_ratio[i], LOG_DEFENSIVE)
        log_weights[i] -= top + log1p_unit(exp_below(low - top))


# ---- weights


@kernel(inline="always")
def log1p_unit(e):
    """Return log(1 + e) for 0 <= e <= 1, to 1e-15, without branches: 2 atanh(e / (2 + e))."""
    s = e / (2.0 + e)
    x = s * s
    x2 = x * x
    x4 = x2 * x2
    a = (1.0 + x / 3.0) + x2 * (1.0 / 5.0 + x / 7.0)
    b = (1.0 / 9.0 + x / 11.0) + x2 * (1.0 / 13.0 + x / 15.0)
    c = (1.0 / 17.0 + x / 19.0) + x2 * (1.0 / 21.0 + x / 23.0)
    f = (1.0 / 25.0 + x / 27.0) + x2 * (1.0 / 29.0 + x / 31.0)
    return 2.0 * s * (a + x4 * (b + x4 * (c + x4 * f)))


@kernel
def weigh_in_place(n_sticks, sticks, particles, log_weights, psi, product):
    """Add the log likelihood of each particle to log_weights; psi and product (N,) are scratch.

    The factors 1 + exp(-|psi|) of single trials are multiplied, and one logarithm serves many.
    """
    rows, offsets, successes, trials = sticks
    n, n_factors = log_weights.shape[0], 0
    product[:] = 1.0
    for j in range(n_sticks):
        hits, tries = successes[j], trials[j]
        _multiply_row(rows[j], offsets[j], particles, psi)
        for i in range(n):
            log_weights[i] += hits * psi[i] - tries * max(psi[i], 0.0)
        if tries == 1.0:
            for i in range(n):
                product[i] *= 1.0 + exp_below(-abs(psi[i]))
            n_factors += 1
        else:
            for i in range(n):
                log_weights[i] -= tries * log1p_unit(exp_below(-abs(psi[i])))
        if n_factors == FACTORS or j == n_sticks - 1:
            for i in range(n):
                log_weights[i] -= math.log(product[i])
            product[:] = 1.0
            n_factors = 0


@kernel(inline="always")
def _multiply_row(row, offset, particles, psi):
    """Write row' w + offset of each particle into psi."""
    d, n = particles.shape
    for i in range(n):
        psi[i] = offset
    whole = d - d % 4
    for p in range(0, whole, 4):
        c0, c1, c2, c3 = row[p], row[p + 1], row[p + 2], row[p + 3]
        for i in range(n):
            first = c0 * particles[p, i] + c1 * particles[p + 1, i]
            psi[i] += first + (c2 * particles[p + 2, i] + c3 * particles[p + 3, i])
    for p in range(whole, d):
        c0 = row[p]
        for i in range(n):
            psi[i] += c0 * particles[p, i]
