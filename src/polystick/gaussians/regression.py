"""Regression with groups: psi_i = B' w_i + U[g_i] + e_i, with B and U drawn at once and e integrated out.

Each row tells of its line b = B' w_i + U[g_i] by exp(linear_i' b - b' weight_i b / 2). With noise
e_i ~ N(0, cov) behind a potential (kappa, omega) these are

    weight = (cov + omega^-1)^-1,      linear = (I + omega cov)^-1 kappa,

formed so that nothing divides by omega. The groups of one factor share no rows, so they are eliminated first,
one k x k system for each; B then has the Schur complement. Groups of other factors are columns of w.
Weights are packed in c numbers: their diagonal, c = k, without noise, else their lower triangle.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from polystick.kernels import algebra, spreads, turns
from polystick.kernels import regression as kernels
from polystick.kernels.buffers import as_buffer, as_buffers

__all__ = [
    "GroupRows",
    "Line",
    "Prior",
    "Sums",
    "Whole",
    "assembled",
    "draw",
    "draw_in_turns",
    "draw_noise_in_turns",
    "draw_of",
    "expected_outer",
    "group_rows",
    "inverse",
    "moments_of_lines",
    "row_sums",
    "solve",
    "tell_of_line",
    "tell_of_scales",
    "told_by_noise",
]

MOST_ENTRIES = 60  # of B, beyond which LAPACK is quicker
MOST_COLUMNS = (
    24  # that are not 0 in a row on average, beyond which products of matrices are quicker
)


class GroupRows(NamedTuple):
    """Which rows of a block belong to which group of the factor that is eliminated."""

    groups: np.ndarray  # (m,) those of the block
    places: np.ndarray  # (n,) where each row's is among them


class Sums(NamedTuple):
    """What the rows of a block tell of B (q, k) and of its groups, packed."""

    pairs: np.ndarray  # (q, q c), of columns a and b <= a
    linear: np.ndarray  # (q, k)
    group_weight: np.ndarray  # (m, c)
    group_linear: np.ndarray  # (m, k)
    cross: np.ndarray  # (m, q c) of B with each group
    groups: np.ndarray  # (m,)


class Whole(NamedTuple):
    """What all rows tell of B and of all groups."""

    weight: np.ndarray  # (q, k, q, k)
    linear: np.ndarray  # (q, k)
    group_weight: np.ndarray  # (G, k, k)
    group_linear: np.ndarray  # (G, k)
    cross: np.ndarray  # (G, k, q, k)


class Prior(NamedTuple):
    """A normal law of B and of the groups, all entries of one column of w apart from the others'."""

    weight: np.ndarray  # (q, k, k)
    linear: np.ndarray  # (q, k)
    group_weight: np.ndarray  # (k, k)
    group_linear: np.ndarray  # (G, k)


class Line(NamedTuple):
    """The normal law of B and of the groups given it: U_g ~ N(group_mean - gain (B - mean), group_cov)."""

    mean: np.ndarray  # (q, k)
    cov: np.ndarray  # (q k, q k)
    gain: np.ndarray  # (G, k, q k)
    group_mean: np.ndarray  # (G, k)
    group_cov: np.ndarray  # (G, k, k) given B
    value: (
        float  # log of the integral of exp(linear' b - b' weight b / 2), in units of (2 pi)^(d / 2)
    )
    log_det: float  # of the precision of all


def inverse(cov):
    """Invert a small symmetric positive definite matrix; NaN where it is not."""
    (cov,) = as_buffers(cov)
    found = np.empty_like(cov)
    spreads.invert(cov, found)
    return found


def group_rows(group):
    """Return where the rows of each group are; `group` (n,) whole numbers."""
    groups, places = np.unique(group, return_inverse=True)
    return GroupRows(groups, as_buffer(places, np.int64))


