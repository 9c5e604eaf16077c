"""What pandas and xarray hold, as JSON and arrays: frames, series, indexes, moments of time, trees."""

import datetime
from collections.abc import Callable

import numpy as np
import pandas as pd

from polystick.storage.archive import ModelFileError

__all__ = ["READ", "WRITE", "WRITE_OTHERS"]

_EXTENSIONS = ("boolean", "string", "str", *(f"{s}Int{n}" for s in ("", "U") for n in (8, 16, 32, 64)),
               "Float32", "Float64")  # fmt: skip
_LONGEST_RANGE = 2**31


# columns


def _write_column(writer, values, where):
    """Return the values of a column or an index, without names."""
    if isinstance(values, np.ndarray):
        return writer.node(values, where)
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        categories = writer.node(dtype.categories, where)
        codes = writer.node(np.asarray(values.codes), where)
        return {
            "kind": "factor",
            "codes": codes,
            "categories": categories,
            "ordered": dtype.ordered,
        }
    if isinstance(dtype, pd.PeriodDtype):
        return {"kind": "periods", "part": writer.array(values.asi8), "type": dtype.name}
    if isinstance(dtype, pd.DatetimeTZDtype):
        part = writer.array(values.asi8)
        return {"kind": "times", "part": part, "unit": dtype.unit, "zone": str(dtype.tz)}
    if dtype.kind in "mM":
        return writer.node(np.asarray(values), where)
    if str(dtype) not in _EXTENSIONS:
        raise ModelFileError(f"{where} is a column of {dtype}, which a model file can't hold")
    missing = values.isna()
    items = [None if gone else each for each, gone in zip(values.tolist(), missing)]
    return {"kind": "column", "dtype": str(dtype), "items": [writer.node(i, where) for i in items]}


def _read_factor(reader, node):
    dtype = pd.CategoricalDtype(reader.value(node["categories"]), ordered=node["ordered"])
    return pd.Categorical.from_codes(reader.value(node["codes"]), dtype=dtype)


def _read_periods(reader, node):
    dtype = pd.PeriodDtype(str(node["type"]).removeprefix("period[").removesuffix("]"))
    return pd.arrays.PeriodArray(reader.array(node["part"]), dtype=dtype)


def _read_times(reader, node):
    stamps = reader.array(node["part"]).view(f"M8[{node['unit']}]")
    return pd.DatetimeIndex(stamps).tz_localize("UTC").tz_convert(str(node["zone"])).array


def _read_column(reader, node):
    if node["dtype"] not in _EXTENSIONS:
        raise ValueError("a column has an unknown type")
    return pd.array([reader.value(each) for each in node["items"]], dtype=node["dtype"])


# indexes, series, frames


def _write_range(writer, value, where):
    ends = [int(value.start), int(value.stop), int(value.step)]
    return {"ends": ends, "name": writer.node(value.name, where)}


def _read_range(reader, node):
    start, stop, step = map(int, node["ends"])
    made = pd.RangeIndex(start, stop, step, name=reader.value(node["name"]))
    if len(made) > _LONGEST_RANGE:
        raise ValueError(f"an index has {len(made)} entries")
    return made


def _write_index(writer, value, where):
    values = value.array
    values = values.to_numpy() if isinstance(values, pd.arrays.NumpyExtensionArray) else values
    return {"values": _write_column(writer, values, where), "name": writer.node(value.name, where)}


def _read_index(reader, node):
    values, name = reader.value(node["values"]), reader.value(node["name"])
    return pd.Index(values, dtype=_type_of(values), name=name)


def _write_levels(writer, value, where):
    levels = [writer.node(value.get_level_values(i), where) for i in range(value.nlevels)]
    return {"levels": levels}


def _read_levels(reader, node):
    return pd.MultiIndex.from_arrays([reader.value(level) for level in node["levels"]])


def _write_series(writer, value, where):
    column = _write_column(writer, _of(value), where)
    return {
        "values": column,
        "index": writer.node(value.index, f"{where}.index"),
        "name": writer.node(value.name, where),
    }


def _of(series):
    values = series.array
    return values.to_numpy() if isinstance(values, pd.arrays.NumpyExtensionArray) else values


def _read_series(reader, node):
    values, index = reader.value(node["values"]), reader.value(node["index"])
    return pd.Series(values, index, _type_of(values), reader.value(node["name"]))


def _type_of(values):
    """Return the type that pandas must be told, lest it takes objects that are texts for more."""
    return object if values.dtype == object else None


