"""Files that mean harm, or that nobody looked at: how to write each, for `fit` to read."""

import bz2
import decimal
import gzip
import io
import json
import lzma
import pickle
import struct
import zipfile

import numpy as np
import pandas as pd

COUNTS = np.random.default_rng(5).multinomial(30, [0.3, 0.25, 0.2, 0.15, 0.1], size=12)
PWNED = "pwned"  # the file that a program in one of these would make


class Evil:
    """What runs a program when it is unpickled."""

    def __init__(self, folder):
        self.path = str(folder / PWNED)

    def __reduce__(self):
        return (open, (self.path, "w"))


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def npy_with(header, data=b"", version=(1, 0)):
    """An array file with any header."""
    header = header.encode("latin1")
    size = struct.pack("<H" if version == (1, 0) else "<I", len(header))
    return b"\x93NUMPY" + bytes(version) + size + header + data


def zipped(members, suffix=".npy"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            file.writestr(name + suffix, content)
    return buffer.getvalue()


def arrays(**named):
    return zipped({name: npy(np.asarray(array)) for name, array in named.items()})


def csr(**changes):
    parts = {"data": np.ones(4, int), "indices": [0, 1, 0, 1], "indptr": [0, 2, 4], "shape": [2, 2]}
    return arrays(**{**parts, **changes})


def header(shape):
    return f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({shape}), }}"


def parquet(**columns):
    buffer = io.BytesIO()
    pd.DataFrame(columns).to_parquet(buffer)
    return buffer.getvalue()


def market(first, *lines):
    return "\n".join([f"%%MatrixMarket matrix {first}", *lines, ""])


def damaged_deflate():
    buffer = io.BytesIO()
    np.savez_compressed(buffer, counts=COUNTS)
    content = bytearray(buffer.getvalue())
    content[60:75] = b"\xff" * 15
    return bytes(content)


def of_arrays(folder):
    """NPZ files: headers that lie, indices that point outside, programs."""
    evil = np.array([Evil(folder)], dtype=object)
    yield "pickled counts", zipped({"counts": npy(evil)})
    yield "objects alone", zipped({"counts": npy(np.array([[1, "x"]], dtype=object))})
    yield "pickled vocabulary", zipped({"counts": npy(COUNTS), "vocab": npy(np.repeat(evil, 5))})
    yield "a bare pickle", pickle.dumps(Evil(folder))
    shapes = ("1000000000000,", "1000000,1000000", "-1,5", "5,-1", "2**40,3", "1e9,2", "", "0,5")
    for shape in (
        *shapes,
        "5,0",
        "9223372036854775807,2",
        "9223372036854775807,9223372036854775807",
    ):
        yield f"header claims {shape}", zipped({"counts": npy_with(header(shape), bytes(80))})
    headers = {
        "unclosed": "{'descr': '<i8'",
        "empty": "",
        "a bracket": "(",
        "a call": f"open({str(folder / PWNED)!r}, 'w')",
        "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (3,3), }",
        "old longs": "{'descr': '<i8', 'fortran_order': False, 'shape': (3L, 2L), }",
        "fields": "{'descr': [('a','<i8')], 'fortran_order': False, 'shape': (3,3), }",
        "dates": "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (2,2), }",
        "complex": "{'descr': '<c16', 'fortran_order': False, 'shape': (2,2), }",
        "very deep": "[" * 5000,
        "very long": header("2,2") + " " * 20000,
        "a string that never ends": "{\n\t'a':\n'''",
        "control characters": "\x00\x01",
    }
    for name, said in headers.items():
        for version in ((1, 0), (2, 0), (3, 0)):
            yield f"header {name} {version}", zipped({"counts": npy_with(said, bytes(64), version)})
    parts = {
        "1e12 columns": {"shape": [2, 10**12]},
        "1e9 columns": {"shape": [2, 10**9]},
        "1e12 rows": {"shape": [10**12, 2]},
        "negative rows": {"shape": [-2, 2]},
        "a shape of fractions": {"shape": [2.5, 2]},
        "a shape of text": {"shape": "ab"},
        "a shape of three": {"shape": [2, 2, 2]},
        "a shape of none": {"shape": 2},
        "an index outside": {"indices": [0, 1, 0, 99]},
        "an index far outside": {"indices": [0, 1, 0, 2**31 - 1]},
        "an index beyond int32": {"indices": [0, 1, 0, 2**40]},
        "a negative index": {"indices": [0, -1, 0, 1]},
        "indices of fractions": {"indices": [0, 1.5, 0, 1]},
        "indices of text": {"indices": list("0101")},
        "too few indices": {"indices": [0]},
        "ends that fall": {"indptr": [0, 4, 2]},
        "ends beyond the cells": {"indptr": [0, 2, 10**12]},
        "ends that begin late": {"indptr": [1, 2, 4]},
        "a negative end": {"indptr": [0, -2, 4]},
        "too few ends": {"indptr": [0, 4]},
        "text for data": {"data": list("abcd")},
        "complex data": {"data": np.ones(4) * 1j},
        "data of two axes": {"data": np.ones((2, 2))},
        "data too large": {"data": np.full(4, 2**64 - 1, np.uint64)},
    }
    for name, changes in parts.items():
        yield f"csr with {name}", csr(**changes)
    tokens = {
        "up to 2**40": {"tokens": [0, 1, 2**40]},
        "up to 2**62": {"tokens": [0, 1, 2**62]},
        "up to 1e9": {"tokens": [0, 1, 10**9]},
        "of two axes": {"tokens": [[0, 1]]},
        "that are negative": {"tokens": [0, -1, 1]},
        "ending outside": {"tokens": [0, 1, 0], "offsets": [0, 99]},
        "ending before the first": {"tokens": [0, 1, 0], "offsets": [-5, 2]},
        "ending between two": {"tokens": [0, 1, 0], "offsets": [0.0, 1.5, 3.0]},
        "with ends that fall": {"tokens": [0, 1, 0], "offsets": [0, 3, 1]},
        "with ends of two axes": {"tokens": [0, 1, 0], "offsets": [[0, 1], [1, 3]]},
        "with ends of text": {"tokens": [0, 1, 0], "offsets": ["0", "3"]},
        "with too few ends": {"tokens": [0, 1], "offsets": [2]},
        "beyond the names": {"tokens": [0, 1, 9], "vocab": ["a", "b"]},
        "of names that come twice": {"tokens": [0, 1, 0], "vocab": ["a", "a"]},
        "of names in two axes": {"tokens": [0, 1, 0], "vocab": [["a", "b"], ["c", "d"]]},
    }
    for name, parts in tokens.items():
        yield f"tokens {name}", arrays(**parts)
    tables = {
        "of one axis": {"counts": [1, 2, 3]},
        "of no axis": {"counts": 3},
        "that are two": {"a": [[1, 2]], "b": [[1, 2]]},
        "with NaN": {"counts": [[np.nan, 1], [1, 1]]},
        "with infinity": {"counts": [[np.inf, 1], [1, 1]]},
        "with a negative count": {"counts": [[-1, 1], [1, 1]]},
        "with counts too large": {"counts": [[2**62, 2**62], [1, 1]]},
        "with one column": {"counts": [[1], [1]]},
        "with one name": {"counts": [[1, 2], [2, 1]], "vocab": "ab"},
    }
    for name, parts in tables.items():
        yield f"tables {name}", arrays(**parts)
    yield "deflated wrongly", damaged_deflate()
    yield "text", b"hello"
    yield "nothing", b""
    yield "a single array", npy(COUNTS)
    yield "a zip of no arrays", zipped({"../../evil": "x", "counts": "not npy"}, ".txt")
    yield "a zip whose array is text", zipped({"counts": "not npy"})


