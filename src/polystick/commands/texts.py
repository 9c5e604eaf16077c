"""Raw texts on disk, and the counts of their words.

A line of a `.txt` file is a document, and so is a `.txt` file in a folder, a line of JSON with a text, or a
cell of the column of a table that --text names.
"""

from pathlib import Path

import pandas as pd

from polystick.commands.documents import read_records, read_stop_words, some
from polystick.commands.files import Table, read_frame, said_plainly, tabled
from polystick.commands.packed import ending_of, opened

__all__ = ["ENDINGS", "TABLES", "count_words", "read_texts"]

ENDINGS, TABLES = (".txt", ".jsonl"), (".csv", ".tsv", ".parquet")


def read_texts(path, reading):
    """Return texts under the names of their documents; None where the file holds none.

    The names are those of files in a folder, else numbers.
    """
    path = Path(path)
    if path.is_dir():
        return _from_folder(path)
    ending = ending_of(path)
    if not path.is_file():
        return None
    if ending == ".txt":
        with said_plainly(path), opened(path) as file:
            return _some_lines([line.strip() for line in file if line.strip()], path)
    if ending == ".jsonl":
        with said_plainly(path):
            return _from_records(path, reading)
    if ending in TABLES and reading.text is not None:
        with said_plainly(path):
            return _from_column(read_frame(path), path, reading.text)
    return None


def _from_folder(folder):
    files = sorted(p for p in folder.iterdir() if ending_of(p) == ".txt" and p.is_file())
    if not files:
        raise ValueError(
            f"the folder {folder} must hold files that end in .txt, one for each document; it has none "
            "(folders in it are not looked into)"
        )
    return pd.Series([_whole(path) for path in files], [path.name for path in files], dtype=object)


def _whole(path):
    with said_plainly(path), opened(path) as file:
        return file.read()


def _some_lines(lines, path):
    if not lines:
        raise ValueError(f"{path} must have a line for each document; it has none")
    return pd.Series(lines, dtype=object)


def _from_records(path, reading):
    records, field = read_records(path, reading)
    values = [record.get(field) for record in records]
    if not all(isinstance(value, str) for value in values):
        return None  # lists of words, or what is refused elsewhere
    return pd.Series(values, dtype=object)


def _from_column(frame, path, column):
    if column not in frame.columns:
        raise ValueError(
            f"{path} must have the column {column!r}, with the texts; its columns are {some(frame.columns)}"
        )
    texts = frame[column]
    if not any(isinstance(text, str) for text in texts):
        raise ValueError(
            f"the column {column!r} of {path} must hold texts; it has none; name another by --text"
        )
    return pd.Series(["" if pd.isna(text) else str(text) for text in texts], dtype=object)


def count_words(texts, reading, names=None):
    """Return the counts of words as a Table, and what counted them; names: the words of the fit, or None."""
    from polystick.texts import default_vectorizer, fit_vectorizer

    if names is not None:
        vectorizer = default_vectorizer(vocabulary=list(names), stop_words=None)
        counts = vectorizer.fit_transform(texts)
    else:
        vectorizer, counts = fit_vectorizer(_asked_for(reading, len(texts)), list(texts))
        names = vectorizer.get_feature_names_out()
    table = tabled(counts, names, "the texts").set_index(texts.index)
    return Table(table, pd.DataFrame(index=table.index), is_open=True), vectorizer


def _asked_for(reading, n_texts):
    """Return the vectorizer that the options describe; None for the default."""
    from polystick.texts import default_vectorizer

    asked = {"min_df": reading.min_df, "max_df": reading.max_df, "max_features": reading.max_words}
    changes = {name: value for name, value in asked.items() if value is not None}
    if reading.stop_words not in (None, True, "english"):
        chosen = reading.stop_words
        changes["stop_words"] = None if chosen == "none" else read_stop_words(chosen)
    return default_vectorizer(n_texts, **changes) if changes else None
