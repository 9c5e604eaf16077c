"""Logistic-normal rows: pi = softmax(psi), psi ~ N(mean, precision^-1) with one entry for each topic.

Gibbs goes site by site (Chen et al. 2013): given the other sites, psi[t] - log sum of exp(others) is the
logit of one split of the row's tokens. Omega of a site belongs to the others as they stand, so that it is
drawn right before its site; one drawn earlier does not leave the posterior unchanged.

The variational step maximises the bound of Blei and Lafferty (2007) for q(psi) = N(location, diag(variance))
with its free number zeta already at its best, sum of exp(location + variance / 2).

key          : uint64
rows         : (n,) uint64 ids
precision    : (T, T) symmetric positive definite
mean         : (T,)
"""

import math

import numpy as np

from polystick.kernels import kernel, linalg
from polystick.kernels.polyagamma import draw
from polystick.kernels.streams import normal, open_stream

SMALLEST, LARGEST = 1e-250, 1e250  # a sum between them has lost nothing to under- or overflow
LARGEST_EXPONENT = 700.0  # beyond LARGEST, but no overflow, which Python raises
MOST_HALVINGS = 30
LARGEST_STEP = 50.0  # of log variance
LEAST_GAIN = 1e-4  # of what the slope promises (Armijo)


@kernel(inline="always")
def log_sum_of_others(psi, row, site):
    """Return log sum of exp(psi[row, j]) over j != site."""
    top = -math.inf
    for j in range(psi.shape[1]):
        if j != site and psi[row, j] > top:
            top = psi[row, j]
    total = 0.0
    for j in range(psi.shape[1]):
        if j != site:
            total += math.exp(psi[row, j] - top)
    return top + math.log(total)


@kernel(inline="always")
def _look_right(precision, means, psi, row, pull, after):
    """Prepare the scan: what each site gets from the sites to its right, before they move.

    pull  : (T,) out: sum over j > t of precision[t, j] (psi[j] - means[j])
    after : (T,) out: sum over j > t of exp(psi[j] - top), with top the largest entry, returned
    """
    n_topics = psi.shape[1]
    top = psi[row, 0]
    for t in range(n_topics):
        pull[t] = 0.0
        top = max(top, psi[row, t])
    total = 0.0
    for t in range(n_topics - 1, -1, -1):
        after[t] = total
        total += math.exp(psi[row, t] - top)
    for t in range(1, n_topics):
        linalg.add_multiple_in_place(pull[:t], psi[row, t] - means[row, t], precision[t, :t])
    return top


@kernel
def draw_logistic_rows_in_place(key, rows, topic_counts, precision, means, psi):
    """Draw each psi[i, t] given the others, t = 0 ... T - 1, with its omega right before it.

    The sum of the others is that of the sites already moved plus that of the sites still to move:
    nothing is ever subtracted, so nothing cancels.

    topic_counts : (n, T) int64
    means        : (n, T) of each row's law
    psi          : (n, T)
    """
    n, n_topics = psi.shape
    pull, after = np.empty(n_topics), np.empty(n_topics)
    for row in range(n):
        s0, s1 = open_stream(key, rows[row])
        n_tokens = 0
        for t in range(n_topics):
            n_tokens += topic_counts[row, t]
        top = _look_right(precision, means, psi, row, pull, after)
        before = omega = zeta = 0.0
        for t in range(n_topics):
            if n_tokens > 0:
                others = before + after[t]
                if SMALLEST < others < LARGEST:
                    zeta = top + math.log(others)
                else:
                    zeta = log_sum_of_others(psi, row, t)
                omega, s0, s1 = draw(n_tokens, psi[row, t] - zeta, s0, s1)
            noise, s0, s1 = normal(s0, s1)
            j = precision[t, t] + omega
            kappa = topic_counts[row, t] - 0.5 * n_tokens
            h = kappa + omega * (zeta - means[row, t]) - pull[t]  # of psi - mean
            shift = (h + math.sqrt(j) * noise) / j
            psi[row, t] = means[row, t] + shift
            before += math.exp(min(psi[row, t] - top, LARGEST_EXPONENT))
            linalg.add_multiple_in_place(pull[t + 1 :], shift, precision[t, t + 1 :])


# ---- variational step


@kernel
def _softmax(location, variance, p):
    """Write the shares of exp(location + variance / 2) into p; return the log of their sum."""
    top, total = -math.inf, 0.0
    for t in range(p.shape[0]):
        p[t] = location[t] + 0.5 * variance[t]
        top = max(top, p[t])
    for t in range(p.shape[0]):
        p[t] = math.exp(p[t] - top)
        total += p[t]
    for t in range(p.shape[0]):
        p[t] /= total
    return top + math.log(total)


@kernel
def _multiply(matrix, x, product):
    """Write matrix x into product; the matrix is symmetric."""
    product[:] = 0.0
    for i in range(x.shape[0]):
        linalg.add_multiple_in_place(product, x[i], matrix[i])


