"""The groups that ArviZ knows, beside what a run leaves: data, log likelihoods by row, replicated counts.

A face says how to make each group from posterior states; here they are put into one tree. All groups have the
same chains and draws, so what a run recorded is thinned to the draws that the others were made from.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from polystick.estimators.seeds import seed_of
from polystick.inference.posterior import suited_to_arviz
from polystick.validation import check_integer

__all__ = ["Asked", "Groups", "assembled", "need_draws", "need_fit", "need_rows"]

COUNTS = "counts"  # the name of what was observed, in each group


class Asked(NamedTuple):
    """What a user wants to have."""

    log_likelihood: bool
    posterior_predictive: bool | str
    prior_predictive: bool
    n_draws: int | None
    seed: int

    @classmethod
    def of(cls, estimator, log_likelihood, posterior_predictive, prior_predictive, n_draws,
           random_state):  # fmt: skip
        """Check what was asked of an estimator; its seed serves where none is given."""
        if n_draws is not None:
            check_integer("n_draws", n_draws, at_least=1)
        if posterior_predictive not in (False, True, "new"):
            raise ValueError(
                'posterior_predictive must be False, True (the same rows again) or "new" (new rows of '
                f"their kind); got {posterior_predictive!r}"
            )
        if log_likelihood:
            need_draws(estimator.posterior_)
        anything = log_likelihood or posterior_predictive or prior_predictive
        if random_state is not None and not anything:
            raise ValueError(
                "random_state is of no use where no group is asked for; leave it out, or ask for "
                "posterior_predictive=True"
            )
        seed = seed_of(estimator, random_state)
        given = (bool(log_likelihood), posterior_predictive, bool(prior_predictive))
        return cls(*given, n_draws, seed)

    @property
    def anything(self):
        return bool(self.log_likelihood or self.posterior_predictive or self.prior_predictive)


class Groups(NamedTuple):
    """How a face makes its groups, each from a list of states: name -> array of a posterior draw."""

    names: tuple[str, ...]  # of the variables that a state has
    n_draws: int  # states, unless a user says
    observed: np.ndarray | None  # (n, K)
    rows: str  # the axis of the rows of counts
    coords: dict
    log_likelihood: Callable | None  # states -> (S, units)
    units: str  # the axis of what is left out: rows, or sequences
    posterior_predictive: Callable | None  # states -> (S, n, K)
    prior_predictive: Callable | None  # how many -> (S, n, K)


def assembled(posterior, groups, asked):
    """Return what the installed ArviZ works on: a posterior with the groups asked for."""
    import xarray as xr

    names = groups.names if asked.anything else tuple(posterior.tree["posterior"].data_vars)
    n_draws = groups.n_draws if asked.n_draws is None and asked.anything else asked.n_draws
    draws = posterior.even_draws(names, n_draws)
    states = posterior.states(names, draws) if asked.anything else []
    n_chains = posterior[names[0]].shape[0]
    axes = {"chain": np.arange(n_chains), "draw": draws}
    tree = xr.DataTree.from_dict(
        {
            name: _thinned(group.to_dataset(), axes)
            for name, group in posterior.tree.children.items()
        }
    )
    tree.attrs.update(posterior.tree.attrs)
    for name, (values, words) in _made(groups, asked, states).items():
        shaped = values.reshape(n_chains, len(draws), *values.shape[1:])
        tree[name] = _dataset(shaped, ("chain", "draw", *words), {**groups.coords, **axes})
    if groups.observed is not None:
        tree["observed_data"] = _dataset(groups.observed, (groups.rows, "category"), groups.coords)
    return suited_to_arviz(tree)


def _made(groups, asked, states):
    """Return group -> (values (S, ...), words for the axes after the first)."""
    cells = (groups.rows, "category")
    made: dict[str, tuple] = {}
    if asked.log_likelihood:
        made["log_likelihood"] = groups.log_likelihood(states), (groups.units,)
    if asked.posterior_predictive:
        made["posterior_predictive"] = groups.posterior_predictive(states), cells
    if asked.prior_predictive:
        made["prior_predictive"] = groups.prior_predictive(len(states)), cells
    return made


def _dataset(values, words, coords):
    import xarray as xr

    here = {axis: coords[axis] for axis in words if axis in coords}
    return xr.Dataset({COUNTS: (words, values)}, coords=here)


def _thinned(dataset, axes):
    """Return a group at the draws that were chosen, if it has draws; those of `thinned` have their own."""
    if "draw" in dataset.dims:
        dataset = dataset.isel(draw=axes["draw"]).assign_coords(draw=axes["draw"])
    return dataset.assign_coords(chain=axes["chain"]) if "chain" in dataset.dims else dataset


def need_draws(posterior):
    """Raise unless there are draws from the posterior, of which leave-one-out can take a row back."""
    if posterior.tree.attrs["inference"] != "gibbs":
        raise ValueError(
            "log_likelihood=True needs draws from the posterior, inference=Gibbs(...); draws from the "
            "factors of a variational fit are too narrow for leave-one-out; compare score_samples of "
            "held-out rows instead"
        )


def need_rows(X, asked):
    """Raise where something was asked for that needs the rows of the fit, which are not kept."""
    if X is None and asked.anything:
        raise ValueError(
            "log_likelihood, posterior_predictive and prior_predictive need X, the rows of the fit, which "
            "the estimator does not keep; got None; use to_arviz(X, ...)"
        )


def need_fit(same, what):
    """Raise unless what came in is the data of the fit."""
    if not same:
        raise ValueError(
            f"log_likelihood=True needs {what} of the fit, in their order: only these can be left out of "
            "it; got others; use score_samples for new ones"
        )
