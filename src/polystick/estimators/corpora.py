"""Corpora in parts, where a face takes counts: a `Corpus`, or a dask array whose chunks are its parts."""

import itertools

import numpy as np

from polystick.corpus import Corpus
from polystick.estimators.topic_covariates import About
from polystick.validation import warn_user

__all__ = ["begin_with", "corpus_of", "known_parts", "part_of", "put_together"]


def corpus_of(X):
    """Return a corpus in parts; None where X is anything else."""
    if isinstance(X, Corpus):
        return X
    is_dask = type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "numblocks")
    return Corpus.of_dask(X) if is_dask else None


def begin_with(face, corpus, whole):
    """Let a face remember the words of the corpus it is fitted to; return the corpus."""
    corpus.check()
    if whole and not corpus.is_whole:
        raise ValueError(
            "counts of a corpus must be whole numbers for Gibbs sampling, in arrays of integers; got "
            "others; write its parts from counts.astype('int32'), or use inference=MeanField(), which takes "
            "weights"
        )
    face.n_features_in_, face.vectorizer_ = corpus.shape[1], None
    face.words_ = np.arange(corpus.shape[1]) if corpus.words is None else corpus.words
    if hasattr(face, "feature_names_in_"):
        del face.feature_names_in_
    return corpus


def known_parts(face, corpus):
    """Yield the counts of each part for a face that was fitted, without words that it never saw."""
    if corpus.shape[1] != face.n_features_in_:
        raise ValueError(
            f"counts must have the {face.n_features_in_} categories seen in fit; got {corpus.shape[1]}"
        )
    if corpus.words is not None and not np.array_equal(corpus.words, face.words_):
        raise ValueError("a corpus must have the words of the fit, in their order; got others")
    n_strange = int(np.asarray(corpus.sum(axis=0))[~face.seen_].sum())
    if n_strange:
        warn_user(f"{n_strange} tokens of words that were never seen in fit are ignored")
    for counts in corpus.matrices():
        counts.data[~face.seen_[counts.indices]] = 0
        counts.eliminate_zeros()
        yield counts


def part_of(about, corpus):
    """Yield what is known of the documents of each part besides their words."""
    for start, stop in itertools.pairwise(corpus.offsets):
        times, covariates = about.times, about.covariates
        yield About(
            None if times is None else times[start:stop],
            None if covariates is None else covariates.iloc[start:stop],
        )


def put_together(parts, X):
    """Return results of the parts of X, arrays or tuples of them, as one, written as they come."""
    first = next(parts)
    second = next(parts, None)
    if second is None:
        return first
    if not isinstance(first, tuple):
        return put_together(((part,) for part in itertools.chain([first, second], parts)), X)[0]
    # draws are (S, n, T)
    whole = tuple(np.empty((*p.shape[:-2], X.shape[0], p.shape[-1]), p.dtype) for p in first)
    done = 0
    for part in itertools.chain([first, second], parts):
        stop = done + part[0].shape[-2]
        for each, piece in zip(whole, part):
            each[..., done:stop, :] = piece
        done = stop
    return whole
