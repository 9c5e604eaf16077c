"""Files of counts: what a user has on disk becomes tables with names.

A file is read by its ending (CSV, TSV, parquet, JSON lines, NPZ, Matrix Market; also packed by gzip, bzip2 or
xz). Each category has a name, so that a later file with another order of columns means the same.
"""

import contextlib
import itertools
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse

from polystick.commands.arrays import (
    SPARSE,
    offsets_of,
    read_arrays,
    sparse_table,
    tokens_of,
)
from polystick.commands.documents import Documents, read_lines, read_names, some
from polystick.commands.market import read_market
from polystick.commands.packed import ending_of, said_whole, unpacked
from polystick.commands.signs import refuse_other_kinds
from polystick.commands.speech import note

__all__ = [
    "Reading",
    "Table",
    "read",
    "read_frame",
    "read_names",
    "said_plainly",
    "table_of",
    "tabled",
    "with_columns",
]

_NAMES = ("vocab", "vocabulary", "words", "names", "categories", "alphabet", "otu")  # in NPZ files
_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_WORDS_OF_A_TEXT = 3  # in a cell on average, at least


class Reading(NamedTuple):
    """How a file is to be read."""

    vocabulary: str | None = None  # a file with a name for each column
    ignore: tuple[str, ...] = ()  # columns that are not counts
    name: str | None = None  # of the column with the category, where each line is one count
    value: str | None = None  # of the column with how many; None: each line is 1
    field: str | None = None  # of each line of JSON; None: "text" or "tokens"
    max_words: int | None = None  # the most frequent are kept
    stop_words: str | None = None  # to drop from texts: "english", "none" or a file of words
    text: str | None = None  # of the column of a table that holds texts
    min_df: float | None = None  # documents that a word must be in, as a number or a share
    max_df: float | None = None


class Table(NamedTuple):
    """Counts, and what stands beside them."""

    counts: pd.DataFrame  # (n, K), a column for each category; may be sparse
    beside: pd.DataFrame  # (n, ...) other columns, such as inputs
    is_open: bool  # whether a category that was never seen is left out, and not an empty column


def read(path, reading, beside=()):
    """Return the Table or the Documents in a file.

    beside : names of columns that are no counts, but wanted
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} must be a file; there is none of that name")
    ending = ending_of(path)
    readers = {
        ".csv": lambda: _arrange(_read_csv(path, ","), path, reading, beside),
        ".tsv": lambda: _arrange(_read_csv(path, "\t"), path, reading, beside),
        ".parquet": lambda: _arrange(_read_parquet(path), path, reading, beside),
        ".jsonl": lambda: read_lines(path, reading),
        ".npz": lambda: _read_npz(path, reading),
        ".mtx": lambda: _read_market(path, reading),
    }
    if ending not in readers:
        raise ValueError(
            f"{path} must end in {', '.join(readers)}; got {path.suffix or 'no ending'}"
        )
    with said_plainly(path):
        return readers[ending]()


def read_frame(path):
    """Return the table in a CSV, TSV or parquet file as it is."""
    frame = _read_parquet(path) if ending_of(path) == ".parquet" else None
    if frame is None:
        frame = _read_csv(path, "\t" if ending_of(path) == ".tsv" else ",")
    frame.columns = frame.columns.astype(str)
    return frame


@contextlib.contextmanager
def said_plainly(path):
    """Say in a sentence what is wrong with a file that can't be read."""
    try:
        with said_whole(path):
            yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} must be text in UTF-8; byte {error.start} begins no character of it; save the file in "
            "UTF-8, for example by iconv"
        ) from error
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        said = " ".join(str(error).split())
        kind = ending_of(path)[1:].upper()
        raise ValueError(f"{path} must be a {kind} file; reading it: {said}") from error
    except (ValueError, OSError, ImportError, MemoryError):
        raise  # sentences already
    except Exception as error:  # readers of foreign files raise whatever they come across
        raise ValueError(
            f"{path} can't be read as a {ending_of(path)} file ({type(error).__name__}: {error})"
        ) from error


# tables


def _read_csv(path, separator):
    """Read a table, whose columns may not have the same name: pandas would give them new ones."""
    refuse_other_kinds(path)
    head = pd.read_csv(path, sep=separator, header=None, nrows=1, dtype=str).iloc[0].dropna()
    _refuse_other_separators(head, path, separator)
    _tell_numbers(head, path)
    twice = head[head.duplicated()]
    if len(twice):
        raise ValueError(
            f"the columns of {path} must have names that differ; {twice.iloc[0]!r} comes twice"
        )
    return pd.read_csv(path, sep=separator)


