"""The slow, obvious twins of `polystick.kernels.softmax_rows` and `softmax_columns`."""

import numpy as np
from scipy.special import logsumexp

from polystick.kernels import log_concave, streams


def log_likelihood(counts, psi):
    """Return log p(counts | softmax(psi)), (n, K) each, without coefficients."""
    return np.sum(counts * psi) - np.sum(counts.sum(axis=1) * logsumexp(psi, axis=1))


def redraw_row(key, row, counts, mean, precision, psi):
    """Draw the level of one row, then each category given the others, by dense conditionals."""
    psi, state, n = psi.copy(), streams.open_stream(key, row), counts.sum()
    ones = np.ones(len(psi))
    whole = ones @ precision @ ones
    noise, *state = streams.normal(*map(np.uint64, state))
    psi += noise / np.sqrt(whole) - ones @ precision @ (psi - mean) / whole
    for t in range(len(psi)):
        others = np.arange(len(psi)) != t
        own = precision[t, t]
        given = mean[t] - precision[t, others] @ (psi - mean)[others] / own
        if n == 0:
            noise, *state = streams.normal(*map(np.uint64, state))
            psi[t] = given + noise / np.sqrt(own)
            continue
        rest = logsumexp(psi[others])
        gap, *state = log_concave.draw(
            float(counts[t]), float(n), given - rest, own, psi[t] - rest, *map(np.uint64, state)
        )
        psi[t] = rest + gap
    return psi


def half_cauchy(log_sd, scale, ends=(np.log(1e-3), np.log(1e3))):
    """Return the log density of log sd."""
    if not ends[0] < log_sd < ends[1]:
        return -np.inf
    return log_sd - np.log1p(np.exp(2 * log_sd) / scale**2)


def slice_step(height, width, state, most_out):
    """Draw a step from 0 (Neal 2003, figures 3 and 5); return it, the state and how often it looked."""
    looks = []

    def above(t):
        looks.append(t)
        return height(t) > floor

    fall, *state = streams.exponential(*map(np.uint64, state))
    floor = height(0.0) - fall
    u, *state = streams.uniform(*map(np.uint64, state))
    low, high = -u * width, -u * width + width
    u, *state = streams.uniform(*map(np.uint64, state))
    n_left = int(np.floor(most_out * u))
    n_right = most_out - 1 - n_left
    while n_left > 0 and above(low):
        low, n_left = low - width, n_left - 1
    while n_right > 0 and above(high):
        high, n_right = high + width, n_right - 1
    while True:
        u, *state = streams.uniform(*map(np.uint64, state))
        t = low + u * (high - low)
        if above(t):
            return t, state, len(looks)
        low, high = (t, high) if t < 0 else (low, t)


def move_category(key, k, counts, factors, scale, prior, weights, noise, psi, widths, most_out):
    """Move noise, then weights, of category k with its psi of all rows; return all three anew.

    widths(told, along, bend) -> first width of the slice of the scale and of that of the direction
    """
    weights, noise, psi = weights.copy(), noise.copy(), psi.copy()
    centre, precision = prior[0][k], prior[1][k]
    state, totals = streams.open_stream(key, np.uint64(k)), counts.sum(axis=1)
    told = counts[:, k] * (totals - counts[:, k]) / np.maximum(totals, 1)

    def with_column(column):
        moved = psi.copy()
        moved[:, k] = column
        return log_likelihood(counts, moved)

    fitted, sd = factors @ weights[k], np.sqrt(noise[k])
    e = (psi[:, k] - fitted) / sd
    height = lambda t: (
        half_cauchy(np.log(sd) + t, scale) + with_column(fitted + sd * np.exp(t) * e)
        if np.isfinite(half_cauchy(np.log(sd) + t, scale))
        else -np.inf
    )
    step, state, first_looks = slice_step(height, widths(told, e, None), state, most_out)
    sd = sd * np.exp(step)
    noise[k] = sd**2
    direction = np.empty(len(centre))
    for p in range(len(centre)):
        direction[p], *state = streams.normal(*map(np.uint64, state))
    direction[1:] /= np.sqrt(precision[1:])
    log_prior = lambda w: -0.5 * np.sum(precision * (w - centre) ** 2)
    along, start = factors @ direction, fitted + sd * e
    height = lambda t: (
        log_prior(weights[k] + t * direction)
        - log_prior(weights[k])
        + with_column(start + t * along)
    )
    bend = np.sum(precision * direction**2)
    step, state, looks = slice_step(height, widths(told, along, bend), state, most_out)
    weights[k] += step * direction
    psi[:, k] = start + step * along
    return weights, noise, psi, first_looks + looks
