"""Held-out scores and weighted draws, one definition for every model."""

import hashlib
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp, softmax

from polystick.arguments import Counts

__all__ = [
    "Difference",
    "bootstrap_difference",
    "completion",
    "effective_draws",
    "expected_log_score",
    "held_out_steps",
    "log_coefficients",
    "log_mean_exp",
    "per_count",
    "perplexity",
    "resampled",
    "softmax",
    "split_words",
    "token_log_probabilities",
]

CELLS = 8192  # at once: CELLS x T numbers are held
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)


class Difference(NamedTuple):
    """How much better one model is than another, in nats per token, with its 95 % interval."""

    estimate: float
    standard_error: float
    lower: float
    upper: float


def log_mean_exp(values: np.ndarray, axis: int) -> np.ndarray:
    """Return log of the mean of exp(values)."""
    return logsumexp(values, axis=axis) - np.log(np.shape(values)[axis])


def effective_draws(log_weights: np.ndarray, axis: int) -> np.ndarray:
    """Return how many equally weighted draws the importance weights are worth (Kong 1992)."""
    return np.exp(2 * logsumexp(log_weights, axis=axis) - logsumexp(2 * log_weights, axis=axis))


def resampled(weights: np.ndarray, draws: np.ndarray, n_draws: int) -> Any:
    """Return draws of equal weight (n_draws, n, ...) from weighted ones (n, d), (n, d, ...).

    Systematic resampling (Kitagawa 1996) with its offset in the middle: no draw is at random.
    """
    levels = (np.arange(n_draws) + 0.5) / n_draws
    edges = np.cumsum(weights, axis=1)
    picked = [np.searchsorted(row[:-1], levels * row[-1]) for row in edges]
    return np.stack([row[index] for row, index in zip(draws, picked)], axis=1)


def per_count(log_likelihoods: np.ndarray, counts: Any) -> float:
    """Return the log likelihood per count, in nats, of rows with these log likelihoods (n,).

    NaN where there are no counts: 0 would be the best score that there is.
    """
    total = counts.sum()
    return float(np.sum(log_likelihoods) / total) if total else float("nan")


def expected_log_score(probabilities: ArrayLike, counts: Counts) -> Any:
    """Return the average over all counts of log E[pi], in nats: how likely one more observation is.

    Parameters
    ----------
    probabilities : (n, K) expected probabilities, the same for every model
    counts : (n, K), sparse or dense; NaN where there are none at all
    """
    probabilities, counts = np.asarray(probabilities, float), _canonical(counts)
    if probabilities.shape != counts.shape:
        raise ValueError(
            "probabilities and counts must be about the same rows and categories; "
            f"got shapes {probabilities.shape} and {counts.shape}"
        )
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    with np.errstate(divide="ignore"):  # what came though it could not: -inf
        logs = np.log(probabilities[rows, counts.indices])
    return per_count(counts.data * logs, counts)


def held_out_steps(
    values: Any, starts: np.ndarray, n_seen: int = 0, *, joint: bool = False
) -> np.ndarray:
    """Return the log probability (n,) of the held-out steps of each sequence, averaged over states.

    The one estimator for all models of sequences. States of the parameters are averaged over, not
    weighed anew by the steps that were seen.

    Parameters
    ----------
    values : (n_draws, steps)
        log p(x_t | before, state) of the steps of all sequences, one after another
    starts : (n + 1,) int
        sequence i has the steps starts[i] up to starts[i + 1]
    n_seen : int or (n,)
        how many first steps of a sequence are given; the others are held out
    joint : bool
        Whether to average the probability of all held-out steps of a sequence at once, or else that
        of each step given those before: one step ahead. The former is ruled by the best states, so
        it needs more of them.
    """
    values, starts = np.asarray(values, float), np.asarray(starts)
    if values.ndim != 2 or values.shape[1] != starts[-1]:
        raise ValueError(
            f"values must be (n_draws, {starts[-1]}), for so many steps the sequences have; got "
            f"shape {values.shape}: put a single state in a list"
        )
    sequence = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    first = starts[:-1] + n_seen
    held_out = np.arange(values.shape[1]) >= first[sequence]
    if not joint:
        steps = log_mean_exp(values[:, held_out], axis=0)
        return np.bincount(sequence[held_out], steps, minlength=len(first))
    kept = np.where(held_out, values, 0.0)
    sums = [np.bincount(sequence, row, minlength=len(first)) for row in kept]
    return log_mean_exp(np.array(sums), axis=0)


