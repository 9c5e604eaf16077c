"""Scalar Gaussian processes that are Markov in a state of m coordinates, many at once.

    x_s = transition_s x_{s-1} + root_s w_s,    w_s ~ N(0, I),    x_{-1} = 0,

with the potential exp(kappa f - omega f^2 / 2) on the first coordinate f of each state. The steps are
of any length, so each has matrices of its own. Messages go back and states forward. A message is

    exp(linear' x - |T x - z|^2 / 2),    T upper triangular,

and the potential and the innovation of a step are taken in by reflections, that is by a QR factorisation
(Bierman's square-root information filter). Nothing is subtracted from the information: it stays
positive semidefinite and loses no digits, be omega 0 or huge, a step tiny or long. `linear` is for a
kappa where omega is 0, which no T can hold.

transition, root : (M, m, m) roots are lower triangular
kappa, omega     : (r, M) the potentials of r rows; omega >= 0
system           : (M, m, 2 m + 1) scratch: [U | V | y] of each step, with which the innovation given the
                   past is w = U^-1 (y - V x_{s-1} + noise)
"""

import math

import numpy as np

from polystick.kernels import kernel

# ---- back


@kernel(inline="always")
def _reflect_in_place(block, first, column):
    """Turn what is below row `first` of a column to zero by a reflection of the rows of block."""
    n_rows, n_columns = block.shape
    size = 0.0
    for i in range(first, n_rows):
        size += block[i, column] * block[i, column]
    if size == 0.0:
        return
    size = math.sqrt(size)
    pivot = block[first, column]
    sign = 1.0 if pivot >= 0.0 else -1.0
    for c in range(column + 1, n_columns):
        total = 0.0
        for i in range(first, n_rows):
            total += block[i, column] * block[i, c]
        total /= size
        weight = (total + sign * block[first, c]) / (size + abs(pivot))
        block[first, c] = total
        for i in range(first + 1, n_rows):
            block[i, c] -= weight * block[i, column]
    block[first, column] = size
    for i in range(first + 1, n_rows):
        block[i, column] = 0.0


@kernel(inline="always")
def _see_in_place(message, linear, kappa, omega):
    """Take the potential of a step into the message, whose first row is free, and make T triangular."""
    m = linear.shape[0]
    message[0] = 0.0
    if omega > 0.0:
        message[0, 0] = math.sqrt(omega)
        message[0, m] = kappa / message[0, 0]
    else:
        linear[0] += kappa
    for column in range(m):
        _reflect_in_place(message, column, column)


@kernel(inline="always")
def _load(message, transition, root, below):
    """Write [T root | T transition | z] into below."""
    m = root.shape[0]
    for i in range(m):
        for j in range(2 * m):
            below[i, j] = 0.0
        below[i, 2 * m] = message[i, m]
        for p in range(i, m):
            t = message[i, p]
            for j in range(p + 1):
                below[i, j] += t * root[p, j]
            for j in range(m):
                below[i, m + j] += t * transition[p, j]


@kernel(inline="always")
def _absorb_in_place(below, system):
    """Reflect [I | 0 | 0] over [T root | T transition | z] to [U | V | y] over [0 | T | z]; return |U|.

    A row of the identity has nothing but its pivot, 1, when its turn comes.
    """
    m = below.shape[0]
    product = 1.0
    for k in range(m):
        size = 1.0
        for i in range(m):
            size += below[i, k] * below[i, k]
        size = math.sqrt(size)
        for c in range(k):
            system[k, c] = 0.0
        system[k, k] = size
        for c in range(k + 1, 2 * m + 1):
            total = 0.0
            for i in range(m):
                total += below[i, k] * below[i, c]
            total /= size
            system[k, c] = total
            weight = total / (size + 1.0)
            for i in range(m):
                below[i, c] -= weight * below[i, k]
        product *= size
    return product


@kernel(inline="always")
def _pass_linear_in_place(linear, transition, root, system, work):
    """Pass the linear term back through a step and add its part to y."""
    m = linear.shape[0]
    part, passed = work[0], work[1]
    for i in range(m):
        part[i] = 0.0
        for p in range(i, m):
            part[i] += root[p, i] * linear[p]
        for p in range(i):
            part[i] -= system[p, i] * part[p]
        part[i] /= system[i, i]
        system[i, 2 * m] += part[i]
    for j in range(m):
        passed[j] = 0.0
        for p in range(m):
            passed[j] += transition[p, j] * linear[p] - system[p, m + j] * part[p]
    for j in range(m):
        linear[j] = passed[j]


