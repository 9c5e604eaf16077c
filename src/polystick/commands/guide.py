"""For who does not know yet what to ask: what a file holds, and what could be learned from it."""

import shlex
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from polystick.commands.documents import some
from polystick.commands.files import Reading, read, read_frame, said_plainly
from polystick.commands.packed import ending_of
from polystick.commands.speech import say
from polystick.commands.texts import TABLES, read_texts

_THEN = """\
Nothing was fitted. Such a command says what it would do, and how long it would take; with --out RUN
it does it."""
_TIMES = {"age", "date", "day", "month", "step", "time", "week", "year"}
_PLACES = {"lat", "latitude", "lon", "longitude", "x", "y"}
_LABELS = {"id", "index", "row", "unnamed: 0"}
_YEARS = (1500, 2100)
_WORDS_OF_A_TEXT = 5
_MOST_GROUPS = 0.5  # levels for each row, above which a column names rows and not groups


class Columns(NamedTuple):
    """The columns of a table, by what they seem to be."""

    counts: list
    numbers: list  # times, places and what else is measured
    groups: list
    labels: list  # a name for each row
    texts: list

    @property
    def beside(self):
        return [*self.labels, *self.groups, *self.numbers]


def look(path):
    """Tell what is in a file, and which commands could learn from it."""
    path = Path(path)
    is_table = ending_of(path) in TABLES
    if is_table:
        with said_plainly(path):
            frame = read_frame(path)
        columns = columns_of(frame)
        say(f"{path}: a table of {len(frame)} rows and {len(frame.columns)} columns")
        _tell_columns(frame, columns)
        commands = _for_table(path, columns)
    else:
        say(f"{path}: {_size_of(path)}")
        commands = _for_words(path)
    if not commands:
        say(
            "\nThere is nothing here that could be counted: polystick fit --help says which files are read."
        )
        return
    say("\nWhat could be learned:")
    for purpose, arguments in commands:
        say(f"  {purpose}\n    polystick fit {shlex.join(arguments)}")
    say(f"\n{_THEN}")


def columns_of(frame):
    """Sort the columns of a table."""
    found = Columns([], [], [], [], [])
    for name in frame.columns:
        getattr(found, _kind_of(frame[name], str(name).lower())).append(str(name))
    return found


def _kind_of(column, name):
    values = column.dropna()
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return _kind_of_words(values.astype(str))
    if name in _LABELS and values.is_unique:
        return "labels"
    is_count = (values >= 0).all() and (values % 1 == 0).all()
    is_year = len(values) > 0 and _YEARS[0] <= values.min() and values.max() <= _YEARS[1]
    return "numbers" if name in _TIMES | _PLACES or is_year or not is_count else "counts"


def _kind_of_words(values):
    if len(values) and values.str.split().str.len().mean() >= _WORDS_OF_A_TEXT:
        return "texts"
    return "labels" if values.nunique() > _MOST_GROUPS * len(values) else "groups"


def _tell_columns(frame, columns):
    counts = frame[columns.counts].to_numpy(float)
    if columns.counts:
        empty = np.mean(counts == 0) if counts.size else 0.0
        total = np.nansum(counts)
        say(
            f"  taken for counts   {some(columns.counts)}: {total:.0f} in all, {empty:.0%} of the cells are 0"
        )
    said = {
        "texts": columns.texts,
        "times, places or other numbers": columns.numbers,
        "groups": [f"{name} ({frame[name].nunique()} different)" for name in columns.groups],
        "names of rows": columns.labels,
    }
    for what, names in said.items():
        if names:
            say(f"  no counts: {what}   {', '.join(names)}")
    for name in frame.columns[frame.isna().any()]:
        say(f"  {name} lacks {frame[name].isna().sum()} values; counts must not")


def _for_table(path, columns):
    file = str(path)
    if columns.texts:
        return _for_texts(file, columns)
    if len(columns.counts) < 2:
        return _for_long(file, columns)
    start = ["multinomial", file, *_ignoring(columns.beside)]
    found = [
        ("the shares of categories, and how they vary from row to row", start),
        ("which categories go together", [*start, "--link", "softmax"]),
    ]
    if about := [*columns.numbers, *columns.groups]:
        formula = ["--formula", " + ".join(columns.numbers) or "1"]
        groups = ["--groups", ",".join(columns.groups)] if columns.groups else []
        rest = _ignoring(columns.labels)
        what = f"what the shares depend on: {some(about)}"
        found.append((what, ["regression", file, *formula, *groups, *rest]))
    if columns.numbers:
        inputs, rest = ",".join(columns.numbers), _ignoring([*columns.labels, *columns.groups])
        found.append(
            (f"shares that are smooth in {inputs}", ["gp", file, "--inputs", inputs, *rest])
        )
    return found


def _ignoring(names):
    return ["--ignore", ",".join(names)] if names else []


def _for_texts(file, columns):
    start = ["topics", file, "--text", columns.texts[0], "--topics", "20"]
    found = [("topics of the texts", start)]
    if about := [*columns.numbers, *columns.groups]:
        formula = ["--prevalence", " + ".join(about)]
        found.append((f"topics, and how they depend on {some(about)}", [*start, *formula]))
    return found


def _for_long(file, columns):
    """Return commands for a table with a line for each count."""
    names = columns.groups or columns.labels
    if not names:
        return []
    value = ["--value", columns.counts[0]] if columns.counts else []
    where = f"where {names[-1]} is the category of each line"
    if len(names) > 1:
        where += f", or another of {', '.join(names[:-1])}"
    return [(f"shares, {where}", ["multinomial", file, "--name", names[-1], *value])]


def _size_of(path):
    texts = read_texts(path, Reading())
    if texts is not None:
        n_words = texts.str.split().str.len().mean()
        return f"{len(texts)} texts of {n_words:.0f} words on average; their words are counted"
    found = read(path, Reading())
    if hasattr(found, "tokens"):
        n_words = sum(map(len, found.tokens))
        return f"{len(found.tokens)} documents, {n_words} words in their order; they are counted"
    n_rows, n_columns = found.counts.shape
    return f"a matrix of {n_rows} rows and {n_columns} categories, all of it counts"


def _for_words(path):
    file = str(path)
    found = [("topics: what the documents speak of", ["topics", file, "--topics", "20"])]
    if ending_of(path) == ".jsonl":
        found.append(("what word comes next", ["lds", file, "--states", "5", "--max-words", "200"]))
    elif path.is_file() and ending_of(path) != ".txt":
        found.append(("the shares of categories", ["multinomial", file]))
    return found
