"""Data to try things on."""

from importlib import resources
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse


class Addresses(NamedTuple):
    """Passages of the State of the Union addresses, in the order in which they were given."""

    counts: scipy.sparse.csr_array  # (n, V) int64
    words: np.ndarray  # (V,) the most frequent first
    years: np.ndarray  # (n,) int64
    presidents: np.ndarray  # (n,) names


def load_names(sex="M", *, n_names=200, years=None):
    """Load counts of US baby names by state and year, 1960-2013 (Social Security Administration).

    Parameters
    ----------
    sex : "M" or "F"
    n_names : int
        How many of the 200 most frequent names to keep, largest first.
    years : iterable of int or None
        Which years; None is all 54.

    Returns
    -------
    DataFrame of counts, with rows (year, state) and a column for each name
    """
    if sex not in ("M", "F"):
        raise ValueError(f'sex must be "M" or "F"; got {sex!r}')
    stored = _stored("names.npz")
    counts, names = stored[f"counts_{sex}"], stored[f"names_{sex}"]
    all_years, states = stored["years"], stored["states"]
    if not 1 <= n_names <= len(names):
        raise ValueError(f"n_names must be from 1 to {len(names)}; got {n_names}")
    years = all_years if years is None else np.array(list(years))
    wanted = np.isin(all_years, years)
    if not len(years) or not np.isin(years, all_years).all():
        raise ValueError(
            f"years must be from {all_years[0]} to {all_years[-1]}; got {years.tolist()}"
        )
    index = pd.MultiIndex.from_product([all_years[wanted], states], names=["year", "state"])
    rows = counts[wanted][:, :, :n_names].reshape(len(index), n_names)
    return pd.DataFrame(rows.astype(np.int64), index=index, columns=names[:n_names])


def load_state_of_the_union():
    """Load counts of words in the State of the Union addresses, 1790-2021.

    Each of the 233 addresses is cut at ends of sentences into passages of about 400 words; 4485 passages
    in all. Of the words in lower case, without stop words and those in fewer than ten passages, the 5000
    most frequent are kept, so a passage has about 160.

    Returns
    -------
    Addresses (counts, words, years, presidents)
        counts is a CSR array (4485, 5000); the others are arrays of what its columns and rows are.
    """
    stored = _stored("state_of_the_union.npz")
    words, passages = stored["words"], stored["passages"]
    starts = np.concatenate([[0], np.cumsum(stored["lengths"], dtype=np.int64)])
    cells = (stored["data"].astype(np.int64), stored["indices"].astype(np.int32), starts)
    return Addresses(
        scipy.sparse.csr_array(cells, shape=(len(starts) - 1, len(words))),
        words,
        np.repeat(stored["years"].astype(np.int64), passages),
        np.repeat(stored["presidents"][stored["president"]], passages),
    )


def _stored(name):
    with resources.files(__name__).joinpath(name).open("rb") as file:
        return dict(np.load(file, allow_pickle=False))
