"""How many topics: held-out scores and coherence of fits with each number."""

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from polystick import coherence, scores
from polystick.estimators.topics import CorrelatedTopicModel
from polystick.validation import check_integer

__all__ = ["choose_n_topics"]


def choose_n_topics(X, n_topics, *, model=None, test_size=0.2, observed=0.5, n_words=10,
                    random_state=0, covariates=None):  # fmt: skip
    """Fit each number of topics to a part of the documents, and score the others.

    Parameters
    ----------
    X : array-like, CSR or DataFrame of shape (n, V)
        Counts of words.
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
    numbers = sorted({*n_topics})
    if not numbers:
        raise ValueError(
            "n_topics must have numbers to choose from; got none, such as range(5, 50, 5)"
        )
    for number in numbers:
        check_integer("n_topics", number, at_least=2)
    face = CorrelatedTopicModel() if model is None else model
    seen, held = train_test_split(
        np.arange(X.shape[0]), test_size=test_size, random_state=random_state
    )
    train, test = _rows(X, np.sort(seen)), _rows(X, np.sort(held))
    about = [
        {} if covariates is None else {"covariates": covariates.iloc[np.sort(rows)]}
        for rows in (seen, held)
    ]
    lines, values = [], []
    for number in numbers:
        fitted = clone(face).set_params(n_topics=number, random_state=random_state)
        fitted.fit(train, **about[0])
        values.append(fitted.score_samples(test, observed=observed, **about[1]))
        rest = scores.split_words(fitted._check(test), observed, fitted.seed_)[1]
        top = np.argsort(-fitted.topics_, axis=1, kind="stable")[:, :n_words]
        told = np.nanmean(coherence.npmi(top, _plain(train))), coherence.diversity(top)
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


def _rows(X, rows):
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return scipy.sparse.csr_array(X)[rows]


def _plain(X):
    return X.to_numpy() if hasattr(X, "to_numpy") else X