def _refuse_other_separators(head, path, separator):
    other = next((s for s in _SEPARATORS if s != separator and s in head.iloc[0]), None)
    if len(head) == 1 and other is not None:
        raise ValueError(
            f"{path} must have {_SEPARATORS[separator]} between its columns; its first line has "
            f"{_SEPARATORS[other]}: save it with the others, or, for tabs, name it .tsv"
        )


def _tell_numbers(head, path):
    """Say what names are taken for, where they may be counts."""
    if not all(name.isdecimal() for name in head):
        return
    numbers = [int(name) for name in head]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        note(
            f"the first line of {path} is taken for names, and all of them are numbers ({some(head)}); if "
            "they are counts, put a line with names above it"
        )


def _read_parquet(path):
    try:
        frame = pd.read_parquet(unpacked(path))
    except ImportError as error:
        raise ImportError(
            f"{path} is a parquet file, and reading it needs pyarrow: pip install 'polystick[parquet]', or "
            "turn it into CSV"
        ) from error
    except MemoryError:
        raise
    except Exception as error:  # a KeyError of pandas, or what Arrow raises
        raise ValueError(f"{path} must be a parquet file; reading it: {error}") from error
    return frame.reset_index() if any(frame.index.names) else frame  # as CSV would have it


def _arrange(frame, path, reading, beside):
    """Tell counts from other columns."""
    frame.columns = frame.columns.astype(str)
    lost = [c for c in (*reading.ignore, *beside) if c not in frame.columns]
    if lost:
        raise ValueError(
            f"{path} must have the column {lost[0]!r}; its columns are {some(frame.columns)}"
        )
    both = [c for c in beside if c in reading.ignore]
    if both:
        raise ValueError(f"the column {both[0]!r} is wanted, so --ignore must not name it")
    if not len(frame):
        raise ValueError(f"{path} must have a line for each row; it has none")
    frame = frame.drop(columns=list(reading.ignore))
    if reading.name is not None:
        return _from_long(frame, path, reading)
    counts = frame.drop(columns=list(beside))
    _refuse_odd_columns(counts, path)
    return Table(counts, frame[list(beside)], is_open=False)


def _refuse_odd_columns(counts, path):
    for name in counts.columns:
        if not pd.api.types.is_numeric_dtype(counts[name]):
            _refuse_texts(counts[name], path)
    for name in counts.columns:
        if name.startswith("Unnamed: "):
            raise ValueError(
                f"each column of {path} must have a name; column {name.split()[1]} (from 0) has none: "
                f'name it, or leave it out by --ignore "{name}"'
            )
        column = counts[name]
        if not pd.api.types.is_numeric_dtype(column):
            numbers = pd.to_numeric(column, errors="coerce")
            odd = numbers.isna() | (numbers.abs() >= 2.0**63)
            row = int(odd.argmax())  # the first, or 0: dates are numbers too
            raise ValueError(
                f"column {name!r} of {path} must hold counts; row {row} has {_short(column.iloc[row])}; "
                f"leave the column out by --ignore {name}, or name it by --text if it holds texts"
            )


def _refuse_texts(column, path):
    """Name the option that reads texts, where a column looks like them."""
    texts = [text for text in column.head(100) if isinstance(text, str)]
    if texts and np.mean([len(text.split()) for text in texts]) >= _WORDS_OF_A_TEXT:
        raise ValueError(
            f"column {column.name!r} of {path} holds texts, not counts; learn their topics by fit topics "
            f"--text {column.name}, or leave the column out by --ignore {column.name}"
        )


def _short(value):
    said = repr(value)
    return said if len(said) <= 30 else f"{said[:30]}..."


def _from_long(frame, path, reading):
    """Return the table of lines that each name a category; the other columns say which row it is."""
    wanted = [reading.name] if reading.value is None else [reading.name, reading.value]
    for name in wanted:
        if name not in frame.columns:
            raise ValueError(
                f"{path} must have the column {name!r}; its columns are {some(frame.columns)}"
            )
    keys = [c for c in frame.columns if c not in wanted]
    if not keys:
        raise ValueError(f"{path} must have a column, beside {some(wanted)}, that names the rows")
    frame = frame.dropna(subset=[reading.name])
    values = np.ones(len(frame)) if reading.value is None else frame[reading.value]
    if not pd.api.types.is_numeric_dtype(values):
        raise ValueError(f"column {reading.value!r} of {path} must hold counts; got text")
    rows = frame.groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    codes, names = pd.factorize(frame[reading.name].astype(str))
    _, first = np.unique(rows, return_index=True)
    cells = scipy.sparse.coo_array(
        (np.asarray(values), (rows, codes)), shape=(len(first), len(names))
    )
    counts = _by_size(tabled(cells.tocsr(), names, path), reading.max_words)
    return Table(counts, frame[keys].iloc[first].reset_index(drop=True), is_open=True)