@kernel
def _pass_back(transition, root, kappa, omega, system):
    """Write the system of each step of one row; return log|I + sqrt(omega) cov sqrt(omega)|."""
    m = root.shape[1]
    message, below = np.zeros((m + 1, m + 1)), np.empty((m, 2 * m + 1))
    linear, work = np.zeros(m), np.empty((2, m))
    log_det = 0.0
    for s in range(kappa.shape[0] - 1, -1, -1):
        _see_in_place(message, linear, kappa[s], omega[s])
        _load(message, transition[s], root[s], below)
        log_det += 2.0 * math.log(_absorb_in_place(below, system[s]))
        for i in range(m):
            for j in range(m + 1):
                message[i + 1, j] = below[i, m + j]
        _pass_linear_in_place(linear, transition[s], root[s], system[s], work)
    return log_det


# ---- forward


@kernel(inline="always")
def _solve_in_place(system, x):
    """Replace x by U^-1 x."""
    for i in range(x.shape[0] - 1, -1, -1):
        for p in range(i + 1, x.shape[0]):
            x[i] -= system[i, p] * x[p]
        x[i] /= system[i, i]


@kernel
def _step(transition, root, past, white, state):
    """Write transition past + root white into state."""
    m = past.shape[0]
    for i in range(m):
        state[i] = 0.0
        for j in range(m):
            state[i] += transition[i, j] * past[j]
        for j in range(i + 1):
            state[i] += root[i, j] * white[j]


@kernel
def draw_rows(transition, root, kappa, omega, noise, white):
    """Write the innovations given the potentials, an affine function of the noise; zeros give the mean.

    noise : (r, M, m) standard normals
    white : (r, M, m) out
    """
    n_steps, m = root.shape[:2]
    system = np.empty((n_steps, m, 2 * m + 1))
    past, state = np.empty(m), np.empty(m)
    for row in range(kappa.shape[0]):
        _pass_back(transition, root, kappa[row], omega[row], system)
        past[:] = 0.0
        for s in range(n_steps):
            w = white[row, s]
            for i in range(m):
                w[i] = system[s, i, 2 * m] + noise[row, s, i]
                for j in range(m):
                    w[i] -= system[s, i, m + j] * past[j]
            _solve_in_place(system[s], w)
            _step(transition[s], root[s], past, w, state)
            for i in range(m):
                past[i] = state[i]


@kernel
def pass_back_rows(transition, root, kappa, omega, systems, log_det):
    """Write the systems of all steps, and log|I + sqrt(omega) cov sqrt(omega)|.

    systems : (r, M, m, 2 m + 1) out
    log_det : (r,) out
    """
    for row in range(kappa.shape[0]):
        log_det[row] = _pass_back(transition, root, kappa[row], omega[row], systems[row])


@kernel
def follow_rows(transition, root, systems, noise, white):
    """Write the innovations that systems make of noise, as `draw_rows` does.

    noise, white : (r, M, m)
    """
    m = root.shape[1]
    past, state = np.empty(m), np.empty(m)
    for row in range(noise.shape[0]):
        past[:] = 0.0
        for s in range(noise.shape[1]):
            system, w = systems[row, s], white[row, s]
            for i in range(m):
                w[i] = system[i, 2 * m] + noise[row, s, i]
                for j in range(m):
                    w[i] -= system[i, m + j] * past[j]
            _solve_in_place(system, w)
            _step(transition[s], root[s], past, w, state)
            for i in range(m):
                past[i] = state[i]


@kernel
def retrace_rows(transition, root, systems, white, noise):
    """Write the noise of which systems make these innovations.

    white, noise : (r, M, m)
    """
    m = root.shape[1]
    past, state = np.empty(m), np.empty(m)
    for row in range(white.shape[0]):
        past[:] = 0.0
        for s in range(white.shape[1]):
            system, w = systems[row, s], white[row, s]
            for i in range(m):
                noise[row, s, i] = -system[i, 2 * m]
                for j in range(m):
                    noise[row, s, i] += system[i, m + j] * past[j]
                for j in range(i, m):
                    noise[row, s, i] += system[i, j] * w[j]
            _step(transition[s], root[s], past, w, state)
            for i in range(m):
                past[i] = state[i]


