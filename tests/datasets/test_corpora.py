"""Corpora: archives as they are downloaded."""

import numpy as np
import pytest
import scipy.sparse
from archive_tools import ARTICLE, pack
from sklearn.datasets import _twenty_newsgroups as theirs

from polystick import datasets
from polystick.datasets import corpora
from polystick.datasets.sources import FOLDER

POST = "From: x@y.z\nSubject: {0}\n\nI like {0}, {0} and 12 more.\n> the quoted tea\n\nsigned\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    return tmp_path


@pytest.fixture
def articles(folder):
    texts = {
        "AP1-1": "Owls like tea. About 250 owls and 10\n20 cats like Tea",
        "AP1-2": "",
        "AP2-1": "pm-tea-owls, Bjt",  # no word of the list stands alone
        "AP2-2": "``Tea,'' said the cat.",
    }
    pack(
        folder / "ap.tgz",
        {
            "ap/ap.txt": "".join(ARTICLE.format(*item) for item in texts.items()),
            "ap/ap.dat": "3 2:2 0:2 1:1\n2 1:1 2:1\n",
            "ap/vocab.txt": "owls\ncat\ntea\n",
        },
    )


@pytest.fixture
def posts(folder):
    names = {
        "train/sci.space/102": "moon",
        "test/alt.atheism/7": "tea",
        "train/alt.atheism/53": "moon",
        "train/alt.atheism/9": "Caf\xe9",
        "test/sci.space/1000": "sun",
    }
    files = {f"20news-bydate-{name}": POST.format(word) for name, word in names.items()}
    pack(folder / "20news-bydate.tar.gz", files)


def test_blei_s_matrix_of_the_archive(articles):
    corpus = datasets.load_ap()
    assert corpus.words.tolist() == ["tea", "cat", "owls"]
    assert corpus.counts.toarray().tolist() == [[2, 1, 2], [1, 1, 0]]
    assert corpus.documents.tolist() == ["AP1-1", "AP2-2"]
    assert isinstance(corpus.counts, scipy.sparse.csr_array)
    assert corpus.counts.dtype == np.int64
    fewer = datasets.load_ap(1)
    assert fewer.words.tolist() == ["tea"]
    assert fewer.counts.toarray().tolist() == [[2], [1]]


def test_a_bag_of_the_archive(articles):
    corpus = datasets.load_ap(kind="bag")
    assert corpus.documents.tolist() == ["AP1-1", "AP1-2", "AP2-1", "AP2-2"]
    assert corpus.words[:3].tolist() == ["tea", "anumber", "owls"]
    assert corpus.counts[:, :3].toarray().tolist() == [[2, 3, 2], [0, 0, 0], [1, 0, 1], [1, 0, 0]]
    assert datasets.load_ap(2, kind="bag").counts.shape == (4, 2)


def test_sequences_of_the_archive(articles):
    found = datasets.load_ap_sequences(None, None)
    assert len(found.tokens) == len(found.documents) == 4
    assert found.words[found.tokens[0]].tolist() == [
        *("owls", "like", "tea", "250", "owls", "10", "20", "cats", "like", "tea")
    ]
    two = datasets.load_ap_sequences(3, 1, longer_than=2, seed=0)
    assert two.documents.tolist() == ["AP1-1"]
    with pytest.raises(
        ValueError, match="n_documents must be from 1 to 1, the documents of more than 2"
    ):
        datasets.load_ap_sequences(3, 2, longer_than=2)


def test_documents_are_chosen_at_random_and_stay_in_order():
    lengths = np.arange(100)
    chosen = corpora.choose(lengths, 30, 20, seed=1)
    assert len(set(chosen)) == 30
    assert (np.diff(chosen) > 0).all()
    assert chosen.min() > 20
    assert chosen.tolist() != corpora.choose(lengths, 30, 20, seed=2).tolist()


def test_an_archive_without_its_files(folder):
    pack(folder / "ap.tgz", {"ap/readme.txt": ""})
    with pytest.raises(ValueError, match=r"must have a file vocab.txt; get it from http"):
        datasets.load_ap()
    pack(folder / "ap.tgz", {"vocab.txt": "tea", "ap.dat": "1 0:1\n1 0:2\n", "ap.txt": ""})
    with pytest.raises(ValueError, match="must have a text for each of 2 rows; got 0"):
        datasets.load_ap()


def test_posts_of_the_archive(posts):
    found = datasets.load_20newsgroups(n_words=None)
    assert found.documents.tolist() == [9, 53, 102]
    assert found.groups.tolist() == ["alt.atheism", "alt.atheism", "sci.space"]
    assert found.is_train.all()
    assert found.words.tolist() == ["moon", "anumber", "like", "café"]
    assert found.counts.toarray().tolist() == [[0, 1, 1, 2], [2, 1, 1, 0], [2, 1, 1, 0]]


def test_words_are_those_of_the_training_posts_in_each_subset(posts):
    test = datasets.load_20newsgroups("test", n_words=2)
    assert test.words.tolist() == ["moon", "anumber"]
    assert test.counts.toarray().tolist() == [[0, 1], [0, 1]]
    assert test.groups.tolist() == ["alt.atheism", "sci.space"]
    assert not test.is_train.any()
    every = datasets.load_20newsgroups("all", n_words=2)
    assert every.documents.tolist() == [9, 53, 102, 7, 1000]
    assert every.is_train.tolist() == [True] * 3 + [False] * 2


def test_choices_that_are_not_there():
    with pytest.raises(ValueError, match='subset must be "train", "test" or "all"; got \'valid\''):
        datasets.load_20newsgroups("valid")
    with pytest.raises(ValueError, match='kind must be "matrix" or "bag"; got \'text\''):
        datasets.load_ap(kind="text")


@pytest.mark.parametrize(
    "post",
    [
        POST.format("tea"),
        "no headers, one line",
        "a: b\n\n\n-- \nname",
        "a: b\n\nIn article <1> x wrote:\n>> y\n| z\ntext said: so\n\n---\n\nname\n-----\nmore\n\n",
        "a: b\n\none\n  \ntwo In article\n Quoted from\nQuoted from you",
        "",
    ],
)
def test_what_is_left_of_a_post_is_what_scikit_learn_leaves(post):
    left = theirs.strip_newsgroup_footer(theirs.strip_newsgroup_header(post))
    assert corpora.body(post) == theirs.strip_newsgroup_quoting(left)
