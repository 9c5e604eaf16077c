"""From texts to counts of words, by scikit-learn's `CountVectorizer`.

`default_vectorizer` is what topic models count the words of raw texts by; take it with changes of your own as
their `vectorizer`.
"""

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone
from sklearn.feature_extraction.text import (
    ENGLISH_STOP_WORDS,
    CountVectorizer,
    TfidfVectorizer,
)

__all__ = ["check_vectorizer", "default_vectorizer", "fit_vectorizer"]

_WORD = r"(?u)\b[^\W\d_]{2,}\b"  # letters only
_FRAGMENTS = (  # what is left of "don't" and the like
    "ain", "aren", "couldn", "didn", "doesn", "don", "hadn", "hasn", "haven", "isn", "ll",
    "shouldn", "ve", "wasn", "weren", "wouldn",
)  # fmt: skip
_MANY = 100  # documents, from which on rare and frequent words are dropped
_NOTHING_LEFT = (
    "empty vocabulary",
    "no terms remain",
    "max_df corresponds",
)  # so says scikit-learn
_FEWEST_WORDS = 50  # that must be left of them, or none are dropped


def default_vectorizer(n_documents: int | None = None, **changes: Any) -> Any:
    """Return the `CountVectorizer` by which topic models read texts, not yet fitted.

    Words are made of letters, at least two, in lower case; English stop words are left out. In 100 documents
    or more a word must be in at least two of them and in at most 80 %.

    Parameters
    ----------
    n_documents : int or None
        How many there will be; None is many.
    **changes
        Parameters of `CountVectorizer` that are to be others, such as ``ngram_range=(1, 2)``.

    Examples
    --------
    >>> from polystick import texts
    >>> counter = texts.default_vectorizer(2).fit(["The tax on wages", "War, and peace: in 1812"])
    >>> counter.get_feature_names_out().tolist()
    ['peace', 'tax', 'wages', 'war']
    """
    dropped = {"min_df": 2, "max_df": 0.8}
    few = n_documents is not None and n_documents < _MANY
    stop_words = sorted({*ENGLISH_STOP_WORDS, *_FRAGMENTS})
    settings = {"stop_words": stop_words, "token_pattern": _WORD} | ({} if few else dropped)
    return CountVectorizer(**settings | changes)


def fit_vectorizer(vectorizer: Any, texts: Sequence[str]) -> Any:
    """Return a fitted vectorizer, and the counts (n, V) of the texts.

    vectorizer : one of a user's own, which is cloned; or None for the default, which drops nothing from texts
        of few different words
    """
    if vectorizer is not None:
        return _fitted(clone(vectorizer), texts, "ask it for less, such as min_df=1")
    advice = "give texts with words of two letters or more, or a vectorizer of your own"
    kept = default_vectorizer(len(texts), min_df=1, max_df=1.0)
    if len(texts) < _MANY:
        return _fitted(kept, texts, advice)
    try:
        found = _fitted(default_vectorizer(len(texts)), texts, advice)
    except ValueError:  # all were dropped
        return _fitted(kept, texts, advice)
    return found if found[1].shape[1] >= _FEWEST_WORDS else _fitted(kept, texts, advice)


def _fitted(vectorizer, texts, advice):
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError as error:
        if not any(sign in str(error) for sign in _NOTHING_LEFT):
            raise
        raise ValueError(_too_few(0, len(texts), advice)) from error
    if counts.shape[1] < 2:
        raise ValueError(_too_few(counts.shape[1], len(texts), advice))
    return vectorizer, counts


def _too_few(n_words, n_texts, advice):
    return (
        "documents must have at least 2 different words that are counted; the vectorizer found "
        f"{n_words or 'none'} in {n_texts} documents; {advice}"
    )


def check_vectorizer(vectorizer: Any) -> None:
    """Raise unless this counts words and knows their names, or is None."""
    if vectorizer is None:
        return
    if isinstance(vectorizer, TfidfVectorizer) or hasattr(vectorizer, "use_idf"):
        raise TypeError(
            f"vectorizer must count words; {type(vectorizer).__name__} weighs them; take "
            "sklearn.feature_extraction.text.CountVectorizer with the same settings"
        )
    needed = ("fit_transform", "transform", "get_feature_names_out")
    if isinstance(vectorizer, type) or not all(hasattr(vectorizer, name) for name in needed):
        raise TypeError(
            "vectorizer must be an object such as CountVectorizer(), with fit_transform, transform and "
            f"get_feature_names_out, or None; got {_named(vectorizer)}"
        )


def _named(thing):
    return f"the class {thing.__name__}" if isinstance(thing, type) else type(thing).__name__
