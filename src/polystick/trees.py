"""Binary trees over categories, as arrays of children, from whatever describes them.

Each function returns `children` (K-1, 2), int64: an entry c >= 0 is a category, c < 0 is node ~c,
and nodes are numbered in preorder (root 0, then the first child's subtree, then the second's).
"""

import heapq
import operator
import re
from collections import Counter
from numbers import Integral

import numpy as np

from polystick.kernels import trees as kernels


def in_preorder(children, root):
    """Return the same tree with its nodes numbered in preorder."""
    children = np.array(children, np.int64, order="C")
    numbered = np.zeros_like(children)  # [0, 0], which no tree has, where the root does not reach
    kernels.number_in_preorder(children, root, numbered)
    return numbered


def parents(children):
    """Return the nodes above each category (K,) and above each node (K-1,); the root has -1."""
    below = children.ravel()
    above = np.arange(below.size) // 2
    is_category = below >= 0
    of_categories = np.empty(len(children) + 1, np.int64)
    of_nodes = np.full(len(children), -1, np.int64)
    of_categories[below[is_category]] = above[is_category]
    of_nodes[~below[~is_category]] = above[~is_category]
    return of_categories, of_nodes


def sticks(order):
    """Return the tree that breaks off the categories one after the other, in this order."""
    order = np.asarray(order)
    _check_permutation(order)
    below = ~np.arange(1, len(order))
    below[-1] = order[-1]
    return np.column_stack([order[:-1], below]).astype(np.int64)


def balanced(n_categories):
    """Return the tree that halves the categories, in the order of their indices, at each node."""
    check_size(n_categories)
    children = np.empty((n_categories - 1, 2), np.int64)
    todo = [(0, 0, n_categories)]  # node, its first category, its number of categories
    while todo:
        node, begin, size = todo.pop()
        half = (size + 1) // 2
        for side, (below, start, part) in enumerate(
            [(node + 1, begin, half), (node + half, begin + half, size - half)]
        ):
            children[node, side] = start if part == 1 else ~below
            if part > 1:
                todo.append((below, start, part))
    return children


def huffman(weights):
    """Return the tree of least mean depth under these weights, the heavier child first."""
    weights = check_weights(weights)
    heap = [(weight, age, age) for age, weight in enumerate(weights.tolist())]  # ties: older first
    heapq.heapify(heap)
    merges = []
    while len(heap) > 1:
        light, heavy = heapq.heappop(heap), heapq.heappop(heap)
        first, second = (light, heavy) if light[0] == heavy[0] else (heavy, light)
        merges.append((first[2], second[2]))
        age = len(weights) + len(merges)
        heapq.heappush(heap, (light[0] + heavy[0], age, -len(merges)))
    return in_preorder(merges, len(merges) - 1)


def from_tuples(tree, names=None):
    """Return the tree of nested pairs; its leaves are category indices or, with names, names."""
    leaves, merges = _postorder(tree)
    indices = _leaf_indices(leaves, names)
    merges = np.array(merges, np.int64)
    merges[merges >= 0] = indices[merges[merges >= 0]]
    return in_preorder(merges, len(merges) - 1)


def from_linkage(linkage):
    """Return the tree of a SciPy linkage matrix (K-1, 4): row i merges two clusters into K+i."""
    linkage = np.asarray(linkage)
    K = len(linkage) + 1
    if linkage.shape != (K - 1, 4) or not _merges_once(linkage[:, :2]):
        raise ValueError(
            "a linkage matrix (K-1, 4) must merge each cluster once, after the row that makes it; "
            f"got shape {linkage.shape}; try scipy.cluster.hierarchy.linkage(distances)"
        )
    merged = linkage[:, :2].astype(np.int64)
    return in_preorder(np.where(merged < K, merged, ~(merged - K)), K - 2)


def _merges_once(merged):
    n_merges = len(merged)
    is_made = merged <= n_merges + np.arange(n_merges)[:, None]
    return is_made.all() and np.array_equal(np.sort(merged, axis=None), np.arange(2 * n_merges))


