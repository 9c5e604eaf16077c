"""Corpora of documents: the AP News and 20 Newsgroups."""

import csv
import gzip
import json
import lzma
import re
import tarfile
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from polystick.datasets import text
from polystick.datasets.sources import AP, NEWSGROUPS, locate

ARTICLE = re.compile(r"<DOCNO>\s*(\S+)\s*</DOCNO>\s*<TEXT>(.*?)</TEXT>", re.S)
QUOTE = re.compile(r"writes in|writes:|wrote:|says:|said:|^(?:In article|Quoted from|[|>])")
KINDS = ("matrix", "bag")
SUBSETS = ("train", "test", "all")


class Corpus(NamedTuple):
    """Counts of words in documents."""

    counts: scipy.sparse.csr_array  # (n, V) int64
    words: np.ndarray  # (V,) the most frequent first
    documents: np.ndarray  # (n,) names


class Sequences(NamedTuple):
    """Words of documents in their order."""

    tokens: list[np.ndarray]  # of each document, positions in words
    words: np.ndarray  # (V,) the most frequent first
    documents: np.ndarray  # (n,) names


class Posts(NamedTuple):
    """Counts of words in posts, and the groups to which they were posted."""

    counts: scipy.sparse.csr_array  # (n, V) int64
    words: np.ndarray  # (V,) the most frequent first
    documents: np.ndarray  # (n,) int64, the numbers of the posts
    groups: np.ndarray  # (n,) names
    is_train: np.ndarray  # (n,) bool


def load_ap(n_words: int | None = None, *, kind: str = "matrix") -> Any:
    """Load counts of words in articles of the Associated Press, 1988-1990.

    The file is that of D. Blei. It is read from the folder that POLYSTICK_DATA names, or else downloaded
    once (this needs ``polystick[data]``). The texts are the Associated Press's; they are not bundled.

    Parameters
    ----------
    n_words : int or None
        How many of the most frequent words to keep; None is all of them. A row may become empty.
    kind : "matrix" or "bag"
        "matrix" is Blei's own matrix, 2246 articles and 10473 words. "bag" is counted here from the
        2250 texts, as the paper does it: words of two or more characters in lower case, without English
        stop words, and a number between blanks becomes the word ``anumber``.

    Returns
    -------
    Corpus (counts, words, documents)
        counts is a CSR array; words go by falling count, and by the alphabet where counts are equal.

    Examples
    --------
    >>> from polystick import datasets
    >>> corpus = datasets.load_ap(1000, kind="bag")
    >>> corpus.counts.shape, corpus.words[:3].tolist()
    ((2250, 1000), ['said', 'anumber', 'year'])
    """
    if kind not in KINDS:
        raise ValueError(f'kind must be "matrix" or "bag"; got {kind!r}')
    if kind == "matrix":
        counts, words, documents = read_ap_matrix(locate(AP, "ap_counts.npz"))
        counts, words = text.keep_most_frequent(counts, words, n_words)
        return Corpus(counts, words, documents)
    documents, articles = read_ap_texts(locate(AP, "ap_docs.csv.gz"))
    bags = [text.split_words(text.tag_numbers(article)) for article in articles]
    words = text.most_frequent(bags, n_words)
    return Corpus(text.count(text.encode(bags, words), len(words)), words, np.array(documents))


def load_ap_sequences(
    n_words: int = 200, n_documents: int = 20, *, longer_than: int = 20, seed: int = 11
) -> Any:
    """Load words of articles of the Associated Press in their order.

    Of each article only the most frequent words are left, without English stop words. The default is 20
    random articles with 77 words on average, which is the mean length in the paper; it does not say
    which articles it took, and the seed is the first one that gives this mean.

    Parameters
    ----------
    n_words : int or None
        How many of the most frequent words there are; None is all of them.
    n_documents : int or None
        How many articles to choose, at random; None is all 2250, the empty ones too.
    longer_than : int
        The articles to choose from have more than this many words. Unused with n_documents=None.
    seed : int
        The seed of the choice. Unused with n_documents=None.

    Returns
    -------
    Sequences (tokens, words, documents)
        tokens is a list of arrays of positions in words, in the order of the file.

    Examples
    --------
    >>> from polystick import datasets
    >>> articles = datasets.load_ap_sequences()
    >>> len(articles.tokens), sum(map(len, articles.tokens)) / 20
    (20, 77.0)
    """
    documents, articles = read_ap_texts(locate(AP, "ap_docs.csv.gz"))
    bags = [text.split_words(article) for article in articles]
    words = text.most_frequent(bags, n_words)
    tokens = text.encode(bags, words)
    chosen = choose([len(each) for each in tokens], n_documents, longer_than, seed)
    return Sequences([tokens[i] for i in chosen], words, np.array(documents)[chosen])


