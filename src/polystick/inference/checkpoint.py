"""Checkpoints: a run that is killed goes on where it stood, bit for bit.

A checkpoint is a folder with `polystick-state-N.npz` (where the run stands), `polystick-rows-B-N.npz` (where
its rows stand, a file for each part of the data, whose first block is B), `polystick-draws-N.npz` (what was
drawn between two saves) and `polystick-manifest.json`, which names the files that count with their checksums.
Each file is written aside, flushed to disk and renamed; the manifest comes last and is the only commit. It is
there from the start, naming no files yet: so files without a manifest have lost it, and are left alone.
Nothing is pickled, files of other names are never touched, and the folder has one writer.
"""

import contextlib
import dataclasses
import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from polystick.folders import InUseError, one_writer, whole
from polystick.inference.files import CheckpointError, read_arrays, write_arrays
from polystick.inference.machine import moved, this_machine
from polystick.inference.protocols import Array, Held
from polystick.validation import warn_user

FORMAT = 4  # rows in files of their own, and sums by a tree
_STATE, _DRAWS, _MANIFEST = "polystick-state-", "polystick-draws-", "polystick-manifest.json"
_ROWS = "polystick-rows-"  # and the first block, and the sweep
_SAVED = re.compile(r"polystick-(state|draws|rows-\d+)-\d+\.npz")
_LEFT = re.compile(r"polystick-((state|draws|rows-\d+)-\d+(\.npz)?|(manifest|probe)(\.json)?)\.tmp")
_KIND = "polystick checkpoint"


def fingerprint(thing: object) -> str:
    """Hash arrays, sparse matrices, plain values and tuples, lists, dicts and dataclasses of them."""
    digest = hashlib.sha256()
    for piece in _pieces(thing):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(thing: Any) -> Iterator[bytes | memoryview]:
    if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        yield _ended(f"{thing.dtype.str}{thing.shape}")  # which tells how many bytes follow
        yield np.ascontiguousarray(thing).view(np.uint8).data if thing.size else b""
    elif isinstance(thing, str | int | float | bool | np.generic | None):
        yield _ended(repr(thing))
    else:
        parts = _parts(thing)
        yield _ended(f"{type(thing).__name__} {len(parts)}")
        for part in parts:
            yield from _pieces(part)


def _ended(said: str) -> bytes:
    """Return words after their length, so that no two lists of words look the same in a row."""
    encoded = said.encode(errors="surrogatepass")
    return f"{len(encoded)}:".encode() + encoded


def _parts(thing: Any) -> list[Any]:
    if scipy.sparse.issparse(thing):
        matrix = thing.tocsr()
        return [thing.shape, matrix.indptr, matrix.indices, matrix.data]
    if hasattr(thing, "identity"):  # of data in parts, which are too large to be hashed anew
        return [thing.identity]
    if dataclasses.is_dataclass(thing):
        return [(field.name, getattr(thing, field.name)) for field in dataclasses.fields(thing)]
    if isinstance(thing, dict):
        return [*thing.items()]
    if isinstance(thing, tuple | list):
        return [*thing]
    raise TypeError(f"a checkpoint can't tell runs apart by a {type(thing).__name__}")


