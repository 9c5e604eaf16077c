"""Data to try things on: some are bundled, the others are downloaded or read from POLYSTICK_DATA."""

from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse

from polystick.datasets.corpora import load_20newsgroups, load_ap, load_ap_sequences
from polystick.datasets.strings import load_alice, load_dna

__all__ = [
    "load_20newsgroups",
    "load_alice",
    "load_ap",
    "load_ap_sequences",
    "load_dna",
    "load_names",
    "load_state_centres",
    "load_state_of_the_union",
]


class Addresses(NamedTuple):
    """Passages of the State of the Union addresses, in the order in which they were given."""

    counts: scipy.sparse.csr_array  # (n, V) int64
    words: np.ndarray  # (V,) the most frequent first
    years: np.ndarray  # (n,) int64
    presidents: np.ndarray  # (n,) names

    @property
    def covariates(self):
        """What is known of each passage, a table (n, 4): year, president, party and form.

        The form is "spoken" before Congress or "written" to it. The party is that under which a president
        was elected, or "none"; that of Andrew Johnson is his own. Both are public facts.
        """
        known = _presidents()
        asked = pd.DataFrame({"year": self.years, "president": self.presidents})
        facts = [
            ("written" if year in known[name].written else "spoken", known[name].party)
            for year, name in asked.itertuples(index=False)
        ]
        forms, parties = zip(*facts)
        return asked.assign(party=parties, form=forms)


class _President(NamedTuple):
    party: str
    written: set  # years in which the address was sent, not spoken


@cache
def _presidents():
    """Return name -> what is known of a president."""
    with resources.files(__name__).joinpath("presidents.csv").open("r", encoding="utf-8") as file:
        table = pd.read_csv(file, keep_default_na=False)
    return {
        name: _President(party, {year for span in written.split() for year in _years(span)})
        for name, party, written in table.itertuples(index=False)
    }


def _years(span):
    first, last = map(int, span.split("-"))
    return range(first, last + 1)


def load_names(sex: str = "M", *, n_names: int = 200, years: Any = None) -> Any:
    """Load counts of US baby names by state and year, 1960-2013 (Social Security Administration).

    Parameters
    ----------
    sex : "M" or "F"
    n_names : int
        How many of the most frequent names to keep, largest first; 300 at most.
    years : iterable of int or None
        Which years; None is all 54.

    Returns
    -------
    DataFrame of counts, with rows (year, state) and a column for each name

    Examples
    --------
    >>> from polystick import datasets
    >>> datasets.load_names("M", n_names=3, years=[2013]).loc[(2013, "NY")].tolist()
    [1230, 949, 883]
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


def load_state_centres() -> pd.DataFrame:
    """Load the approximate centres of the 50 states and the District of Columbia.

    Those of the 48 contiguous states are R's ``state.center``. R draws Alaska and Hawaii near
    California and has no DC; these three are rounded values of our own.

    Returns
    -------
    DataFrame with rows state (as in load_names) and columns latitude and longitude, in degrees

    Examples
    --------
    >>> from polystick import datasets
    >>> datasets.load_state_centres().loc["NY"].tolist()
    [43.1361, -75.1449]
    """
    with resources.files(__name__).joinpath("state_centres.csv").open("rb") as file:
        return pd.read_csv(file, index_col="state")


def load_state_of_the_union() -> Any:
    """Load counts of words in the State of the Union addresses, 1790-2021.

    Each of the 233 addresses is cut at ends of sentences into passages of about 400 words; 4485 passages
    in all. Of the words in lower case, without stop words and those in fewer than ten passages, the 5000
    most frequent are kept, so a passage has about 160.

    Returns
    -------
    Addresses (counts, words, years, presidents)
        counts is a CSR array (4485, 5000); the others are arrays of what its columns and rows are. The
        property `covariates` is a table of rows with their year, president, party and form of delivery.

    Examples
    --------
    >>> from polystick import datasets
    >>> addresses = datasets.load_state_of_the_union()
    >>> addresses.counts.shape, addresses.words[:3].tolist()
    ((4485, 5000), ['government', 'states', 'congress'])
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
