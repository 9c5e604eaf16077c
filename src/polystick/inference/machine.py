"""What the bits of a run depend on besides its seed: versions, and the BLAS with the processor it chose for.

Kernels round alike on all processors (`kernels.dense`). BLAS and LAPACK, which some models use, do not:
OpenBLAS adds up in an order of its own for each kind of processor, which `OPENBLAS_CORETYPE` can fix.
"""

import contextlib
import ctypes
import functools
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from threadpoolctl import threadpool_info

__all__ = ["give_back", "moved", "this_machine"]

_PACKAGES = ("polystick", "numpy", "scipy", "numba")
_IRRELEVANT = {"cpu"}  # where the BLAS is the same


@functools.cache
def this_machine() -> dict[str, str]:
    """Return what a manifest records of the machine, by name."""
    versions = {name: metadata.version(name) for name in _PACKAGES}
    return {**versions, "blas": _blas(), "cpu": _cpu()}


def moved(theirs: Mapping[str, object], ours: Mapping[str, object]) -> str | None:
    """Say what that bits depend on is different here, or None."""
    differing = [
        f"{name} {theirs.get(name, 'unknown')} there, {ours[name]} here"
        for name in ours
        if name not in _IRRELEVANT and theirs.get(name) != ours[name]
    ]
    return "; ".join(differing) or None


def give_back() -> None:
    """Give free memory back to the system, where the C library keeps the holes that small arrays leave."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # where it is not the GNU library
        ctypes.CDLL(None).malloc_trim(0)


def _blas() -> str:
    names = ("internal_api", "version", "architecture")
    found = [info for info in threadpool_info() if info["user_api"] == "blas"]
    return ", ".join(sorted({" ".join(str(info.get(n)) for n in names) for info in found}))


def _cpu() -> str:
    """Return the processor's name for itself, or what the system calls its kind."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
