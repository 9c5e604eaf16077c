"""Files of texts or counts become a corpus in parts, in two passes and little memory.

The first pass goes through the files once and gives each word a number when it is first seen; parts with
these numbers are put aside. The second chooses the words, puts them in order and writes the parts.
"""

import contextlib
import itertools
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse

from polystick import texts
from polystick.commands.documents import Documents, read_names, read_stop_words, some
from polystick.commands.files import Reading, Table, read, said_plainly
from polystick.commands.packed import ending_of, opened, unpacked
from polystick.commands.streams import Lines, Records, column_of, folder_of
from polystick.corpus import MANIFEST, Corpus, CorpusWriter, part_name

__all__ = ["Packed", "is_corpus", "pack_files"]

_AT_ONCE = 2000  # documents whose words are held
_ASIDE = "words-by-number"
_ASCII = map(chr, range(128))
_SPACES = {ord(c): " " for c in _ASCII if not (c.isalnum() or c == "_")}  # what ends a word


class Packed(NamedTuple):
    """What came of it."""

    corpus: Corpus
    n_dropped: int  # words


class Choice(NamedTuple):
    """Which words of texts are kept."""

    min_df: float | None = None
    max_df: float | None = None
    max_words: int | None = None
    stop_words: str | None = None

    def kept(self, words, n_in, n_tokens, n_documents, are_texts):
        """Return the numbers of the words that are kept, in their order."""
        keep = np.ones(len(words), bool)
        if are_texts:
            is_word = re.compile(texts.default_vectorizer().token_pattern).fullmatch
            least, most = self._bounds(n_documents)
            keep &= (n_in >= least) & (n_in <= most) & ~np.isin(words, self._stopped())
            keep &= [is_word(word) is not None for word in words]
        kept = np.flatnonzero(keep)
        if self.max_words is not None:
            kept = kept[np.lexsort([words[kept], -n_tokens[kept]])][: self.max_words]
        return kept[np.argsort(words[kept])] if are_texts else np.sort(kept)

    def _bounds(self, n_documents):
        """Return in how many documents a word must be at least, and may be at most."""
        few = n_documents < 100  # as `texts.default_vectorizer` has it
        least = (1 if few else 2) if self.min_df is None else self.min_df
        most = (1.0 if few else 0.8) if self.max_df is None else self.max_df
        return tuple(x * n_documents if isinstance(x, float) else x for x in (least, most))

    def _stopped(self):
        if self.stop_words in (None, True, "english"):
            return texts.default_vectorizer().stop_words
        return [] if self.stop_words == "none" else read_stop_words(self.stop_words)


class Numbers:
    """Words by the order in which they were first seen, and in how many documents each is."""

    def __init__(self) -> None:
        self.of: defaultdict[str, int] = defaultdict()
        self.of.default_factory = self.of.__len__
        self.n_in = self.n_tokens = np.zeros(0, np.int64)
        self._find = re.compile(texts.default_vectorizer().token_pattern).findall

    def count_texts(self, batch):
        """Return the counts of the words of texts, as CSR."""
        return self.count_words(list(map(self._words, batch)))

    def _words(self, text):
        """Return the words of a text, and in plain English what is none, which is dropped at the end."""
        if text.isascii():
            return text.lower().translate(_SPACES).split()
        return self._find(text.lower())

    def count_words(self, batch):
        """Return the counts of lists of words."""
        ends = np.cumsum([0, *map(len, batch)])
        words = itertools.chain.from_iterable(batch)
        flat = np.fromiter(map(self.of.__getitem__, words), np.int32, int(ends[-1]))
        counts = scipy.sparse.csr_array(
            (np.ones(len(flat), np.int32), flat, ends), shape=(len(batch), max(1, len(self.of)))
        )
        return self.seen(counts)

    def renumbered(self, counts, names):
        """Return counts whose columns have names, by the numbers of these."""
        columns = np.array([self.of[str(name)] for name in names], np.int32)
        counts = scipy.sparse.csr_array(counts)
        parts = (counts.data, columns[counts.indices], counts.indptr)
        return self.seen(scipy.sparse.csr_array(parts, shape=(counts.shape[0], len(self.of))))

    def seen(self, counts):
        """Take note of the words of some documents; return their counts, each word but once."""
        counts.sum_duplicates()
        n_words = counts.shape[1]
        self.n_in = _added(self.n_in, np.bincount(counts.indices, minlength=n_words))
        tokens = np.bincount(counts.indices, counts.data, minlength=n_words)
        self.n_tokens = _added(self.n_tokens, tokens)
        return counts


