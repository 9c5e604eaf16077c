"""Words in their order, as lines of JSON have them."""

import json
import re
from pathlib import Path
from typing import NamedTuple

from polystick.commands.packed import opened

__all__ = ["Documents", "read_lines", "read_names", "read_records", "read_stop_words", "some"]

_WORD = re.compile(r"\w\w+")


class Documents(NamedTuple):
    """Words in their order."""

    tokens: list  # of lists of names
    names: list | None  # of all categories, where the file says


def read_records(path, reading):
    """Return the lines of JSON, and the field of them that has the words."""
    with opened(path) as file:
        records = [_record(line, path, i) for i, line in enumerate(file, 1) if line.strip()]
    if not records:
        raise ValueError(f"{path} must have a line for each document; it has none")
    field = reading.field or next((f for f in ("text", "tokens") if f in records[0]), None)
    if field is None:
        raise ValueError(
            f"the lines of {path} must have a field text or tokens; they have "
            f"{some(records[0])}: name one by --field"
        )
    return records, field


def read_lines(path, reading):
    """Return the words of each line of JSON."""
    records, field = read_records(path, reading)
    stop = _stop_words(reading.stop_words)
    words = (_words(record, field, path, i) for i, record in enumerate(records, 1))
    return Documents([[w for w in line if w not in stop] for line in words], None)


def _record(line, path, i):
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"each line of {path} must be JSON; line {i}: {error}") from error
    if not isinstance(record, dict):
        raise ValueError(f"each line of {path} must be an object with fields; line {i} is another")
    return record


def _words(record, field, path, i):
    value = record.get(field)
    if isinstance(value, str):
        return _WORD.findall(value.lower())
    if isinstance(value, list) and not any(isinstance(token, list | dict) for token in value):
        if any(token is None or token != token for token in value):
            raise ValueError(
                f"each word of the field {field!r} of {path} must be a text or a number; line {i} has null, "
                "or NaN; leave it out"
            )
        return [str(token) for token in value]
    raise ValueError(
        f"the field {field!r} of each line of {path} must be a text or a list of words; line {i} has "
        f"{type(value).__name__}"
    )


def _stop_words(chosen):
    """Return the words to drop; chosen: "english", "none", a file with a word in each line, or None."""
    if chosen in (None, False, "none"):
        return frozenset()
    if chosen in (True, "english"):
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return ENGLISH_STOP_WORDS
    return frozenset(read_stop_words(chosen))


def read_stop_words(path):
    """Return the words in a file, one to a line, in lower case."""
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"--stop-words must be english, none or a file with a word in each line; there is no file {path}"
        )
    return sorted({word.strip().lower() for word in read_names(path)} - {""})


def read_names(path):
    """Return the names in a file, one to a line."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"the vocabulary {path} must be a file; there is none of that name")
    return Path(path).read_text(encoding="utf-8").splitlines()


def some(names):
    names = [str(name) for name in names]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
