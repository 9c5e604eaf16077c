"""The folder of a run: what a fit leaves for later commands.

    settings.json    the model, its options, how the file was read, and how far the run got
    categories.json  the names of the categories, in their order
    draws.nc         the draws (`Posterior.save`), for any program that reads netCDF; those of topics are
                     rounded (`slim`)
    model.polystick  the fitted estimator (`polystick.load`); of topics without the draws, where draws.nc has
                     them
    associations.csv which topics go together, pair by pair (topics, from 5 on)
    checkpoint/      where the run stands, for --resume; of topics until the run has ended

Nothing in a folder is a program: all of it is numbers and texts, and what is damaged is told by checksums.
"""

import contextlib
import copy
import hashlib
import itertools
import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from polystick.commands.options import spelled
from polystick.commands.slim import slimmed
from polystick.folders import LOCK, one_writer, whole

__all__ = ["Run", "begin", "finish", "held", "open_run", "started", "told_of_checkpoint"]

FORMAT = 3  # checksums of the settings and the categories
_KIND = "polystick run"
_MAY_CHANGE = {"threads", "draws", "min_ess", "max_draws", "checkpoint_every"}  # when a run goes on
_RESULT = ("data", "model_sha256")  # of settings, once there is one
_SETTINGS, _CATEGORIES, _MODEL = "settings.json", "categories.json", "model.polystick"
_OLD_MODEL = "model.pickle"  # of earlier versions: never read
_ASSOCIATIONS, _DRAWS = "associations.csv", "draws.nc"
_HOLDS = {
    "topics": "CorrelatedTopicModel",
    "multinomial": "CorrelatedMultinomial",
    "regression": "MultinomialRegression",
    "gp": "MultinomialGP",
    "lds": "MultinomialLDS",
}
_CHECKPOINT, _GONE = "checkpoint", "checkpoint.tmp"
_BEFORE_A_RUN = {
    LOCK,
    f"{_SETTINGS}.tmp",
}  # what one leaves that was killed before there was anything


class Run(NamedTuple):
    """A run that has been fitted."""

    kind: str  # of model
    options: dict
    names: list  # of the categories
    estimator: Any
    associations: Any = None  # a table of all pairs of topics, where it was made


@contextlib.contextmanager
def held(folder):
    """Hold the folder of a run, so that no other process writes to it; it goes again if it stays empty."""
    folder = Path(folder)
    if folder.is_file():
        yield  # `begin` says so
        return
    was_there = folder.exists()
    try:
        with one_writer(folder):
            yield
    finally:
        if not was_there:
            _remove_if_empty(folder)


def begin(folder, kind, given, defaults, resume):
    """Return the options of a run that starts, or goes on; given: those on the command line, None if not.

    A run that goes on has the options that it was started with.
    """
    folder = Path(folder)
    chosen = {name: value for name, value in given.items() if value is not None}
    if (folder / _SETTINGS).exists():
        if not resume:
            raise ValueError(
                f"{folder} already holds a run; add --resume to go on with it, or choose another folder"
            )
        stored = _settings(folder)
        _refuse_changes(folder, kind, chosen, stored)
        if "model_sha256" in stored and not (folder / _CHECKPOINT).exists():
            raise ValueError(
                f"the run in {folder} has ended, and its checkpoint is gone, for that of topics is large; "
                "start a longer run in another folder, with --keep-checkpoint if it may have to go on"
            )
        return {**stored["options"], **chosen}
    if folder.is_file() or (folder.is_dir() and {p.name for p in folder.iterdir()} - _BEFORE_A_RUN):
        raise ValueError(
            f"{folder} must be a new or an empty folder, or a run; it is something else"
        )
    return {**given, **defaults, **chosen}