def of_matrices():
    whole = "coordinate integer general"
    yield "1e9 columns", market(whole, "2 1000000000 1", "1 1 5")
    yield "1e12 rows and columns", market(whole, "1000000000000 1000000000000 1", "1 1 5")
    yield "dense and huge", market("array real general", "1000000 1000000", "1")
    yield "1e12 cells", market(whole, "2 2 1000000000000", "1 1 5")
    yield "a cell outside", market(whole, "2 2 1", "9 9 5")
    yield "a cell numbered 0", market(whole, "2 2 1", "0 0 5")
    yield "complex cells", market("coordinate complex general", "2 2 1", "1 1 5 1")
    yield "a symmetric matrix", market("coordinate integer symmetric", "3 3 2", "1 1 4", "2 1 3")
    yield "cells without values", market("coordinate pattern general", "2 2 2", "1 1", "2 2")
    yield "negative rows", market(whole, "-2 2 1", "1 1 5")
    yield "fewer cells than it says", market(whole, "2 2 3", "1 1 5")
    yield "no cells", market(whole, "2 2 0")
    yield "nothing to count", market(whole, "0 0 0")
    yield "a count that is no int64", market(whole, "2 2 1", "1 1 99999999999999999999999999")
    yield "words for its kind", market("x y z w")
    yield "nothing", ""
    yield "bytes", bytes(range(256))


def of_tables():
    yield "nothing", ""
    yield "a header alone", "a,b\n"
    yield "ragged lines", "a,b\n1,2,3\n1\n"
    yield "NUL", "a,b\n1,\x002\n"
    yield "text", "a,b\nx,y\n"
    yield "infinity", "a,b\ninf,1\n1,2\n"
    yield "a gap", "a,b\n,1\n1,2\n"
    yield "a negative count", "a,b\n-1,2\n"
    yield "a count beyond int64", "a,b\n99999999999999999999999,2\n1,1\n"
    yield "the largest int64", "a,b\n9223372036854775807,2\n1,1\n"
    yield "the largest count", "a,b\n1000000000,0\n1,1\n"
    yield "latin letters", "café,b\n1,2\n".encode("latin1")
    yield "truths", "a,b\nTrue,False\nTrue,True\n"
    yield "one column", "a\n1\n"
    yield "a name that is empty", ",b\n1,2\n"
    yield "a name twice", "a,a\n1,2\n"
    yield "a quote that stays open", 'a,b\n"1,2\n'
    yield "hexadecimals", "a,b\n0x10,2\n"
    yield "dates", "a,b\n2020-01-01,2\n"
    yield "nothing but zeros", "a,b,c\n0,0,0\n0,0,0\n"
    yield "complex numbers", "a,b\n1+2j,2\n"
    yield "lines that end in CR", "a,b\r1,2\r3,4\r"
    yield "a number of 5000 digits", "a,b\n" + "1" * 5000 + ",2\n"
    yield "fractions", "a,b\n1.5,2\n"
    yield "only blank lines", "\n\n\n\n"


