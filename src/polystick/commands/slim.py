"""Draws of topics as the folder of a run keeps them.

Topics have a number for each word, of which most say next to nothing: all probabilities below `_LEAST` of an
even share become that, and each keeps `_BITS` bits of its fraction (0.4 %), so that files of them pack well.
Covariances are thinned where they take more than `_MOST` bytes.
"""

import math

import numpy as np

__all__ = ["slimmed"]

_LEAST = 1e-3
_BITS = 7
_MOST = 2**22


def slimmed(posterior):
    """Return a `Posterior` of topics that takes less room, with the same names."""
    import xarray as xr

    parts = {str(name): node.to_dataset() for name, node in posterior.tree.children.items()}
    for group in ("posterior", "thinned", "running"):
        if group in parts:
            parts[group] = parts[group].map(_rounded, keep_attrs=True)
    if "cov" in parts.get("posterior", {}):
        parts = _with_fewer_covariances(parts)
    tree = xr.DataTree.from_dict(parts)
    tree.attrs.update(posterior.tree.attrs)
    return type(posterior)(tree)


def _rounded(variable):
    if "word" not in variable.dims:
        return variable
    least = _LEAST / variable.sizes["word"]
    return variable.copy(data=rounded(np.maximum(variable.values, least)))


def rounded(values):
    """Return positive numbers in single precision with `_BITS` bits of their fraction."""
    dropped = 23 - _BITS
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32) + np.uint32(
        1 << (dropped - 1)
    )
    return (bits & np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)).view(np.float32)


def _with_fewer_covariances(parts):
    """Keep every m-th covariance, m a power of two as for topics, so that they have draws in common."""
    drawn, thinned = parts["posterior"]["cov"], parts.get("thinned")
    if drawn.nbytes <= _MOST or thinned is None or "draw_of_topics" not in thinned.coords:
        return parts
    most = np.diff(thinned["draw_of_topics"].values).min(initial=drawn.sizes["draw"])
    by = min(int(most), 1 << math.ceil(math.log2(drawn.nbytes / _MOST)))
    few = drawn.isel(draw=slice(None, None, by)).rename(draw="draw_of_cov")
    few = few.assign_coords(draw_of_cov=np.arange(0, drawn.sizes["draw"], by))
    return {
        **parts,
        "posterior": parts["posterior"].drop_vars("cov"),
        "thinned": thinned.assign(cov=few),
    }
