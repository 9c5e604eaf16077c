"""Counts of words in parts, which are read a few documents at a time: a corpus may be larger than memory.

A corpus is a folder with `part-00000.npz`, `part-00001.npz` and so on, each as ``scipy.sparse.save_npz(path,
counts, compressed=False)`` writes a CSR matrix of some documents, and with `corpus.json`, the manifest: rows,
tokens and the checksum of each part, the words and how often each occurs. `polystick pack` makes one, and
`Corpus(folder)` writes the manifest where there are parts alone.
"""

import contextlib
import hashlib
import json
import mmap
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from polystick.folders import whole

__all__ = ["MANIFEST", "Corpus", "CorpusError", "CorpusWriter", "part_name"]

MANIFEST, WORDS = "corpus.json", "words.txt"
_KIND, _FORMAT = "polystick corpus", 1
_ARRAYS = ("data", "indices", "indptr", "shape")

Array = npt.NDArray[Any]


class CorpusError(ValueError):
    """A corpus that can't be read."""


class Member(NamedTuple):
    """Where an array lies in a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int


class FilePart:
    """A part in a file, mapped into memory only while something is read from it.

    One that is compressed can't be mapped, and stays in memory once it was read. A file that was written to,
    or that this process reads for the first time, is compared with its checksum first.
    """

    def __init__(self, path: Path, n_rows: int, n_tokens: float, sha256: str) -> None:
        self.path, self.n_rows, self.n_tokens, self.sha256 = path, n_rows, n_tokens, sha256
        self._members: dict[str, Member] | None = None
        self._unpacked: dict[str, Array] = {}
        self._ends: Array | None = None
        self._stamp: tuple[int, ...] | None = None  # of the file that was checked

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_unpacked": {}, "_ends": None, "_stamp": None}

    def array(self, name: str) -> Array:
        """Return an array of the part."""
        member = self._member(name)
        if member is None:
            return self._unpack(name)
        n = int(np.prod(member.shape))
        if not n:
            return np.empty(member.shape, member.dtype)
        with self._readable(), open(self.path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return np.frombuffer(mapped, member.dtype, n, member.offset).reshape(member.shape)

    def runs(self, name: str, starts: Array, sizes: Array) -> Array:
        """Return runs of an array, one after another; many short ones are quicker to read than to map."""
        member = self._member(name)
        if member is None:
            return self._unpack(name)[_cells(starts, sizes)]
        width = member.dtype.itemsize
        places = zip((width * sizes).tolist(), (member.offset + width * starts).tolist())
        with self._readable(), open(self.path, "rb", buffering=0) as file:
            content = b"".join([_read(file, *place) for place in places])
            return np.frombuffer(content, member.dtype, int(sizes.sum()))

    def ends(self) -> Array:
        """Return where rows begin and end."""
        if self._ends is None:
            self._ends = np.array(self.array("indptr"))
        return self._ends

    def _member(self, name: str) -> Member | None:
        """Return where an array lies in the file; None: nowhere that can be mapped."""
        if self.sha256 and _stamp(self.path) != self._stamp:
            self.check()
        members = self._members
        if members is None:
            with self._readable():
                members = self._members = _members(self.path)
        return members.get(name)

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise CorpusError(
                f"{self.path} must be a CSR matrix as scipy.sparse.save_npz writes it ({error}); pack the "
                "corpus again"
            ) from error

    def _unpack(self, name: str) -> Array:
        unpacked = self._unpacked
        if name not in unpacked:
            with self._readable(), np.load(self.path, allow_pickle=False) as arrays:
                unpacked[name] = np.asarray(arrays[name])
        return unpacked[name]

    def check(self) -> None:
        """Raise unless the file is what it was when the manifest was written."""
        stamp = _stamp(self.path)
        if _checksum(self.path) != self.sha256:
            raise CorpusError(
                f"{self.path} has changed since its manifest was written: its checksum does not fit; "
                f"restore it, or delete {MANIFEST} to take it as it is now"
            )
        self._members, self._unpacked, self._ends, self._stamp = None, {}, None, stamp


class MemoryPart:
    """A part in memory."""

    def __init__(self, counts: Any) -> None:
        self.counts = scipy.sparse.csr_array(counts)
        self.n_rows = self.counts.shape[0]
        _check_counts("a part", self.array)
        self.n_tokens = float(self.counts.sum())
        pieces = (np.ascontiguousarray(self.array(name)).tobytes() for name in _ARRAYS)
        self.sha256 = hashlib.sha256(b"".join(pieces)).hexdigest()

    def array(self, name: str) -> Array:
        return np.asarray(getattr(self.counts, name))

    def runs(self, name: str, starts: Array, sizes: Array) -> Array:
        return self.array(name)[_cells(starts, sizes)]

    def ends(self) -> Array:
        return self.array("indptr")

    def check(self) -> None:
        """Do nothing: it can't have changed."""


