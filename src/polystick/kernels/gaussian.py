"""Rows psi_i of a shared Gaussian under a diagonal potential.

The potential of row i is exp(kappa[i]' psi - psi' diag(omega[i]) psi / 2). Nothing divides by
omega, so an empty stick, kappa = omega = 0, is an ordinary value. Kernels take LANES rows at once, one
in each lane, and pad the last group with the last row; where there are no vectors LANES is 1.
A row's bits depend on that row alone. A matrix that is not positive definite leaves NaN in its row.

precision, linear : (k, k), (k,) the prior; precision = cov^-1, linear = precision mean
mean, cov, root   : (k,), (k, k), (k, k) the prior again; cov = root' root, root upper triangular
kappa, omega      : (n, k) the potential
log_det           : (n,) out: log|J|
"""

import math

import numpy as np

from polystick.kernels import kernel, lanes, linalg, simd
from polystick.kernels.simd import LANES

# ---- information form: J = precision + diag(omega), h = linear + kappa


@kernel
def _factor_group(precision, linear, kappa, omega, start, factor, stride, log_det):
    """Factor the rows start .. start + LANES - 1, with L^-1 h in row k of factor."""
    n, k = kappa.shape
    for i in range(k):
        for j in range(i + 1):
            simd.store(factor, i * stride + j, simd.splat(precision[i, j]))
    for lane in range(LANES):
        row = min(start + lane, n - 1)
        for i in range(k):
            factor[(i * stride + i) * LANES + lane] += omega[row, i]
            factor[(k * stride + i) * LANES + lane] = linear[i] + kappa[row, i]
    lanes.factor_in_place(factor, stride, stride)
    for lane in range(min(LANES, n - start)):
        log_det[start + lane] = lanes.log_det(factor, lane, k, stride)


@kernel
def draw_rows(precision, linear, kappa, omega, noise, psi, log_det):
    """Write into psi[i] draws J^-1 h + L^-T noise[i]; they share one factorisation J = L L'.

    noise : (n, s, k or more) standard normals, of which the first k are read; zeros give the mean
    psi   : (n, s, k) out
    """
    n, n_draws, k = psi.shape
    stride = lanes.padded(k)
    factor, x = np.zeros(stride * stride * LANES), np.empty(k * LANES)
    for start in range(0, n, LANES):
        _factor_group(precision, linear, kappa, omega, start, factor, stride, log_det)
        for draw in range(n_draws):
            for lane in range(LANES):
                row = min(start + lane, n - 1)
                for i in range(k):
                    solved = factor[(k * stride + i) * LANES + lane]
                    x[i * LANES + lane] = solved + noise[row, draw, i]
            lanes.solve_upper_in_place(factor, x, k, stride)
            for lane in range(min(LANES, n - start)):
                lanes.get(x, lane, psi[start + lane, draw])


@kernel(inline="always")
def _collect_group(cov, stride, n_lanes, variance, cov_sum):
    """Add the lanes of cov to cov_sum, in the order of the rows, and write their diagonals."""
    for i in range(cov_sum.shape[0]):
        for j in range(i + 1):
            first = (i * stride + j) * LANES
            total = cov_sum[i, j]
            for lane in range(n_lanes):
                total += cov[first + lane]
            cov_sum[i, j] = total
        for lane in range(n_lanes):
            variance[lane, i] = cov[(i * stride + i) * LANES + lane]


@kernel
def moment_rows(precision, linear, kappa, omega, mean, variance, cov_sum, log_det):
    """Write the moments of each row; add the covariances J^-1 to cov_sum in the order of the rows.

    mean, variance : (n, k) out: J^-1 h and the diagonal of J^-1
    cov_sum        : (k, k) symmetric, added to
    """
    n, k = kappa.shape
    stride = lanes.padded(k)
    size = stride * stride * LANES
    factor, inverse, cov = np.zeros(size), np.empty(size), np.empty(size)
    for start in range(0, n, LANES):
        _factor_group(precision, linear, kappa, omega, start, factor, stride, log_det)
        x = factor[k * stride * LANES :]
        lanes.solve_upper_in_place(factor, x, k, stride)
        n_lanes = min(LANES, n - start)
        for lane in range(n_lanes):
            lanes.get(x, lane, mean[start + lane])
        lanes.invert_factor(factor, inverse, k, stride)
        lanes.gram_of_inverse(inverse, cov, k, stride)
        _collect_group(cov, stride, n_lanes, variance[start : start + n_lanes], cov_sum)
    linalg.mirror_in_place(cov_sum)


# ---- conditioning form: psi = f + C v, v = kappa + S B^-1 (e2 - S (f + C kappa)), f ~ N(mean, C)


