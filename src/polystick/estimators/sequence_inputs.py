"""What comes beside sequences: inputs, how many steps were seen, totals to simulate."""

import numpy as np

from polystick.estimators.inputs import refuse_other_index
from polystick.estimators.sequences import as_array, as_list
from polystick.validation import check_integer

__all__ = ["check_n_seen", "check_totals", "read_inputs"]


def read_inputs(inputs, lengths, *, width=None, name="inputs", beside=None):
    """Return a list of (steps, m), one for each sequence.

    lengths : (n,) steps of the sequences
    width   : m of the fit, or None
    beside  : the sequences that they come with, as they came, or None
    """
    inputs = _input_list(inputs, len(lengths), name)
    if len(inputs) != len(lengths):
        raise ValueError(
            f"{name} must be a list with an array (steps, m) for each of the {len(lengths)} "
            f"sequences; got {len(inputs)}"
        )
    tables = [_read_table(table, i, name) for i, table in enumerate(inputs)]
    m = tables[0].shape[1] if width is None else width
    for i, (table, length) in enumerate(zip(tables, lengths)):
        if len(table) != length:
            raise ValueError(
                f"{name} must have a row for each step; those of sequence {i} have {len(table)} "
                f"rows for {length} steps"
            )
        if table.shape[1] != m:
            seen = "like those of the fit" if width is not None else "like those of the first"
            raise ValueError(
                f"{name} must have {m} columns, {seen}; those of sequence {i} have {table.shape[1]}"
            )
    if beside is not None:
        for i, (given, sequence) in enumerate(zip(inputs, as_list(beside))):
            refuse_other_index(given, sequence, f"{name}[{i}]", f"X[{i}]")
    return tables


def _input_list(inputs, n, name):
    """Return a list of tables; lists of numbers are one table where there is one sequence."""
    if isinstance(inputs, list | tuple):
        is_one = n == 1 and all(as_array(row, name).ndim == 1 for row in inputs)
        return [inputs] if is_one else list(inputs)
    return list(inputs) if getattr(inputs, "ndim", 2) == 3 else [inputs]


def _read_table(table, i, name):
    array = as_array(table, f"{name} of sequence {i}")
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"{name} of sequence {i} must have two axes, a row for each step and a column for each "
            f"number; got shape {array.shape}; reshape a single column with np.reshape(u, (-1, 1))"
        )
    try:
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} of sequence {i} must be numbers; got {array.dtype}") from None
    wrong = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(wrong):
        raise ValueError(
            f"{name} must be finite; step {wrong[0]} of sequence {i} has {array[wrong[0]].tolist()}; "
            "fill gaps first"
        )
    return np.ascontiguousarray(array)


def check_n_seen(n_seen, lengths):
    """Return the number of steps (n,) of each sequence that are given, not scored."""
    seen = np.asarray(n_seen)
    if seen.dtype.kind not in "iu" or seen.shape not in ((), (len(lengths),)):
        raise ValueError(
            f"n_seen must be an integer, or one for each of the {len(lengths)} sequences; "
            f"got {n_seen!r}"
        )
    seen = np.broadcast_to(seen, len(lengths)).astype(np.int64)
    wrong = np.flatnonzero((seen < 0) | (seen > lengths))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"n_seen must be between 0 and the number of steps; got {seen[i]} for sequence {i} "
            f"of {lengths[i]} steps"
        )
    return seen


def check_totals(n_steps):
    """Return totals (steps,) of each sequence to simulate."""
    if not isinstance(n_steps, list | tuple):
        check_integer("n_steps", n_steps, at_least=1)
        return [np.ones(n_steps, dtype=np.int64)]
    totals = [np.asarray(each) for each in n_steps]
    for i, each in enumerate(totals):
        if each.ndim != 1 or not each.size or each.dtype.kind not in "iu" or each.min() < 0:
            raise ValueError(
                "n_steps must be an integer, or a list of arrays (steps,) of whole totals; got "
                f"{n_steps[i]!r} for sequence {i}"
            )
    if not totals:
        raise ValueError("n_steps must have the totals of at least one sequence; got none")
    return [each.astype(np.int64) for each in totals]
