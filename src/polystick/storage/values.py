"""Values as JSON and arrays, and back.

None, booleans, whole numbers, finite floats, texts and lists are themselves in JSON. All else is
`{"kind": ..., ...}`, of one of the kinds below, and arrays are numbers of parts of the file. What is of no
kind is refused with the place where it was found. Objects are the name of their class, from the list in
`known`, and their attributes, without what is cached; they are made without being called, but for
`Decomposition`, kernels and sparse matrices, which check what they are made of.
"""

import dataclasses
import functools
import inspect
import math
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel

from polystick.decomposition import Decomposition
from polystick.storage import formulas, known, sense, tables
from polystick.storage.archive import ModelFileError

__all__ = ["Reader", "Writer"]

_SPARSE = {
    f"{form}_{kind}": getattr(scipy.sparse, f"{form}_{kind}")
    for form in ("csr", "csc")
    for kind in ("array", "matrix")
}
_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
_FORMULAE = ("formula", "prevalence")  # parameters that a later fit would evaluate
_DEEPEST = 60


class Writer:
    """Turns values into JSON; `arrays` are those that it names.

    Arrays lie in the file as in memory, for BLAS gives other bits where axes lie in another order.

    replace : what an object is written as, if not as itself
    """

    def __init__(self, replace: Callable[[Any], Any] = lambda thing: thing) -> None:
        self.arrays: list[np.ndarray] = []
        self._places: dict[int, int] = {}
        self._held: list[np.ndarray] = []
        self._replace = replace
        self._depth = 0

    def node(self, value: Any, where: str) -> Any:
        """Return a value as JSON; where: how a reader of an error would find it."""
        if self._depth > _DEEPEST:
            raise ModelFileError(f"{where} is nested too deeply, or holds itself")
        self._depth += 1
        try:
            return self._node(self._replace(value), where)
        finally:
            self._depth -= 1

    def _node(self, value, where):
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is list:
            return [self.node(each, f"{where}[{i}]") for i, each in enumerate(value)]
        if kind in _WRITE:
            return {"kind": kind.__name__, **_WRITE[kind](self, value, where)}
        for is_one, name, write in _WRITE_OTHERS:
            if is_one(value):
                return {"kind": name, **write(self, value, where)}
        return self._object(value, where)

    def array(self, values: np.ndarray, axes: list[int] | None = None) -> int:
        """Return the number of the part that holds an array, its axes in this order."""
        place = self._places.get(id(values))
        if place is None:
            place = self._places[id(values)] = len(self.arrays)
            self._held.append(values)  # so that no other takes its id
            self.arrays.append(values if axes is None else values.transpose(axes))
        return place

    def state(self, names_and_values: Mapping, where: str) -> dict:
        return {
            name: self.node(value, f"{where}.{name}") for name, value in names_and_values.items()
        }

    def _object(self, value, where):
        name = known.name_of(type(value))
        if name is None:
            raise ModelFileError(
                f"{where} is a {type(value).__module__}.{type(value).__qualname__}, which a model file can't "
                "hold; leave it out of the model, or keep the model with joblib, for files that only you "
                "open"
            )
        return {"kind": "object", "class": name, "state": self.state(_state(value), where)}


class Reader:
    """Turns JSON back into values; arrays are those of the file.

    budget : bytes of arrays that may be asked for, each time counted
    """

    def __init__(self, arrays: list[np.ndarray], budget: int) -> None:
        self._arrays = arrays
        self._budget = budget
        self._depth = 0

    def value(self, node: Any) -> Any:
        if not isinstance(node, dict | list):
            return node
        if self._depth > _DEEPEST * 2:
            raise ValueError("it is nested too deeply")
        self._depth += 1
        try:
            if isinstance(node, list):
                return [self.value(each) for each in node]
            return _READ[node["kind"]](self, node)
        finally:
            self._depth -= 1

    def array(self, place: int) -> np.ndarray:
        found = self._arrays[place]
        self._budget -= found.nbytes
        if self._budget < 0:
            raise ValueError("it asks for more memory than the file can be worth")
        return found


# objects