@kernel
def _dot(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@kernel(inline="always")
def _find_step(counts, n_tokens, precision, p, pull, step, hessian):
    """Write Newton's step; return the gain that the gradient promises, NaN where there is no step."""
    for t in range(p.shape[0]):
        step[t] = counts[t] - n_tokens * p[t] - pull[t]  # the gradient
        for j in range(t, p.shape[0]):
            hessian[t, j] = precision[t, j] - n_tokens * p[t] * p[j]
        hessian[t, t] += n_tokens * p[t]
    linalg.cholesky_in_place(hessian)
    linalg.solve_lower_in_place(hessian, step)
    promise = _dot(step, step)
    linalg.solve_upper_in_place(hessian, step)
    return promise


@kernel(inline="always")
def _move_location(counts, n_tokens, precision, mean, location, variance, hessian, work):
    """Make one Newton step of the location, halved until the bound gains; return the slope's promise.

    hessian : (T, T) work space
    work    : (5, T) work space
    """
    p, pull, step, bend, trial = work[0], work[1], work[2], work[3], work[4]
    log_sum = _softmax(location, variance, p)
    for t in range(p.shape[0]):
        trial[t] = location[t] - mean[t]
    _multiply(precision, trial, pull)
    promise = _find_step(counts, n_tokens, precision, p, pull, step, hessian)
    if math.isnan(promise):
        for t in range(p.shape[0]):
            location[t] = promise
        return promise
    _multiply(precision, step, bend)
    linear, curvature = _dot(counts, step) - _dot(pull, step), _dot(step, bend)
    rate = 1.0
    for _ in range(MOST_HALVINGS):
        for t in range(p.shape[0]):
            trial[t] = location[t] + rate * step[t]
        growth = _softmax(trial, variance, p) - log_sum
        gain = rate * linear - n_tokens * growth - 0.5 * rate * rate * curvature
        if gain >= LEAST_GAIN * rate * promise:
            for t in range(p.shape[0]):
                location[t] = trial[t]
            return promise
        rate *= 0.5
    return 0.0


@kernel
def _scale_terms(n_tokens, precision, location, variance, p):
    """Return the terms of the bound that change with the variance; write the shares into p."""
    total = -n_tokens * _softmax(location, variance, p)
    for t in range(p.shape[0]):
        total += 0.5 * (math.log(variance[t]) - precision[t, t] * variance[t])
    return total


@kernel(inline="always")
def _move_variance(n_tokens, precision, location, variance, work):
    """Make one Newton step of log variance, halved until the bound gains; return the slope's promise.

    The bound is concave in log variance, and its Hessian is diagonal but for one outer product. It falls
    in each variance above 1 / precision[t, t], however large the others are, so that is where to start.
    """
    p, gradient, scale, weight, trial = work[0], work[1], work[2], work[3], work[4]
    for t in range(p.shape[0]):
        variance[t] = min(variance[t], 1.0 / precision[t, t])
    before = _scale_terms(n_tokens, precision, location, variance, p)
    numerator = denominator = 0.0
    for t in range(p.shape[0]):
        half = 0.5 * variance[t]
        weight[t] = n_tokens * p[t] * half
        gradient[t] = 0.5 - weight[t] - precision[t, t] * half
        scale[t] = weight[t] * (half + 1.0) + precision[t, t] * half
        numerator += weight[t] * gradient[t] / scale[t]
        denominator += weight[t] * weight[t] / scale[t]
    outer = 0.0 if n_tokens == 0 else numerator / (n_tokens - denominator)
    promise = 0.0
    for t in range(p.shape[0]):
        weight[t] = (gradient[t] + weight[t] * outer) / scale[t]  # the step
        promise += gradient[t] * weight[t]
    rate = 1.0
    for _ in range(MOST_HALVINGS):
        for t in range(p.shape[0]):
            trial[t] = variance[t] * math.exp(min(rate * weight[t], LARGEST_STEP))
        gain = _scale_terms(n_tokens, precision, location, trial, p) - before
        if gain >= LEAST_GAIN * rate * promise:
            for t in range(p.shape[0]):
                variance[t] = trial[t]
            return promise
        rate *= 0.5
    return 0.0


@kernel
def fit_logistic_rows_in_place(counts, precision, mean, location, variance, n_steps, tolerance):
    """Climb the bound of each row given its expected topic counts, to the top or for n_steps rounds.

    A round is a Newton step of the location and one of log variance; neither ever lowers the bound.

    counts             : (n, T) float64
    location, variance : (n, T) the moments of q(psi[i])
    tolerance          : stop when a round promises a smaller gain, in nats
    """
    n, n_topics = location.shape
    hessian, work = np.empty((n_topics, n_topics)), np.empty((5, n_topics))
    for row in range(n):
        n_tokens = 0.0
        for t in range(n_topics):
            n_tokens += counts[row, t]
        at, spread = location[row], variance[row]
        for _ in range(n_steps):
            promise = _move_location(
                counts[row], n_tokens, precision, mean, at, spread, hessian, work
            )
            promise += _move_variance(n_tokens, precision, at, spread, work)
            if not promise > tolerance:
                break


@kernel
def bound_logistic_rows(totals, precision, mean, location, variance, bound):
    """Write each row's bound but for its words, whose part is sum of log sum_t exp(location) topic.

    What is left is E log p(psi) + entropy - totals log sum of exp(location + variance / 2), less the
    log determinant's half, which all rows share.

    totals : (n,) float64 tokens
    bound  : (n,) out
    """
    n, n_topics = location.shape
    p, shift, pull = np.empty(n_topics), np.empty(n_topics), np.empty(n_topics)
    for row in range(n):
        for t in range(n_topics):
            shift[t] = location[row, t] - mean[t]
        _multiply(precision, shift, pull)
        terms = _scale_terms(totals[row], precision, location[row], variance[row], p)
        bound[row] = terms - 0.5 * _dot(shift, pull) + 0.5 * n_topics
