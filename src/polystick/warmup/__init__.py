"""The first fit: kernels that a model needs are compiled by several processes at once, and cached.

`kernels.txt` says which kernels a model calls, and with which types (`tools/list_kernels.py` writes it). What
it leaves out is compiled when it is called, so that it decides about time and nothing else.
"""

import numba

from polystick.inference.execution import available_threads
from polystick.inference.progress import Show, compiling, is_watched
from polystick.warmup.listed import Root, of_models
from polystick.warmup.pool import compile_in_processes

__all__ = ["before_first_fit", "missing", "names", "warm_up"]

_MOST_PROCESSES = 8  # a quarter of a gigabyte each
_THEN = " predictions"


def names() -> tuple[str, ...]:
    """Return the models that can be warmed up."""
    return tuple(name for name in of_models() if not name.endswith(_THEN))


def warm_up(*models: str, predictions: bool = True, progress: Show = None) -> int:
    """Compile what models need, now and by all cores, rather than in their first fit.

    Parameters
    ----------
    models : str
        "topics", "multinomial", "softmax-multinomial", "regression", "softmax-regression", "gp", "lds" or
        "dynamic"; none means all of them.
    predictions : bool
        Whether what predictions call is compiled too, or only what a fit calls.
    progress : bool or None
        True shows a bar, False nothing, None a bar where a person watches.

    Returns
    -------
    int
        How many kernels were compiled: none where that was done before.
    """
    if unknown := set(models) - set(names()):
        raise ValueError(f"models must be some of {', '.join(names())}; got {min(unknown)!r}")
    wanted = list(models or names())
    if predictions:
        wanted += [name + _THEN for name in wanted]
    return _compile(missing(*wanted), progress)


def before_first_fit(model: str, show: Show) -> None:
    """Compile what a fit of a model calls, if that was not done yet and a person watches."""
    if is_watched(show):
        _compile(missing(model), show)


def missing(*sections: str) -> list[Root]:
    """Return the kernels of some sections that would have to be compiled; unknown sections have none."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return []
    roots = dict.fromkeys(root for name in sections for root in of_models().get(name, ()))
    return [root for root in roots if not root.is_cached()]


def _compile(roots: list[Root], show: Show) -> int:
    if not roots:
        return 0
    with compiling(show, len(roots)) as tell:
        compile_in_processes(roots, min(available_threads(), _MOST_PROCESSES), tell)
    return len(roots)