def from_newick(text, names=None):
    """Return the tree of a Newick string; its labels are names or, without names, indices.

    Lengths, comments and the labels of inner nodes are ignored. An unquoted label that is not in
    names is looked up once more with blanks for underscores, as the format has it.
    """
    labels = None if names is None else [str(name) for name in names]
    return from_tuples(_parse_newick(text, labels), labels)


def check_size(n_categories):
    if n_categories < 2:
        raise ValueError(
            f"a decomposition needs at least 2 categories; got {n_categories}; "
            "with one category there is nothing to split"
        )


def agreed_size(n_categories, weights, names):
    """Return the number of categories that the arguments agree on; None if none is given."""
    sizes = {"n_categories": n_categories}
    sizes |= {k: len(v) for k, v in [("weights", weights), ("names", names)] if v is not None}
    known = {size for size in sizes.values() if size is not None}
    if len(known) > 1:
        raise ValueError(f"n_categories, weights and names must agree on K; got {sizes}")
    return known.pop() if known else None


def check_children(children):
    """Raise unless the array is a tree over categories 0..K-1 in preorder."""
    if children.ndim != 2 or children.shape[1] != 2:
        raise ValueError(f"children must have shape (K-1, 2); got {children.shape}")
    n_nodes = len(children)
    check_size(n_nodes + 1)
    each_once = np.array_equal(np.sort(children, axis=None), np.r_[-n_nodes:-1, : n_nodes + 1])
    if not each_once or not np.array_equal(in_preorder(children, 0), children):
        raise ValueError(
            "children must have each category 0..K-1 and each node but the root (as ~node) once, "
            "numbered in preorder; got an array that does not; try Decomposition.from_tuples"
        )


def check_weights(weights):
    """Return the weights as floats."""
    weights = np.asarray(weights, np.float64)
    if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(
            "weights must be finite, not negative, one per category; "
            f"got shape {weights.shape}, {weights}; try the column sums of the counts"
        )
    check_size(len(weights))
    return weights


def _check_permutation(order):
    if order.ndim != 1 or not np.array_equal(np.sort(order), np.arange(len(order))):
        raise ValueError(
            f"an order of sticks must have each category 0..K-1 once; got {order}; try np.argsort"
        )
    check_size(len(order))


def _postorder(tree):
    """Return the leaves and the merges of nested pairs; a merge's entries >= 0 count leaves.

    Without recursion: sticks over many categories nest deeper than Python's stack.
    """
    leaves: list = []
    merges: list[tuple[int, int]] = []
    done: list[int] = []
    todo = [(tree, False)]
    while todo:
        part, is_ready = todo.pop()
        if is_ready:
            second, first = done.pop(), done.pop()
            merges.append((first, second))
            done.append(-len(merges))
        elif isinstance(part, tuple | list):
            _check_pair(part)
            todo += [(part, True), (part[1], False), (part[0], False)]
        else:
            done.append(len(leaves))
            leaves.append(part)
    check_size(len(leaves))
    return leaves, merges


def _check_pair(part):
    if len(part) != 2:
        raise ValueError(
            f"each node of the tree must have 2 children; got one with {len(part)}; "
            "try to nest them, as in (a, (b, c))"
        )


def _leaf_indices(leaves, names):
    if names is None or _are_numbers(leaves, names):
        indices = [_index(leaf) for leaf in leaves]
        names = range(len(leaves) if names is None else len(names))
    else:
        names = list(names)
        index_of = _index_of(names)
        _raise_if([leaf for leaf in leaves if leaf not in index_of], "not among the names")
        indices = [index_of[leaf] for leaf in leaves]
    counts = Counter(indices)
    _raise_if([leaf for leaf, i in zip(leaves, indices) if counts[i] > 1], "more than once")
    _raise_if([names[i] for i in range(len(names)) if i not in counts], "missing")
    return np.array(indices, np.int64)


