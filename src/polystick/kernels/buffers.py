"""What kernels take: each is compiled for one kind of array."""

import numpy as np

__all__ = ["as_buffer", "as_buffers"]


def as_buffer(array, dtype=np.float64):
    """Return an array of this type in C order that may be written, the same one where it is so already."""
    if type(array) is np.ndarray and array.dtype == dtype and array.flags.carray:
        return array
    return np.require(array, dtype, ["C", "W"])  # ten times slower, even if it has nothing to do


def as_buffers(*arrays):
    """Return each array as a buffer of floats."""
    return [as_buffer(array) for array in arrays]
