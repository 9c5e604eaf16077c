"""Data to try things on."""

from importlib import resources

import numpy as np
import pandas as pd


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
    with resources.files(__name__).joinpath("names.npz").open("rb") as file:
        stored = np.load(file, allow_pickle=False)
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
