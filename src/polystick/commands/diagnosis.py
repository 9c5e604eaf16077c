"""What is said of a run's convergence, in words and as JSON."""

import contextlib
import math
import warnings

from polystick.commands.speech import note

__all__ = ["diagnosis_of", "trouble_of", "warnings_as_notes"]


def diagnosis_of(posterior):
    """Return whether a run has converged, and its worst figures, as plain values."""
    attrs = posterior.tree.attrs
    if attrs["inference"] != "gibbs":
        return {"converged": bool(attrs["converged"])} if "converged" in attrs else {}
    verdict = posterior.verdict()
    figures = {
        name: {"value": worst.value, "of": worst.name}
        for name in ("rhat", "ess", "lag")
        if not math.isnan((worst := getattr(verdict, name)).value)
    }
    said = {"chains": verdict.told} if verdict.told else {}
    return {"converged": verdict.converged, **figures, **said, "trouble": verdict.trouble()}


def trouble_of(posterior):
    """Return the sentence about chains that have not converged, or None."""
    return diagnosis_of(posterior).get("trouble")


@contextlib.contextmanager
def warnings_as_notes():
    """Print warnings as sentences, without the line of our program that they come from."""
    from sklearn.exceptions import ConvergenceWarning

    def tell(message, *_, **__):
        note(message)

    with warnings.catch_warnings():
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.showwarning = tell
        yield
