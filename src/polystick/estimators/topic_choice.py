"""How many topics: held-out scores and coherence of fits with each number."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from polystick import coherence, scores
from polystick.arguments import RandomState
from polystick.estimators.document_kinds import count_documents
from polystick.estimators.time_slices import check_length
from polystick.estimators.topics import CorrelatedTopicModel
from polystick.validation import check_integer

__all__ = ["choose_n_topics"]


def choose_n_topics(X: Any, n_topics: Sequence[int], *, model: Any = None, test_size: float = 0.2,
                    observed: Any = 0.5, n_words: int = 10, random_state: RandomState = 0,
                    times: Any = None, covariates: Any = None) -> pd.DataFrame:  # fmt: skip
    """Fit each number of topics to a part of the documents, and score the others.

    Parameters
    ----------
    X : documents as in `fit`
        Counts of words, texts, or lists of words. The words of texts are those of the documents that are not
        held out.
    n_topics : iterable of int
    model : topic model or None
        Not fitted; copies of it are, with other numbers of topics. None is `CorrelatedTopicModel`.
    test_size : float
        Share of the documents that are held out.
    observed : float
        Share of the tokens of a held-out document that is shown; the rest is scored.
    n_words : int
        Words of a topic of which the coherence is told.
    random_state : int
        Of the split and of all fits, so that they are scored on the same tokens.
    times : sequence of n integers, dates or pandas periods
        Where topics move with time: when the documents were written. The first and the last in time are not
        held out.
    covariates : DataFrame of n rows, or None
        Of the documents, where the shares of the model depend on them.

    Returns
    -------
    DataFrame
        For each number: `score`, nats per held-out token, and `error`, its standard error over documents;
        `gain`, over the best, and `gain_error`, that of the paired difference (the error of a score is mostly
        that of the documents, which all fits share); the mean `npmi` coherence of the topics in the training
        documents, and `diversity` of their words. `plots.n_topics` draws it. Where a gain is within its
        error, take the fewer topics.
    """
    numbers = _checked(n_topics)
    face = CorrelatedTopicModel() if model is None else model
    train, test, when, later = _split(X, times, covariates, test_size, random_state)
    lines, values = [], []
    for number in numbers:
        fitted = clone(face).set_params(n_topics=number, random_state=random_state)
        fitted.fit(train, **when)
        values.append(fitted.score_samples(test, observed=observed, **later))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `score_samples` has said it
            counts, seen = fitted._check(test), fitted._check(train)
        rest = scores.split_words(counts, observed, fitted.seed_)[1]
        top = np.argsort(-fitted._average_topics, axis=1, kind="stable")[:, :n_words]
        told = np.nanmean(coherence.npmi(top, seen)), coherence.diversity(top)
        lines.append((*_rate(values[-1], rest), *told))
    columns = ["score", "error", "npmi", "diversity"]
    table = pd.DataFrame(lines, columns=columns, index=pd.Index(numbers, name="n_topics"))
    best = int(np.argmax(table["score"]))
    gains = [_rate(each - values[best], rest) for each in values]
    table.insert(2, "gain", [gain for gain, _ in gains])
    table.insert(3, "gain_error", [error for _, error in gains])
    return table


def _rate(values, rest):
    """Return sum(values) per token, and the standard error of that ratio over documents."""
    tokens = np.asarray(rest.sum(axis=1)).ravel()
    rate, n = values.sum() / tokens.sum(), len(values)
    return rate, np.sqrt(n / max(n - 1, 1) * np.sum((values - rate * tokens) ** 2)) / tokens.sum()


def _checked(n_topics):
    """Return the numbers in order, each once."""
    if not isinstance(n_topics, Iterable) or isinstance(n_topics, str):
        raise TypeError(
            "n_topics must be numbers to choose from, such as range(5, 50, 5); got "
            f"{str(n_topics)[:40]}: put a single one into a list"
        )
    numbers = list(n_topics)
    if not numbers:
        raise ValueError(
            "n_topics must have numbers to choose from; got none, such as range(5, 50, 5)"
        )
    for number in numbers:
        check_integer("n_topics", number, at_least=2)
    return sorted({*numbers})


def _split(X, times, covariates, test_size, random_state):
    """Return documents that are seen and held out, and what else is given of both, by name."""
    n = count_documents(X)
    check_integer("the number of documents", n, at_least=4)
    seen, held = train_test_split(np.arange(n), test_size=test_size, random_state=random_state)
    seen, held, given = np.sort(seen), np.sort(held), {}
    if times is not None:
        check_length(times, n)
        given["times"] = times = pd.Index(times)
        ends = [times.argmin(), times.argmax()]
        seen, held = np.union1d(seen, ends), np.setdiff1d(held, ends)
    if covariates is not None:
        given["covariates"] = covariates
    about = [{name: _rows(each, rows) for name, each in given.items()} for rows in (seen, held)]
    return _rows(X, seen), _rows(X, held), *about


def _rows(X, rows):
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if isinstance(X, pd.Index):
        return X[rows]
    if isinstance(X, list | tuple):
        return [X[row] for row in rows]
    return scipy.sparse.csr_array(X)[rows] if scipy.sparse.issparse(X) else np.asarray(X)[rows]