def _added(total, more):
    grown = np.zeros(max(len(total), len(more)), np.result_type(total, more))
    grown[: len(total)] += total
    grown[: len(more)] += more
    return grown


class _Aside:
    """Parts of so many documents, put aside with the numbers of words as they came."""

    def __init__(self, folder, n_rows):
        self.folder, self._n_rows, self._held, self.n_parts = folder, n_rows, [], 0
        folder.mkdir(parents=True)

    def add(self, counts):
        self._held.append(counts)
        while sum(each.shape[0] for each in self._held) >= self._n_rows:
            whole = _stacked(self._held)
            self._held = [whole[self._n_rows :]] if whole.shape[0] > self._n_rows else []
            self._write(whole[: self._n_rows])

    def close(self):
        if self._held:
            self._write(_stacked(self._held))
        self._held = []

    def parts(self):
        for number in range(self.n_parts):
            yield scipy.sparse.csr_array(scipy.sparse.load_npz(self.folder / part_name(number)))

    def _write(self, counts):
        path = self.folder / part_name(self.n_parts)
        scipy.sparse.save_npz(path, counts, compressed=False)
        self.n_parts += 1


def _stacked(parts):
    """Return parts one below the other; later ones know more words."""
    width = max(part.shape[1] for part in parts)
    for part in parts:
        part.resize((part.shape[0], width))
    return scipy.sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]


def pack_files(paths, out, reading=None, choice=None, n_rows=50_000, bar=None):
    """Write a corpus from files, and return it.

    bar : called with the number of bytes that were read since it was called before
    """
    paths, out = list(map(Path, paths)), Path(out)
    reading, choice = reading or Reading(), choice or Choice()
    if out.is_dir() and any(out.iterdir()):
        has = "already holds a corpus" if (out / MANIFEST).exists() else "is not empty"
        raise ValueError(f"{out} {has}; choose another folder")
    numbers, kinds = Numbers(), set()
    aside = _Aside(out / _ASIDE, n_rows)
    try:
        for path in paths:
            for kind, counts in _counted(path, reading, numbers, bar or (lambda n_bytes: None)):
                kinds.add(kind)
                aside.add(counts)
        aside.close()
        _refuse_mixed(kinds, paths)
        n_dropped = _write(out, aside, numbers, choice, "texts" in kinds)
    except BaseException:
        shutil.rmtree(out)
        raise
    shutil.rmtree(aside.folder)
    return Packed(Corpus(out), n_dropped)


def is_corpus(path):
    """Tell whether a path is a folder with a corpus in parts."""
    path = Path(path)
    return (path / MANIFEST).is_file() or (path / part_name(0)).is_file()


def _refuse_mixed(kinds, paths):
    if len(kinds) > 1:
        raise ValueError(
            f"files of a corpus must all hold {' or all '.join(sorted(kinds))}; got both in {some(paths)}"
        )


def _write(out, aside, numbers, choice, are_texts):
    """Write the parts with the words that are kept; return how many words are not."""
    words = np.array(list(numbers.of), object)
    none = np.zeros(len(words), np.int64)
    n_in, n_tokens = _added(numbers.n_in, none), _added(numbers.n_tokens, none)
    n_documents = sum(part.shape[0] for part in aside.parts())
    kept = choice.kept(words, n_in, n_tokens, n_documents, are_texts)
    if len(kept) < 2:
        raise ValueError(
            f"a corpus must have two words at least; {len(kept)} of {len(words)} are left: ask for less, "
            "such as by --min-df 1"
        )
    place = np.full(len(words), -1, np.int32)
    place[kept] = np.arange(len(kept))
    writer = CorpusWriter(out, len(kept))
    for counts in aside.parts():
        writer.add(_with_places(counts, place, len(kept)))
    writer.close(words[kept].tolist())
    return len(words) - len(kept)