def _refuse_changes(folder, kind, chosen, stored):
    if stored["model"] != kind:
        raise ValueError(f"{folder} holds a run of {stored['model']}, not of {kind}")
    options = stored["options"]
    for name, value in chosen.items():
        value = list(value) if isinstance(value, tuple) else value
        if name not in _MAY_CHANGE and options.get(name) != value:
            raise ValueError(
                f"the run in {folder} was started with {spelled(name)} {options.get(name)}; got {value}; "
                "leave the option out to go on, or choose another folder"
            )
    if chosen.get("draws", options["draws"]) < options["draws"]:
        raise ValueError(
            f"a run can only become longer; that in {folder} was started with --draws "
            f"{options['draws']}; got {chosen['draws']}"
        )


def note(folder, kind, options, **more):
    """Write the settings of a run."""
    from polystick import __version__

    Path(folder).mkdir(parents=True, exist_ok=True)
    settings = {"kind": _KIND, "format": FORMAT, "version": __version__, "model": kind}
    settings |= {"options": options, **more}
    _write(Path(folder) / _SETTINGS, _encode({**settings, "checksum": _checksum(settings)}))


@contextlib.contextmanager
def started(folder, kind, options, names):
    """Note that a run is on its way; where it fails, leave the folder as it was.

    Until it has ended, later commands see the run as it was before it went on.
    """
    path, checkpoint = Path(folder) / _SETTINGS, Path(folder) / _CHECKPOINT
    before = path.read_bytes() if path.exists() else None
    _refuse_other_names(folder, names)
    former = {} if before is None else _settings(folder)
    kept = {name: former[name] for name in _RESULT if name in former}
    note(folder, kind, options, **kept, categories_sha256=_sha256_of(_encode(names)))
    _write(Path(folder) / _CATEGORIES, _encode(names))
    try:
        yield
    except Exception:
        if before is not None:
            _write(path, before)
        elif not checkpoint.exists() or not any(checkpoint.iterdir()):
            shutil.rmtree(checkpoint, ignore_errors=True)
            (Path(folder) / _CATEGORIES).unlink()
            path.unlink()  # last: until then it is a run
        raise


def _refuse_other_names(folder, names):
    path = Path(folder) / _CATEGORIES
    known = _categories(Path(folder), _settings(Path(folder))) if path.exists() else names
    if known != names:
        other = next((a, b) for a, b in itertools.zip_longest(known, names) if a != b)
        raise ValueError(
            f"the run in {folder} has other categories: {other[0]!r} where this file has {other[1]!r}"
        )


def _remove_if_empty(folder):
    with contextlib.suppress(OSError):  # something else is in there
        folder.rmdir()


def finish(folder, kind, options, estimator, associations=None, **more):
    """Write what later commands need; return whether the draws could be written too."""
    folder = Path(folder)
    (folder / _ASSOCIATIONS).unlink(missing_ok=True)  # of a run that has gone on
    if associations is not None:
        _write(folder / _ASSOCIATIONS, associations.to_csv(index=False).encode())
    kept = copy.copy(estimator)
    if kind == "topics":
        kept.posterior_ = slimmed(estimator.posterior_)
    try:
        kept.posterior_.save(folder / _DRAWS)
        has_draws = True
    except ImportError:  # the libraries for netCDF are optional
        has_draws = False
    if has_draws and kind == "topics":
        kept.posterior_ = None
    kept.save(folder / _MODEL, posterior=True)
    more["categories_sha256"] = _sha256(folder / _CATEGORIES)
    note(folder, kind, options, **more, model_sha256=_sha256(folder / _MODEL))
    (folder / _OLD_MODEL).unlink(missing_ok=True)
    if kind == "topics" and _has_ended(estimator) and not options.get("keep_checkpoint"):
        _drop_checkpoint(folder)
    return has_draws


def _drop_checkpoint(folder):
    """Remove the checkpoint, which is there or not, but never in part."""
    shutil.rmtree(folder / _GONE, ignore_errors=True)  # where this was killed
    (folder / _CHECKPOINT).rename(folder / _GONE)
    shutil.rmtree(folder / _GONE, ignore_errors=True)


