"""Rows of counts behind a softmax: psi_i ~ N(mean_i, precision^-1), x_i ~ Multinomial(N_i, softmax(psi_i)).

Seen from category t, with the others of its row held,

    log p(psi_t | ...) = x_t psi_t - N log(R + e^psi_t) - precision_tt (psi_t - m)^2 / 2,

R the sum of e^psi of the others and m the mean of psi_t given them under the normal law. About log R this is
the law of one binary split, which `log_concave` draws exactly. The level of a row, psi_i + c, is not seen by
its counts at all: it is drawn first, given the normal law alone.
"""

import math

import numpy as np

from polystick.kernels import kernel, linalg, log_concave, streams

SMALL_REST = (
    1e-6  # of the greatest sum since all were added: below, a difference would not tell the rest
)
FAR = 300.0  # from the reference level, beyond which exponentials are formed about a new one


@kernel
def exponentials(psi, e):
    """Write exp(psi - largest) into e; return the largest and the sum."""
    reference = psi[0]
    for j in range(psi.shape[0]):
        reference = max(reference, psi[j])
    total = 0.0
    for j in range(psi.shape[0]):
        e[j] = math.exp(psi[j] - reference)
        total += e[j]
    return reference, total


@kernel
def log_rest(psi, t):
    """Return the logarithm of the sum of e^psi of all but one."""
    reference = -math.inf
    for j in range(psi.shape[0]):
        if j != t:
            reference = max(reference, psi[j])
    rest = 0.0
    for j in range(psi.shape[0]):
        if j != t:
            rest += math.exp(psi[j] - reference)
    return reference + math.log(rest)


@kernel
def redraw_rows_in_place(key, rows, counts, totals, mean, precision, psi):
    """Draw the level of each row, then its categories one after another; return the log likelihood.

    key : uint64
    rows : (n,) uint64 ids
    counts, totals : (n, k), (n,)
    mean, precision : (1, k) of all rows or (n, k) of each, (k, k)
    psi : (n, k) in and out

    The log likelihood is without multinomial coefficients.
    """
    k, stride = psi.shape[1], 1 if mean.shape[0] > 1 else 0
    pull, e, weight = np.empty(k), np.empty(k), np.zeros(k)
    for j in range(k):
        linalg.add_multiple_in_place(weight, 1.0, precision[j])
    whole = 0.0
    for j in range(k):
        whole += weight[j]
    value = 0.0
    for i in range(psi.shape[0]):
        s0, s1 = streams.open_stream(key, rows[i])
        row, centre, n = psi[i], mean[stride * i], float(totals[i])
        pull[:] = 0.0
        for j in range(k):
            linalg.add_multiple_in_place(pull, row[j] - centre[j], precision[j])
        level, s0, s1 = streams.normal(s0, s1)
        level /= math.sqrt(whole)
        for j in range(k):
            level -= pull[j] / whole
        for j in range(k):
            row[j] += level
        linalg.add_multiple_in_place(pull, level, weight)
        reference, total = exponentials(row, e)
        greatest = total
        for t in range(k):
            own, rest = precision[t, t], total - e[t]
            given, is_small = row[t] - pull[t] / own, rest < SMALL_REST * greatest
            if n == 0.0:
                x, s0, s1 = streams.normal(s0, s1)
                x = given + x / math.sqrt(own)
            else:
                about = log_rest(row, t) if is_small else reference + math.log(rest)
                y = float(counts[i, t])
                x, s0, s1 = log_concave.draw(y, n, given - about, own, row[t] - about, s0, s1)
                x += about
            linalg.add_multiple_in_place(pull, x - row[t], precision[t])
            row[t] = x
            if is_small or x - reference > FAR:
                reference, total = exponentials(row, e)
                greatest = total
            else:
                e[t] = math.exp(x - reference)
                total = rest + e[t]
                greatest = max(greatest, total)
        reference, total = exponentials(row, e)
        value -= n * (reference + math.log(total))
        for j in range(k):
            value += counts[i, j] * row[j]
    return value