class Corpus:
    """Counts of words (n, V) in parts.

    Blocks of documents are cut part by part, so what is drawn depends on the parts, never on threads.

    Parameters
    ----------
    folder : path
        A folder with parts, and a manifest, which is written if there is none.

    Attributes
    ----------
    shape : (n, V)
    words : array of V names, or None
    n_tokens : float
    """

    def __init__(self, folder: Any) -> None:
        self.folder: Path | None = Path(folder)
        if not self.folder.is_dir():
            raise CorpusError(
                f"{self.folder} must be a folder with parts of a corpus; there is none: make one by "
                "polystick pack FILES --out FOLDER"
            )
        if not (self.folder / MANIFEST).exists():
            _index(self.folder)
        manifest = _read_manifest(self.folder / MANIFEST)
        self._take(
            [
                FilePart(self.folder / part["file"], part["rows"], part["tokens"], part["sha256"])
                for part in manifest["parts"]
            ],
            _read_words(self.folder, manifest),
            np.asarray(manifest["counts"]),
        )

    @classmethod
    def of(cls, matrices: Iterable[Any], words: Sequence[str] | None = None) -> "Corpus":
        """Return a corpus of parts in memory, CSR matrices with the same columns."""
        corpus = cls.__new__(cls)
        parts = list(map(MemoryPart, matrices))
        widths = {part.counts.shape[1] for part in parts}
        if len(widths) != 1:
            raise CorpusError(
                f"parts of a corpus must have the same columns; got {sorted(widths)} of them"
            )
        corpus.folder = None
        total = np.sum([np.asarray(part.counts.sum(axis=0)).ravel() for part in parts], axis=0)
        corpus._take(parts, None if words is None else np.asarray(words, object), total)
        return corpus

    @classmethod
    def of_dask(cls, array: Any) -> "Corpus":
        """Return a corpus of the chunks of a dask array, computed one after another; a chunk is a part."""
        if array.ndim != 2 or array.numblocks[1] != 1:
            raise CorpusError(
                "a dask array of counts must be (documents, words) with all words in each chunk; got "
                f"chunks {array.numblocks}: rechunk it by array.rechunk({{1: -1}})"
            )
        return cls.of(array.blocks[i].compute() for i in range(array.numblocks[0]))

    def _take(self, parts: Sequence[Any], words: Array | None, counts: Array) -> None:
        if not parts:
            raise CorpusError("a corpus must have a part at least; got none")
        self.parts, self.words, self._counts = parts, words, counts
        self.offsets = np.cumsum([0, *(part.n_rows for part in parts)]).tolist()
        self.shape = (self.offsets[-1], len(counts))
        self.n_tokens = sum(part.n_tokens for part in parts)

    def __repr__(self) -> str:
        n, n_words = self.shape
        return (
            f"<Corpus of {n} documents with {self.n_tokens:.0f} tokens of {n_words} words, in "
            f"{len(self.parts)} parts>"
        )

    def __len__(self) -> int:
        return int(self.shape[0])

    def sum(self, axis: int | None = None) -> Any:
        """Return the number of tokens, or (axis=0) of tokens of each word."""
        return self.n_tokens if axis is None else self._counts

    @property
    def is_whole(self) -> bool:
        """Whether counts are whole numbers, not weights."""
        return all(part.array("data").dtype.kind in "iu" for part in self.parts)

    @property
    def identity(self) -> str:
        """What tells this corpus from others."""
        told = [str(self.shape[1]), *(part.sha256 for part in self.parts)]
        return hashlib.sha256(" ".join(told).encode()).hexdigest()

    def check(self) -> None:
        """Raise unless all parts are what they were when the manifest was written."""
        for part in self.parts:
            part.check()

    # documents

    def part(self, number: int) -> scipy.sparse.csr_array:
        """Return the counts of a part, in memory."""
        return self.rows(number, 0, self.parts[number].n_rows)

    def matrices(self) -> Iterator[scipy.sparse.csr_array]:
        """Yield the counts of each part."""
        return map(self.part, range(len(self.parts)))

    def rows(self, number: int, start: int, stop: int) -> scipy.sparse.csr_array:
        """Return the counts of some documents of a part, in memory."""
        part = self.parts[number]
        ends = np.array(part.array("indptr")[start : stop + 1], np.int64)
        cells = slice(ends[0], ends[-1])
        data, indices = (np.array(part.array(name)[cells]) for name in ("data", "indices"))
        return scipy.sparse.csr_array(
            (data, indices, ends - ends[0]), shape=(stop - start, self.shape[1])
        )

    def take(self, numbers: Array) -> scipy.sparse.csr_array:
        """Return the counts of the documents of these numbers, in their order."""
        of_part = np.searchsorted(self.offsets, numbers, side="right") - 1
        if len(numbers) and of_part[0] == of_part[-1] and (np.diff(numbers) == 1).all():
            start = int(numbers[0]) - self.offsets[of_part[0]]
            return self.rows(int(of_part[0]), start, start + len(numbers))
        places = {p: np.flatnonzero(of_part == p) for p in np.unique(of_part).tolist()}
        taken = {
            p: _taken(self.parts[p], numbers[at] - self.offsets[p]) for p, at in places.items()
        }
        sizes = np.zeros(len(numbers), np.int64)
        for p, at in places.items():
            sizes[at] = taken[p].sizes
        edges = np.concatenate([[0], np.cumsum(sizes)])
        data = _room(edges[-1], [each.data for each in taken.values()])
        indices = _room(edges[-1], [each.indices for each in taken.values()])
        for p, at in places.items():
            cells = _cells(edges[at], sizes[at])
            data[cells], indices[cells] = taken[p].data, taken[p].indices
        return scipy.sparse.csr_array((data, indices, edges), shape=(len(numbers), self.shape[1]))

    def row_cells(self) -> Array:
        """Return how many words each document has, (n,)."""
        return np.concatenate([np.diff(part.array("indptr")) for part in self.parts])

    def row_tokens(self) -> Array:
        """Return how many tokens each document has, (n,)."""
        return np.concatenate([_tokens_of(part) for part in self.parts])