def _by_size(counts, most):
    """Bring the columns into the order of their totals, the largest first."""
    totals = counts.sum().to_numpy()
    order = np.lexsort([counts.columns.to_numpy(str), -totals])[:most]
    return counts.iloc[:, order]


def tabled(matrix, names, path):
    """Return a sparse matrix as a table with names."""
    if len(names) != matrix.shape[1]:
        turned = "; it has as many rows: transpose it" if len(names) == matrix.shape[0] else ""
        raise ValueError(
            f"{path} must have a column for each of the {len(names)} names; it has "
            f"{matrix.shape[1]}{turned}"
        )
    matrix.sum_duplicates()
    frames: Any = pd.DataFrame.sparse
    return frames.from_spmatrix(matrix, columns=pd.Index(names).astype(str))


def with_columns(counts, names):
    """Return sparse counts of the categories named; one that is not there has none."""
    sparse: Any = counts.sparse
    cells = sparse.to_coo()
    codes = pd.Index(names).get_indexer(counts.columns)[cells.col]
    known = codes >= 0
    where = (cells.row[known], codes[known])
    shape = (len(counts), len(names))
    return tabled(scipy.sparse.csr_array((cells.data[known], where), shape), names, "the counts")


# words


def table_of(documents, names=None, most=None):
    """Count the words of documents; names: the categories, or None for those that are there."""
    if names is None:
        seen = Counter(word for words in documents.tokens for word in words)
        names = documents.names or sorted(seen, key=lambda word: (-seen[word], word))[:most]
    place = {name: k for k, name in enumerate(names)}
    cells = [(i, place[w]) for i, ws in enumerate(documents.tokens) for w in ws if w in place]
    rows, columns = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    shape = (len(documents.tokens), len(names))
    matrix = scipy.sparse.coo_array((np.ones(len(cells), dtype=np.int64), (rows, columns)), shape)
    counts = tabled(matrix.tocsr(), names, "the documents")
    return Table(counts, pd.DataFrame(index=counts.index), is_open=True)


# arrays


def _read_npz(path, reading):
    arrays = read_arrays(path)
    names = next((_names_in(arrays[name], path) for name in _NAMES if name in arrays), None)
    if reading.vocabulary is not None:
        names = read_names(reading.vocabulary)
    if "tokens" in arrays:
        return _tokens(arrays, names, path)
    if set(arrays) >= SPARSE:
        matrix = sparse_table(arrays, path)
    else:
        matrix = scipy.sparse.csr_array(_only_table(arrays, path))
    return _from_matrix(matrix, names, path, reading)


def _names_in(array, path):
    if array.ndim != 1:
        raise ValueError(f"names in {path} must be in one axis; got {array.ndim}")
    return array.astype(str).tolist()


def _only_table(arrays, path):
    tables = [array for array in arrays.values() if array.ndim == 2 and array.dtype.kind in "iufb"]
    if len(tables) != 1:
        raise ValueError(
            f"{path} must hold the arrays data, indices, indptr and shape of a CSR matrix, tokens, or "
            f"one table of counts; it holds {some(arrays) or 'arrays of objects only, which are not read'}"
        )
    return tables[0]


def _tokens(arrays, names, path):
    tokens, names = tokens_of(arrays, names, path)
    words = [names[token] for token in tokens]
    ends = itertools.pairwise(offsets_of(arrays, len(tokens), path))
    return Documents([words[a:b] for a, b in ends], names)


def _read_market(path, reading):
    names = None if reading.vocabulary is None else read_names(reading.vocabulary)
    return _from_matrix(read_market(path), names, path, reading)


def _from_matrix(matrix, names, path, reading):
    is_open = names is not None
    counts = tabled(
        matrix, [str(k) for k in range(matrix.shape[1])] if names is None else names, path
    )
    if reading.max_words is not None:
        counts = _by_size(counts, reading.max_words)
    return Table(counts, pd.DataFrame(index=counts.index), is_open)