def of_other_kinds():
    """What somebody may take for CSV."""
    table = "ash,oak\n1,2\n3,4\n"
    yield "in UTF-16", table.encode("utf-16")
    yield "in UTF-16 that does not say so", table.encode("utf-16-le")
    yield "of Excel", zipped({"xl/workbook": b"<x/>"}, ".xml")
    yield "packed", gzip.compress(table.encode())
    yield "with semicolons", table.replace(",", ";")
    yield "with tabs", table.replace(",", "\t")
    yield "a number beyond all", table.replace("3", "9" * 20)


def of_lines():
    yield "nothing", ""
    yield "a list", "[1,2]\n"
    yield "brackets without end", "[" * 200_000 + "\n"
    yield "objects without end", '{"text":' * 50_000 + "\n"
    yield "another field", '{"x":1}\n'
    yield "no text", '{"text":null}\n'
    yield "a number", '{"text":3}\n'
    yield "lists in lists", '{"tokens":[["a"]]}\n'
    yield "bytes that are no text", b'{"text":"\xff"}\n'
    yield "half a letter", '{"tokens":["\\ud800","b","c","d"]}\n' * 2
    yield "NaN and null", '{"tokens":[NaN,1,null,true,"a"]}\n{"tokens":[1,2]}\n'
    yield "empty texts", '{"text":""}\n{"text":""}\n'
    yield "one word", '{"text":"aa aa aa"}\n'
    yield "a number of 5000 digits", '{"tokens":[' + "9" * 5000 + ",1,2]}\n"
    yield "a field twice", '{"text":"aa bb","text":"cc dd"}\n'
    yield "a byte order mark", '\ufeff{"text":"aa bb"}\n'
    yield "NUL", json.dumps({"tokens": ["\0", "b", "c"]}) + "\n"
    yield "no braces", "text\n"


def of_packed_files():
    table = b"a,b\n1,2\n" * 1000
    yield "not.csv.gz", b"a,b\n1,2\n"
    yield "short.csv.gz", gzip.compress(table)[:-20]
    yield "bad-sum.csv.gz", gzip.compress(table)[:-8] + b"\0" * 8
    yield "torn.csv.gz", gzip.compress(table)[:12] + b"\xff" * 30
    yield "not.jsonl.bz2", b"xx"
    yield "short.csv.bz2", bz2.compress(table)[:-10]
    yield "not.mtx.xz", b"xx"
    yield "short.csv.xz", lzma.compress(table)[:-10]
    yield "not.npz.gz", gzip.compress(b"zz")
    yield "twice.csv.gz.gz", gzip.compress(b"x")
    yield "not.parquet.gz", gzip.compress(b"PAR1")
    yield "only.gz", b"x"
    yield "no-ending", b"x"


def of_parquet():
    yield "junk", b"PAR1junkPAR1"
    yield "nothing", b""
    yield "dates", parquet(a=[1, 2], b=[pd.Timestamp("2020"), pd.NaT])
    yield "a gap", parquet(a=pd.array([1, None], dtype="Int64"), b=[3, 4])
    yield "truths", parquet(a=[1, 2], b=pd.array([True, False], dtype="boolean"))
    yield "lists", parquet(a=[[1, 2], [3]], b=[3, 4])
    yield "categories", parquet(a=pd.Categorical(["1", "2"]), b=[3, 4])
    yield "decimals", parquet(a=[decimal.Decimal(1), decimal.Decimal(2)], b=[3, 4])
    whole = parquet(a=[1, 2], b=[3, 4])
    yield (
        "columns that pandas does not find",
        whole.replace(b'"column_indexes"', b'"column_indexex"'),
    )
    yield "a schema that is no JSON", whole.replace(b'{"index_columns"', b'["index_columns"')
    yield "a foot that is too long", whole[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1"


KINDS = {
    ".npz": of_arrays,
    ".mtx": lambda _: of_matrices(),
    ".csv": lambda _: [*of_tables(), *of_other_kinds()],
    ".jsonl": lambda _: of_lines(),
    ".parquet": lambda _: of_parquet(),
}


def write_all(folder):
    """Write all files; return name -> path."""
    written = {}
    for ending, make in KINDS.items():
        for i, (name, content) in enumerate(make(folder)):
            written[f"{ending} {name}"] = folder / f"hostile{i}{ending}", content
    for name, content in of_packed_files():
        written[name] = folder / name, content
    for path, content in written.values():
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return {name: path for name, (path, _) in written.items()}