@kernel(inline="always")
def _list_active(omega, active, s):
    """List the sticks with omega != 0 and the square roots of their omega; return their number."""
    count = 0
    for i in range(omega.shape[0]):
        if omega[i] != 0.0:
            active[count] = i
            s[count] = math.sqrt(omega[i])
            count += 1
    return count


@kernel(inline="always")
def _residual(cov, kappa, noise, f, active, s, i):
    """Return e2 - S (f + C kappa) at the active stick number i."""
    stick = active[i]
    g = f[stick]
    for j in active:
        g += cov[stick, j] * kappa[j]
    return noise[f.shape[0] + stick] - s[i] * g


@kernel(inline="always")
def _correct_in_place(psi, cov, kappa, active, s, x):
    """Add C v to the prior draw in psi, where v = kappa + S x on the active sticks."""
    for i in range(active.shape[0]):
        weight = kappa[active[i]] + s[i] * x[i]
        linalg.add_multiple_in_place(psi, weight, cov[active[i]])


@kernel(inline="always")
def _draw_prior_group(mean, root, noise, start, psi, x, y):
    """Write draws of N(mean, C) into the rows start .. start + LANES - 1 of psi."""
    n, k = psi.shape
    for i in range(k):
        simd.store(y, i, simd.splat(mean[i]))
        for lane in range(LANES):
            x[i * LANES + lane] = noise[min(start + lane, n - 1), i]
    lanes.add_transposed_product_in_place(y, root, x)
    for lane in range(min(LANES, n - start)):
        lanes.get(y, lane, psi[start + lane])


@kernel(inline="always")
def _put_system(cov, kappa, noise, f, active, s, size, b, stride, lane):
    """Set one lane of b to B and its row `size` to the residual; past the active sticks S = 0."""
    count = active.shape[0]
    for i in range(count):
        for j in range(i):
            entry = s[i] * cov[active[i], active[j]] * s[j]
            b[(i * stride + j) * LANES + lane] = entry
        b[(i * stride + i) * LANES + lane] = 1.0 + s[i] * cov[active[i], active[i]] * s[i]
        residual = _residual(cov, kappa, noise, f, active, s, i)
        b[(size * stride + i) * LANES + lane] = residual
    for i in range(count, size):
        for j in range(i):
            b[(i * stride + j) * LANES + lane] = 0.0
        b[(i * stride + i) * LANES + lane] = 1.0
        b[(size * stride + i) * LANES + lane] = 0.0


@kernel
def condition_rows(mean, cov, root, kappa, omega, noise, psi):
    """Write into psi[i] a prior draw corrected on the active sticks, those with omega[i] != 0.

    Costs k^2 / 2 + a^3 / 6 + a k products for a active sticks and inverts nothing. C kappa is
    rounded before it is corrected, an error of 1e-16 |C kappa|. Inactive sticks have kappa = 0.

    noise : (n, 2 k) standard normals e1, e2; of e2 only the entries of active sticks are read
    psi   : (n, k) out
    """
    n, k = kappa.shape
    stride = lanes.padded(k)
    b, x, y = np.zeros(stride * stride * LANES), np.empty(k * LANES), np.empty(k * LANES)
    sticks, roots = np.empty((LANES, k), np.intp), np.empty((LANES, k))
    counts, solution = np.zeros(LANES, np.intp), np.empty(k)
    for start in range(0, n, LANES):
        _draw_prior_group(mean, root, noise, start, psi, x, y)
        size = 0
        for lane in range(LANES):
            row = min(start + lane, n - 1)
            counts[lane] = _list_active(omega[row], sticks[lane], roots[lane])
            size = max(size, counts[lane])
        for lane in range(LANES):
            row = min(start + lane, n - 1)
            active, s = sticks[lane, : counts[lane]], roots[lane, : counts[lane]]
            _put_system(cov, kappa[row], noise[row], psi[row], active, s, size, b, stride, lane)
        lanes.factor_in_place(b, lanes.padded(size), stride)
        solved = b[size * stride * LANES :]
        lanes.solve_upper_in_place(b, solved, size, stride)
        for lane in range(min(LANES, n - start)):
            row = start + lane
            active, s = sticks[lane, : counts[lane]], roots[lane, : counts[lane]]
            lanes.get(solved, lane, solution[: counts[lane]])
            _correct_in_place(psi[row], cov, kappa[row], active, s, solution)


# ---- densities


@kernel
def quadratic_rows(precision, mean, psi, quadratic):
    """Write (psi[i] - mean)' precision (psi[i] - mean) into quadratic[i]."""
    n, k = psi.shape
    shift, product = np.empty(k), np.empty(k)
    for row in range(n):
        product[:] = 0.0
        for i in range(k):
            shift[i] = psi[row, i] - mean[i]
            linalg.add_multiple_in_place(product, shift[i], precision[i])
        total = 0.0
        for i in range(k):
            total += shift[i] * product[i]
        quadratic[row] = total
