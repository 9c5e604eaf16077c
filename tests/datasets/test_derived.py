"""Our preprocessing against files that others derived from the same texts: they differ in ties alone.

Where words at the smallest count are too many, we keep the first ones by the alphabet; the files keep
whichever their sort left in front.
"""

import json
import lzma
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from archive_tools import ARTICLE, pack

from polystick import datasets
from polystick.datasets import corpora, strings, text
from polystick.datasets.sources import FOLDER
from polystick.paper import name_models

DATA = os.environ.get(FOLDER)
pytestmark = pytest.mark.skipif(DATA is None, reason="needs the files in the folder POLYSTICK_DATA")


KEYS = ("vocab", "id", "group", "group_names", "is_train", "year")


def derived(name):
    with np.load(Path(DATA, name)) as stored:
        cells = tuple(stored[key] for key in ("data", "indices", "indptr"))
        others = {key: stored[key] for key in stored.files if key in KEYS}
        return scipy.sparse.csr_array(cells, shape=tuple(stored["shape"])), others


def agree(ours, words, others, vocabulary, chosen=slice(None)):
    """Compare counts whose words were chosen with other rules for equal counts.

    Above the smallest count that was kept, words, order and counts are the same; at that count both
    kept the same number of words, of which some are others. Return how many.
    """
    totals = others[chosen].sum(axis=0)
    n_sure = int((totals > totals.min()).sum())
    assert words[:n_sure].tolist() == vocabulary[:n_sure].tolist()
    assert (ours[:, :n_sure] != others[:, :n_sure]).nnz == 0
    np.testing.assert_array_equal(ours[chosen].sum(axis=0), totals)
    return len(set(words.tolist()) - set(vocabulary.tolist()))


def test_the_bag_of_ap_is_the_derived_file():
    counts, stored = derived("ap_bow_v10000.npz")
    corpus = datasets.load_ap(kind="bag")
    ours, words = corpus.counts[:, :10000], corpus.words[:10000]
    assert agree(ours, words, counts, stored["vocab"]) == 262
    at = {word: i for i, word in enumerate(corpus.words.tolist())}
    with_their_words = corpus.counts[:, [at[word] for word in stored["vocab"].tolist()]]
    assert (with_their_words != counts).nnz == 0


def test_blei_s_matrix_is_the_stored_one_and_that_of_an_archive(tmp_path, monkeypatch):
    counts, stored = derived("ap_counts.npz")
    corpus = datasets.load_ap()
    assert corpus.counts.shape == (2246, 10473)
    assert corpus.counts.sum() == 435838
    order = np.argsort(stored["vocab"])
    ours = np.argsort(corpus.words)
    assert corpus.words[ours].tolist() == stored["vocab"][order].tolist()
    assert (corpus.counts[:, ours] != counts[:, order]).nnz == 0
    names, articles = corpora.read_ap_texts(Path(DATA, "ap_docs.csv.gz"))
    cells = [f" {j}:{n}" for j, n in zip(counts.indices, counts.data)]
    edges = zip(counts.indptr, counts.indptr[1:])
    pack(
        tmp_path / "ap.tgz",
        {
            "ap/ap.txt": "".join(map(ARTICLE.format, names, articles)),
            "ap/ap.dat": "".join(f"{b - a}{''.join(cells[a:b])}\n" for a, b in edges),
            "ap/vocab.txt": "\n".join(stored["vocab"]),
        },
    )
    monkeypatch.setenv(FOLDER, str(tmp_path))
    again = datasets.load_ap()
    assert (again.counts != corpus.counts).nnz == 0
    for name in ("words", "documents"):
        np.testing.assert_array_equal(getattr(again, name), getattr(corpus, name))
    assert corpora.read_ap_texts(tmp_path / "ap.tgz") == (names, articles)


def test_sequences_of_ap_are_the_derived_file():
    every = datasets.load_ap_sequences(n_documents=None)
    with np.load(Path(DATA, "ap_lds_v200.npz")) as stored:
        tokens, offsets, chosen = (stored[name] for name in ("tokens", "offsets", "subset20"))
        assert every.words.tolist() == stored["vocab"].tolist()
    np.testing.assert_array_equal(np.concatenate(every.tokens), tokens)
    np.testing.assert_array_equal(np.cumsum([0, *map(len, every.tokens)]), offsets)
    twenty = datasets.load_ap_sequences()
    assert twenty.documents.tolist() == every.documents[chosen].tolist()
    for ours, i in zip(twenty.tokens, chosen, strict=True):
        np.testing.assert_array_equal(ours, every.tokens[i])
    assert sum(map(len, twenty.tokens)) == 20 * 77


def test_posts_are_the_derived_file():
    counts, stored = derived("20news_bow_v10000.npz")
    posts = datasets.load_20newsgroups("all")
    assert agree(posts.counts, posts.words, counts, stored["vocab"], stored["is_train"]) == 97
    np.testing.assert_array_equal(posts.documents, stored["id"])
    np.testing.assert_array_equal(posts.is_train, stored["is_train"])
    np.testing.assert_array_equal(posts.groups, stored["group_names"][stored["group"]])


