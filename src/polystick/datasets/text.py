"""From text to counts: words, the most frequent of them, bags and sequences."""

import re
from collections import Counter
from functools import cache

import numpy as np
import scipy.sparse

WORD = re.compile(r"\w\w+")
NUMBER = re.compile(r"(?<=\s)\d+(?=\s)")
NUMBER_TAG = "anumber"


def tag_numbers(text):
    """Put one word in place of each number that stands between blanks."""
    return NUMBER.sub(NUMBER_TAG, text)


def split_words(text):
    """Return the words of a text in lower case, in order, without English stop words."""
    stops = stop_words()
    return [word for word in WORD.findall(text.lower()) if word not in stops]


@cache
def stop_words():
    """Return scikit-learn's list of English stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return ENGLISH_STOP_WORDS


def most_frequent(texts, n_words=None):
    """Return the most frequent words of lists of words, by falling count and then by the alphabet."""
    counts = Counter(word for text in texts for word in text)
    return np.array(
        sorted(counts, key=lambda word: (-counts[word], word))[: check(n_words, counts)]
    )


def check(n_words, words):
    """Return how many words to keep: all of them, or a number of them."""
    if n_words is not None and not 1 <= n_words <= len(words):
        raise ValueError(
            f"n_words must be from 1 to {len(words)}, or None for all of them; got {n_words}"
        )
    return n_words


def encode(texts, words):
    """Return an array of positions in words for each list of words; other words are left out."""
    at = {word: i for i, word in enumerate(words.tolist())}
    return [np.array([at[word] for word in text if word in at], dtype=np.int64) for text in texts]


def count(sequences, n_words):
    """Return counts (n, n_words) as CSR of sequences of positions."""
    lengths = [len(sequence) for sequence in sequences]
    rows = np.repeat(np.arange(len(sequences)), lengths)
    cells = (np.ones(len(rows), dtype=np.int64), (rows, np.concatenate(sequences)))
    return scipy.sparse.coo_array(cells, shape=(len(sequences), n_words)).tocsr()


def keep_most_frequent(counts, words, n_words=None):
    """Return the columns and words by falling count and then by the alphabet, the first n_words of them."""
    order = np.lexsort((words, -counts.sum(axis=0)))[: check(n_words, words)]
    kept = scipy.sparse.csr_array(counts[:, order])
    kept.sort_indices()
    return kept, words[order]