def _state(value):
    """Return name -> attribute, without what can be made again."""
    if _is_plain_kernel(type(value)):
        return value.get_params(deep=False)
    if isinstance(value, tuple):
        return {name: getattr(value, name) for name in known.fields_of(type(value))}
    if isinstance(value, Decomposition):
        return {"children": value.children}
    cached = {name for name, _ in inspect.getmembers_static(type(value), _is_cached)}
    state = value.__getstate__()
    return {name: each for name, each in state.items() if name not in cached | {"_sklearn_version"}}


def _is_plain_kernel(kind):
    """Tell a kernel of scikit-learn, whose parameters say all; ours may hold other kernels in their way."""
    return issubclass(kind, Kernel) and kind.__module__.startswith("sklearn.")


def _is_cached(attribute):
    return isinstance(attribute, functools.cached_property)


def _read_object(reader, node):
    kind = known.class_of(node["class"])
    state = {_plain(name): reader.value(each) for name, each in node["state"].items()}
    _refuse_calls(kind, state)
    if kind is Decomposition or _is_plain_kernel(kind):
        return kind(**state)
    if issubclass(kind, tuple):
        _need(kind, known.fields_of(kind), state)
        sense.check_kinds(kind, state)
        return kind(**state)
    if dataclasses.is_dataclass(kind):
        _need(kind, [field.name for field in dataclasses.fields(kind)], state)
        sense.check_kinds(kind, state)
    made = kind.__new__(kind)
    vars(made).update(_defaults(kind) | state)
    sense.check_law(made)
    return made


def _plain(name):
    if not name.isidentifier() or name.startswith("__"):
        raise ValueError(f"it has an attribute {name[:80]!r}")
    return name


def _need(kind, names, state):
    absent = [name for name in names if name not in state]
    if absent:
        raise ValueError(f"a {kind.__name__} has no {absent[0]}, which this version needs")


def _defaults(kind):
    """Return the parameters of an estimator that are newer than a file, as they are if nobody says."""
    if not issubclass(kind, BaseEstimator):
        return {}
    parameters = inspect.signature(kind.__init__).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def _refuse_calls(kind, state):
    for name in _FORMULAE if issubclass(kind, BaseEstimator) else ():
        if isinstance(state.get(name), str):
            formulas.refuse_calls(state[name])


# kinds


def _write_float(writer, value, where):
    return {"value": repr(value)}


def _write_dict(writer, value, where):
    items = [
        [writer.node(key, f"a key of {where}"), writer.node(each, f"{where}[{key!r}]")]
        for key, each in value.items()
    ]
    return {"items": items}


def _write_items(writer, value, where):
    return {"items": [writer.node(each, f"{where}[{i}]") for i, each in enumerate(value)]}


def _write_slice(writer, value, where):
    ends = (value.start, value.stop, value.step)
    return {"items": [writer.node(end, where) for end in ends]}


def _write_array(writer, value, where):
    if value.dtype.kind == "O":
        items = [
            writer.node(each, f"{where}[{i}]") for i, each in enumerate(value.ravel().tolist())
        ]
        return {"items": items, "shape": list(value.shape)}
    _need_numbers(value.dtype, where)
    axes = np.argsort([-abs(stride) for stride in value.strides], kind="stable").tolist()
    if axes == sorted(axes):
        return {"part": writer.array(value)}
    return {"part": writer.array(value, axes), "axes": axes}


def _read_array(reader, node):
    if "part" in node:
        held = reader.array(node["part"])
        return held.transpose(np.argsort(node["axes"])) if "axes" in node else held
    items, shape = node["items"], tuple(node["shape"])
    if len(items) != math.prod(shape):
        raise ValueError(f"an array of shape {shape} has {len(items)} entries")
    made = np.empty(len(items), dtype=object)
    for i, each in enumerate(items):
        made[i] = reader.value(each)
    return made.reshape(shape)


def _write_scalar(writer, value, where):
    _need_numbers(value.dtype, where)
    return {"dtype": value.dtype.str, "hex": value.tobytes().hex()}


def _read_scalar(reader, node):
    dtype = np.dtype(str(node["dtype"]))
    _need_numbers(dtype, "a number")
    (value,) = np.frombuffer(bytes.fromhex(node["hex"]), dtype)
    return value


def _need_numbers(dtype, where):
    if dtype.kind not in "biufcmMSU":
        raise ModelFileError(f"{where} is of {dtype}, which a model file can't hold")


