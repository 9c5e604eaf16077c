"""Elliptical slice steps (Murray, Adams and MacKay 2010) about a Gaussian that is near the target.

The target is a Gaussian times binomial likelihoods of some splits, its cells. Another Gaussian, N(m, S), has
fixed potentials exp(kappa psi - omega psi^2 / 2) in their place, the sites. With nu ~ N(0, S) the ellipse

    psi(t) = m + (psi - m) cos t + nu sin t

goes through psi at t = 0, and an angle drawn by shrinking a slice of what the sites lack leaves the target
as it is. Nothing is tuned and nothing rejected. What is far from m in a wide tail moves little at a time.
"""

import math

from polystick.kernels import kernel, streams

MOST_STEPS = 60  # of a slice that shrinks: halved that often it is a point, and psi stays


@kernel
def draw_angles(key, rows, starts, linear, trials, omega, psi, mean, deviation, angles):
    """Write an angle t for each row; pi / 2, which is a fresh draw, where a row has no cells.

    key : uint64
    rows : (n,) uint64 ids of the rows, each with a stream of its own
    starts : (n + 1,) int64: the cells of row i are starts[i] .. starts[i + 1]
    linear, trials, omega : (m,) of each cell: successes - kappa, trials as floats, omega of its site
    psi, mean, deviation : (m,) where the chain is, m and nu, at the cells
    angles : (n,) out; 0 if the slice did not find a point within MOST_STEPS steps
    """
    for i in range(rows.shape[0]):
        a, b = starts[i], starts[i + 1]
        if a == b:
            angles[i] = 0.5 * math.pi
            continue
        s0, s1 = streams.open_stream(key, rows[i])
        e, s0, s1 = streams.exponential(s0, s1)
        u, s0, s1 = streams.uniform(s0, s1)
        cells = linear[a:b], trials[a:b], omega[a:b], psi[a:b], mean[a:b]
        level = remainder(*cells, deviation[a:b], 0.0) - e
        angle = 2.0 * math.pi * u
        low, high = angle - 2.0 * math.pi, angle
        angles[i] = 0.0
        for _ in range(MOST_STEPS):
            if remainder(*cells, deviation[a:b], angle) > level:
                angles[i] = angle
                break
            if angle < 0.0:
                low = angle
            else:
                high = angle
            u, s0, s1 = streams.uniform(s0, s1)
            angle = low + (high - low) * u


@kernel
def remainder(linear, trials, omega, psi, mean, deviation, angle):
    """Return the log likelihood less the sites, up to a constant, at an angle of one ellipse."""
    c, s = math.cos(angle), math.sin(angle)
    total = 0.0
    for j in range(psi.shape[0]):
        x = mean[j] + (psi[j] - mean[j]) * c + deviation[j] * s
        log_one_plus = max(x, 0.0) + math.log1p(math.exp(-abs(x)))
        total += (linear[j] + 0.5 * omega[j] * x) * x - trials[j] * log_one_plus
    return total