@contextlib.contextmanager
def told_of_checkpoint(folder):
    """Say of a result that can't be written what there is to go on from."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py raises either where a disk is full
        is_there = (Path(folder) / _CHECKPOINT / "polystick-manifest.json").exists()
        left = "its checkpoint is whole" if is_there else "it has no checkpoint"
        raise RuntimeError(
            f"the result could not be written to {folder} ({error}), but {left}; make room, and repeat the "
            "command with --resume"
        ) from error


def _has_ended(estimator):
    return bool(estimator.posterior_.tree.attrs.get("finished", 1))


def open_run(folder, threads=None):
    """Return the run in a folder."""
    folder = Path(folder)
    settings = _settings(folder)
    if "model_sha256" not in settings:
        raise ValueError(
            f"the run in {folder} has not ended; go on with the command that started it and --resume"
        )
    estimator = _model(folder, settings)
    if getattr(estimator, "posterior_", None) is None:
        from polystick import Posterior

        estimator.posterior_ = Posterior.load(folder / _DRAWS)
    estimator.set_params(n_jobs=threads, progress=False, checkpoint=None)
    names = _categories(folder, settings)
    return Run(settings["model"], settings["options"], names, estimator, _associations(folder))


def _categories(folder, settings):
    return json.loads(_checked(folder / _CATEGORIES, settings.get("categories_sha256")))


def _associations(folder):
    import pandas as pd

    path = folder / _ASSOCIATIONS
    return pd.read_csv(path) if path.is_file() else None


def _checked(path, sha):
    """Return the content of a file of a run, which must be what was written."""
    content = path.read_bytes() if path.is_file() else b""
    if _sha256_of(content) != sha:
        raise ValueError(
            f"{path} is damaged or missing: its checksum does not fit; restore it from a copy, or repeat the "
            "fit in another folder"
        )
    return content


def _settings(folder):
    path = folder / _SETTINGS
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} must be a folder that `polystick fit ... --out {folder}` wrote; it has no {_SETTINGS}"
        )
    try:
        settings = json.loads(path.read_bytes())
        checksum = settings.pop("checksum", None)
        known = settings["kind"] == _KIND and settings["format"] == FORMAT
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path} must be the settings of a run; it can't be read as such"
        ) from error
    if not known:
        raise ValueError(
            f"{path} must be the settings of a run in format {FORMAT}; got {settings['format']} by "
            f"version {settings.get('version')}; use the version that wrote it"
        )
    if checksum != _checksum(settings):
        raise ValueError(
            f"{path} is damaged or was edited: its checksum does not fit; it was left as it is: restore it "
            "from a copy, or start anew in another folder"
        )
    return settings


def _checksum(settings):
    return _sha256_of(json.dumps(settings, sort_keys=True).encode())


def _sha256_of(content):
    return hashlib.sha256(content).hexdigest()


def _model(folder, settings):
    from polystick import load

    path = folder / _MODEL
    if not path.exists() and (folder / _OLD_MODEL).exists():
        raise ValueError(
            f"{folder / _OLD_MODEL} is of an earlier version, {settings['version']}, and a pickle, which can "
            "run programs, so it is not read; repeat the fit in another folder"
        )
    if not path.is_file() or _sha256(path) != settings["model_sha256"]:
        raise ValueError(
            f"{path} is damaged or missing: its checksum does not fit; repeat the fit with --resume to write "
            "it anew"
        )
    estimator = load(path)
    kind, held = settings["model"], type(estimator).__name__
    if held != _HOLDS.get(kind):
        raise ValueError(f"{path} must hold the model of a run of {kind!r}; it holds a {held}")
    return estimator


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _encode(thing):
    return json.dumps(thing, indent=1, ensure_ascii=False).encode()


def _write(path, content):
    with whole(path) as file:
        file.write(content)