def _with_places(counts, place, n_words):
    columns = place[counts.indices]
    known = columns >= 0
    ends = np.concatenate([[0], np.cumsum(known)])[counts.indptr].astype(np.int32)
    whole = counts.data if counts.data.dtype.kind in "iu" else _whole(counts.data)
    parts = (whole[known], columns[known], ends)
    found = scipy.sparse.csr_array(parts, shape=(counts.shape[0], n_words))
    found.sort_indices()
    return found


def _whole(values):
    """Return numbers as whole ones where they are."""
    whole = values.astype(np.int32)
    return whole if (whole == values).all() else values


# files


def _counted(path, reading, numbers, bar):
    """Yield (kind, counts) of some documents after another of a file or folder."""
    with said_plainly(path):
        found = _stream_of(path, reading, bar)
        if found is None:
            yield from _of_whole(path, reading, numbers, bar)
            return
        kind, batches = found
        count = numbers.count_texts if kind == "texts" else numbers.count_words
        for batch in batches:
            yield kind, count(batch)


def _stream_of(path, reading, bar):
    """Return the kind of documents, and batches of them; None where a file is read as a whole."""
    ending = ending_of(path)
    if path.is_dir():
        return "texts", folder_of(path, _AT_ONCE, bar)
    if not path.is_file():
        raise FileNotFoundError(f"{path} must be a file or a folder; there is none of that name")
    if ending == ".txt" and not path.name.startswith("docword"):
        return "texts", Lines(path, _AT_ONCE, bar)
    if ending == ".jsonl":
        records = Records(path, reading.field, _AT_ONCE, bar)
        return records.kind, records
    if reading.text is not None:
        return "texts", column_of(path, reading.text, _AT_ONCE, bar)
    return None


def _of_whole(path, reading, numbers, bar):
    if path.name.startswith("docword"):
        names, batches = docword(path, reading.vocabulary)
        for counts in batches:
            yield "counts", numbers.renumbered(counts, names)
    else:
        found = read(path, reading)
        if isinstance(found, Documents):
            yield "words", numbers.count_words(found.tokens)
        else:
            yield "counts", numbers.renumbered(_matrix(found), found.counts.columns)
    bar(path.stat().st_size)


def _matrix(table: Table) -> scipy.sparse.csr_array:
    with contextlib.suppress(AttributeError):
        sparse: Any = table.counts.sparse
        return scipy.sparse.csr_array(sparse.to_coo())
    return scipy.sparse.csr_array(table.counts.to_numpy())


def docword(path, vocabulary=None) -> tuple[list[str], Iterator[scipy.sparse.csr_array]]:
    """Return the names of words, and counts of documents, of a bag of words as the UCI repository has it.

    Three lines with the numbers of documents, words and cells, then a line "document word count" for each
    cell, documents and words counted from 1.
    """
    with opened(path) as file:
        try:
            n_rows, n_words, _ = (int(next(file)) for _ in range(3))
        except (ValueError, StopIteration):
            raise ValueError(
                f"{path} must begin with the numbers of documents, words and cells, a line each"
            ) from None
    names = [str(k) for k in range(n_words)] if vocabulary is None else read_names(vocabulary)
    if len(names) != n_words:
        raise ValueError(f"{path} must have a name for each of {n_words} words; got {len(names)}")
    return names, _docword_parts(path, n_rows, n_words)


def _docword_parts(path, n_rows, n_words):
    done, left = 0, np.zeros((0, 3), np.int64)
    with pd.read_csv(
        unpacked(path), sep=" ", header=None, skiprows=3, dtype=np.int64, chunksize=2_000_000
    ) as chunks:
        for chunk in chunks:
            cells = np.concatenate([left, chunk.to_numpy()])
            if (np.diff(cells[:, 0]) < 0).any():
                raise ValueError(
                    f"the cells of {path} must be in the order of documents; sort them"
                )
            last = int(cells[-1, 0])  # may go on in the next chunk
            ready, left = cells[cells[:, 0] < last], cells[cells[:, 0] == last]
            yield _cells(ready, done, last - 1, n_words)
            done = last - 1
    yield _cells(left, done, n_rows, n_words)


def _cells(cells, start, stop, n_words):
    where = (cells[:, 0] - 1 - start, cells[:, 1] - 1)
    counts = scipy.sparse.coo_array((cells[:, 2].astype(np.int32), where), (stop - start, n_words))
    return counts.tocsr()
