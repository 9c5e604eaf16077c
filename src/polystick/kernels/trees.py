"""Row loops over a binary tree: splits of counts, and psi <-> log pi with compensated sums.

A tree is `children` (K-1, 2): an entry c >= 0 is a category, c < 0 is node ~c. Nodes are numbered
in preorder, so a parent comes before its children and a walk from the root goes up in number.
Arrays are indexed in full: views of rows and helpers that take arrays cost six times as much here.
"""

import math

import numpy as np

from polystick.kernels import elementary, kernel

TOGETHER, MOST_HELD = (
    256,
    65_536,
)  # rows whose probabilities are worked out side by side, and their splits


@kernel
def number_in_preorder(children, root, numbered):
    """Write into numbered the same tree with its nodes in preorder.

    children, numbered : (k, 2) a tree in any numbering, the tree in preorder
    root               : the root's number in children
    """
    stack = np.empty(len(children), np.int64)
    above = np.empty(len(children), np.int64)  # 2 * new parent + side of each stacked node
    stack[0], above[0] = root, -1
    size, node = 1, -1
    while size > 0:
        size -= 1
        old, place = stack[size], above[size]
        node += 1
        if place >= 0:
            numbered[place // 2, place % 2] = ~node
        for side in (1, 0):
            child = children[old, side]
            if child >= 0:
                numbered[node, side] = child
            else:
                stack[size], above[size] = ~child, 2 * node + side
                size += 1


@kernel
def category_depths(children, depths):
    """Write into depths (K,) the number of nodes above each category."""
    above = np.zeros(len(children), np.int64)
    for node in range(len(children)):
        for side in range(2):
            child = children[node, side]
            if child >= 0:
                depths[child] = above[node] + 1
            else:
                above[~child] = above[node] + 1


@kernel
def fill_paths(children, category_parents, node_parents, starts, nodes, sides):
    """Write the path of category c, root first, into nodes[starts[c]:starts[c + 1]], and its sides.

    category_parents : (K,) the node above each category
    node_parents     : (K-1,) the node above each node; -1 for the root
    sides            : +1 where the path goes to the first child, -1 to the second
    """
    for category in range(len(category_parents)):
        child, node = category, category_parents[category]
        at = starts[category + 1]
        while node >= 0:
            at -= 1
            nodes[at] = node
            sides[at] = 1 if children[node, 0] == child else -1
            child, node = ~node, node_parents[node]


@kernel
def split_rows(children, counts, successes, trials):
    """Write the binary splits of each row.

    counts            : (n, K)
    successes, trials : (n, K-1) what went to the first child; what reached the node
    """
    for i in range(len(counts)):
        for node in range(len(children) - 1, -1, -1):
            a, b = children[node, 0], children[node, 1]
            first = counts[i, a] if a >= 0 else trials[i, ~a]
            second = counts[i, b] if b >= 0 else trials[i, ~b]
            successes[i, node] = first
            trials[i, node] = first + second


@kernel
def _mark(row, begin, end, indices, data, category_parents, node_parents, seen):
    """Set seen[node] = row for the nodes that the row reaches; return how many they are."""
    n_active = 0
    for entry in range(begin, end):
        node = category_parents[indices[entry]] if data[entry] != 0 else -1
        while node >= 0 and seen[node] != row:
            seen[node] = row
            n_active += 1
            node = node_parents[node]
    return n_active


@kernel
def count_active(category_parents, node_parents, indptr, indices, data, n_active):
    """Write into n_active (n,) how many nodes each row of a CSR matrix reaches."""
    seen = np.full(len(node_parents), -1, np.int64)
    for i in range(len(n_active)):
        n_active[i] = _mark(
            i, indptr[i], indptr[i + 1], indices, data, category_parents, node_parents, seen
        )


@kernel(inline="always")
def _list_active(row, children, seen, stack, begin, nodes):
    """Write the nodes that the row reaches in preorder, from nodes[begin] on; return the end."""
    at = begin
    stack[0] = 0
    size = 1 if seen[0] == row else 0
    while size > 0:
        size -= 1
        node = stack[size]
        nodes[at] = node
        at += 1
        for side in (1, 0):
            child = children[node, side]
            if child < 0 and seen[~child] == row:
                stack[size] = ~child
                size += 1
    return at


@kernel
def split_sparse_rows(
    children,
    category_parents,
    node_parents,
    indptr,
    indices,
    data,
    starts,
    nodes,
    successes,
    trials,
):
    """Write the active splits of each row of a CSR matrix; doubled entries are summed.

    indptr, indices, data    : the (n, K) matrix
    starts                   : (n+1,) where each row begins in the outputs
    nodes, successes, trials : (starts[n],) nodes ascending within a row
    """
    n_nodes = len(children)
    seen = np.full(n_nodes, -1, np.int64)
    stack = np.empty(n_nodes, np.int64)
    leaves = np.zeros(n_nodes + 1, data.dtype)  # all zero again after each row
    totals = np.zeros(n_nodes, data.dtype)
    for i in range(len(starts) - 1):
        begin, end = indptr[i], indptr[i + 1]
        _mark(i, begin, end, indices, data, category_parents, node_parents, seen)
        for entry in range(begin, end):
            leaves[indices[entry]] += data[entry]
        last = _list_active(i, children, seen, stack, starts[i], nodes)
        for at in range(last - 1, starts[i] - 1, -1):
            a, b = children[nodes[at], 0], children[nodes[at], 1]
            successes[at] = leaves[a] if a >= 0 else totals[~a]
            trials[at] = successes[at] + (leaves[b] if b >= 0 else totals[~b])
            totals[nodes[at]] = trials[at]
        for entry in range(begin, end):
            leaves[indices[entry]] = 0
        for at in range(starts[i], last):
            totals[nodes[at]] = 0


@kernel(forceinline=True)
def _add(high, low, term):
    """Return the pair (high, low) + term, where low gathers what rounding loses (Neumaier 1974)."""
    total = high + term
    lost = (high - total) + term if abs(high) >= abs(term) else (term - total) + high
    return total, 0.0 if math.isinf(total) else low + lost


@kernel
def log_probabilities(children, psi, log_pi):
    """Write the log probabilities of the categories, from the root down.

    psi    : (n, K-1) logit of going to the first child
    log_pi : (n, K)
    """
    n, n_nodes = len(psi), len(children)
    span = min(n, TOGETHER, max(MOST_HELD // n_nodes, 1))
    high, low = np.zeros((n_nodes, span)), np.zeros((n_nodes, span))
    x, tail, a, b = np.empty(span), np.empty(span), np.empty(span), np.empty(span)
    for start in range(0, n, max(span, 1)):
        size = min(span, n - start)
        for node in range(n_nodes):
            for r in range(size):
                x[r] = psi[start + r, node]
            for r in range(size):  # on its own, so that it is vectorised
                tail[r] = elementary.log_1p(elementary.exp(-abs(x[r])))
            for side in range(2):
                child, above, below = children[node, side], high[node], low[node]
                for r in range(size):
                    log_sigmoid = min(x[r], 0.0) - tail[r]
                    a[r], b[r] = _add(above[r], below[r], log_sigmoid)
                    x[r] = -x[r]
                if child >= 0:
                    for r in range(size):
                        log_pi[start + r, child] = a[r] + b[r]
                else:
                    above, below = high[~child], low[~child]
                    for r in range(size):
                        above[r], below[r] = a[r], b[r]


@kernel
def psi_from_log(children, log_pi, psi):
    """Write the logits of the splits, from the leaves up; 0 at a node that has no mass.

    log_pi : (n, K) up to a constant per row
    psi    : (n, K-1)
    """
    high = np.zeros(len(children))
    low = np.zeros(len(children))
    for i in range(len(psi)):
        for node in range(len(children) - 1, -1, -1):
            first, second = children[node, 0], children[node, 1]
            a = log_pi[i, first] if first >= 0 else high[~first]
            b = 0.0 if first >= 0 else low[~first]
            c = log_pi[i, second] if second >= 0 else high[~second]
            d = 0.0 if second >= 0 else low[~second]
            is_empty = a == -math.inf and c == -math.inf
            x = 0.0 if is_empty else (a - c) + (b - d)
            psi[i, node] = x
            if x < 0:
                a, b = c, d
            high[node], low[node] = _add(a, b, math.log1p(math.exp(-abs(x))))
