"""Types of what users give: public signatures name them."""

import os
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

__all__ = ["Counts", "PathLike", "Progress", "RandomState"]

Counts: TypeAlias = ArrayLike | scipy.sparse.spmatrix | scipy.sparse.sparray  # and data frames
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
Progress: TypeAlias = bool | Callable[..., Any]
PathLike: TypeAlias = str | os.PathLike[str]