def test_posts_of_an_archive_are_those_of_the_lines(tmp_path):
    posts = corpora.read_posts(Path(DATA, "20news_bydate.jsonl.xz"))[::97]
    pack(
        tmp_path / "20news-bydate.tar.gz",
        {f"20news-bydate-{s}/{group}/{i}": post for s, group, i, post in posts[::-1]},
    )
    assert corpora.read_posts(tmp_path / "20news-bydate.tar.gz") == posts


def test_alice_is_the_derived_file():
    book = datasets.load_alice()
    with np.load(Path(DATA, "alice_lds_v1000.npz")) as stored:
        words, tokens = stored["vocab"], stored["tokens"]
    totals = np.bincount(tokens, minlength=1000)
    n_sure = int(
        (totals > totals.min()).sum()
    )  # the others occur twice, as do words that were dropped
    assert book.words[:n_sure].tolist() == words[:n_sure].tolist()
    assert len(set(book.words.tolist()) - set(words.tolist())) == 96
    np.testing.assert_array_equal(np.bincount(book.tokens), totals)
    assert book.tokens[book.tokens < n_sure].tolist() == tokens[tokens < n_sure].tolist()
    every = datasets.load_alice(None)
    theirs = [word for word in every.words[every.tokens].tolist() if word in set(words.tolist())]
    assert theirs == words[tokens].tolist()  # with their words, all is the same


def test_dna_is_the_derived_file():
    dna = datasets.load_dna()
    with np.load(Path(DATA, "dna_lds_682.npz")) as stored:
        assert dna.alphabet.tolist() == stored["alphabet"].tolist()
        np.testing.assert_array_equal(dna.tokens, stored["tokens"])
        np.testing.assert_array_equal(datasets.load_dna(None).tokens, stored["tokens_long"])


def test_a_known_gene_is_read():
    letters = strings.read_fasta(Path(DATA, strings.PIECE))
    exon = letters[94_475 : 94_475 + 60]  # of MIF, macrophage migration inhibitory factor
    assert strings.translate(exon) == "MPMFIVNTNVPRASVPDGFL"


def test_whole_addresses_are_the_derived_file():
    counts, stored = derived("sotu_bow_v5000.npz")
    with lzma.open(Path(DATA, "sotu.jsonl.xz"), "rt", encoding="utf-8") as file:
        addresses = sorted(map(json.loads, file), key=lambda address: address["year"])
    bags = [text.split_words(address["text"]) for address in addresses]
    spread = Counter(word for bag in bags for word in set(bag))
    letters = {word for word, n in spread.items() if n >= 5 and re.fullmatch("[a-z]{3,}", word)}
    bags = [[word for word in bag if word in letters] for bag in bags]
    words = text.most_frequent(bags, 5000)
    ours = text.count(text.encode(bags, words), 5000)
    assert [address["year"] for address in addresses] == stored["year"].tolist()
    assert agree(ours, words, counts, stored["vocab"]) == 23


def test_bundled_names_are_the_derived_file_and_the_sums_of_the_full_one():
    with np.load(Path(DATA, "ssa_names_1960_2013_top200.npz")) as stored:
        top = {name: stored[name] for name in ("names_M", "counts_M", "states")}
    ours = datasets.load_names("M")
    assert ours.columns.tolist() == top["names_M"].tolist()
    np.testing.assert_array_equal(ours.to_numpy(), top["counts_M"].reshape(-1, 200))
    with np.load(Path(DATA, "ssa_names_by_state_full.npz")) as full:
        chosen = (full["year"] == 2013) & (full["sex"] == 1)
        state, name = (full[key][chosen] for key in ("state", "name"))
        cells = (full["state_codes"][state], full["names"][name])
        counts = dict(zip(zip(*map(np.ndarray.tolist, cells)), full["count"][chosen].tolist()))
    for (_, state), row in datasets.load_names("M", n_names=300, years=[2013]).iterrows():
        assert row.tolist() == [counts.get((state, name), 0) for name in row.index]


def test_names_of_the_experiment_are_the_most_frequent_since_1910():
    with np.load(Path(DATA, "ssa_names_by_state_full.npz")) as full:
        chosen = (full["year"] <= 2013) & (full["sex"] == 1)
        totals = np.bincount(full["name"][chosen], full["count"][chosen])
        top = full["names"][np.argsort(-totals)[:100]]
    assert name_models.NAMES.split() == top.tolist()


def test_centres_are_near_those_that_others_use():
    other = np.genfromtxt(
        Path(DATA, "us_state_latlon.csv"), delimiter=",", dtype=str, skip_header=1
    )
    places = datasets.load_state_centres().loc[other[:, 0]]
    away = abs(places[["latitude", "longitude"]].to_numpy() - other[:, 1:3].astype(float))
    assert away.max() < 2.7
    assert np.median(away) < 0.5
