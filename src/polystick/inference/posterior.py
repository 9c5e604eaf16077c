"""What a run leaves: draws with (chain, draw, ...) axes in an `xarray.DataTree`.

Groups: `posterior` (draws), `sample_stats` (one number per draw), `running` (means, standard deviations and
R-hats of what is too large to keep), `thinned` (every m-th draw of it), `watched` (a few quantities of the
rows, to judge the run by), `optimisation` (the bound of mean field).
xarray, ArviZ and h5netcdf are imported where they are used, so that importing polystick stays quick.
"""

import functools
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from polystick.inference.convergence import (
    MIN_ESS,
    Verdict,
    diagnosed_groups,
    look_at,
    verdict_on,
)
from polystick.inference.diagnostics import Diagnosed
from polystick.inference.draws_file import read_tree, write_tree
from polystick.inference.protocols import Array

FORMAT = 2
_READABLE = (1, 2)
_WORTH_PACKING = 2**20  # bytes
_MOST_BYTES = 2**36


class Posterior:
    """Draws, their diagnostics and their file."""

    def __init__(self, tree: Any, factor: Any = None) -> None:
        self.tree = tree
        self.factor = factor  # of the parameters, where the fit is variational

    @classmethod
    def build(
        cls,
        groups: Mapping[str, Mapping[str, Array]],
        dims: Mapping[str, tuple[str, ...]] | None = None,
        coords: Mapping[str, Any] | None = None,
        attrs: Mapping[str, object] | None = None,
        factor: Any = None,
    ) -> Self:
        """Make the tree from group -> variable -> array, with words for the axes."""
        import xarray as xr

        dims, coords = dims or {}, coords or {}
        datasets = {}
        for group, variables in groups.items():
            named = {
                name: (_axes(group, name, np.ndim(value), dims), value)
                for name, value in variables.items()
            }
            used = {axis for axes, _ in named.values() for axis in axes}
            here = {axis: values for axis, values in coords.items() if axis in used}
            datasets[group] = xr.Dataset(named, coords=here)
        tree = xr.DataTree.from_dict(datasets)
        tree.attrs.update({"polystick_format": FORMAT, **(attrs or {})})
        return cls(tree, factor)

    def __repr__(self) -> str:
        return (
            f"<Posterior, {self.tree.attrs.get('inference')}: draws of {', '.join(self.names())}>"
        )

    def __getitem__(self, name: str) -> Array:
        """Return the draws of a variable as an array (chain, draw, ...)."""
        for group in ("posterior", "thinned"):
            if group in self.tree.children and name in self.tree[group].data_vars:
                return np.asarray(self.tree[group][name].values)
        raise KeyError(f"{name!r} was not recorded; there are {', '.join(self.names())}")

    def names(self) -> list[str]:
        """Return the names of the variables with draws."""
        groups = [g for g in ("posterior", "thinned") if g in self.tree.children]
        return [str(name) for group in groups for name in self.tree[group].data_vars]

    def flat(self, name: str) -> Array:
        """Return the draws of a variable with chain and draw in one axis."""
        return _joined(self[name])

    def together(self, names: Sequence[str], chain: int | None = None) -> list[Array]:
        """Return the variables at the draws that all of them have, chain and draw in one axis.

        chain : the number of a chain, or None for all of them
        """
        kept = {name: self.numbers(name) for name in names}
        common = functools.reduce(np.intersect1d, kept.values())
        taken = [self[name][:, np.isin(draws, common)] for name, draws in kept.items()]
        chosen = slice(None) if chain is None else slice(chain, chain + 1)
        return [_joined(array[chosen]) for array in taken]

    def spread(
        self, names: Sequence[str], n_draws: int, chain: int | None = None
    ) -> list[tuple[Array, ...]]:
        """Return about n_draws tuples of the variables, evenly spaced over chains and time."""
        arrays = self.together(names, chain)
        return [tuple(array[i] for array in arrays) for i in _evenly(len(arrays[0]), n_draws)]

    def firsts_of_chains(self, names: Sequence[str], n_draws: int) -> Array:
        """Return the numbers of those of `spread` over all chains that are the first of a chain."""
        n_chains, n_kept = len(self[names[0]]), len(self.together(names)[0])
        chains = _evenly(n_kept, n_draws) // (n_kept // n_chains)
        return np.unique(chains, return_index=True)[1]

    def even_draws(self, names: Sequence[str], n_draws: int | None) -> Array:
        """Return the numbers of draws that all of the variables have: evenly spaced, the same in each chain.

        n_draws : how many in all chains together, at most; None is all of them
        """
        common: Array = functools.reduce(np.intersect1d, map(self.numbers, names))
        if n_draws is None:
            return common
        wanted = min(len(common), max(1, n_draws // self[names[0]].shape[0]))
        picked = np.linspace(0, len(common) - 1, wanted).round().astype(int)
        return np.asarray(common[np.unique(picked)])

    def states(self, names: Sequence[str], draws: Array) -> list[dict[str, Array]]:
        """Return name -> array at these draws, a list of them: chain after chain."""
        taken = [
            _joined(self[name][:, np.isin(self.numbers(name), draws)]).copy() for name in names
        ]
        return [dict(zip(names, values)) for values in zip(*taken)]

    def numbers(self, name: str) -> Array:
        """Return which draws of a chain a variable has."""
        axis = f"draw_of_{name}"
        if "thinned" in self.tree.children and axis in self.tree["thinned"].coords:
            return np.asarray(self.tree["thinned"][axis].values)
        return np.arange(self[name].shape[1])

    def running(self, name: str) -> tuple[Array, Array]:
        """Return the running mean and standard deviation of a variable."""
        kept = self.tree["running"].data_vars if "running" in self.tree.children else {}
        if f"{name}_mean" not in kept:
            known = ", ".join(
                str(n).removesuffix("_mean") for n in kept if str(n).endswith("_mean")
            )
            raise KeyError(
                f"{name!r} has no running moments; there are those of {known or 'nothing'}"
            )
        return kept[f"{name}_mean"].values, kept[f"{name}_sd"].values

    @property
    def best_chain(self) -> int:
        """The chain with the highest log likelihood on average; 0 where draws are from factors."""
        if "sample_stats" not in self.tree.children:
            return 0
        return int(self.log_likelihood.mean(axis=1).argmax())

    @property
    def log_likelihood(self) -> Array:
        """Log likelihood of the data at each draw, (chain, draw)."""
        if "sample_stats" not in self.tree.children:
            raise KeyError(
                "a mean-field fit has no log likelihood of draws, but a bound: see summary()"
            )
        return np.asarray(self.tree["sample_stats"]["total_log_likelihood"].values)

    def to_arviz(self) -> Any:
        """Return what the installed ArviZ works on: InferenceData before 1.0, a DataTree since."""
        return suited_to_arviz(self.tree)

    def save(self, path: str | Path) -> Path:
        """Write a netCDF file with a checksum at its end, whole or not at all."""
        path = Path(path)
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"the folder {path.parent} must exist before draws are saved to it"
            )
        tree = self.tree.map_over_datasets(_storable)
        write_tree(tree, path, _packing(tree))
        return path

    @classmethod
    def load(
        cls, path: str | Path, *, unchecked: bool = False, max_bytes: int = _MOST_BYTES
    ) -> Self:
        """Read a file that `save` wrote.

        unchecked : whether to read a file without a checksum, such as one of an earlier version
        max_bytes : what the draws may take in memory
        """
        tree = read_tree(Path(path), unchecked=unchecked, max_bytes=max_bytes)
        found = tree.attrs.get("polystick_format")
        if found not in _READABLE:
            raise ValueError(
                f"{path} must hold draws in polystick's format {FORMAT}; got {found}; "
                "read it with xarray.open_datatree, or with the version that wrote it"
            )
        return cls(_renewed(tree))

    def summary(self) -> str:
        """Return one line: size of the run, worst R-hat and smallest ESS."""
        attrs = self.tree.attrs
        if attrs["inference"] != "gibbs":
            name = str(attrs["inference"]).replace("_", " ")
            ended = {1: ", converged", 0: ", not converged"}.get(attrs.get("converged"), "")
            return (
                f"{name}: bound {attrs['elbo']:.6g} after {attrs['n_sweeps']} sweeps{ended}; "
                "draws are from the factors"
            )
        chains, draws = self.log_likelihood.shape
        return f"Gibbs: {chains} chains x {draws} draws; {self.verdict().line()}"

    def diagnostics(self) -> dict[str, Diagnosed]:
        """Return what is worst in each variable: name -> Diagnosed (rhat, ess, tail_ess and where).

        Rank-normalised split R-hat, and ESS of bulk and tails, of the parameters that mean the same in each
        chain, of the log likelihood, and of what is watched of the rows. What never varies is left out.
        """
        return look_at({name: v.values for name, v in diagnosed_groups(self.tree).items()})

    def verdict(self, min_ess: float | None = None) -> Verdict:
        """Return whether the chains have converged, with the worst R-hat, the smallest ESS and where.

        min_ess : effective draws that are wanted; None is what the run was asked for, or 400
        """
        wanted = self.tree.attrs.get("min_ess", MIN_ESS) if min_ess is None else min_ess
        return verdict_on(self.tree, wanted)


def suited_to_arviz(tree: Any) -> Any:
    """Return a tree as what the installed ArviZ works on."""
    kind = vars(_import_arviz()).get("InferenceData")  # 1.x answers to the name, with a DataTree
    convert = getattr(kind, "from_datatree", None)
    return tree if convert is None else convert(tree)


def leave_one_out(tree: Any) -> tuple[Array, Array]:
    """Return log probabilities (n,) of rows given the others, and k-hat (n,), by smoothed weights.

    tree : what `suited_to_arviz` returned, with the log likelihood of one axis of rows
    """
    arviz = _import_arviz()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # k-hat says the same, row by row
        found = arviz.loo(tree, pointwise=True)
    each = found.loo_i if hasattr(found, "loo_i") else found.elpd_i  # ArviZ 0.x and 1.x
    return np.asarray(each, dtype=float), np.asarray(found.pareto_k, dtype=float)


def _packing(tree: Any) -> dict[str, Any]:
    """Return how a file is packed, without loss: group -> variable -> settings, of what is large."""
    packed = {"zlib": True, "shuffle": True, "complevel": 4}
    return {
        f"/{group}": {
            str(name): packed for name, v in node.data_vars.items() if v.nbytes > _WORTH_PACKING
        }
        for group, node in tree.children.items()
    }


def _storable(dataset: Any) -> Any:
    """Write as escapes what strings of netCDF can't hold: NUL, which ends them, and halves of letters."""
    changed = {
        name: (coord.dims, [*map(_escaped, coord.values)])
        for name, coord in dataset.coords.items()
        if coord.ndim == 1 and any(label != _escaped(label) for label in coord.values)
    }
    return dataset.assign_coords(changed) if changed else dataset


def _escaped(label: Any) -> Any:
    if not isinstance(label, str):
        return label
    return label.replace("\0", r"\x00").encode(errors="backslashreplace").decode()


def _renewed(tree: Any) -> Any:
    """Bring a tree of format 1, whose total ArviZ takes for that of an observation, to this one."""
    if tree.attrs["polystick_format"] == 1 and "sample_stats" in tree.children:
        stats = tree["sample_stats"].to_dataset()
        tree["sample_stats"] = stats.rename(log_likelihood="total_log_likelihood")
    tree.attrs["polystick_format"] = FORMAT
    for name, value in tree.attrs.items():
        tree.attrs[name] = value.item() if isinstance(value, np.generic) else value
    return tree


def _evenly(n_kept: int, n_draws: int) -> Array:
    """Return the numbers of at most n_draws of n_kept, evenly spaced."""
    return np.unique(np.linspace(0, n_kept - 1, min(n_draws, n_kept)).round().astype(int))


def _joined(draws: Array) -> Array:
    """Return draws (chain, draw, ...) with the two axes in one, also where there is nothing else."""
    return draws.reshape(draws.shape[0] * draws.shape[1], *draws.shape[2:])


def _axes(
    group: str, name: str, n_axes: int, dims: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    first: tuple[str, ...] = {
        "posterior": ("chain", "draw"),
        "sample_stats": ("chain", "draw"),
        "thinned": ("chain", f"draw_of_{name}"),
        "watched": ("chain", "draw", f"cell_of_{name}"),
        "optimisation": ("sweep",),
    }.get(group, ())
    if group == "watched":
        return first if n_axes == 3 else (f"cell_of_{name.removesuffix('_lag')}",)
    base = name.rpartition("_")[0] if group == "running" else name
    rest = dims.get(base, tuple(f"{base}_axis_{i}" for i in range(n_axes - len(first))))
    return (*first, *rest)


def _import_arviz() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            import arviz
    except ImportError as error:
        raise ImportError("this needs ArviZ: pip install polystick[arviz]") from error
    return arviz