def load_20newsgroups(subset: str = "train", *, n_words: int = 10000) -> Any:
    """Load counts of words in the posts of 20 Newsgroups, split by date.

    The file is that of J. Rennie. It is read from the folder that POLYSTICK_DATA names, or else
    downloaded once (this needs ``polystick[data]``). The posts are their authors'; they are not bundled.

    Headers, signatures and quoted lines are left out; words are made as in
    ``load_ap(kind="bag")``. Some posts become empty. The frequent word ``ax`` comes from encoded
    binaries.

    Parameters
    ----------
    subset : "train", "test" or "all"
        11314, 7532 or 18846 posts. The words and their order are those of "train" in each case.
    n_words : int or None
        How many of the words that are most frequent in "train" to keep; None is all of them.

    Returns
    -------
    Posts (counts, words, documents, groups, is_train)
        counts is a CSR array; words go by falling count, and by the alphabet where counts are equal.

    Examples
    --------
    >>> from polystick import datasets
    >>> posts = datasets.load_20newsgroups(n_words=1000)
    >>> posts.counts.shape, str(posts.groups[0])
    ((11314, 1000), 'alt.atheism')
    """
    if subset not in SUBSETS:
        raise ValueError(f'subset must be "train", "test" or "all"; got {subset!r}')
    posts = read_posts(locate(NEWSGROUPS, "20news_bydate.jsonl.xz"))
    posts = [post for post in posts if subset != "train" or post[0] == "train"]
    bags = [text.split_words(text.tag_numbers(body(post))) for *_, post in posts]
    splits, groups, numbers = (np.array(each) for each in list(zip(*posts))[:3])
    is_train = splits == "train"
    words = text.most_frequent([bags[i] for i in np.flatnonzero(is_train)], n_words)
    kept = np.flatnonzero(~is_train if subset == "test" else np.ones_like(is_train))
    counts = text.count(text.encode([bags[i] for i in kept], words), len(words))
    return Posts(counts, words, numbers[kept], groups[kept], is_train[kept])


def choose(lengths, n_documents, longer_than, seed):
    """Return the positions of documents chosen at random among the longer ones, in order."""
    if n_documents is None:
        return np.arange(len(lengths))
    longer = np.flatnonzero(np.array(lengths) > longer_than)
    if not 1 <= n_documents <= len(longer):
        raise ValueError(
            f"n_documents must be from 1 to {len(longer)}, the documents of more than {longer_than} "
            f"words, or None for all; got {n_documents}"
        )
    return np.sort(np.random.default_rng(seed).choice(longer, n_documents, replace=False))


def read_ap_matrix(path):
    """Return counts, words and names of documents of ap.tgz, or of the same as arrays."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as stored:
            cells = (stored["data"].astype(np.int64), stored["indices"], stored["indptr"])
            counts = scipy.sparse.csr_array(cells, shape=tuple(stored["shape"]))
            return counts, stored["vocab"], stored["docno"]
    words = np.array(read_member(path, "vocab.txt").split())
    rows = [line.split()[1:] for line in read_member(path, "ap.dat").splitlines()]
    pairs = [cell.split(":") for row in rows for cell in row]
    columns, values = np.array(pairs, dtype=np.int64).T
    starts = np.cumsum([0, *map(len, rows)])
    counts = scipy.sparse.csr_array((values, columns, starts), shape=(len(rows), len(words)))
    counts.sort_indices()
    return counts, words, documents_of_rows(path, words, len(rows))


def documents_of_rows(path, words, n_rows):
    """Return the names of the rows: documents go in order, those without a word of the list have none."""
    listed = set(words.tolist())
    documents = [
        name
        for name, article in zip(*read_ap_texts(path))
        if listed & {word.strip(".,;:!?`'\"()") for word in article.lower().split()}
    ]
    if len(documents) != n_rows:
        raise ValueError(f"{path} must have a text for each of {n_rows} rows; got {len(documents)}")
    return np.array(documents)


def read_ap_texts(path):
    """Return names and texts of the documents of ap.tgz, or of the same as a table."""
    if path.name.endswith(".csv.gz"):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return [row["docno"] for row in rows], [row["text"] for row in rows]
    found = ARTICLE.findall(read_member(path, "ap.txt"))
    return [name for name, _ in found], [article.strip() for _, article in found]


def read_member(path, name):
    """Return the text of the file of this name in an archive, in whichever folder it is."""
    with tarfile.open(path) as archive:
        for member in archive:
            if member.name.split("/")[-1] == name and (file := archive.extractfile(member)):
                return file.read().decode("latin-1")
    raise ValueError(f"{path} must have a file {name}; get it from {AP.address}")


def read_posts(path):
    """Return (split, group, number, text) of posts, by split (train first), group and number."""
    if path.name.endswith(".jsonl.xz"):
        with lzma.open(path, "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        posts = [(row["split"], row["group"], row["id"], row["text"]) for row in rows]
    else:
        posts = list(archived_posts(path))
    return sorted(posts, key=lambda post: (post[0] != "train", *post[1:3]))


def archived_posts(path):
    """Yield (split, group, number, text) of files 20news-bydate-SPLIT/GROUP/NUMBER."""
    with tarfile.open(path) as archive:
        for member in archive:
            if file := archive.extractfile(member):
                split, group, number = member.name.split("/")[-3:]
                post = file.read().decode("latin-1")
                yield split.removeprefix("20news-bydate-"), group, int(number), post


def body(post):
    """Return a post without its headers, signature and quoted lines."""
    lines = without_signature(post.partition("\n\n")[2]).split("\n")
    return "\n".join(line for line in lines if not QUOTE.search(line))


def without_signature(post):
    """Return what comes before the last line that is blank or of hyphens, if something does."""
    lines = post.strip().split("\n")
    rulers = [i for i, line in enumerate(lines) if not line.strip().strip("-")]
    return "\n".join(lines[: rulers[-1]]) if rulers and rulers[-1] > 0 else post
