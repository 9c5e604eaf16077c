"""Fewer draws of what is large, for files: evenly spaced, the same in each chain."""

from typing import Any

import numpy as np

from polystick.inference.posterior import Posterior
from polystick.inference.protocols import Array

__all__ = ["thinned", "thinned_to"]

_SMALL = 2**18  # bytes of a variable, that are kept whatever happens


def thinned_to(posterior: Posterior, most_bytes: int) -> Posterior:
    """Return a posterior whose large draws take about so many bytes, or itself if they do already."""
    large = [variable for _, variable in _large(posterior)]
    taken = sum(int(variable.nbytes) for variable in large)
    if taken <= most_bytes:
        return posterior
    n_chains = large[0].shape[0]
    most = max(int(variable.shape[1]) for variable in large)
    return thinned(posterior, max(n_chains, n_chains * most * most_bytes // taken))


def thinned(posterior: Posterior, n_draws: int) -> Posterior:
    """Return a posterior with at most n_draws of all chains together of each large variable."""
    large = dict(_large(posterior))
    if not large:
        return posterior
    import xarray as xr

    kept = posterior.even_draws(list(large), n_draws)
    groups = {str(name): node.to_dataset() for name, node in posterior.tree.children.items()}
    few = {name: _at(posterior, name, variable, kept) for name, variable in large.items()}
    for group in ("posterior", "thinned"):
        if group in groups:
            gone = [name for name in large if name in groups[group].data_vars]
            axes = [f"draw_of_{name}" for name in gone if group == "thinned"]
            groups[group] = groups[group].drop_vars(gone).drop_dims(axes, errors="ignore")
    groups["thinned"] = groups.get("thinned", xr.Dataset()).assign(few)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update(posterior.tree.attrs)
    return Posterior(tree, posterior.factor)


def _large(posterior: Posterior) -> list[tuple[str, Any]]:
    """Return the variables with draws (chain, draw, ...) that take more than next to nothing."""
    groups = [g for g in ("posterior", "thinned") if g in posterior.tree.children]
    found = [(str(n), v) for g in groups for n, v in posterior.tree[g].data_vars.items()]
    return [(name, variable) for name, variable in found if variable.nbytes > _SMALL]


def _at(posterior: Posterior, name: str, variable: Any, kept: Array) -> Any:
    """Return the draws of a variable that have these numbers."""
    axis, has = variable.dims[1], posterior.numbers(name)
    chosen = variable.isel({axis: np.flatnonzero(np.isin(has, kept))})
    if axis in chosen.coords:
        chosen = chosen.drop_vars(axis)
    renamed = chosen.rename({axis: f"draw_of_{name}"})
    return renamed.assign_coords({f"draw_of_{name}": kept})
