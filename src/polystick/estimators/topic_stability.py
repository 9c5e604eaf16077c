"""Which topics come back from other seeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from polystick.alignment import align

__all__ = ["topic_stability"]


def topic_stability(models: Sequence[Any], *, at_least: float = 0.7) -> pd.DataFrame:
    """Return how like the topics of a model are to their partners in others, such as of other seeds.

    Parameters
    ----------
    models : sequence of fitted topic models
        Of one number of topics and the same words; their topics are matched with those of the first, one
        to one.
    at_least : float from 0 to 1
        From which similarity on a topic counts as found again.

    Returns
    -------
    DataFrame
        For each topic of the first model: its share, the similarity (Bhattacharyya: 1 is the same topic,
        below about one half it is none) of its partner in each other model, and `found`, the share of the
        others that have it.
    """
    models = list(models)
    if len(models) < 2:
        raise ValueError(
            f"models must be two or more; got {len(models)}; fit another with another random_state"
        )
    if not 0 <= at_least <= 1:
        raise ValueError(f"at_least must lie between 0 and 1; got {at_least}")
    for model in models:
        check_is_fitted(model)
    numbers = [model.n_topics for model in models]
    if len(set(numbers)) > 1:
        raise ValueError(f"models must have as many topics as each other; got {numbers}")
    words = [list(map(str, model.words_)) for model in models]
    if any(other != words[0] for other in words[1:]):
        raise ValueError(
            "models must know the same words; got others; fit them to the same columns"
        )
    likeness = align([model._average_topics for model in models]).similarity
    first = models[0]
    table = pd.DataFrame({"share": first._share.mean(axis=0)}, index=first._topic_index)
    for number, values in enumerate(likeness[1:], start=1):
        table[f"model {number}"] = values
    table["found"] = np.mean(likeness[1:] >= at_least, axis=0)
    return table.sort_values("share", ascending=False)