class Taken(NamedTuple):
    """Some documents of a part, one after another."""

    sizes: Array  # words of each
    data: Array
    indices: Array


def _taken(part: Any, rows: Array) -> Taken:
    ends = part.ends()
    starts = ends[rows].astype(np.int64)
    sizes = ends[rows + 1] - starts
    return Taken(sizes, part.runs("data", starts, sizes), part.runs("indices", starts, sizes))


def _read(file: IO[bytes], n_bytes: int, place: int) -> bytes:
    file.seek(place)
    return file.read(n_bytes)


def _cells(starts: Array, sizes: Array) -> Array:
    """Return the numbers of runs of cells, one run after another."""
    before = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) + np.repeat(starts - before, sizes)


def _room(n: int, arrays: Sequence[Array]) -> Array:
    return np.empty(n, np.result_type(*arrays) if arrays else np.int32)


class CorpusWriter:
    """A corpus that is written part by part; it is there when it is closed, and not before."""

    def __init__(self, folder: Path, n_words: int) -> None:
        self.folder, self._parts = folder, list[dict[str, object]]()
        self._counts = np.zeros(n_words, np.int64)
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, counts: scipy.sparse.csr_array) -> None:
        """Write one more part."""
        path = self.folder / part_name(len(self._parts))
        counts.sum_duplicates()
        with whole(path) as file:
            scipy.sparse.save_npz(file, counts, compressed=False)
        self._parts.append(_entry(path, counts.shape[0], counts.sum().item()))
        self._counts = self._counts + np.asarray(counts.sum(axis=0)).ravel()

    def close(self, words: Sequence[str] | None) -> None:
        """Write the words and the manifest, which makes it a corpus."""
        if words is not None:
            with whole(self.folder / WORDS) as file:
                file.write("".join(f"{word}\n" for word in words).encode())
        _write_manifest(self.folder, self._parts, self._counts, has_words=words is not None)


def part_name(number: int) -> str:
    return f"part-{number:05d}.npz"


def _entry(path: Path, n_rows: int, n_tokens: float) -> dict[str, object]:
    return {"file": path.name, "rows": n_rows, "tokens": n_tokens, "sha256": _checksum(path)}


