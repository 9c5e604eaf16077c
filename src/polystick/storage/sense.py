"""Whether what a file holds goes together, before anything is predicted from it.

Checksums tell what was damaged, not what was made to do harm: kernels would read beyond arrays that are
shorter than they should be. So kinds are those that classes say they have, laws are proper, and axes are as
long wherever they are named, as long as there are categories, splits and topics.
"""

import functools
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from polystick.conjugate import InverseWishart, NormalInverseWishart
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference.posterior import Posterior
from polystick.storage.archive import ModelFileError

__all__ = ["check", "check_kinds", "check_law"]

_READ = ("posterior", "thinned", "running")  # by predictions
_OWN_AXES = ("chain", "draw")  # draws of what is thinned are fewer
_NAMES = {  # axis -> what names it, or has a number for each
    "category": ("categories_", "concentration_", "probabilities_"),
    "word": ("words_", "seen_"),
    "input": ("inputs_",),
}
_NUMBERS = {float: (float, int, np.floating, np.integer), int: (int, np.integer)}


def check(model: Any) -> None:
    """Raise unless the parts of an estimator go together."""
    own = vars(model)
    for name, value in own.items():
        if value is not None and not _fits(name, value):
            raise ModelFileError(f"its {name} can't be a {type(value).__name__} such as this one")
    held = own.get("model_")
    sizes: dict[str, int] = {}
    for axis, size in _sizes(own, held):
        _refuse_size(f"{axis} names", axis, size, sizes)
    posterior = own.get("posterior_", own.get("_posterior"))
    if posterior is None:  # in a run folder the draws of topics lie beside
        if "inference_" in own and not {"posterior_", "_posterior", "stream_"} & own.keys():
            raise ModelFileError("it has no posterior")
        return
    for name, values in _variables(posterior):
        _refuse_axes(name, values, getattr(held, "dims", {}))
        for axis, size in values.sizes.items():
            _refuse_size(name, str(axis), size, sizes)
        if values.dtype.kind not in "biuf" or not _is_finite(name, values):
            raise ModelFileError(f"its draws of {name} are no finite numbers")


# kinds of attributes


def check_kinds(kind: Any, state: dict[str, Any]) -> None:
    """Raise unless the attributes of an object are of the kinds that its class says."""
    for name, hint in _hints(kind).items():
        if name in state and not _is_of(state[name], hint):
            raise ModelFileError(
                f"the {name} of a {kind.__name__} is a {type(state[name]).__name__}"
            )


@functools.cache
def _hints(kind):
    return {
        n: h
        for n, h in typing.get_type_hints(kind).items()
        if typing.get_origin(h) is not typing.ClassVar
    }


def _is_of(value, hint):
    """Tell whether a value is of a kind; kinds that say little are taken as they are."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return any(_is_of(value, each) for each in typing.get_args(hint))
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and not isinstance(value, bool)
    if hint is Any:
        return not isinstance(value, str | bytes | list)
    if getattr(hint, "_is_protocol", False):
        return value is not None and not isinstance(value, str | bytes | list)
    if isinstance(hint, type) and not typing.is_typeddict(hint):
        return isinstance(value, hint)
    return value is not None if hint is not type(None) else value is None


def check_law(made: Any) -> None:
    """Raise unless a law is proper, where its class can say."""
    if isinstance(made, InverseWishart | NormalInverseWishart | MatrixNormalInverseWishart):
        made._check()


# fitted attributes


def _fits(name, value):
    if name in _OBJECTS:
        return type(value).__name__ in _OBJECTS[name].split()
    return name not in _FITTED or _FITTED[name](value)


def _is_vector(value):
    return isinstance(value, np.ndarray) and value.ndim == 1


def _is_table(value):
    return isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "iuf"


def _is_level(value):
    return _is_vector(value) and value.dtype.kind == "f" and np.isfinite(value).all()


def _is_count(value):
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0


_FITTED: dict[str, Callable[[Any], bool]] = {
    "categories_": _is_vector,
    "words_": _is_vector,
    "feature_names_in_": _is_vector,
    "seen_": lambda value: _is_vector(value) and value.dtype.kind == "b",
    "_seen_rows": lambda value: _is_vector(value) and value.dtype.kind == "u",
    "inputs_": _is_table,
    "n_features_in_": _is_count,
    "_n_features_out": _is_count,
    "n_inputs_": _is_count,
    "n_iter_": _is_count,
    "seed_": _is_count,
    "_labels": lambda value: isinstance(value, dict),
    "_topics": lambda value: isinstance(value, np.ndarray) and value.ndim in (2, 3),
    **dict.fromkeys(("posterior_", "_posterior"), lambda value: isinstance(value, Posterior)),
    **dict.fromkeys(("concentration_", "probabilities_", "level_"), _is_level),
    **dict.fromkeys(("n_topics", "n_states", "n_dims", "n_regimes"), _is_count),
}
_OBJECTS = {
    "_categories": "Categories",
    "_grouping": "Grouping",
    "decomposition_": "Decomposition",
    "design_": "Design",
    "inference_": "Gibbs MeanField StochasticVI",
    "places_": "dict",
    "prevalence_": "Prevalence",
    "read_": "Read",
    "regression_": "Regression",
    "slices_": "TimeSlices",
    "stream_": "Stream",
    "vectorizer_": "CountVectorizer",
}


# axes


def _sizes(own, held) -> Iterator[tuple[str, int]]:
    """Yield axes whose lengths are told by something else than the draws."""
    for axis, names in _NAMES.items():
        yield from ((axis, len(own[name])) for name in names if own.get(name) is not None)
    link = getattr(held, "link", held)
    for decomposition in (own.get("decomposition_"), getattr(link, "decomposition", None)):
        if isinstance(decomposition, Decomposition):
            yield "category" if link is held else "topic", decomposition.n_categories
            yield "stick", decomposition.n_categories - 1
    for name in ("_n_features_out", "n_topics"):
        if "words_" in own and own.get(name) is not None:
            yield "topic", own[name]
    if "feature_names_in_" in own:
        yield "column", len(own["feature_names_in_"])
        yield "column", own.get("n_features_in_")


def _variables(posterior):
    """Yield (name, draws or what was said of them), of all groups that predictions read."""
    tree = posterior.tree
    for group in (group for group in tree.children if group in _READ):
        yield from tree[group].data_vars.items()


def _is_finite(name, values):
    """Whether they are numbers; R-hats may be none, as of one chain."""
    return str(name).endswith("_rhat") or np.isfinite(values.values).all()


def _refuse_axes(name, values, dims):
    """Raise if a variable has other axes than its model says; what is said of rows has one less."""
    own = {*_OWN_AXES, f"draw_of_{name}"}
    axes = tuple(axis for axis in values.dims if axis not in own)
    if name in dims and axes != tuple(dims[name]):
        raise ModelFileError(f"its draws of {name} have the axes {', '.join(map(str, axes))}")


def _refuse_size(name, axis, size, sizes):
    """Raise if an axis is longer or shorter than elsewhere, or has nothing."""
    known = sizes.setdefault(axis.removesuffix("_too"), size)
    if size == 0 or (size != known and axis != "draw"):
        raise ModelFileError(f"its {name} have {size} along {axis}, and other parts {known}")
