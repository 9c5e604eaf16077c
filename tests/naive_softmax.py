"""The slow, obvious twin of elliptical slice sampling behind a softmax."""

import numpy as np

from polystick.kernels import streams


def log_likelihood(counts, psi):
    """Return log p(counts | softmax over the first axis of psi), (K, M) each, without coefficients."""
    return np.sum(counts * psi) - np.sum(counts.sum(axis=0) * np.logaddexp.reduce(psi, axis=0))


def sweep(key, rows, counts, level, f, fresh, forgetful=False, narrow=False):
    """Draw each category from its stream; return the new f, the turns and the number of looks.

    forgetful : sabotage: the sum of the others is that of the start, whatever moved since
    narrow    : sabotage: the bracket is half the ellipse, always to the right
    """
    f, start, turns, n_looks = f.copy(), f.copy(), [], 0
    for k in range(len(f)):
        state = streams.open_stream(key, rows[k])

        def value(angle, k=k):
            psi = (start if forgetful else f).copy()
            psi[k] = np.cos(angle) * f[k] + np.sin(angle) * fresh[k]
            return log_likelihood(counts, level[:, None] + psi)

        fall, *state = streams.exponential(*map(np.uint64, state))
        share, *state = streams.uniform(*map(np.uint64, state))
        angle = (np.pi if narrow else 2 * np.pi) * share
        low, high = (0.0 if narrow else angle - 2 * np.pi), angle
        n_looks += 1
        while value(angle) < value(0.0) - fall:
            low, high = (angle, high) if angle < 0 else (low, angle)
            share, *state = streams.uniform(*map(np.uint64, state))
            angle = low + share * (high - low)
            n_looks += 1
        turns.append((np.cos(angle), np.sin(angle)))
        f[k] = np.cos(angle) * f[k] + np.sin(angle) * fresh[k]
    return f, np.array(turns), n_looks