def _are_numbers(leaves, names):
    """Tell whether leaves are numbers of columns, none of which is a name too."""
    return all(isinstance(leaf, Integral) for leaf in leaves) and not set(leaves) & set(names)


def _index(leaf):
    try:
        return operator.index(leaf)
    except TypeError:
        raise ValueError(
            "without names the leaves of the tree must be category indices; "
            f"got {leaf!r}; try names=[...]"
        ) from None


def _index_of(names):
    index_of = {name: i for i, name in enumerate(names)}
    if len(index_of) < len(names):
        doubled = [name for name, count in Counter(names).items() if count > 1]
        raise ValueError(f"names must differ; got {_some(doubled)} more than once")
    return index_of


def _raise_if(culprits, what):
    if culprits:
        raise ValueError(
            f"the tree must have each category as one leaf; {what}: {_some(culprits)}; "
            "try decomposition='balanced' if no tree is known"
        )


def _some(items, limit=5):
    shown = ", ".join(repr(item) for item in list(dict.fromkeys(items))[:limit])
    return shown + (", ..." if len(set(items)) > limit else "")


_TOKEN = re.compile(
    r"(?P<blank>\s+|\[[^\]]*\])|(?P<open>\()|(?P<close>\))|(?P<comma>,)|(?P<colon>:)|(?P<end>;)"
    r"|(?P<quoted>'(?:[^']|'')*')|(?P<label>[^\s()\[\]',:;]+)|(?P<unknown>.)"
)
_SUBTREE_ENDS = {"close", "leaf", "name", "length"}
_MAY_FOLLOW = {
    "open": {"begin", "open", "comma"},
    "leaf": {"begin", "open", "comma"},
    "name": {"close"},
    "colon": {"close", "leaf", "name"},
    "length": {"colon"},
    "comma": _SUBTREE_ENDS,
    "close": _SUBTREE_ENDS,
    "end": _SUBTREE_ENDS,
}
_LABEL_AFTER = {"close": "name", "colon": "length"}


def _newick_tokens(text):
    """Yield (kind, (text, is quoted)), with labels told apart: leaf, name of an inner node, length."""
    previous = "begin"
    for match in _TOKEN.finditer(text):
        kind, label = str(match.lastgroup), (match.group(), False)
        if kind == "blank":
            continue
        if kind == "quoted":
            label = (match.group()[1:-1].replace("''", "'"), True)
        if kind in ("label", "quoted"):
            kind = _LABEL_AFTER.get(previous, "leaf")
        if previous not in _MAY_FOLLOW.get(kind, ()):
            raise _newick_error(f"{match.group()!r} at position {match.start()}")
        yield kind, label
        previous = kind
    if previous not in _SUBTREE_ENDS | {"end"}:
        raise _newick_error("a string that breaks off")


def _parse_newick(text, names):
    """Return the nested tuples of a Newick string."""
    known = None if names is None else frozenset(names)
    groups: list[list] = [[]]
    for kind, label in _newick_tokens(text):
        if kind == "open":
            groups.append([])
        elif kind == "leaf":
            groups[-1].append(_leaf(label, known))
        elif kind == "close":
            closed = groups.pop()
            if not groups:
                raise _newick_error("more ')' than '('")
            groups[-1].append(tuple(closed))
    if len(groups) > 1 or len(groups[0]) != 1:
        raise _newick_error(f"{len(groups) - 1} '(' left open, {len(groups[0])} trees")
    return groups[0][0]


def _leaf(label_and_quotes, known):
    label, is_quoted = label_and_quotes
    if known is None:
        return int(label) if label.isdecimal() else label
    blanks = label.replace("_", " ")
    return blanks if not is_quoted and label not in known and blanks in known else label


def _newick_error(found):
    return ValueError(
        f"a tree in Newick format must look like '((a,b),c);'; got {found}; "
        "try single quotes round labels with blanks or signs"
    )
