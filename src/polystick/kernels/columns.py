"""One stick of all rows at once, with its part of the law of rows: a regression on the other sticks.

Rows psi_i ~ N(mean, cov) with (mean, cov) ~ NIW(m, r, Psi, nu) are, seen from stick j,

    psi_ij = b_j + sum over p != j of b_p (psi_ip - m_p) + N(0, v),
    v ~ InverseGamma(nu / 2, Psi_jj given the others / 2),    b given v normal with precision

    Psi / v but in row and column j, and r / v at (j, j),

whatever the law of the other sticks. Given omega, b is drawn with psi_j integrated out, then psi_j given b:
where counts tell little of each row, mean, cov and psi_j would follow each other slowly. Lopsided splits
are drawn without omega (`log_concave`).

psi               : (n, k)
table             : flat, psi - centre in rows of `grams.padded(k)`, but 1 in the column of the stick
successes, trials, chosen : (n, k) counts, and which splits are lopsided
omega             : (n, number of sticks), in the order of the sticks
law               : b, v and zeros, as long as a row of the table and one more
centre, scale     : (k,), (k, k) m and Psi
"""

import math

import numpy as np

from polystick.kernels import gammas as gamma_variates
from polystick.kernels import grams, hats, kernel, linalg, polyagamma, streams

NOISE = np.uint64(2**64 - 1)  # in the place of a row, for what belongs to no row


@kernel
def draw_noise(keys, shape, noise, gammas):
    """Write what a law is drawn from, each stick's from a stream of its own.

    keys : (number of sticks,) uint64
    noise, gammas : (number of sticks, k), (number of sticks,) out: standard normals, gammas of this shape
    """
    for number in range(keys.shape[0]):
        s0, s1 = streams.open_stream(keys[number], NOISE)
        for p in range(noise.shape[1]):
            noise[number, p], s0, s1 = streams.normal(s0, s1)
        gammas[number], s0, s1 = gamma_variates.gamma(shape, s0, s1)


@kernel
def draw_omega(key, rows, trials, psi, sticks, omega):
    """Write Pólya-gamma draws of some sticks into omega, row i from the stream of rows[i]."""
    for i in range(psi.shape[0]):
        s0, s1 = streams.open_stream(key, rows[i])
        for number in range(sticks.shape[0]):
            j = sticks[number]
            omega[i, number], s0, s1 = polyagamma.draw(trials[i, j], psi[i, j], s0, s1)


@kernel(inline="always")
def tabulate(psi, centre):
    """Return the table, with psi - centre of all sticks."""
    n, k = psi.shape
    wide = grams.padded(k)
    table = np.zeros(n * wide)
    for i in range(n):
        for p in range(k):
            table[i * wide + p] = psi[i, p] - centre[p]
    return table


@kernel(inline="always")
def add_regression_in_place(successes, trials, omega, table, stick, v, precision, linear):
    """Add what a block says of b, psi_j integrated out: the upper triangle of a precision, a linear term.

    omega : (n,) of this stick
    """
    n, wide = successes.shape[0], grams.padded(successes.shape[1])
    tile, weight, target = np.empty(grams.BLOCK * grams.SPAN), np.empty(n), np.empty(n)
    for i in range(n):
        share = 1.0 / (1.0 + v * omega[i])
        weight[i] = omega[i] * share
        target[i] = (successes[i, stick] - 0.5 * trials[i, stick]) * share
        table[i * wide + stick] = 1.0
    grams.add_in_place(table, weight, tile, precision)
    grams.add_row_in_place(table, target, stick, tile, linear)


@kernel(inline="always")
def draw_coefficients(centre, strength, scale, stick, v, precision, linear, noise, law):
    """Write b and v into the law; the prior is added to the precision, which is overwritten."""
    k = centre.shape[0]
    for p in range(k):
        if p == stick:
            precision[p, p] += strength / v
            linear[p] += strength * centre[p] / v
            continue
        linear[p] += scale[p, stick] / v
        for q in range(p, k):
            if q != stick:
                precision[p, q] += scale[p, q] / v
    linalg.cholesky_in_place(precision)
    linalg.solve_lower_in_place(precision, linear)
    for p in range(k):
        law[p] = linear[p] + noise[p]
    linalg.solve_upper_in_place(precision, law[:k])
    law[law.shape[0] - 1] = v