def _write_sparse(writer, value, where):
    name = f"{value.format}_{'array' if isinstance(value, scipy.sparse.sparray) else 'matrix'}"
    if name not in _SPARSE:
        raise ModelFileError(f"{where} is a {name}, which a model file can't hold; make it CSR")
    parts = {part: writer.array(getattr(value, part)) for part in ("data", "indices", "indptr")}
    return {"form": name, "shape": [int(n) for n in value.shape], **parts}


def _read_sparse(reader, node):
    data, indices, indptr = (reader.array(node[part]) for part in ("data", "indices", "indptr"))
    made = _SPARSE[node["form"]]((data, indices, indptr), shape=tuple(node["shape"]), copy=False)
    made.check_format(full_check=True)
    return made


def _write_dtype(writer, value, where):
    return {"name": np.dtype(value).str, "of": "dtype" if isinstance(value, np.dtype) else "type"}


def _write_type(writer, value, where):
    if not issubclass(value, np.generic):
        raise ModelFileError(f"{where} is the class {value.__name__}; a model file holds none")
    return _write_dtype(writer, value, where)


def _read_dtype(reader, node):
    dtype = np.dtype(str(node["name"]))
    return dtype if node["of"] == "dtype" else dtype.type


def _write_function(writer, value, where):
    name = known.name_of_function(value)
    if name is None:
        raise ModelFileError(
            f"{where} is the function {value.__name__!r}, and a model file holds no programs; keep the model "
            "with joblib, for files that only you open"
        )
    return {"name": name}


def _write_generator(writer, value, where):
    bits = value.bit_generator
    name = type(bits).__name__
    if name not in _GENERATORS:
        raise ModelFileError(f"{where} draws from {name}, which a model file can't hold")
    return {"of": name, "state": writer.node(bits.state, where)}


def _read_generator(reader, node):
    if node["of"] not in _GENERATORS:
        raise ValueError("it names an unknown generator of random numbers")
    bits = getattr(np.random, node["of"])()
    bits.state = reader.value(node["state"])
    return np.random.Generator(bits)


def _write_random_state(writer, value, where):
    return {"state": writer.node(value.get_state(legacy=False), where)}


def _read_random_state(reader, node):
    made = np.random.RandomState()
    made.set_state(reader.value(node["state"]))
    return made


_WRITE: dict[type, Callable] = {
    float: _write_float,
    tuple: _write_items,
    dict: _write_dict,
    set: lambda writer, value, where: _write_items(writer, sorted(value, key=repr), where),
    frozenset: lambda writer, value, where: _write_items(writer, sorted(value, key=repr), where),
    bytes: lambda writer, value, where: {"hex": value.hex()},
    slice: _write_slice,
    range: _write_slice,
    np.ndarray: _write_array,
    np.random.Generator: _write_generator,
    np.random.RandomState: _write_random_state,
    types.FunctionType: _write_function,
    **tables.WRITE,
}
_WRITE_OTHERS: list[tuple[Callable, str, Callable]] = [
    (lambda value: isinstance(value, np.generic), "scalar", _write_scalar),
    (lambda value: isinstance(value, np.dtype), "dtype", _write_dtype),
    (lambda value: isinstance(value, type), "dtype", _write_type),
    (scipy.sparse.issparse, "sparse", _write_sparse),
    *tables.WRITE_OTHERS,
    *formulas.WRITE_OTHERS,
]


def _items(reader, node):
    return [reader.value(each) for each in node["items"]]


_READ: dict[str, Callable] = {
    "float": lambda reader, node: float(node["value"]),
    "tuple": lambda reader, node: tuple(_items(reader, node)),
    "set": lambda reader, node: set(_items(reader, node)),
    "frozenset": lambda reader, node: frozenset(_items(reader, node)),
    "dict": lambda reader, node: {
        reader.value(key): reader.value(each) for key, each in node["items"]
    },
    "bytes": lambda reader, node: bytes.fromhex(node["hex"]),
    "slice": lambda reader, node: slice(*_items(reader, node)),
    "range": lambda reader, node: range(*_items(reader, node)),
    "ndarray": _read_array,
    "scalar": _read_scalar,
    "sparse": _read_sparse,
    "dtype": _read_dtype,
    "function": lambda reader, node: known.function_of(node["name"]),
    "Generator": _read_generator,
    "RandomState": _read_random_state,
    "object": _read_object,
    **tables.READ,
    **formulas.READ,
}