def perplexity(log_likelihoods: np.ndarray, counts: Counts) -> float:
    """Return exp(-log likelihood per token) of documents with these log likelihoods (n,)."""
    return float(np.exp(-per_count(log_likelihoods, counts)))


def split_words(counts: Counts, observed: Any = 0.5, seed: int = 0) -> Any:
    """Split each document's tokens at random, without replacement, into observed and held-out ones.

    round(observed * N) of a document's N tokens are observed, but at least one is observed and one
    held out where N >= 2. The split depends on the seed and on the document's own counts, and on
    nothing else: neither on its place in the corpus nor on the other documents.

    Parameters
    ----------
    counts : (n, V) whole numbers, sparse or dense
    observed : float between 0 and 1
    seed : int

    Returns
    -------
    observed, held_out : CSR arrays (n, V) of int64, which add up to the counts
    """
    if not 0 < observed < 1:
        raise ValueError(f"observed must lie between 0 and 1, both excluded; got {observed}")
    counts = _whole(_canonical(counts))
    taken = np.zeros_like(counts.data)
    for start, stop in zip(counts.indptr[:-1], counts.indptr[1:]):
        cells = counts.data[start:stop]
        if n := cells.sum():
            n_observed = np.clip(round(observed * n), min(1, n - 1), max(1, n - 1))
            rng = _document_rng(counts.indices[start:stop], cells, seed)
            taken[start:stop] = rng.multivariate_hypergeometric(cells, n_observed)
    return _with_data(counts, taken), _with_data(counts, counts.data - taken)


def token_log_probabilities(proportions: Any, topics: Any, held_out: Counts) -> Any:
    """Return, for each cell of held_out, log of the average over states of theta_d . beta_v.

    See `completion` for the arguments. Cells are in the order of CSR: by document, then by word.
    """
    held_out = _canonical(held_out)
    total, n_draws = 0.0, 0
    for probabilities in _cell_probabilities(proportions, topics, held_out):
        total, n_draws = total + probabilities, n_draws + 1
    return np.log(np.maximum(total / n_draws, SMALLEST))


def completion(proportions: Any, topics: Any, held_out: Counts, *, per: str = "token",
               coefficient: bool = False) -> Any:  # fmt: skip
    """Return the log likelihood of each document's held-out words, averaged over posterior states.

    Parameters
    ----------
    proportions : iterable over S states of (n, T), as the observed words tell them
    topics : iterable over S states of (T, V), rows summing to 1; a generator will do, for one state
        at a time is held
    held_out : (n, V) counts, sparse or dense
    per : "token" or "document"
        What is averaged over states: the probability of each token by itself, or the joint
        probability of all held-out tokens of a document. The latter is what the multinomial says
        of documents; its average is ruled by the best states, so it needs more of them.
    coefficient : bool
        Whether to add log(N! / prod x!), the number of orders of the same words. It is the same for
        all models; without it the literature's perplexities are met.

    Returns
    -------
    (n,) log likelihoods in nats. A probability below the smallest positive float32, 1.4e-45, counts
    as that: in single precision even a positive probability may vanish.
    """
    if per not in ("token", "document"):
        raise ValueError(f'per must be "token" or "document"; got {per!r}')
    held_out = _canonical(held_out)
    if per == "token":
        logs = token_log_probabilities(proportions, topics, held_out)
        result = _document_sums(held_out, logs * held_out.data)
    else:
        result, n_draws = np.full(held_out.shape[0], -np.inf), 0
        for probabilities in _cell_probabilities(proportions, topics, held_out):
            logs = np.log(np.maximum(probabilities, SMALLEST))
            joint = _document_sums(held_out, logs * held_out.data)
            result, n_draws = np.logaddexp(result, joint), n_draws + 1
        result = result - np.log(n_draws)
    return result + log_coefficients(held_out) if coefficient else result


def log_coefficients(counts: Any) -> np.ndarray:
    """Return log(N! / prod x!) of each row of counts, sparse or dense."""
    counts = _canonical(counts)
    return gammaln(counts.sum(axis=1) + 1) - _document_sums(counts, gammaln(counts.data + 1))


