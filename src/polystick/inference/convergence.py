"""Whether chains have converged: what is diagnosed, how bad it may be, and the sentence that says so.

What a model may tell of itself for this is in `protocols.Extras`.
Rows that are not watched have running moments of each chain, and so an R-hat each.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from polystick.inference.diagnostics import (
    FEWEST_DRAWS,
    Diagnosed,
    Rough,
    diagnose,
    flat,
    rhat,
    screen,
    suspects_among,
)
from polystick.inference.protocols import Array

__all__ = [
    "MIN_ESS",
    "RHAT_LIMIT",
    "Verdict",
    "look_at",
    "look_for_worst",
    "rows_agree",
    "verdict_on",
    "with_rhat",
    "worst_of",
]

RHAT_LIMIT = 1.01
MIN_ESS = 400
_BY_CHANCE = 0.01
_SLOW = 10.0  # sweeps for an independent draw that are worth a word


class Worst(NamedTuple):
    """A number, and what it belongs to."""

    value: float
    name: str


NOTHING = Worst(float("nan"), "")


class Verdict(NamedTuple):
    """The worst of what was looked at; NaN where there is nothing to look at."""

    rhat: Worst
    ess: Worst
    lag: Worst  # sweeps for an independent draw of the slowest split, predicted
    names: tuple[str, ...]  # what was looked at
    rhat_limit: float
    min_ess: float
    n_chains: int
    n_draws: int  # of each chain
    advice: str
    told: str = ""  # what the chains have found alike

    @property
    def converged(self) -> bool:
        """Whether R-hat and ESS are good enough. What never varies is; too few draws are not."""
        enough = self.n_draws >= FEWEST_DRAWS
        return enough and not (self.rhat.value > self.rhat_limit or self.ess.value < self.min_ess)

    def line(self) -> str:
        """Say what was found, good or bad."""
        if not self.names:
            return f"R-hat and ESS need draws that vary, at least {FEWEST_DRAWS} of each chain"
        lag = f"; {self._slowness()}" if self.lag.value >= _SLOW else ""
        return (
            f"worst R-hat {self.rhat.value:.3f} ({self.rhat.name}), smallest ESS {self.ess.value:.0f} "
            f"({self.ess.name}), over {', '.join(self.names)}{lag}{self._alike()}"
        )

    def trouble(self) -> str | None:
        """Return a sentence about what is wrong and what to do, or None."""
        if self.converged:
            return None
        return f"the chains have not converged: {'; '.join(self._faults())}{self._alike()}; {self._remedy()}"

    def _alike(self) -> str:
        return f"; {self.told}" if self.told else ""

    def _faults(self) -> Iterator[str]:
        if self.n_draws < FEWEST_DRAWS:
            yield f"{self.n_draws} draws of each chain are too few to tell"
        if self.rhat.value > self.rhat_limit:
            yield f"R-hat of {self.rhat.name} is {self.rhat.value:.3f}, above {self.rhat_limit:g}"
        if self.ess.value < self.min_ess:
            size = f"{self.ess.value:.0f} effective draws of {self.min_ess:.0f} wanted"
            yield f"{self.ess.name} has {size}"
        if self.lag.value >= _SLOW:
            yield self._slowness()

    def _slowness(self) -> str:
        return f"an independent draw of {self.lag.name} takes about {self.lag.value:.2g} sweeps"

    def _remedy(self) -> str:
        if self.advice:
            return self.advice
        short = np.fmax(2.0, self.min_ess / self.ess.value)  # of NaN: 2
        size = 10 ** np.floor(np.log10(self.n_draws * short))
        longer = int(np.ceil(self.n_draws * short / size) * size)
        chains = "" if self.n_chains > 1 else ", n_chains=4"
        return f"run longer, such as Gibbs(n_draws={longer}{chains}), or until done: Gibbs(min_ess=400)"


def look_at(variables: Mapping[str, Array]) -> dict[str, Diagnosed]:
    """Return name -> Diagnosed for draws (chain, draw, ...) by name, where there is something to say."""
    found = {name: diagnose(draws) for name, draws in _long_enough(variables).items()}
    return {name: diagnosed for name, diagnosed in found.items() if diagnosed is not None}


def look_for_worst(
    variables: Mapping[str, Array],
) -> tuple[dict[str, Diagnosed], tuple[str, ...]]:
    """Return (name -> Diagnosed of those that may be the worst of all, the names that were looked at)."""
    draws = {name: flat(values) for name, values in _long_enough(variables).items()}
    rough = {name: screen(values) for name, values in draws.items()}
    varying = {name: each for name, each in rough.items() if np.isfinite(each.slowness).any()}
    if not varying:
        return {}, ()
    edges = np.cumsum([0, *(len(each.rhat) for each in varying.values())])
    suspects = suspects_among(Rough(*map(np.concatenate, zip(*varying.values()))))
    mine = [suspects[(suspects >= i) & (suspects < j)] - i for i, j in itertools.pairwise(edges)]
    found = {name: diagnose(draws[name], entries) for name, entries in zip(varying, mine)}
    return {name: each for name, each in found.items() if each is not None}, tuple(varying)


def _long_enough(variables: Mapping[str, Array]) -> dict[str, Array]:
    return {
        name: draws
        for name, draws in variables.items()
        if np.shape(draws)[1] >= FEWEST_DRAWS and np.size(draws)
    }


def worst_of(
    found: Mapping[str, Diagnosed], label: Callable[[str, int], str]
) -> tuple[Worst, Worst]:
    """Return the worst R-hat and ESS of name -> Diagnosed; label(name, entry) says what they are of."""
    if not found:
        return NOTHING, NOTHING
    high = max(found, key=lambda name: found[name].rhat)
    low = min(found, key=lambda name: found[name].least_ess)
    return (
        Worst(found[high].rhat, label(high, found[high].worst)),
        Worst(found[low].least_ess, label(low, found[low].least)),
    )


def diagnosed_groups(tree: Any) -> dict[str, Any]:
    """Return name -> variable with draws (chain, draw, ...) that are to be diagnosed."""
    names = tree.attrs.get("identified", "*")
    found = {"log_likelihood": tree["sample_stats"]["total_log_likelihood"]}
    for group in ("posterior", "thinned", "watched"):
        for name, variable in _variables(tree, group).items():
            known = group == "watched" or names == "*" or name in names.split()
            if known and variable.dims[:1] == ("chain",):
                found.setdefault(str(name), variable)
    return found


def verdict_on(tree: Any, min_ess: float = MIN_ESS) -> Verdict:
    """Return the Verdict on the tree of a run of Gibbs sampling."""
    variables = diagnosed_groups(tree)
    values = {name: variable.values for name, variable in variables.items()}
    found, names = look_for_worst(values)
    rhat, ess = worst_of(found, lambda name, entry: label_of(name, variables[name], entry, 2))
    n_chains, n_draws = variables["log_likelihood"].shape
    limit = tree.attrs.get("rhat_limit", RHAT_LIMIT)
    rhat = _larger(rhat, _worst_row(tree, n_chains, limit, min_ess))
    said = (str(tree.attrs.get(name, "")) for name in ("advice", "told"))
    return Verdict(rhat, ess, _lag(tree), names, limit, min_ess, n_chains, n_draws, *said)


def with_rhat(said: str, log_likelihood: Array) -> str:
    """Add to a sentence about chains what R-hat of the log likelihood (chain, draw) is."""
    if log_likelihood.shape[1] < FEWEST_DRAWS:
        return said
    return f"{said}; R-hat of the log likelihood is {rhat(log_likelihood[..., None])[0]:.2f}"


def _larger(one: Worst, other: Worst) -> Worst:
    return other if other.value > one.value or np.isnan(one.value) else one


def _worst_row(tree: Any, n_chains: int, limit: float, min_ess: float) -> Worst:
    """Return the worst R-hat among rows that have running moments, if it is more than chance allows."""
    worst = NOTHING
    for name, variable in _variables(tree, "running").items():
        base, _, what = str(name).rpartition("_")
        if what == "rhat" and not _agree(variable.values, n_chains, limit, min_ess):
            entry = int(np.nanargmax(variable.values))
            found = Worst(float(variable.values.ravel()[entry]), label_of(base, variable, entry, 0))
            worst = _larger(found, worst)
    return worst


def rows_agree(rhats: Mapping[str, Array], n_chains: int, limit: float, min_ess: float) -> bool:
    """Tell whether no R-hat of the rows, name -> array, is more than chance allows."""
    return all(_agree(rhat, n_chains, limit, min_ess) for rhat in rhats.values())


def _agree(rhat: Array, n_chains: int, limit: float, min_ess: float) -> bool:
    n_entries = np.isfinite(rhat).sum()
    return not n_entries or np.nanmax(rhat) <= limit_of_many(n_entries, n_chains, limit, min_ess)


def limit_of_many(n_entries: int, n_chains: int, limit: float, min_ess: float = MIN_ESS) -> float:
    """Return what the largest R-hat of many entries may be if each has min_ess effective draws.

    R-hat squared is about 1 + F / (effective draws of a chain), where F varies by chance like a
    chi-square variable over its degrees; the largest of thousands is large.
    """
    degrees = max(1, n_chains - 1)
    chance = chi2.isf(_BY_CHANCE / max(1, n_entries), degrees) / degrees
    return max(limit, float(np.sqrt(1.0 + chance * n_chains / min_ess)))


def _lag(tree: Any) -> Worst:
    slowest = NOTHING
    for name, variable in _variables(tree, "watched").items():
        base, _, what = str(name).rpartition("_")
        if what == "lag" and variable.size:
            entry = int(np.nanargmax(variable.values))
            found = Worst(float(variable.values[entry]), label_of(base, variable, entry, 0))
            slowest = _larger(found, slowest)
    return slowest


def label_of(name: str, variable: Any, entry: int, n_before: int) -> str:
    """Name an entry of a variable by the words and labels of its axes, those before left out."""
    axes, shape = variable.dims[n_before:], variable.shape[n_before:]
    if not axes:
        return name
    parts = []
    for axis, i in zip(axes, np.unravel_index(entry, shape)):
        text = str(variable.coords[axis].values[i]) if axis in variable.coords else str(i)
        parts.append(text if axis.startswith("cell_of_") else f"{axis.removesuffix('_too')} {text}")
    return f"{name} ({', '.join(parts)})"


def _variables(tree: Any, group: str) -> Any:
    return tree[group].data_vars if group in tree.children else {}
