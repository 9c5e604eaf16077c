"""Which of several models says new rows best: leave-one-out, without fitting again."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from polystick.estimators.arviz_groups import COUNTS
from polystick.inference.posterior import leave_one_out
from polystick.validation import warn_user

__all__ = ["compare"]

LARGEST_K = 0.7  # of the tail of a row's weights, beyond which its estimate cannot be trusted
MOST_BAD = 0.1  # share of such rows that a comparison can bear


def compare(models: Sequence[Any], *data: Any, n_draws: int | None = None) -> pd.DataFrame:
    """Return how well models of the same counts predict each row from the others, the best first.

    Each row is taken back from the posterior by Pareto-smoothed importance sampling (Vehtari, Gelman and
    Gabry 2017), with what is a row's own (psi, overdispersion) integrated out of its likelihood, so that
    trees, links, terms and groups can be compared.

    Parameters
    ----------
    models : dict
        Name -> fitted model, two or more, by Gibbs sampling, of the same rows of counts or labels.
    *data : what the models were fitted to
        As in their `to_arviz`. `MultinomialRegression` keeps it, so that there is none to give.
    n_draws : int or None
        Posterior draws to use of each, at most; None is 1000.

    Returns
    -------
    DataFrame
        For each model: `elpd`, the expected log probability of all rows, each given the others; `difference`
        from that of the best and its `standard_error`, over rows; `bad_k`, the share of rows whose estimate
        cannot be trusted (k-hat above 0.7). A difference of less than about two standard errors, or of less
        than 4, decides nothing.
    """
    if not isinstance(models, Mapping) or len(models) < 2:
        raise ValueError(
            'models must be a dict of two or more fitted models, {"stick": one, "softmax": other}; got '
            f"{len(models) if hasattr(models, '__len__') else type(models).__name__}"
        )
    for model in models.values():
        check_is_fitted(model)
    trees = [m.to_arviz(*data, log_likelihood=True, n_draws=n_draws) for m in models.values()]
    _check_same_rows(models, trees)
    left_out = {name: leave_one_out(tree) for name, tree in zip(models, trees)}
    elpd = pd.DataFrame({name: each for name, (each, _) in left_out.items()})
    best = elpd.sum().idxmax()
    differences = elpd.sub(elpd[best], axis=0)
    table = pd.DataFrame(
        {
            "elpd": elpd.sum(),
            "difference": differences.sum(),
            "standard_error": np.sqrt(len(elpd) * differences.var(ddof=1)),
            "bad_k": {name: _share_of_bad(k) for name, (_, k) in left_out.items()},
        }
    ).rename_axis("model")
    _tell_of_bad(table["bad_k"])
    return table.sort_values("elpd", ascending=False)


def _check_same_rows(models, trees):
    names, counts = list(models), [np.asarray(tree.observed_data[COUNTS]) for tree in trees]
    for name, other in zip(names[1:], counts[1:]):
        if not np.array_equal(other, counts[0]):
            raise ValueError(
                f"models must be fitted to the same counts, rows and categories in the same order; {name!r} "
                f"has others than {names[0]!r}; fit them to one table"
            )


def _share_of_bad(k):
    return float((~(k <= LARGEST_K)).mean())  # so that what is not a number is bad


def _tell_of_bad(shares):
    worst = shares.idxmax()
    if shares[worst] > MOST_BAD:
        warn_user(
            f"{100 * shares[worst]:.0f} % of the rows cannot be taken back from the posterior of {worst!r} "
            f"(k-hat above {LARGEST_K}); compare `score` on rows that were left out of the fit"
        )