@kernel
def run_rows(transition, root, white, states):
    """Write the states that the innovations make.

    white, states : (r, M, m)
    """
    m = root.shape[1]
    past = np.empty(m)
    for row in range(white.shape[0]):
        past[:] = 0.0
        for s in range(white.shape[1]):
            _step(transition[s], root[s], past, white[row, s], states[row, s])
            for i in range(m):
                past[i] = states[row, s, i]


# ---- moments


@kernel(inline="always")
def _reduce(transition, root, system, mover, spread):
    """Write the law of a state given the past, x_s = mover x_{s-1} + spread (y + noise)."""
    m = root.shape[0]
    for i in range(m):
        for j in range(m):
            spread[i, j] = root[i, j]
            for p in range(j):
                spread[i, j] -= spread[i, p] * system[p, j]
            spread[i, j] /= system[j, j]
    for i in range(m):
        for j in range(m):
            mover[i, j] = transition[i, j]
            for p in range(m):
                mover[i, j] -= spread[i, p] * system[p, m + j]


@kernel(inline="always")
def _carry(mover, spread, cov, product, out):
    """Write mover cov mover' + spread spread' into out; product is scratch."""
    m = cov.shape[0]
    for i in range(m):
        for j in range(m):
            product[i, j] = 0.0
            for p in range(m):
                product[i, j] += mover[i, p] * cov[p, j]
    for i in range(m):
        for j in range(i + 1):
            total = 0.0
            for p in range(m):
                total += product[i, p] * mover[j, p] + spread[i, p] * spread[j, p]
            out[i, j] = total
            out[j, i] = total


@kernel(inline="always")
def _smooth(transition, root, system, mean, cov):
    """Write the moments of the states before each step: mean (M + 1, m), cov (M + 1, m, m)."""
    n_steps, m = root.shape[:2]
    mover, spread, product = np.empty((m, m)), np.empty((m, m)), np.empty((m, m))
    mean[0] = 0.0
    cov[0] = 0.0
    for s in range(n_steps):
        _reduce(transition[s], root[s], system[s], mover, spread)
        _carry(mover, spread, cov[s], product, cov[s + 1])
        for i in range(m):
            total = 0.0
            for j in range(m):
                total += mover[i, j] * mean[s, j] + spread[i, j] * system[s, j, 2 * m]
            mean[s + 1, i] = total


@kernel
def moment_rows(transition, root, kappa, omega, step, past, innovation, mean, variance, log_det):
    """Write the moments of past' x_{s-1} + innovation' w_s given the potentials, for n such targets.

    step                 : (n,) s of each target; M for those that lie behind the last step
    past, innovation     : (n, m)
    mean, variance       : (r, n) out
    log_det              : (r,) out: log|I + sqrt(omega) cov sqrt(omega)|
    """
    n_steps, m = root.shape[:2]
    system = np.empty((n_steps, m, 2 * m + 1))
    means, covs = np.empty((n_steps + 1, m)), np.empty((n_steps + 1, m, m))
    part, weight = np.empty(m), np.empty(m)
    for row in range(kappa.shape[0]):
        log_det[row] = _pass_back(transition, root, kappa[row], omega[row], system)
        _smooth(transition, root, system, means, covs)
        for target in range(step.shape[0]):
            s = step[target]
            for i in range(m):
                weight[i] = past[target, i]
            first, second = 0.0, 0.0
            if s < n_steps:
                _weigh(system[s], innovation[target], part, weight)
                for i in range(m):
                    first += part[i] * system[s, i, 2 * m]
                    second += part[i] * part[i]
            for i in range(m):
                first += weight[i] * means[s, i]
                for j in range(m):
                    second += weight[i] * covs[s, i, j] * weight[j]
            mean[row, target] = first
            variance[row, target] = second


@kernel(inline="always")
def _weigh(system, innovation, part, weight):
    """Write U^-T innovation into part; subtract V' part from weight."""
    m = part.shape[0]
    for i in range(m):
        part[i] = innovation[i]
        for p in range(i):
            part[i] -= system[p, i] * part[p]
        part[i] /= system[i, i]
        for j in range(m):
            weight[j] -= system[i, m + j] * part[i]
