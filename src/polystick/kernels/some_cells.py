"""Some cells of each row under its potential, drawn together given the row's other cells.

    J = precision + diag(omega)   and   h = linear + kappa - precision of the others times them

at the cells that are drawn. The fast kernel takes WIDTH rows at once, one in each lane; cells that a lane
lacks are independent ones of precision 1, which change no bit of the others.

precision, linear : (k, k), (k,) the prior; linear = precision mean
kappa, omega      : (number of cells,) the potential of the cells that are drawn
starts, columns   : row i draws its cells columns[starts[i] : starts[i + 1]], in rising order
order             : the rows that draw some, with about as many cells side by side
noise             : (number of cells,) standard normals
psi               : (n, k) in and out
"""

import numpy as np

from polystick.kernels import kernel, lanes, linalg, simd
from polystick.kernels.simd import WIDTH


@kernel
def _fill_linear(precision, linear, kappa, cells, psi, others, h):
    """Write h of the cells of a row, given psi of the row.

    others : (k,) to work in
    """
    for j in range(others.shape[0]):
        others[j] = psi[j]
    for j in cells:
        others[j] = 0.0
    for i in range(cells.shape[0]):
        j = cells[i]
        h[i] = linear[j] + kappa[i] - linalg.dot(precision[j], others)


@kernel
def draw_in_place_scalar(precision, linear, kappa, omega, starts, columns, order, noise, psi):
    """Replace the cells by a draw J^-1 h + L^-T noise, with J = L L'."""
    k = psi.shape[1]
    others, h, matrix = np.empty(k), np.empty(k), np.empty((k, k))
    for row in order:
        first, last = starts[row], starts[row + 1]
        cells, size = columns[first:last], last - first
        _fill_linear(precision, linear, kappa[first:last], cells, psi[row], others, h)
        factor, x = matrix[:size, :size], h[:size]
        for i in range(size):
            for j in range(size):
                factor[i, j] = precision[cells[i], cells[j]]
            factor[i, i] += omega[first + i]
        linalg.cholesky_in_place(factor)
        linalg.solve_lower_in_place(factor, x)
        for i in range(size):
            x[i] += noise[first + i]
        linalg.solve_upper_in_place(factor, x)
        for i in range(size):
            psi[row, cells[i]] = x[i]


@kernel(inline="always")
def _fill_lane(precision, omega, cells, h, lane, size, stride, factor):
    """Write J into a lane, with h below it."""
    for i in range(size):
        first = i * stride * WIDTH + lane
        if i < cells.shape[0]:
            own = precision[cells[i]]
            for j in range(i):
                factor[first + j * WIDTH] = own[cells[j]]
            factor[first + i * WIDTH] = own[cells[i]] + omega[i]
            factor[(size * stride + i) * WIDTH + lane] = h[i]
        else:
            for j in range(i):
                factor[first + j * WIDTH] = 0.0
            factor[first + i * WIDTH] = 1.0
            factor[(size * stride + i) * WIDTH + lane] = 0.0


@kernel
def draw_in_place_simd(precision, linear, kappa, omega, starts, columns, order, noise, psi):
    """Do as draw_in_place_scalar, WIDTH rows at a time."""
    k, n = psi.shape[1], order.shape[0]
    most = -(-(k + 1) // lanes.PANEL) * lanes.PANEL
    factor, x = np.zeros(most * most * WIDTH), np.empty(most * WIDTH)
    others, h = np.empty(k), np.empty(k)
    for start in range(0, n, WIDTH):
        size = 0
        for lane in range(WIDTH):
            row = order[min(start + lane, n - 1)]
            size = max(size, starts[row + 1] - starts[row])
        stride = -(-(size + 1) // lanes.PANEL) * lanes.PANEL
        for lane in range(WIDTH):
            row = order[min(start + lane, n - 1)]
            first, last = starts[row], starts[row + 1]
            cells = columns[first:last]
            _fill_linear(precision, linear, kappa[first:last], cells, psi[row], others, h)
            _fill_lane(precision, omega[first:last], cells, h, lane, size, stride, factor)
        lanes.factor_in_place(factor, stride, stride)
        for lane in range(WIDTH):
            row = order[min(start + lane, n - 1)]
            first, n_cells = starts[row], starts[row + 1] - starts[row]
            for i in range(size):
                e = noise[first + i] if i < n_cells else 0.0
                x[i * WIDTH + lane] = factor[(size * stride + i) * WIDTH + lane] + e
        lanes.solve_upper_in_place(factor, x, size, stride)
        for lane in range(min(WIDTH, n - start)):
            row = order[start + lane]
            first = starts[row]
            for i in range(starts[row + 1] - first):
                psi[row, columns[first + i]] = x[i * WIDTH + lane]


draw_in_place = draw_in_place_simd if simd.ENABLED else draw_in_place_scalar
