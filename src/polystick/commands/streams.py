"""Documents of a file, some at a time: what is larger than memory is read like this."""

import json

import pandas as pd

from polystick.commands.documents import some
from polystick.commands.packed import ending_of, opened

__all__ = ["Lines", "Records", "column_of", "folder_of"]

_ROWS = 20_000  # of a table


class Lines:
    """The lines of a file, each a text."""

    def __init__(self, path, size, bar, read=list):
        self.path, self.size, self.bar, self._read = path, size, bar, read

    def __iter__(self):
        with opened(self.path) as file:
            yield from self._batches(line for line in file if line.strip())

    def _batches(self, lines):
        batch, n_read = [], 0
        for line in lines:
            batch.append(line)
            n_read += len(line)
            if len(batch) == self.size:
                yield self._read(batch)
                self.bar(n_read)
                batch, n_read = [], 0
        if batch:
            yield self._read(batch)
        self.bar(n_read)


class Records(Lines):
    """Lines of JSON, whose field is a text or a list of words."""

    def __init__(self, path, field, size, bar):
        super().__init__(path, size, bar, self._values)
        self.field, self._n_read = field, 0
        with opened(path) as file:
            first = next((line for line in file if line.strip()), None)
        if first is None:
            raise ValueError(f"{path} must have a line for each document; it has none")
        record = self._record(first, 1)
        if field is None:
            self.field = next((f for f in ("text", "tokens") if f in record), None)
        if self.field is None:
            raise ValueError(
                f"the lines of {path} must have a field text or tokens; they have {some(record)}: "
                "name one by --field"
            )
        self.kind = "texts" if isinstance(record.get(self.field), str) else "words"

    def _values(self, lines):
        first = self._n_read + 1
        self._n_read += len(lines)
        return [self._value(line, i) for i, line in enumerate(lines, first)]

    def _record(self, line, i):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(f"each line of {self.path} must be JSON; line {i}: {error}") from error
        if not isinstance(record, dict):
            raise ValueError(
                f"each line of {self.path} must be an object with fields; line {i} is another"
            )
        return record

    def _value(self, line, i):
        value = self._record(line, i).get(self.field)
        if self.kind == "texts" and isinstance(value, str):
            return value
        if self.kind == "words" and isinstance(value, list):
            return [str(word) for word in value]
        wanted = "a text" if self.kind == "texts" else "a list of words"
        raise ValueError(
            f"the field {self.field!r} of each line of {self.path} must be {wanted}, as in the first; line "
            f"{i} has {type(value).__name__}"
        )


def folder_of(folder, size, bar):
    """Yield batches of texts of the .txt files in a folder, by name."""
    paths = sorted(p for p in folder.iterdir() if ending_of(p) == ".txt" and p.is_file())
    if not paths:
        raise ValueError(
            f"the folder {folder} must hold files that end in .txt, one for each document; it has none "
            "(folders in it are not looked into)"
        )
    for start in range(0, len(paths), size):
        batch = []
        for path in paths[start : start + size]:
            with opened(path) as file:
                batch.append(file.read())
        yield batch
        bar(sum(map(len, batch)))


def column_of(path, column, size, bar):
    """Yield batches of the texts in a column of a table."""
    for frame in _frames(path, column):
        found = ["" if pd.isna(text) else str(text) for text in frame[column]]
        for start in range(0, len(found), size):
            batch = found[start : start + size]
            yield batch
            bar(sum(map(len, batch)))


def _frames(path, column):
    if ending_of(path) == ".parquet":
        import pyarrow.parquet

        file = pyarrow.parquet.ParquetFile(path)
        _need_column(path, column, file.schema.names)
        yield from (b.to_pandas() for b in file.iter_batches(_ROWS, columns=[column]))
        return
    separator = "\t" if ending_of(path) == ".tsv" else ","
    _need_column(path, column, pd.read_csv(path, sep=separator, nrows=0).columns)
    with pd.read_csv(path, sep=separator, usecols=[column], chunksize=_ROWS) as chunks:
        yield from chunks


def _need_column(path, column, columns):
    if column not in columns:
        raise ValueError(
            f"{path} must have the column {column!r}, with the texts; its columns are {some(columns)}"
        )