def _index(folder: Path) -> None:
    """Write the manifest of parts that somebody else made."""
    paths = sorted(folder.glob("part-*.npz"))
    if not paths:
        raise CorpusError(
            f"{folder} must hold parts of a corpus, such as {part_name(0)}; it has none: make them by "
            "polystick pack FILES --out FOLDER"
        )
    entries, total, width = list[dict[str, object]](), np.zeros(1), None
    for path in paths:
        part = FilePart(path, 0, 0.0, "")
        shape = tuple(part.array("shape").tolist())
        _check_counts(str(path), part.array)
        if width is not None and shape[1] != width:
            raise CorpusError(
                f"parts of a corpus must have the same columns; {paths[0].name} has {width} and "
                f"{path.name} {shape[1]}"
            )
        width, data = shape[1], part.array("data")
        indices = part.array("indices")
        total = total + np.bincount(indices, data, minlength=width)
        entries.append(_entry(path, shape[0], data.sum().item()))
    _write_manifest(folder, entries, total, has_words=(folder / WORDS).exists())


def _check_counts(name: str, array: Any) -> None:
    """Raise unless arrays are those of a CSR matrix of counts."""
    data, indices, n_words = array("data"), array("indices"), int(array("shape")[1])
    if len(indices) and not 0 <= indices.min() <= indices.max() < n_words:
        raise CorpusError(f"indices of {name} must be words from 0 to {n_words - 1}; got others")
    if data.dtype.kind not in "iuf" or (len(data) and not data.min() >= 0):
        raise CorpusError(f"{name} must hold counts, numbers from 0 on; got others")
    if data.dtype.kind == "f" and not np.isfinite(data).all():
        raise CorpusError(f"{name} must hold finite counts; got others")


def _tokens_of(part: Any) -> Array:
    sums = np.concatenate([[0], np.cumsum(part.array("data"))])
    return np.diff(sums[np.asarray(part.array("indptr"))])


def _members(path: Path) -> dict[str, Member]:
    """Return where the arrays of an NPZ file lie that are not compressed."""
    found = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for info in archive.infolist():
            if info.compress_type != zipfile.ZIP_STORED:
                continue
            file.seek(info.header_offset + 26)
            sizes = np.frombuffer(file.read(4), "<u2")
            file.seek(int(sizes.sum()), 1)
            version = np.lib.format.read_magic(file)
            read: Any = {(1, 0): np.lib.format.read_array_header_1_0}.get(
                version, np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read(file)
            if not dtype.hasobject and (not fortran or len(shape) < 2):
                found[info.filename.removesuffix(".npy")] = Member(dtype, shape, file.tell())
    return found


def _stamp(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is written to."""
    with _found(path):
        told = path.stat()
        return told.st_ino, told.st_size, told.st_mtime_ns


def _checksum(path: Path) -> str:
    with _found(path), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _found(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CorpusError(
            f"the corpus lacks {path} ({error.strerror}); restore it, or pack the corpus again"
        ) from error


def _write_manifest(
    folder: Path, parts: Sequence[Mapping[str, object]], counts: Array, has_words: bool
) -> None:
    manifest = {"kind": _KIND, "format": _FORMAT, "words": WORDS if has_words else None}
    try:
        with whole(folder / MANIFEST) as file:
            told = {**manifest, "parts": [*parts], "counts": counts.tolist()}
            file.write(json.dumps(told, indent=0).encode())
    except OSError as error:
        raise CorpusError(
            f"the manifest of the corpus in {folder} must be written there ({error.strerror}); make the "
            "folder writable"
        ) from error


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        if manifest["kind"] != _KIND or manifest["format"] != _FORMAT:
            raise CorpusError(
                f"{path} must be the manifest of a corpus in format {_FORMAT}; got {manifest['kind']!r} in "
                f"format {manifest['format']}; pack the corpus again"
            )
        named = {part["file"] for part in manifest["parts"]}
    except (OSError, LookupError, TypeError) as error:
        raise CorpusError(
            f"{path} must be the manifest of a corpus ({error!r}); pack the corpus again"
        ) from error
    except CorpusError:
        raise
    except ValueError as error:
        raise CorpusError(f"{path} must be JSON ({error}); pack the corpus again") from error
    if any(Path(name).name != name for name in named):
        raise CorpusError(f"{path} names parts outside its folder; do not use it")
    return manifest


def _read_words(folder: Path, manifest: Mapping[str, Any]) -> Array | None:
    if manifest["words"] is None:
        return None
    text = (folder / WORDS).read_text(encoding="utf-8")
    words = text.split("\n")[:-1]
    if len(words) != len(manifest["counts"]):
        raise CorpusError(
            f"{folder / WORDS} must have a line for each of {len(manifest['counts'])} words; it has "
            f"{len(words)}"
        )
    return np.asarray(words, dtype=object)
