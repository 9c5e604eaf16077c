"""The cellar: compiled loops on arrays. No classes, no validation, no models.

`kernel` compiles a function with Numba, releases the GIL and caches the result on disk (`cache`).
Kernels know nothing of threads: `inference.execution` maps them over blocks of rows. With
`NUMBA_DISABLE_JIT=1` they are plain Python, for coverage and for tracebacks.
"""

import functools
import os
import warnings

import numba

__all__ = ["COMPILED", "SIMD", "kernel"]

COMPILED = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
SIMD = COMPILED and os.environ.get("POLYSTICK_SIMD", "1") != "0"  # else kernels use scalar twins

_OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # for functions passed as arguments, of which there are none
    "forceinline": False,  # unless said, or a kernel takes it over from whoever calls it first
}


@functools.cache
def _warn_about_cache(reason, remedy):
    warnings.warn(
        f"compiled kernels are not cached on disk ({reason}), so each start compiles them anew; "
        f"{remedy}",
        RuntimeWarning,
        stacklevel=4,
    )


def kernel(function=None, **options):
    """Compile a function: no GIL, IEEE division, cached where the disk allows it."""
    if function is None:
        return functools.partial(kernel, **options)
    compile_ = functools.partial(numba.njit, **{**_OPTIONS, **options})
    if not COMPILED:
        return compile_(function)
    try:
        compiled = compile_(cache=True)(function)
    except RuntimeError as error:  # "no locator available": a read-only install, an unusable home
        reason = str(error).partition(" for ")[0]
        _warn_about_cache(reason, "set NUMBA_CACHE_DIR to a writable folder of your own")
        return compile_(cache=False)(function)
    try:
        from polystick.kernels.cache import move_cache

        move_cache(compiled)
    except (ImportError, AttributeError, TypeError):  # better none than one that may be stale
        reason = f"Numba {numba.__version__} keeps its cache in a way that is not known here"
        _warn_about_cache(reason, "use the version in constraints.txt")
        return compile_(cache=False)(function)
    return compiled
