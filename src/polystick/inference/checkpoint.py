"""Checkpoints: a run that is killed goes on where it stood, bit for bit.

A checkpoint is a folder with `polystick-state-N.npz` (where the run stands), `polystick-rows-B-N.npz` (where
its rows stand, a file for each part of the data, whose first block is B), `polystick-draws-N.npz` (what was
drawn between two saves) and `polystick-manifest.json`, which names the files that count with their checksums.
Each file is written aside, flushed to disk and renamed; the manifest comes last and is the only commit.
Nothing is pickled, and files of other names are never touched.
"""

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

from polystick.inference.files import CheckpointError, read_arrays, write, write_arrays
from polystick.inference.protocols import Array, Held
from polystick.validation import warn_user

FORMAT = 3  # rows in files of their own, and sums by a tree
_STATE, _DRAWS, _MANIFEST = "polystick-state-", "polystick-draws-", "polystick-manifest.json"
_ROWS = "polystick-rows-"  # and the first block, and the sweep
_OURS = re.compile(r"polystick-((state|draws|rows-\d+)-\d+\.(npz|tmp)|(manifest|probe)\.tmp)")
_KIND = "polystick checkpoint"


def fingerprint(thing: object) -> str:
    """Hash arrays, sparse matrices, plain values and tuples, lists, dicts and dataclasses of them."""
    digest = hashlib.sha256()
    for piece in _pieces(thing):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(thing: Any) -> Iterator[bytes | memoryview]:
    if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        yield f"{thing.dtype.str}{thing.shape}".encode()
        yield np.ascontiguousarray(thing).view(np.uint8).data if thing.size else b""
    elif isinstance(thing, str | int | float | bool | np.generic | None):
        yield repr(thing).encode()
    else:
        yield type(thing).__name__.encode()
        for part in _parts(thing):
            yield from _pieces(part)


def _parts(thing: Any) -> list[Any]:
    if scipy.sparse.issparse(thing):
        matrix = thing.tocsr()
        return [thing.shape, matrix.indptr, matrix.indices, matrix.data]
    if dataclasses.is_dataclass(thing):
        return [(field.name, getattr(thing, field.name)) for field in dataclasses.fields(thing)]
    if isinstance(thing, dict):
        return [len(thing), *thing.items()]
    if isinstance(thing, tuple | list):
        return [len(thing), *thing]
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
        self._last = time.monotonic()

    def exists(self) -> bool:
        return (self.folder / _MANIFEST).exists()

    def prepare(self) -> None:
        """Make the folder and see that it can be written to, before hours of work depend on it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write(self.folder / "polystick-probe.tmp", b"")
            (self.folder / "polystick-probe.tmp").unlink()
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint folder must be writable; {self.folder} is not "
                f"({error.strerror}); choose another folder"
            ) from error

    def due(self) -> bool:
        return time.monotonic() - self._last >= self.every

    def save(
        self, sweep: int, state: Mapping[str, Array], draws: Mapping[str, Array], rows: Held
    ) -> bool:
        """Write the state, the draws made since the last save and the rows; tell whether that worked."""
        try:
            self._save(sweep, state, draws, rows)
        except OSError as error:
            warn_user(
                f"no checkpoint could be written to {self.folder} after sweep {sweep} ({error}); the run "
                "goes on, and the last good checkpoint is still there"
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
        manifest: dict[str, object] = {
            "kind": _KIND,
            "format": FORMAT,
            "sweep": sweep,
            "files": kept,
        }
        manifest["identity"] = self.identity
        manifest["checksum"] = _checksum(manifest)
        write(self.folder / _MANIFEST, json.dumps(manifest, indent=1).encode())
        self._files = kept
        self._sweep_out()

    def load(self, rows: Held) -> tuple[int, dict[str, Array], list[dict[str, Array]]]:
        """Return (sweep, state, list of draws) after every check has passed, and put the rows in place."""
        manifest = self._manifest()
        files = manifest["files"]
        of_rows = {name: sha for name, sha in files.items() if name.startswith(_ROWS)}
        others = {name: sha for name, sha in files.items() if name not in of_rows}
        arrays = {name: read_arrays(self.folder / name, sha) for name, sha in others.items()}
        rows.load(self.folder, of_rows)
        self._files = files
        sweep = manifest["sweep"]
        draws = sorted((n for n in arrays if n.startswith(_DRAWS)), key=_sweep_of)
        return sweep, arrays[f"{_STATE}{sweep}.npz"], [arrays[name] for name in draws]

    def _manifest(self) -> dict[str, Any]:
        path = self.folder / _MANIFEST
        try:
            manifest: dict[str, Any] = json.loads(path.read_bytes())
            checksum = manifest.pop("checksum")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"{path} must be the manifest of a polystick checkpoint, but it can't be read as one "
                f"({error}); it was left as it is: give another folder, or delete this one to start anew"
            ) from error
        if manifest.get("kind") != _KIND or checksum != _checksum(manifest):
            raise CheckpointError(
                f"{path} is damaged or was edited: its checksum does not fit; it was left as it is: "
                "restore it from a copy, or delete the folder to start anew"
            )
        if manifest["format"] != FORMAT:
            raise CheckpointError(
                f"{path} has format {manifest['format']}, and this version of polystick reads {FORMAT}; "
                "resume with the version that wrote it"
            )
        self._refuse_foreign(manifest["identity"])
        return manifest

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
        for path in self.folder.iterdir():
            if _OURS.fullmatch(path.name) and path.name not in self._files:
                path.unlink()


class Saved(Protocol):
    """A run as its checkpoint sees it."""

    sweep: int

    def identity(self) -> dict[str, object]:
        """Return what must be the same for a checkpoint to be resumed."""

    def kept(self) -> str | None:
        """Say what an interruption leaves, or None."""

    def save(self, saver: Checkpoint) -> None: ...

    def restore(self, saver: Checkpoint) -> None: ...


def stored_seed(folder: str | Path) -> int | None:
    """Return the seed of the run in a checkpoint folder, or None if there is no such run."""
    try:
        return int(json.loads((Path(folder) / _MANIFEST).read_bytes())["identity"]["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # `load` says what is wrong with it


def open_checkpoint(
    run: Saved, folder: str | Path | None, resume: bool, every: float
) -> Checkpoint | None:
    """Return where the run saves itself, or None; with resume, put the run where it stood."""
    if folder is None:
        if resume:
            raise CheckpointError(
                "to resume, name the checkpoint folder of the run: checkpoint=..."
            )
        return None
    saver = Checkpoint(folder, run.identity(), every)
    if not saver.exists():
        saver.prepare()
    elif resume:
        run.restore(saver)
    else:
        raise CheckpointError(
            f"{saver.folder} already holds a checkpoint; pass resume=True to go on with that run, or give "
            "another folder"
        )
    return saver


def _sweep_of(name: str) -> int:
    return int(name.removesuffix(".npz").rpartition("-")[2])


def _checksum(manifest: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