def _write_frame(writer, value, where):
    columns = [
        _write_column(writer, _of(value.iloc[:, i]), f"{where}[{name!r}]")
        for i, name in enumerate(value.columns)
    ]
    return {
        "columns": columns,
        "index": writer.node(value.index, f"{where}.index"),
        "names": writer.node(value.columns, f"{where}.columns"),
        "attrs": writer.node(dict(value.attrs), f"{where}.attrs"),
    }


def _read_frame(reader, node):
    index = reader.value(node["index"])
    columns = [reader.value(each) for each in node["columns"]]
    parts = {i: pd.Series(each, index, _type_of(each)) for i, each in enumerate(columns)}
    made = pd.DataFrame(parts, index=index)
    made.columns = reader.value(node["names"])
    made.attrs.update(reader.value(node["attrs"]))
    return made


# moments


def _write_moment(writer, value, where):
    return {"text": value.isoformat()}


def _write_stamp(writer, value, where):
    zone = None if value.tz is None else str(value.tz)
    return {"value": int(value.asm8.astype(np.int64)), "unit": value.unit, "zone": zone}


def _read_stamp(reader, node):
    stamp = pd.Timestamp(np.datetime64(node["value"], node["unit"]))
    zone = node["zone"]
    return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(str(zone))


def _write_period(writer, value, where):
    return {"ordinal": int(value.ordinal), "freq": value.freqstr}


def _read_period(reader, node):
    return pd.Period(ordinal=int(node["ordinal"]), freq=str(node["freq"]))


# trees of xarray


def _write_tree(writer, value, where):
    groups = [[".", value.to_dataset(inherit=False)]]
    for name, child in value.children.items():
        if child.children:
            raise ModelFileError(
                f"{where}/{name} has groups of its own; a model file has one level"
            )
        groups.append([str(name), child.to_dataset(inherit=False)])
    return {"groups": [[name, _write_group(writer, each, where)] for name, each in groups]}


def _write_group(writer, dataset, where):
    def variables(of):
        return [
            [
                writer.node(name, where),
                [str(dim) for dim in variable.dims],
                _write_column(writer, variable.values, f"{where}[{name!r}]"),
                writer.node(dict(variable.attrs), where),
            ]
            for name, variable in of.items()
        ]

    return {
        "data": variables(dataset.data_vars),
        "coords": variables(dataset.coords),
        "attrs": writer.node(dict(dataset.attrs), where),
    }


def _read_tree(reader, node):
    import xarray as xr

    return xr.DataTree.from_dict(
        {
            "/" if name == "." else str(name): _read_group(reader, each)
            for name, each in node["groups"]
        }
    )


def _read_group(reader, node):
    import xarray as xr

    def variables(of):
        return {
            reader.value(name): (tuple(dims), reader.value(values), reader.value(attrs))
            for name, dims, values, attrs in of
        }

    attrs = reader.value(node["attrs"])
    return xr.Dataset(variables(node["data"]), coords=variables(node["coords"]), attrs=attrs)


def _is_tree(value):
    return type(value).__name__ == "DataTree" and type(value).__module__.startswith("xarray")


WRITE: dict[type, Callable] = {
    pd.RangeIndex: _write_range,
    pd.MultiIndex: _write_levels,
    pd.Series: _write_series,
    pd.DataFrame: _write_frame,
    pd.Timestamp: _write_stamp,
    pd.Period: _write_period,
    datetime.date: _write_moment,
    datetime.datetime: _write_moment,
    type(pd.NaT): lambda writer, value, where: {},
    type(pd.NA): lambda writer, value, where: {},
}
WRITE_OTHERS: list[tuple[Callable, str, Callable]] = [
    (lambda value: isinstance(value, pd.Index), "Index", _write_index),
    (_is_tree, "DataTree", _write_tree),
]

READ: dict[str, Callable] = {
    "factor": _read_factor,
    "periods": _read_periods,
    "times": _read_times,
    "column": _read_column,
    "RangeIndex": _read_range,
    "MultiIndex": _read_levels,
    "Index": _read_index,
    "Series": _read_series,
    "DataFrame": _read_frame,
    "Timestamp": _read_stamp,
    "Period": _read_period,
    "date": lambda reader, node: datetime.date.fromisoformat(node["text"]),
    "datetime": lambda reader, node: datetime.datetime.fromisoformat(node["text"]),
    "NaTType": lambda reader, node: pd.NaT,
    "NAType": lambda reader, node: pd.NA,
    "DataTree": _read_tree,
}
