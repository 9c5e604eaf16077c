"""What is told of every model: whether to trust the run, how it was run, and with what."""

import platform
from importlib import metadata

import numpy as np
import pandas as pd

from polystick.report import panels

__all__ = ["section", "verdict"]

_LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "pandas", "xarray")
_MOST_POINTS = 400  # of a trace


def verdict(model):
    """Return whether a run can be trusted, in words: {"good": bool or None, "text": str}."""
    posterior = getattr(model, "posterior_", None)
    if posterior is None:
        return {
            "good": None,
            "text": "This model is fitted in one step, and has nothing to converge.",
        }
    if posterior.tree.attrs["inference"] != "gibbs":
        said = posterior.summary()
        return {"good": None if "not converged" not in said else False, "text": _sentence(said)}
    found = posterior.verdict()
    trouble = found.trouble()
    if trouble is None:
        return {"good": True, "text": _sentence(f"the chains agree: {found.line()}")}
    return {"good": False, "text": _sentence(trouble)}


def section(model):
    """Return the section on how a model was run."""
    posterior = getattr(model, "posterior_", None)
    trace = None if posterior is None else _trace(posterior)
    worst = None if posterior is None else _diagnostics(posterior)
    return {
        **panels.section("How it was run", trace, worst, _settings(model), _versions(model)),
        "verdict": verdict(model),
    }


def _sentence(text):
    return text[:1].upper() + text[1:] + "."


def _trace(posterior):
    """Return the panel of the log likelihood of each chain, or of the bound of a variational fit."""
    tree = posterior.tree
    if "sample_stats" in tree.children:
        values = np.asarray(posterior.log_likelihood)
        names = [f"chain {c}" for c in range(len(values))]
        title, note = "Log likelihood", "Chains should look like one band without a trend."
    elif "optimisation" in tree.children and len(tree["optimisation"].data_vars):
        variable = next(iter(tree["optimisation"].data_vars.values()))
        values, names = np.asarray(variable.values)[None], ["bound"]
        title, note = "Bound", "It should have become flat."
    else:
        return None
    step = max(1, -(-values.shape[1] // _MOST_POINTS))
    at = np.arange(1, values.shape[1] + 1)[::step]
    # differences matter; a level of millions would cost all of the digits
    level = np.round(np.nanmean(values))
    return panels.lines(
        title, at, values[:, ::step] - level, names=names, note=f"{note} Relative to {level:.7g}.",
        x_label="draw" if len(names) > 1 or title != "Bound" else "sweep",
    )  # fmt: skip


def _diagnostics(posterior):
    """Return the table of R-hat and ESS of each variable, in words."""
    if posterior.tree.attrs["inference"] != "gibbs":
        return None
    found = posterior.diagnostics()
    limit, wanted = posterior.verdict().rhat_limit, posterior.verdict().min_ess
    frame = pd.DataFrame(
        [
            (name, each.rhat, each.ess, each.tail_ess, _said(each, limit, wanted))
            for name, each in found.items()
        ],
        columns=["what", "worst R-hat", "smallest ESS", "smallest ESS of the tails", "in words"],
    )
    note = (
        "R-hat compares chains with each other: 1 where they agree. ESS is how many independent draws "
        "tell as much of the mean, or of the ends of intervals."
    )
    return panels.table("R-hat and effective sample sizes", frame, note=note, double=True)


def _said(each, limit, wanted):
    if each.rhat > limit:
        return "run longer: chains differ"
    if each.least_ess < wanted:
        return f"run longer: {wanted / each.least_ess:.2g} times as many draws"
    return "fine"


def _settings(model):
    """Return the panel of the parameters that a model was made with, and what came of the run."""
    parameters = {
        name: value for name, value in model.get_params(deep=False).items() if name != "inference"
    }
    pairs = [(name, _told(value)) for name, value in parameters.items()]
    for name in ("inference_", "seed_", "n_iter_"):
        if hasattr(model, name):
            pairs.append((name, _told(getattr(model, name))))
    return panels.facts("Settings", pairs, note="Names that end in _ came of the fit.")


def _told(value):
    text = " ".join(str(value).split())
    return text if len(text) <= 300 else text[:300] + " …"


def _versions(model):
    root = type(model).__module__.partition(".")[0]
    pairs = [(root, _version(root)), ("Python", platform.python_version())]
    return panels.facts("Versions", [*pairs, *((name, _version(name)) for name in _LIBRARIES)])


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"
