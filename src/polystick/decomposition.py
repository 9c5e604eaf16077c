"""K categories <-> K-1 binary splits: sticks in any order, balanced, Huffman or any given tree.

At node k mass goes to the first child with probability sigmoid(psi_k), else to the second. So a
multinomial is a product of K-1 binomials and a Dirichlet one of K-1 betas, whichever the tree. With
sticks in order 0..K-1, node k is the paper's stick k+1. psi <-> pi works on logarithms.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from polystick import trees
from polystick.kernels import trees as kernels
from polystick.kernels.buffers import as_buffer


class Splits(NamedTuple):
    """What went to the first child of each node and what reached the node: (..., K-1) each."""

    successes: np.ndarray
    trials: np.ndarray


class RaggedSplits(NamedTuple):
    """The splits with trials > 0; row i's are at starts[i]:starts[i + 1], nodes ascending."""

    starts: np.ndarray
    nodes: np.ndarray
    successes: np.ndarray
    trials: np.ndarray


class Paths(NamedTuple):
    """The nodes above category c, root first, at starts[c]:starts[c + 1].

    A side is +1 where the path goes to the first child (a success) and -1 where to the second.
    """

    starts: np.ndarray
    nodes: np.ndarray
    sides: np.ndarray


@dataclass(frozen=True, eq=False)
class Decomposition:
    """A binary tree whose leaves are the K categories.

    Parameters
    ----------
    children : array of int (K-1, 2)
        The first and second child of each node: c >= 0 is a category, c < 0 is node ~c. Nodes are
        numbered in preorder: root 0, then the first child's subtree, then the second's.
    """

    children: np.ndarray

    def __post_init__(self) -> None:
        children = np.array(self.children, np.int64, order="C")
        trees.check_children(children)
        children.flags.writeable = False
        object.__setattr__(self, "children", children)

    def __eq__(self, other):
        if not isinstance(other, Decomposition):
            return NotImplemented
        return np.array_equal(self.children, other.children)

    def __hash__(self):
        return hash(self.children.tobytes())

    def __reduce__(self):
        return Decomposition, (self.children,)

    def __repr__(self):
        return f"<Decomposition of {self.n_categories} categories>"

    @functools.cached_property
    def n_categories(self) -> int:
        return len(self.children) + 1

    # Which tree

    @classmethod
    def sticks(cls, order: Iterable[int]) -> Self:
        """Break off the categories one after the other, in this order."""
        return cls(trees.sticks(order))

    @classmethod
    def by_frequency(cls, weights: npt.ArrayLike) -> Self:
        """Break off the categories by falling weight; ties keep their order."""
        return cls(trees.sticks(np.argsort(-trees.check_weights(weights), kind="stable")))

    @classmethod
    def balanced(cls, n_categories: int) -> Self:
        """Halve the categories at each node: depth ceil(log2 K)."""
        return cls(trees.balanced(n_categories))

    @classmethod
    def huffman(cls, weights: npt.ArrayLike) -> Self:
        """Make the mean depth under these weights as small as can be, the heavier child first."""
        return cls(trees.huffman(weights))

    @classmethod
    def from_tuples(cls, tree: Any, names: Sequence[Any] | None = None) -> Self:
        """Follow nested pairs of category indices or, with names, of names."""
        return cls(trees.from_tuples(tree, names))

    @classmethod
    def from_linkage(cls, linkage: npt.ArrayLike) -> Self:
        """Follow a SciPy linkage matrix (K-1, 4) over the categories."""
        return cls(trees.from_linkage(linkage))

    @classmethod
    def from_newick(cls, text: str, names: Sequence[Any] | None = None) -> Self:
        """Follow a binary tree in Newick format; labels are names or, without names, indices."""
        return cls(trees.from_newick(text, names))

    # Counts -> binary splits

    def split(self, counts: Any) -> Splits:
        """Return the binary splits of dense counts (..., K), int64 or float64 like the counts."""
        counts = self._with_width(np.asarray(counts), self.n_categories, "counts")
        rows = _numbers(counts.reshape(-1, self.n_categories))
        shape = (len(rows), self.n_categories - 1)
        successes, trials = np.empty(shape, rows.dtype), np.empty(shape, rows.dtype)
        kernels.split_rows(self.children, rows, successes, trials)
        shape = (*counts.shape[:-1], shape[1])
        return Splits(successes.reshape(shape), trials.reshape(shape))

    def split_sparse(self, counts: Any) -> RaggedSplits:
        """Return the active binary splits of a SciPy sparse matrix (n, K)."""
        counts = self._with_width(counts.tocsr(), self.n_categories, "counts")
        matrix = [as_buffer(a, np.int64) for a in (counts.indptr, counts.indices)]
        matrix.append(data := _numbers(counts.data))
        starts = np.zeros(counts.shape[0] + 1, np.int64)
        kernels.count_active(*self._parents, *matrix, starts[1:])
        np.cumsum(starts, out=starts)
        nodes = np.empty(starts[-1], np.int64)
        successes, trials = np.empty(len(nodes), data.dtype), np.empty(len(nodes), data.dtype)
        kernels.split_sparse_rows(
            self.children, *self._parents, *matrix, starts, nodes, successes, trials
        )
        return RaggedSplits(starts, nodes, successes, trials)

    def paths(self) -> Paths:
        """Return each category's nodes and sides, root first; their number is the sum of depths."""
        starts = np.zeros(self.n_categories + 1, np.int64)
        kernels.category_depths(self.children, starts[1:])
        np.cumsum(starts, out=starts)
        nodes, sides = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int8)
        kernels.fill_paths(self.children, *self._parents, starts, nodes, sides)
        return Paths(starts, nodes, sides)

    # psi <-> pi

    def log_probabilities(self, psi: Any) -> np.ndarray:
        """Return log pi (..., K) of psi (..., K-1); finite wherever psi is."""
        psi = self._with_width(np.asarray(psi), self.n_categories - 1, "psi")
        rows = as_buffer(psi.reshape(-1, self.n_categories - 1))
        log_pi = np.empty((len(rows), self.n_categories))
        kernels.log_probabilities(self.children, rows, log_pi)
        return log_pi.reshape(*psi.shape[:-1], self.n_categories)

    def probabilities(self, psi: npt.ArrayLike) -> np.ndarray:
        """Return pi (..., K) of psi (..., K-1)."""
        return np.exp(self.log_probabilities(psi))

    def psi(self, probabilities: npt.ArrayLike) -> np.ndarray:
        """Return psi (..., K-1) of pi (..., K), which need not be normalised.

        Zeros are taken as limits: psi is +inf where the second child has no mass, -inf where the
        first has none, and 0 where neither has any, as then no value matters. `probabilities`
        maps such psi back.
        """
        with np.errstate(divide="ignore"):
            return self.psi_from_log(np.log(as_buffer(probabilities)))

    def psi_from_log(self, log_probabilities: npt.ArrayLike) -> np.ndarray:
        """Return psi (..., K-1) of log pi (..., K) plus any constant; zeros as in `psi`."""
        log_pi = self._with_width(
            np.asarray(log_probabilities), self.n_categories, "log_probabilities"
        )
        rows = as_buffer(log_pi.reshape(-1, self.n_categories))
        psi = np.empty((len(rows), self.n_categories - 1))
        kernels.psi_from_log(self.children, rows, psi)
        return psi.reshape(*log_pi.shape[:-1], self.n_categories - 1)

    # Densities, appendix A

    def log_jacobian(self, psi: npt.ArrayLike) -> np.ndarray:
        """Return log |d pi / d psi| (...,), the same for any K-1 of the K coordinates of pi.

        A node's factor is its mass times sigmoid(psi) sigmoid(-psi). Gathered by node, the masses
        give sigmoid(psi) as many powers as the first side has categories; so for the second.
        """
        return self._log_powers(psi, *self.sides(np.ones(self.n_categories))).sum(-1)

    def log_density(
        self, probabilities: npt.ArrayLike, mean: npt.ArrayLike, cov: npt.ArrayLike
    ) -> np.ndarray:
        """Return the log density on pi (..., K) when psi ~ N(mean, cov); -inf where a pi_k is 0.

        It is with respect to Lebesgue measure on any K-1 coordinates of pi.
        """
        psi = self.psi(probabilities)
        is_inside = np.isfinite(psi).all(-1, keepdims=True)
        psi = np.where(is_inside, psi, 0.0)
        inside = stats.multivariate_normal(cov=cov).logpdf(psi - mean) - self.log_jacobian(psi)
        return np.where(is_inside[..., 0], inside, -np.inf)[()]

    def dirichlet_log_density(self, psi: npt.ArrayLike, alpha: npt.ArrayLike) -> np.ndarray:
        """Return the log density on psi (..., K-1) when pi ~ Dirichlet(alpha), (K,) or scalar."""
        first, second = self._betas(alpha)
        return (self._log_powers(psi, first, second) - special.betaln(first, second)).sum(-1)

    def dirichlet_moments(self, alpha: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance (K-1,) of the independent psi when pi ~ Dirichlet(alpha)."""
        first, second = self._betas(alpha)
        mean = special.digamma(first) - special.digamma(second)
        return mean, special.polygamma(1, first) + special.polygamma(1, second)

    def _betas(self, alpha):
        alpha = as_buffer(alpha)
        if not (np.isfinite(alpha) & (alpha > 0)).all():
            raise ValueError(
                f"alpha must be finite and above 0; got {alpha}; try alpha=1 (uniform)"
            )
        return self.sides(np.full(self.n_categories, alpha) if alpha.ndim == 0 else alpha)

    def sides(self, weights: np.ndarray) -> Any:
        """Return the sums of weights (..., K) over the first and over the second side of each node.

        The second is not trials - successes, which would cancel where the first side outweighs it.
        """
        trials = self.split(weights).trials
        masses = np.concatenate([weights, trials[..., ::-1]], -1)  # [~k] counts from the end
        return masses[..., self.children[:, 0]], masses[..., self.children[:, 1]]

    def _log_powers(self, psi, first, second):
        psi = self._with_width(as_buffer(psi), self.n_categories - 1, "psi")
        return first * special.log_expit(psi) + second * special.log_expit(-psi)

    # The border

    @functools.cached_property
    def _parents(self):
        return trees.parents(self.children)

    def _with_width(self, array: Any, width: int, name: str) -> Any:
        if array.ndim == 0 or array.shape[-1] != width:
            raise ValueError(
                f"{name} must have {width} columns for {self.n_categories} categories; "
                f"got shape {array.shape}; try a decomposition of that many categories"
            )
        return array


def decompose(
    spec: Any = None,
    *,
    n_categories: int | None = None,
    weights: npt.ArrayLike | None = None,
    names: Sequence[Any] | None = None,
) -> Decomposition:
    """Return the decomposition that a user describes.

    Parameters
    ----------
    spec : str, array, nested tuples or Decomposition, optional
        "frequency" (sticks by falling weight), "given" (sticks in the order of the categories),
        "balanced", "huffman"; a permutation (sticks in this order); nested pairs; a SciPy linkage
        matrix; a Newick string. By default "frequency" where weights are known, else "given".
    n_categories : int, optional
        Taken from weights, names or spec where it is not given.
    weights : array (K,), optional
        For "frequency" and "huffman", such as the column sums of the counts.
    names : sequence of K labels, optional
        If given, the leaves of nested pairs and of a Newick string are names, else indices.
    """
    n_categories = trees.agreed_size(n_categories, weights, names)
    made = _made(spec, n_categories, weights, names)
    if n_categories not in (None, made.n_categories):
        raise ValueError(
            f"the decomposition must have the {n_categories} categories of the data; "
            f"got one of {made.n_categories}; try decomposition='frequency'"
        )
    return made


def _made(spec, n_categories, weights, names):
    if spec is None:
        spec = "given" if weights is None else "frequency"
    if isinstance(spec, Decomposition):
        return spec
    if isinstance(spec, str) and spec.lstrip().startswith(("(", "[")):
        return Decomposition.from_newick(spec, names)
    if isinstance(spec, str):
        return _from_word(spec, n_categories=n_categories, weights=weights)
    if isinstance(spec, tuple) or (isinstance(spec, list) and _is_nested(spec)):
        return Decomposition.from_tuples(spec, names)
    return _from_array(np.asarray(spec))


_WORDS = {
    "frequency": ("weights", Decomposition.by_frequency),
    "given": ("n_categories", lambda n_categories: Decomposition.sticks(range(n_categories))),
    "balanced": ("n_categories", Decomposition.balanced),
    "huffman": ("weights", Decomposition.huffman),
}


def _from_word(word, **given):
    if word not in _WORDS:
        raise _unknown(repr(word))
    needed, make = _WORDS[word]
    if given[needed] is None:
        raise ValueError(f"decomposition {word!r} needs {needed}; got none; try {needed}=...")
    return make(given[needed])


def _from_array(spec):
    if spec.ndim == 1 and np.issubdtype(spec.dtype, np.integer):
        return Decomposition.sticks(spec)
    if spec.ndim == 2 and spec.shape[1] == 4 and np.issubdtype(spec.dtype, np.number):
        return Decomposition.from_linkage(spec)
    raise _unknown(f"an array of {spec.dtype} with shape {spec.shape}")


def _is_nested(spec):
    return any(isinstance(part, tuple | list | str) for part in spec)


def _unknown(got):
    return ValueError(
        "a decomposition must be 'frequency', 'given', 'balanced', 'huffman', a permutation of "
        "0..K-1, nested pairs, a linkage matrix (K-1, 4), a Newick string or a Decomposition; "
        f"got {got}; try 'frequency'"
    )


def _numbers(array):
    array = np.asarray(array)
    is_real = np.issubdtype(array.dtype, np.floating)
    return as_buffer(array, np.float64 if is_real else np.int64)
