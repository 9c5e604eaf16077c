"""Models to files and back."""

import copy
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from polystick.arguments import PathLike
from polystick.inference.posterior import Posterior
from polystick.inference.thinning import thinned, thinned_to
from polystick.storage import archive, sense
from polystick.storage.archive import ModelFileError
from polystick.storage.values import Reader, Writer
from polystick.validation import check_integer

__all__ = ["load", "save"]

_WORTH_THINNING = 2**25  # bytes of draws
_MOST_BYTES = 2**34
_OF_A_RUN = ("checkpoint", "progress")  # parameters that are no part of a model
_USES = 4  # of each array, at most, on average


def save(model, path, *, draws=None, posterior=False):
    """Write a fitted model to a file; see `Face.save`."""
    check_is_fitted(model)
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {path.parent} must exist before a model is saved to it"
        )
    if draws is not None:
        if posterior:
            raise ValueError("draws thins what posterior=True keeps whole; give one of the two")
        check_integer("draws", draws, at_least=1)

    def kept(thing):
        return _kept(thing, draws) if isinstance(thing, Posterior) and not posterior else thing

    writer = Writer(kept)
    content = writer.node(_without_run(copy.copy(model)), type(model).__name__)
    archive.write(path, content, writer.arrays, {"model": type(model).__name__})
    return path


def _without_run(model):
    for name in _OF_A_RUN:
        if not isinstance(vars(model).get(name, True), bool):
            setattr(model, name, None)
    return model


def _kept(posterior, draws):
    if draws is not None:
        return thinned(posterior, draws)
    return thinned_to(posterior, _WORTH_THINNING)


def load(path: PathLike, *, max_bytes: int = _MOST_BYTES) -> Any:
    """Return the fitted model in a file that `save` of an estimator wrote.

    Nothing in the file is run: it holds numbers, texts and names of classes from a closed list, and each part
    has a checksum. What is damaged, cut off, newer than this version or no such file gets a `ModelFileError`.

    Parameters
    ----------
    path : path
    max_bytes : int
        The largest file that is read; the arrays in it take no more memory than it has bytes.
    """
    path = Path(path)
    content, arrays, _ = archive.read(path, max_bytes)
    with archive.checked(path):
        model = Reader(arrays, _USES * sum(array.nbytes for array in arrays) + 2**20).value(content)
        if not isinstance(model, BaseEstimator):
            raise ModelFileError("it holds no estimator")
        sense.check(model)
        return _without_run(model)