def tell_of_line(potential, cov):
    """Return weight (n, c) and linear (n, k) of each row's line, noise integrated out.

    cov : (k, k) of noise; None where there is none
    """
    kappa, omega = as_buffers(*potential)
    if cov is None:
        return omega, kappa
    n, k = omega.shape
    weight, linear = np.empty((n, k * (k + 1) // 2)), np.empty((n, k))
    kernels.tell_rows(kappa, omega, as_buffer(cov), weight, linear)
    return weight, linear


def row_sums(w, rows, weight, linear):
    """Return what rows tell of B and of their groups; w (n, q), rows: `GroupRows` or None."""
    w, weight, linear = as_buffers(w, weight, linear)
    q, c, k = w.shape[1], weight.shape[1], linear.shape[1]
    groups, places = rows or GroupRows(np.zeros(0, np.int64), np.zeros(0, np.int64))
    m, is_wide = len(groups), q > MOST_COLUMNS
    pairs = np.zeros((0 if is_wide else q, q * c))
    rest = np.zeros((q, k)), np.zeros((m, c)), np.zeros((m, k)), np.zeros((m, q * c))
    kernels.add_rows(w, places, weight, linear, pairs, *rest)
    if is_wide:
        pairs = np.stack([(w.T * each) @ w for each in weight.T], axis=2).reshape(q, q * c)
    return Sums(pairs, *rest, groups)


def assembled(sums, n_groups):
    """Return what the sums of all blocks, in their order, tell of B and of the groups."""
    first = sums[0]
    (q, k), c = first.linear.shape, first.group_weight.shape[1]
    pairs, linear = first.pairs, first.linear
    packed, cross = np.zeros((n_groups, c)), np.zeros((n_groups, q * c))
    group_linear = np.zeros((n_groups, k))
    for part in sums[1:]:
        pairs, linear = pairs + part.pairs, linear + part.linear
    for part in sums if n_groups else ():
        packed[part.groups] += part.group_weight
        group_linear[part.groups] += part.group_linear
        cross[part.groups] += part.cross
    weight, group_weight = np.zeros((q, k, q, k)), np.zeros((n_groups, k, k))
    whole = np.zeros((n_groups, k, q, k))
    kernels.unpack_pairs(pairs, weight)
    kernels.unpack_groups(packed, cross, group_weight, whole)
    return Whole(weight, linear, group_weight, group_linear, whole)


def draw(prior, whole, noise, group_noise):
    """Draw B (q, k) and the groups (G, k), affine functions of standard normals of these shapes."""
    if whole.linear.size <= MOST_ENTRIES:
        return _draw_few(prior, whole, noise, group_noise)
    root, found, (factor, half, half_linear) = _solved(prior, whole)
    b, _ = lapack.dtrtrs(root, found + noise.ravel(), lower=1, trans=1)
    groups = half_linear - (half.reshape(half_linear.size, b.size) @ b).reshape(half_linear.shape)
    groups += group_noise
    kernels.solve_groups_in_place(factor, groups)
    return b.reshape(noise.shape), groups


def _draw_few(prior, whole, noise, group_noise):
    """Do as `draw` in one call of a kernel, which has no LAPACK."""
    noise, group_noise = as_buffers(noise, group_noise)
    b, groups = np.empty(noise.size), np.empty_like(group_noise)
    law = _flat_law(prior)
    given = _flat(whole), law.group_weight, noise.ravel(), group_noise
    kernels.draw_line(law, *given, b, groups)
    return b.reshape(noise.shape), groups


def draw_in_turns(prior, whole, noise, group_noise, law, chance, spread):
    """Draw B, the groups, then cov and its scales | groups, a few times: return all four.

    noise, group_noise  : (turns, q, k), (turns, G, k)
    law, chance, spread : `spreads.Law` of cov, `spreads.Chance` of all turns, and where cov is
    """
    drawn = spreads.Spread(*(part.copy() for part in spread))
    b, groups = np.empty(noise[0].size), np.empty_like(group_noise[0])
    normals = noise.reshape(len(noise), -1), group_noise
    turns.turn_groups(_flat_law(prior), _flat(whole), *normals, law, chance, drawn, b, groups)
    return b.reshape(noise.shape[1:]), groups, *drawn


def draw_noise_in_turns(potential, keys, rows, law, chance, spread):
    """Draw e ~ N(0, cov) | its potential, then cov and its scales | e, a few times: return e, cov and size.

    keys, rows          : whose streams have the normals, key by key
    law, chance, spread : as in `draw_in_turns`
    """
    kappa, omega = as_buffers(*potential)
    drawn, e = spreads.Spread(*(part.copy() for part in spread)), np.empty_like(kappa)
    turns.turn_noise(kappa, omega, keys, rows, law, chance, drawn, e)
    return e, *drawn


def _flat_law(prior):
    """Return the law with B in one axis of q k entries."""
    weight, linear, group_weight, group_linear = as_buffers(*prior)
    return kernels.Law(weight, linear.ravel(), group_weight, group_linear)


def _flat(whole):
    """Return what rows tell, with B in one axis of q k entries."""
    d = whole.linear.size
    cross = whole.cross.reshape(*whole.group_linear.shape, d)
    of_groups = whole.group_weight, whole.group_linear, cross
    return kernels.Told(whole.weight.reshape(d, d), whole.linear.ravel(), *of_groups)


def told_by_noise(e, kappa, omega):
    """Return sums over rows: outer products of e, and what is told of scales, as `tell_of_scales` does."""
    curvature = np.einsum("ij,ij,ij->j", omega, e, e)
    return algebra.gram(e), np.diag(curvature), np.einsum("ij,ij->j", e, kappa)


def solve(prior, whole):
    """Return the law that `draw` draws from."""
    root, found, (factor, half, half_linear) = _solved(prior, whole)
    b, _ = lapack.dtrtrs(root, found, lower=1, trans=1)
    cov, _ = lapack.dpotri(root, lower=1)
    cov = np.tril(cov) + np.tril(cov, -1).T
    upper = np.triu(factor)
    gain = np.linalg.solve(upper, half)
    mean = np.linalg.solve(upper, half_linear[:, :, None])[:, :, 0] - gain @ b
    inverse = np.linalg.inv(upper)
    pivots = np.concatenate([np.diag(root), np.diagonal(factor, axis1=1, axis2=2).ravel()])
    log_det = 2.0 * np.log(pivots).sum()
    value = 0.5 * (found @ found + np.sum(half_linear**2) - log_det)
    group_cov = inverse @ inverse.transpose(0, 2, 1)
    return Line(b.reshape(whole.linear.shape), cov, gain, mean, group_cov, value, log_det)


def _solved(prior, whole):
    """Return the root L of the Schur complement of B, L^-1 linear, and the eliminated groups."""
    (q, k), n_groups = prior.linear.shape, len(prior.group_linear)
    weight, linear = whole.weight.copy(), (whole.linear + prior.linear).ravel()
    weight[np.arange(q), :, np.arange(q)] += prior.weight
    weight = weight.reshape(q * k, q * k)
    eliminated = _eliminated(prior, whole)
    if n_groups:
        columns = eliminated[1].reshape(n_groups * k, q * k)
        weight -= columns.T @ columns
        linear -= eliminated[2].ravel() @ columns
    root, failed = lapack.dpotrf(weight.T, lower=1)
    if failed:
        raise np.linalg.LinAlgError("the law of coefficients is not positive definite")
    found, _ = lapack.dtrtrs(root, linear, lower=1)
    return root, found, eliminated


def moments_of_lines(line, w, rows):
    """Return means (n, k) and covariances (n, k, k) of the lines of rows; rows: `GroupRows` or None."""
    q, k = line.mean.shape
    mean, cov = w @ line.mean, line.cov.reshape(q, k, q, k)
    spread = np.einsum("na,ajbm,nb->njm", w, cov, w, optimize=True)
    if rows is None:
        return mean, spread
    g = rows.groups[rows.places]
    gain = line.gain.reshape(-1, k, q, k)
    both = np.einsum("ajbl,gmbl->gajm", cov, gain, optimize=True)
    crossed = np.einsum("na,najm->njm", w, both[g])
    own = line.group_cov + line.gain @ line.cov @ line.gain.transpose(0, 2, 1)
    return mean + line.group_mean[g], spread - crossed - crossed.transpose(0, 2, 1) + own[g]


def expected_outer(line, columns=None):
    """Return the expected sum of outer products (k, k) of groups' effects, or of those of some columns."""
    q, k = line.mean.shape
    if columns is None:
        of_b = line.gain @ line.cov @ line.gain.transpose(0, 2, 1)
        return line.group_mean.T @ line.group_mean + (line.group_cov + of_b).sum(axis=0)
    mine = line.mean[columns]
    own = line.cov.reshape(q, k, q, k)[columns, :, columns]
    return mine.T @ mine + np.einsum("ajam->jm", own)


def draw_of(line, noise, group_noise):
    """Draw B and the groups from their law, affine functions of standard normals of their shapes."""
    away = np.linalg.cholesky(line.cov) @ noise.ravel()
    roots = np.linalg.cholesky(line.group_cov)
    groups = line.group_mean - line.gain @ away + (roots @ group_noise[:, :, None])[:, :, 0]
    return line.mean + away.reshape(line.mean.shape), groups


def _eliminated(prior, whole):
    """Return roots of the groups' systems, and what they make of cross and linear."""
    group_weight = whole.group_weight + prior.group_weight
    group_linear = whole.group_linear + prior.group_linear
    cross = whole.cross.reshape(*group_linear.shape, whole.linear.size)
    out = np.empty_like(group_weight), np.empty_like(cross), np.empty_like(group_linear)
    kernels.eliminate_groups(group_weight, group_linear, cross, *out)
    return out


def tell_of_scales(whole, b, groups, columns=None):
    """Return what rows tell of scales (k,) of some effects: curvature (k, k) and slope (k,).

    b, groups : (q, k), (G, k) the effects as they are
    columns : slice of b that is multiplied; None: the groups are
    """
    crossed = whole.cross.reshape(groups.size, b.size)
    if columns is None:
        rest = whole.group_linear - (crossed @ b.ravel()).reshape(groups.shape)
        curvature = np.einsum("gj,gjm,gm->jm", groups, whole.group_weight, groups)
        return curvature, (groups * rest).sum(axis=0)
    mine, others = b[columns], b.copy()
    others[columns] = 0.0
    told = whole.weight.reshape(b.size, b.size) @ others.ravel() + groups.ravel() @ crossed
    rest = whole.linear - told.reshape(b.shape)
    weight = whole.weight[columns, :, columns]
    curvature = np.einsum("aj,ajbm,bm->jm", mine, weight, mine, optimize=True)
    return curvature, (mine * rest[columns]).sum(axis=0)
