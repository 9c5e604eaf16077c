"""R-hat and effective sample sizes (ESS) of draws, as arrays (Vehtari, Gelman, Simpson, Carpenter and
Bürkner 2021: rank-normalised, split chains).

Draws are (chain, draw, entries) everywhere. Entries that never vary have no R-hat and no ESS: NaN. What
ranks and autocorrelations of thousands of entries would cost is spent on the entries that a look at
means and variances finds worst.
"""

from typing import NamedTuple

import numpy as np
from scipy import fft, special, stats

from polystick.inference.protocols import Array

__all__ = [
    "FEWEST_DRAWS",
    "Diagnosed",
    "Rough",
    "bulk_ess",
    "diagnose",
    "flat",
    "rhat",
    "rhat_of_moments",
    "screen",
    "suspects_among",
    "tail_ess",
]

FEWEST_DRAWS = 4  # of each chain: two in each half
TAIL = 0.05
LOOKED_AT = 4  # entries that are looked at in full, for each of three quick looks


class Diagnosed(NamedTuple):
    """The worst of a variable's entries."""

    rhat: float
    ess: float  # bulk
    tail_ess: float
    worst: int  # the entry of the worst R-hat
    least: int  # the entry of the smallest ESS, bulk or tail
    n_entries: int  # that vary

    @property
    def least_ess(self) -> float:
        return min(self.ess, self.tail_ess)


def diagnose(draws: Array, entries: Array | None = None) -> Diagnosed | None:
    """Return what is worst among the entries of a variable, or None if none of them varies.

    entries : those to look at in full; None: those that a quick look finds worst
    """
    draws = flat(draws)
    rough = screen(draws)
    n_varying = int(np.isfinite(rough.slowness).sum())
    suspects = suspects_among(rough) if entries is None else np.asarray(entries)
    if not n_varying or not len(suspects):
        return None
    taken = np.ascontiguousarray(draws[..., suspects])
    halves = split(taken)
    scores = normal_scores(halves)
    r, bulk, tail = _worse(scores, halves), _ess(scores), tail_ess(taken)
    tail = np.where(np.isnan(tail), bulk, tail)  # no tails where almost all draws are the same
    worst, least = int(np.argmax(r)), int(np.argmin(np.minimum(bulk, tail)))
    sizes = float(bulk.min()), float(tail.min())
    return Diagnosed(float(r[worst]), *sizes, int(suspects[worst]), int(suspects[least]), n_varying)


def flat(draws: Array) -> Array:
    """Return draws (chain, draw, ...) as (chain, draw, entries)."""
    draws = np.asarray(draws, np.float64)
    return draws.reshape(*draws.shape[:2], -1)


class Rough(NamedTuple):
    """A quick look at each entry, by moments alone; NaN for what never varies."""

    rhat: Array  # of split chains
    unevenness: Array  # relative variance of their variances
    slowness: Array  # variance of batch means over that of draws