@kernel(inline="always")
def redraw_in_place(key, rows, counts, omega, centre, stick, law, room, table, psi):
    """Draw psi_j of each row given b and v; return the sum of squared residuals.

    counts : successes, trials and chosen
    omega : (n,) of this stick
    room  : of `hats.make_room`, for n splits
    table : in and out; in the end psi - centre of this stick too
    """
    (successes, trials, chosen), n, wide = counts, psi.shape[0], grams.padded(psi.shape[1])
    v, squares, count = law[wide], 0.0, 0
    (y, t, given, x), (s0, s1), at = room[0], room[1], room[2]
    for i in range(n):
        s0[i], s1[i] = streams.open_stream(key, rows[i])
    for i in range(n):
        given[i] = linalg.dot(law[:wide], table[i * wide : (i + 1) * wide])
    for i in range(n):
        yes, all_of, about = float(successes[i, stick]), float(trials[i, stick]), given[i]
        if chosen[i, stick]:
            y[count], t[count], given[count] = yes, all_of, about
            x[count], s0[count], s1[count], at[count] = psi[i, stick], s0[i], s1[i], i
            count += 1
        else:
            e, _, _ = streams.normal(s0[i], s1[i])
            precision = 1.0 / v + omega[i]
            new = (about / v + yes - 0.5 * all_of) / precision + e / math.sqrt(precision)
            squares += (new - about) * (new - about)
            psi[i, stick] = new
    hats.draw_in_place(count, y, t, given, 1.0 / v, x, s0, s1, room[3])
    for i in range(count):
        psi[at[i], stick] = x[i]
        squares += (x[i] - given[i]) * (x[i] - given[i])
    for i in range(n):
        table[i * wide + stick] = psi[i, stick] - centre[stick]
    return squares


@kernel(inline="always")
def put_back_in_place(centre, strength, scale, stick, law, squares, gamma, mean, precision, cov):
    """Draw v given b and psi_j; put the law into mean (k,), precision and cov (k, k) of the rows.

    squares : sum of squared residuals
    gamma : standard gamma of shape (nu + n + k) / 2
    """
    k = centre.shape[0]
    total = squares + scale[stick, stick] + strength * (law[stick] - centre[stick]) ** 2
    mean[stick] = law[stick]
    for p in range(k):
        if p != stick:
            mean[stick] += law[p] * (mean[p] - centre[p])
            total -= 2.0 * law[p] * scale[p, stick]
            for q in range(k):
                if q != stick:
                    total += law[p] * scale[p, q] * law[q]
    v, before = 0.5 * total / gamma, precision[stick, stick]
    for p in range(k):  # the precision of the other sticks alone, then with this one again
        if p != stick:
            old, new = precision[p, stick] / before, law[p] / v
            for q in range(k):
                if q != stick:
                    precision[p, q] += new * law[q] - old * precision[stick, q]
    for p in range(k):
        if p != stick:
            precision[p, stick] = precision[stick, p] = -law[p] / v
    precision[stick, stick] = 1.0 / v
    cov[stick, stick] = v
    for p in range(k):  # cov of the others stays
        if p != stick:
            with_others = 0.0
            for q in range(k):
                if q != stick:
                    with_others += cov[p, q] * law[q]
            cov[p, stick] = cov[stick, p] = with_others
            cov[stick, stick] += law[p] * with_others


@kernel
def sweep_in_place(keys, rows, counts, omega, sticks, prior, noise, gammas, psi, law_of_rows):
    """Do all of the above for some sticks of one block, one after another.

    keys : (number of sticks,) uint64
    counts : successes, trials and chosen
    prior : centre, strength and scale
    noise, gammas : (number of sticks, k), (number of sticks,)
    law_of_rows : mean, precision and cov, in and out
    """
    successes, trials, _ = counts
    centre, strength, scale = prior
    mean, precision, cov = law_of_rows
    k = psi.shape[1]
    linear, law, weights = np.empty(k), np.zeros(grams.padded(k) + 1), np.empty((k, k))
    own, table, room = np.empty(psi.shape[0]), tabulate(psi, centre), hats.make_room(psi.shape[0])
    for number in range(sticks.shape[0]):
        stick = sticks[number]
        for i in range(psi.shape[0]):
            own[i] = omega[i, number]
        v = 1.0 / precision[stick, stick]
        linear[:] = 0.0
        weights[:] = 0.0
        add_regression_in_place(successes, trials, own, table, stick, v, weights, linear)
        draw_coefficients(centre, strength, scale, stick, v, weights, linear, noise[number], law)
        squares = redraw_in_place(
            keys[number], rows, counts, own, centre, stick, law, room, table, psi
        )
        put_back_in_place(
            centre, strength, scale, stick, law, squares, gammas[number], mean, precision, cov
        )