class Checkpoint:
    """A folder that a run saves itself to, at most every `every` seconds."""

    def __init__(
        self, folder: str | Path, identity: Mapping[str, object], every: float = 60.0
    ) -> None:
        self.folder = Path(folder)
        self.identity = identity
        self.every = every
        self._files: dict[str, str] = {}
        self._saved: int | None = None  # the sweep of the checkpoint that is there
        self._begun = False  # whether the manifest is by this run
        self._last = time.monotonic()

    def exists(self) -> bool:
        """Tell whether a run has saved itself here."""
        if (self.folder / _MANIFEST).exists():
            return bool(self._manifest()["files"])
        self._refuse_lost()
        return False

    def _refuse_lost(self) -> None:
        """Raise where there are files of a run, but not what says which of them count."""
        lost = sorted(path.name for path in self._entries() if _SAVED.fullmatch(path.name))
        if lost:
            raise CheckpointError(
                f"{self.folder} holds {lost[0]}, but not {_MANIFEST}, which says what counts; it was left as "
                "it is: restore the manifest from a copy, or give another folder to start anew"
            )

    def _entries(self) -> list[Path]:
        return [*self.folder.iterdir()] if self.folder.is_dir() else []

    def prepare(self) -> None:
        """Note that a run begins, and so see that it can be saved, before hours of work depend on it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._commit(0, {})
        except OSError as error:
            raise self._not_writable(error) from error

    def _not_writable(self, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint folder must be writable; {self.folder} is not "
            f"({error.strerror}); choose another folder"
        )

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other writers out; a run that saves nothing leaves nothing."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(one_writer(self.folder))
            except InUseError as error:
                raise CheckpointError(str(error)) from error
            except OSError as error:
                if not (self.folder / _MANIFEST).exists():
                    raise self._not_writable(error) from error
            try:
                yield
            finally:
                if self._begun and not self._files:
                    (self.folder / _MANIFEST).unlink(missing_ok=True)

    def due(self) -> bool:
        return time.monotonic() - self._last >= self.every

    def save(
        self, sweep: int, state: Mapping[str, Array], draws: Mapping[str, Array], rows: Held
    ) -> bool:
        """Write the state, the draws made since the last save and the rows; tell whether that worked."""
        try:
            self._save(sweep, state, draws, rows)
        except OSError as error:
            left = (
                "and there is none yet"
                if self._saved is None
                else f"and the one after sweep {self._saved} is still there"
            )
            warn_user(
                f"no checkpoint could be written to {self.folder} after sweep {sweep} ({error}); the run "
                f"goes on, {left}"
            )
            return False
        finally:
            self._last = time.monotonic()
        return True

    def _save(
        self, sweep: int, state: Mapping[str, Array], draws: Mapping[str, Array], rows: Held
    ) -> None:
        kept = {name: sha for name, sha in self._files.items() if name.startswith(_DRAWS)}
        fresh = {f"{_STATE}{sweep}.npz": state}
        if draws:
            fresh[f"{_DRAWS}{sweep}.npz"] = draws
        for name, arrays in fresh.items():
            kept[name] = write_arrays(self.folder / name, arrays)
        kept |= rows.save(self.folder, sweep)
        self._commit(sweep, kept)
        self._files, self._saved = kept, sweep
        self._sweep_out()

    def _commit(self, sweep: int, files: Mapping[str, str]) -> None:
        manifest: dict[str, object] = {
            "kind": _KIND,
            "format": FORMAT,
            "sweep": sweep,
            "files": files,
            "identity": self.identity,
            "machine": this_machine(),
        }
        manifest["checksum"] = _checksum(manifest)
        with whole(self.folder / _MANIFEST) as file:
            file.write(json.dumps(manifest, indent=1).encode())
        self._begun = True

    def load(self, rows: Held) -> tuple[int, dict[str, Array], list[dict[str, Array]]]:
        """Return (sweep, state, list of draws) after every check has passed, and put the rows in place."""
        manifest = self._manifest()
        self._refuse_foreign(manifest["identity"])
        self._tell_of_move(manifest.get("machine", {}))
        files = manifest["files"]
        of_rows = {name: sha for name, sha in files.items() if name.startswith(_ROWS)}
        others = {name: sha for name, sha in files.items() if name not in of_rows}
        arrays = {name: read_arrays(self.folder / name, sha) for name, sha in others.items()}
        rows.load(self.folder, of_rows)
        self._files = files
        self._saved = sweep = manifest["sweep"]
        draws = sorted((n for n in arrays if n.startswith(_DRAWS)), key=_sweep_of)
        return sweep, arrays[f"{_STATE}{sweep}.npz"], [arrays[name] for name in draws]

    def _manifest(self) -> dict[str, Any]:
        path = self.folder / _MANIFEST
        try:
            manifest: dict[str, Any] = json.loads(path.read_bytes())
            checksum = manifest.pop("checksum")
        except (
            OSError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            raise CheckpointError(
                f"{path} must be the manifest of a polystick checkpoint, but it can't be read as one "
                f"({error}); it was left as it is: give another folder, or delete this one to start anew"
            ) from error
        if manifest.get("kind") != _KIND or checksum != _checksum(manifest):
            raise CheckpointError(
                f"{path} is damaged or was edited: its checksum does not fit; it was left as it is: "
                "restore it from a copy, or delete the folder to start anew"
            )
        if manifest.get("format") != FORMAT:
            raise CheckpointError(
                f"{path} has format {manifest.get('format')}, and this version of polystick reads {FORMAT}; "
                "resume with the version that wrote it"
            )
        if not _names_ours(manifest):
            raise CheckpointError(f"{path} names files that no checkpoint has; do not use it")
        return manifest

    def _tell_of_move(self, theirs: Mapping[str, object]) -> None:
        """Warn where the run goes on with what may round in other ways."""
        change = moved(theirs, this_machine())
        if change is not None:
            warn_user(
                f"the run in {self.folder} was made elsewhere ({change}); it goes on, but from here on its "
                "bits may be others than where it began"
            )

    def _refuse_foreign(self, theirs: Mapping[str, object]) -> None:
        differing = [
            name
            for name in sorted({*theirs, *self.identity})
            if theirs.get(name) != self.identity.get(name)
        ]
        if differing:
            raise CheckpointError(
                f"the checkpoint in {self.folder} belongs to another run: it differs in "
                f"{', '.join(differing)}; it was left as it is: resume with what it was started with, "
                "or give another folder"
            )

    def _sweep_out(self) -> None:
        """Remove files of ours that no longer count."""
        for path in self._entries():
            ours = _SAVED.fullmatch(path.name) or _LEFT.fullmatch(path.name)
            if ours and path.name not in self._files:
                path.unlink()


class Saved(Protocol):
    """A run as its checkpoint sees it."""

    sweep: int

    def identity(self) -> dict[str, object]:
        """Return what must be the same for a checkpoint to be resumed."""

    def kept(self) -> str | None:
        """Say what an interruption leaves, or None."""

    def save(self, saver: Checkpoint) -> bool:
        """Save the run; tell whether that worked."""

    def restore(self, saver: Checkpoint) -> None: ...


def stored_seed(folder: str | Path) -> int | None:
    """Return the seed of the run in a checkpoint folder, or None if there is no such run."""
    try:
        return int(json.loads((Path(folder) / _MANIFEST).read_bytes())["identity"]["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # `load` says what is wrong with it


@contextlib.contextmanager
def open_checkpoint(
    run: Saved,
    folder: str | Path | None,
    resume: bool,
    every: float,
    coords: Mapping[str, Any] | None = None,
) -> Iterator[Checkpoint | None]:
    """Hold the folder that the run saves itself to, or None; with resume, put the run where it stood.

    coords : names of rows and categories, which are part of what was run
    """
    if folder is None:
        if resume:
            raise CheckpointError(
                "to resume, name the checkpoint folder of the run: checkpoint=..."
            )
        yield None
        return
    identity = {**run.identity(), "names": _fingerprint_of_names(coords or {})}
    saver = Checkpoint(folder, identity, every)
    with saver.held():
        if not saver.exists():
            saver.prepare()
        elif resume:
            _restore(run, saver)
        else:
            raise CheckpointError(
                f"{saver.folder} already holds a checkpoint; pass resume=True to go on with that run, or "
                "give another folder"
            )
        yield saver


def _fingerprint_of_names(coords: Mapping[str, Any]) -> str:
    labels = {name: np.asarray(values, dtype=object).ravel() for name, values in coords.items()}
    return fingerprint({name: [str(label) for label in found] for name, found in labels.items()})


def _restore(run: Saved, saver: Checkpoint) -> None:
    try:
        run.restore(saver)
    except (LookupError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"the checkpoint in {saver.folder} holds other arrays than this run has ({error!r}); it was left "
            "as it is: give another folder"
        ) from error


def _names_ours(manifest: Mapping[str, object]) -> bool:
    """Tell whether a manifest, whose checksum anybody can compute, says what ours say."""
    files, sweep = manifest.get("files"), manifest.get("sweep")
    if not isinstance(files, dict) or not isinstance(manifest.get("identity"), dict):
        return False
    known = all(_SAVED.fullmatch(name) for name in files)
    return known and (not files or f"{_STATE}{sweep}.npz" in files)


def _sweep_of(name: str) -> int:
    return int(name.removesuffix(".npz").rpartition("-")[2])


def _checksum(manifest: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