def bootstrap_difference(
    a: np.ndarray, b: np.ndarray, counts: np.ndarray, n_boot: int = 2000, seed: int = 0
) -> Any:
    """Return by how many nats per token model a beats model b, with a paired bootstrap of documents.

    Parameters
    ----------
    a, b : (n,) log likelihoods of the same documents under two models
    counts : (n,) tokens of each document, or counts (n, V); documents without tokens are left out
    n_boot : int
    seed : int

    Returns
    -------
    Difference (estimate, standard_error, lower, upper): the interval has the 2.5 and 97.5 % quantiles
    """
    tokens = np.asarray(counts.sum(axis=1) if np.ndim(counts) == 2 else counts, float).ravel()
    a, b = np.asarray(a, float), np.asarray(b, float)
    if not a.shape == b.shape == tokens.shape:
        raise ValueError(
            "a, b and counts must be about the same documents; "
            f"got {a.shape}, {b.shape} log likelihoods and {len(tokens)} documents"
        )
    gain, tokens = (a - b)[tokens > 0], tokens[tokens > 0]
    if not len(tokens):
        raise ValueError("counts must have tokens; got none: hold out more words")
    rng = np.random.default_rng(seed)
    picks = (rng.integers(len(tokens), size=len(tokens)) for _ in range(n_boot))
    differences = np.array([gain[pick].sum() / tokens[pick].sum() for pick in picks])
    lower, upper = np.quantile(differences, [0.025, 0.975])
    estimate = gain.sum() / tokens.sum()
    return Difference(*map(float, (estimate, differences.std(ddof=1), lower, upper)))


def _cell_probabilities(proportions, topics, held_out):
    """Yield theta_d . beta_v of the cells of held_out under each state."""
    rows = np.repeat(np.arange(held_out.shape[0]), np.diff(held_out.indptr))
    for theta, beta in _states(proportions, topics, held_out.shape):
        by_word = np.ascontiguousarray(beta.T)
        cells = np.empty(len(rows))
        for start in range(0, len(rows), CELLS):
            at = slice(start, start + CELLS)
            left = theta[rows[at]].astype(float, copy=False)
            right = by_word[held_out.indices[at]].astype(float, copy=False)
            cells[at] = np.einsum("ct,ct->c", left, right)
        yield cells


def _states(proportions, topics, shape):
    """Yield proportions and topics state by state, checked against the shape of the counts."""
    n, V = shape
    number = 0  # not by enumerate, which would keep the first state alive
    for theta, beta in zip_longest(proportions, topics):
        if theta is None or beta is None:
            short = "proportions" if theta is None else "topics"
            raise ValueError(
                "proportions and topics must have equally many states; "
                f"got only {number} of {short}: take both from the same draws"
            )
        theta, beta = np.asarray(theta), np.asarray(beta)
        if beta.ndim != 2 or theta.shape != (n, len(beta)) or beta.shape[1] != V:
            raise ValueError(
                f"each state must have proportions ({n}, T) and topics (T, {V}) for held-out counts "
                f"({n}, {V}); got {theta.shape} and {beta.shape}: put a single state in a list"
            )
        number += 1
        yield theta, beta
    if not number:
        raise ValueError("proportions and topics must have at least one state; got none")


def _document_sums(counts, cells):
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    return np.bincount(rows, cells, minlength=counts.shape[0])


def _canonical(counts):
    counts = scipy.sparse.csr_array(counts, copy=True)
    counts.sum_duplicates()
    counts.eliminate_zeros()
    return counts


def _with_data(counts, data):
    parts = (data, counts.indices, counts.indptr)
    result = scipy.sparse.csr_array(parts, shape=counts.shape, copy=True)
    result.eliminate_zeros()
    return result


def _whole(counts):
    data = counts.data
    if not (np.all(np.isfinite(data)) and np.all(data >= 0) and np.all(data == np.rint(data))):
        raise ValueError(
            "counts must be whole numbers, not negative, for tokens are split one by one; "
            "got others: round weights first"
        )
    return counts.astype(np.int64)


def _document_rng(words, counts, seed):
    content = np.stack([words, counts]).astype("<i8").tobytes()
    digest = hashlib.blake2b(content, digest_size=16, key=str(seed).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))