def screen(draws: Array) -> Rough:
    """Return the quick look at draws (chain, draw, entries)."""
    n_chains, n_draws = draws.shape[:2]
    n_batches = 2 * max(1, int(np.sqrt(n_draws)) // 2)
    width, least = n_draws // n_batches, np.finfo(float).tiny
    parts = draws[:, n_draws - n_batches * width :].reshape(n_chains, n_batches, width, -1)
    centre = parts[0, 0, 0]
    parts = parts - centre  # so that squares of a far mean do not drown the variance
    batches = parts.mean(axis=2)
    squares = np.einsum("cbwe,cbwe->cbe", parts, parts) / width
    means, seconds = (_of_halves(part) for part in (batches, squares))
    variances = np.maximum(seconds - np.square(means), least)
    within, between = variances.mean(axis=0), means.var(axis=0)
    still = np.where((seconds == 0).all(axis=0), np.nan, 1.0)
    with np.errstate(over="ignore"):
        rhat = np.sqrt(1.0 + between / within)
        unevenness = variances.var(axis=0) / np.square(np.maximum(within, np.sqrt(least)))
        slowness = batches.var(axis=(0, 1)) / (within + between)
    return Rough(still * rhat, still * unevenness, still * slowness)


def _of_halves(batches: Array) -> Array:
    """Return averages over the halves of each chain (2 chains, entries) from those of batches."""
    n_chains, n_batches = batches.shape[:2]
    halves: Array = batches.reshape(2 * n_chains, n_batches // 2, -1).mean(axis=1)
    return halves


def suspects_among(rough: Rough) -> Array:
    """Return the entries that a quick look finds worst, in any respect."""
    varying = np.flatnonzero(np.isfinite(rough.slowness))
    if len(varying) <= len(rough) * LOOKED_AT:
        return varying
    worst = [part[varying].argpartition(-LOOKED_AT)[-LOOKED_AT:] for part in rough]
    return varying[np.unique(np.concatenate(worst))]


def rhat(draws: Array) -> Array:
    """Return the larger of the R-hats of ranks, and of ranks of distances from the median."""
    halves = split(draws)
    return _worse(normal_scores(halves), halves)


def _worse(scores: Array, halves: Array) -> Array:
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.fmax(_rhat(scores), _rhat(normal_scores(folded)))


def bulk_ess(draws: Array) -> Array:
    """Return the ESS of ranks: for means and medians."""
    return _ess(normal_scores(split(draws)))


def tail_ess(draws: Array) -> Array:
    """Return the smaller of the ESS of two quantiles, 5 % and 95 %: for intervals."""
    ends = np.quantile(draws, [TAIL, 1 - TAIL], axis=(0, 1))
    return np.fmin(*(_ess(split((draws <= end).astype(np.float64))) for end in ends))


def rhat_of_moments(means: Array, variances: Array, n_draws: int) -> Array:
    """Return R-hat (...) from the mean and the variance of each chain (chain, ...), not split or ranked."""
    within = variances.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Array = np.sqrt((n_draws - 1) / n_draws + means.var(axis=0, ddof=1) / within)
    return ratio


def split(draws: Array) -> Array:
    """Return the halves of each chain as chains; of an odd number of draws the middle one is left out."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])


def normal_scores(draws: Array) -> Array:
    """Return normal quantiles of the ranks among all chains."""
    flat = draws.reshape(-1, *draws.shape[2:])
    ranks = stats.rankdata(flat, axis=0)
    scores: Array = special.ndtri((ranks - 0.375) / (len(flat) + 0.25))
    return scores.reshape(draws.shape)


def _rhat(chains: Array) -> Array:
    return rhat_of_moments(chains.mean(axis=1), chains.var(axis=1, ddof=1), chains.shape[1])


def _ess(chains: Array) -> Array:
    """Return the number of independent draws that tell as much of the mean."""
    n_chains, n_draws = chains.shape[:2]
    rho = _autocorrelation(chains)
    pairs = rho[0::2][: n_draws // 2] + rho[1::2][: n_draws // 2]
    last = _first_at_most_zero(pairs[: max(1, (n_draws - 1) // 2)])  # Geyer: pair sums are positive
    kept = np.arange(len(pairs))[:, None] < last
    falling = np.minimum.accumulate(np.where(kept, pairs, np.inf), axis=0)  # and fall
    total = np.where(kept, falling, 0.0).sum(axis=0)
    end = np.maximum(np.take_along_axis(rho, 2 * last[None], axis=0)[0], 0.0)
    size = n_chains * n_draws
    time = np.maximum(2.0 * total + end - 1.0, 1.0 / np.log10(size))
    return np.where(np.ptp(chains, axis=(0, 1)) > 0, size / time, np.nan)


def _autocorrelation(chains: Array) -> Array:
    """Return (lag, entry) from the variance within and between chains."""
    n_chains, n_draws = chains.shape[:2]
    means = chains.mean(axis=1)
    spectrum = fft.rfft(chains - means[:, None], n=fft.next_fast_len(2 * n_draws), axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    covariance = fft.irfft(power.mean(axis=0), n=fft.next_fast_len(2 * n_draws), axis=0)[:n_draws]
    covariance /= n_draws
    within = covariance[0] * n_draws / (n_draws - 1)
    between = means.var(axis=0, ddof=1) if n_chains > 1 else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1.0 - (within - covariance) / (covariance[0] + between)
    rho[0] = 1.0
    return np.asarray(rho)


def _first_at_most_zero(pairs: Array) -> Array:
    """Return the first pair (entry,) that is not positive, or the last one."""
    ends = ~(pairs > 0)
    ends[-1] = True
    return np.asarray(ends.argmax(axis=0))
