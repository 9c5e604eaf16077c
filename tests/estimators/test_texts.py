"""Documents as people have them: what topic models take for counts, and what they refuse in a sentence."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfVectorizer,
)
from sklearn.model_selection import GridSearchCV

from polystick import (
    LDA,
    CorrelatedTopicModel,
    DynamicTopicModel,
    Gibbs,
    LogisticNormalTopicModel,
    MeanField,
    StochasticVI,
)
from polystick.models import warm_start
from polystick.texts import default_vectorizer, fit_vectorizer

SHORT = Gibbs(n_draws=4, n_burn=6, n_chains=1)
OPTIONS = {"inference": SHORT, "random_state": 0, "n_jobs": 1}
MONEY = ["bank", "gold", "tax", "trade", "wage"]
WAR = ["army", "navy", "peace", "treaty", "war"]
WORDS = sorted(MONEY + WAR)
_RNG = np.random.default_rng(0)
TOKENS = [list(_RNG.choice(MONEY if i % 2 else WAR, 12).astype(object)) for i in range(24)]
TEXTS = ["The " + ", and of 1812 ".join(words).title() + "!" for words in TOKENS]
COUNTS = np.array([[words.count(word) for word in WORDS] for words in TOKENS])
BAGS = [[(k, int(n)) for k, n in enumerate(row) if n] for row in COUNTS]
DICTS = [{word: int(n) for word, n in zip(WORDS, row) if n} for row in COUNTS]
SECRET = "a novel that nobody should see printed back in a message " * 9

FACES = [CorrelatedTopicModel, DynamicTopicModel, LDA, LogisticNormalTopicModel]

pytestmark = pytest.mark.filterwarnings("ignore:the chains have not converged", "ignore:mean field")


@pytest.fixture(autouse=True)
def one_start(monkeypatch):
    monkeypatch.setattr(warm_start, "MOST_STARTS", 1)


def model(**changes):
    return CorrelatedTopicModel(2, **{**OPTIONS, **changes})


CONTAINERS = {
    "list": TEXTS,
    "tuple": tuple(TEXTS),
    "array of strings": np.array(TEXTS),
    "array of objects": np.array(TEXTS, dtype=object),
    "column of an array": np.array(TEXTS, dtype=object)[:, None],
    "Series": pd.Series(TEXTS),
    "Series of strings": pd.Series(TEXTS, dtype="string"),
    "column of a table": pd.DataFrame({"text": TEXTS}),
    "lists of words": TOKENS,
    "arrays of words": [np.array(words) for words in TOKENS],
    "Series of lists": pd.Series(TOKENS),
    "dicts": DICTS,
    "table of counts": pd.DataFrame(COUNTS, columns=WORDS),
}


@pytest.fixture(scope="module")
def by_counts():
    return model().fit(pd.DataFrame(COUNTS, columns=WORDS))


@pytest.mark.parametrize("kind", CONTAINERS)
def test_all_documents_mean_the_same_counts(kind, by_counts):
    X = CONTAINERS[kind]
    found = model().fit(X)
    assert list(found.words_) == list(found.feature_names_in_) == WORDS
    assert found.n_features_in_ == len(WORDS)
    np.testing.assert_array_equal(found.topics_, by_counts.topics_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(found.transform(X), by_counts.transform(by_counts_of(X)))
    assert list(found.posterior_.tree["posterior"]["word"].values) == WORDS
    assert set(found.topics(3)[1]) <= set(WORDS)


def by_counts_of(X):
    return pd.DataFrame(COUNTS[: len(X)], columns=WORDS)


def test_bags_have_numbers_for_words_or_the_names_of_a_vectorizer(by_counts):
    found = model().fit(BAGS)
    np.testing.assert_array_equal(found.topics_, by_counts.topics_)
    assert list(found.words_) == list(range(len(WORDS)))
    assert not hasattr(found, "feature_names_in_")
    assert set(found.topics(3, words=WORDS)[1]) <= set(WORDS)
    named = model(vectorizer=CountVectorizer().fit([" ".join(WORDS)])).fit(BAGS)
    assert list(named.words_) == WORDS
    np.testing.assert_array_equal(named.transform(TEXTS), found.transform(BAGS))
    with pytest.warns(RuntimeWarning, match="2 pairs whose id is not below 10"):
        shares = found.transform([[(0, 2), (10, 1), (99, 4)]])
    np.testing.assert_array_equal(shares, found.transform([[(0, 2)]]))


def test_words_that_come_twice_in_a_bag_add_up():
    np.testing.assert_array_equal(
        model().fit(BAGS).transform([[(0, 1), (3, 1), (0, 2)]]),
        model().fit(BAGS).transform([[(0, 3), (3, 1)]]),
    )


@pytest.mark.parametrize("make", FACES)
def test_every_method_takes_texts(make):
    """Each model gives for texts what it gives for their counts."""
    when = {"times": np.arange(24) // 8} if make is DynamicTopicModel else {}
    some = {"times": [0, 1, 2]} if when else {}
    texts, counts = make(2, **OPTIONS).fit(TEXTS, **when), make(2, **OPTIONS).fit(COUNTS, **when)
    for call in (
        lambda m, X: m.transform(X[:3], **some),
        lambda m, X: m.score(X[:3], **some),
        lambda m, X: m.score_samples(X[:3], method="held_out", **some),
        lambda m, X: m.perplexity(X[:3], **some),
        lambda m, X: m.predict_counts(X[:3], n_draws=2, **some),
        lambda m, X: m.fit_transform(X, **when),
        lambda m, X: m.to_arviz(X[:3], prior_predictive=True, **some)["observed_data"]["counts"],
    ):
        np.testing.assert_array_equal(call(texts, TEXTS), call(counts, COUNTS))
    assert texts.components_.shape == (2, 10)
    np.testing.assert_allclose(texts.components_.sum(axis=1), 1.0, rtol=1e-5)


def test_associations_are_of_texts():
    many = CorrelatedTopicModel(5, **OPTIONS).fit(TEXTS)
    same = CorrelatedTopicModel(5, **OPTIONS).fit(COUNTS)
    short = {"n_draws": 4, "n_topic_draws": 1}
    found, expected = (
        many.topic_association(TEXTS, **short),
        same.topic_association(COUNTS, **short),
    )
    np.testing.assert_array_equal(found.mean, expected.mean)


def test_components_are_averages_over_time():
    found = DynamicTopicModel(2, evolving=True, **OPTIONS).fit(TEXTS, times=np.arange(24) // 8)
    assert found.topics_.shape == (2, 3, 10)
    np.testing.assert_array_equal(found.components_, found.topics_.mean(axis=1))
    assert not hasattr(model(), "components_")


def test_a_stream_of_texts_keeps_the_words_of_the_first_batch():
    stream = model(inference=StochasticVI(batch_size=8, n_draws=4))
    stream.partial_fit(TEXTS[:12], corpus_size=24).partial_fit(["unheard gold gold", *TEXTS[12:]])
    assert list(stream.words_) == WORDS
    assert stream.transform(TEXTS).shape == (24, 2)


def test_names_of_rows_travel():
    texts = pd.Series(TEXTS, index=[f"speech {i}" for i in range(24)])
    found = model().fit(texts)
    labels = found.to_arviz(texts, posterior_predictive=True, n_draws=2)["observed_data"][
        "document"
    ]
    assert list(labels.values[:2]) == ["speech 0", "speech 1"]
    shares = found.set_output(transform="pandas").transform(texts)
    assert list(shares.index[:2]) == ["speech 0", "speech 1"]
    assert found.transform(TEXTS).shape == (24, 2)


# new documents


def test_unknown_words_are_left_out(by_counts):
    found = model().fit(TEXTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shares = found.transform(["gold and zebras and tax", ""])
    empty = by_counts.transform(pd.DataFrame(0 * COUNTS[:1], columns=WORDS))
    np.testing.assert_array_equal(shares[0], found.transform(["gold tax"])[0])
    np.testing.assert_array_equal(shares[1:], empty)
    with pytest.warns(RuntimeWarning, match="1 of 2 documents have no word that the fit knows"):
        shares = found.transform(["zebras!", ""])
    np.testing.assert_array_equal(shares, np.repeat(empty, 2, axis=0))
    known = found.transform(["gold tax"])
    for new in ([["gold", "zebra", "tax"]], [{"gold": 1, "zebra": 5, "tax": 1}]):
        np.testing.assert_array_equal(found.transform(new), known)
    np.testing.assert_array_equal(found.transform([[]]), empty)


def test_counts_still_serve_a_model_of_texts():
    found = model().fit(TEXTS)
    table = pd.DataFrame(COUNTS, columns=WORDS)
    np.testing.assert_array_equal(found.transform(table), found.transform(TEXTS))
    with pytest.raises(ValueError, match="categories seen in fit"):
        found.transform(table[WORDS[::-1]])
    refitted = found.fit(COUNTS)
    assert refitted.vectorizer_ is None
    assert not hasattr(refitted, "feature_names_in_")


def test_a_model_of_texts_survives_pickle_clone_and_searches():
    found = model(vectorizer=CountVectorizer(min_df=1)).fit(TEXTS)
    expected = found.transform(TEXTS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).transform(TEXTS), expected)
    np.testing.assert_array_equal(clone(found).fit(TEXTS).transform(TEXTS), expected)
    search = GridSearchCV(found, {"vectorizer__max_features": [4, 8]}, cv=2).fit(TEXTS)
    assert len(search.best_estimator_.words_) in (4, 8)
    copy = pickle.loads(pickle.dumps(model().fit(TOKENS)))
    assert copy.transform(TOKENS).shape == (24, 2)


# vectorizers


def test_a_vectorizer_of_ones_own_is_cloned_and_fitted():
    own = CountVectorizer(ngram_range=(1, 2), stop_words=["and", "of", "the"], min_df=3)
    found = model(vectorizer=own).fit(TEXTS)
    assert "1812 gold" in found.words_
    assert found.vectorizer_ is not own
    assert not hasattr(own, "vocabulary_")
    expected = clone(own).fit_transform(TEXTS)
    np.testing.assert_array_equal(
        found.topics_, model().fit(scipy.sparse.csr_array(expected)).topics_
    )


def test_lists_of_words_keep_what_a_vectorizer_asks_for_else():
    own = CountVectorizer(ngram_range=(1, 2), min_df=2, stop_words=["gold"])
    found = model(vectorizer=own).fit(TOKENS)
    assert "bank tax" in found.words_
    assert "gold" not in found.words_
    assert list(model().fit([["New York", "x", "The"]] * 3).words_) == ["New York", "The", "x"]


def test_a_fitted_vectorizer_is_taken_as_it_is():
    own = CountVectorizer(vocabulary=[*WORDS[::-1], "whale"])
    own.fit(TEXTS)
    own.vocabulary_ = dict(own.vocabulary_)
    found = model(vectorizer=own).fit(TEXTS)
    assert list(found.words_) == [*WORDS[::-1], "whale"]
    seen = model(vectorizer=own).fit(own.transform(TEXTS))
    assert list(seen.words_) == list(found.words_)
    np.testing.assert_array_equal(seen.transform(TEXTS), found.transform(TEXTS))
    own.vocabulary_["oak"] = 11  # what users do to theirs later is not our concern
    assert found.transform(TEXTS).shape == (24, 2)
    with pytest.raises(ValueError, match="it knows 12 and the counts have 10 columns"):
        model(vectorizer=own).fit(COUNTS)


def test_the_default_drops_stop_words_numbers_and_in_many_texts_the_rare_and_the_frequent():
    few = ["We don't know the 12 army officers of 1812, x y", "Gold_rush: Äpfel & gold"]
    vectorizer, _ = fit_vectorizer(None, few)
    assert set(vectorizer.get_feature_names_out()) == {"know", "army", "officers", "gold", "äpfel"}
    names = [f"{a}{b}" for a in "bdghjklmrs" for b in ("anx", "em", "il", "or", "um", "ixt")]
    many = [f"common {names[i % 60]} {names[(i + 7) % 60]}" for i in range(200)] + ["hapax oak"]
    vectorizer, _ = fit_vectorizer(None, many)
    assert set(vectorizer.get_feature_names_out()) == set(names)
    vectorizer, _ = fit_vectorizer(None, ["gold tax", "gold war"] * 60)  # nothing would be left
    assert set(vectorizer.get_feature_names_out()) == {"gold", "tax", "war"}
    assert default_vectorizer(1000, min_df=5).min_df == 5
    assert default_vectorizer(10).min_df == 1


# what is refused


class Opaque:
    """Neither a text nor a number."""


BAD = {
    "one string": (SECRET, TypeError, r"list of documents; got a single string; put it into a list"),
    "bytes": (b"gold", TypeError, "got a single string"),
    "nothing among texts": (["gold tax", None], ValueError, "document 1 is missing .*empty text"),
    "NaN among texts": (pd.Series(["gold", np.nan, "tax"]), ValueError, "document 1 is missing"),
    "NA among texts": (pd.Series(["gold", pd.NA], dtype="string"), ValueError, "1 is missing"),
    "nothing at all": ([None, None], ValueError, "document 0 is missing"),
    "mixed": ([SECRET, 3], TypeError, "document 0 is a text and document 1 is of type int"),
    "texts and lists": ([["gold"], SECRET], TypeError, "of one kind.*document 0 is a text|is of type"),
    "texts and objects": (["gold", Opaque()], TypeError, "document 1 is of type Opaque"),
    "texts without words": (["", " ", "1 2 3"], ValueError, "at least 2 different words.*found none in 3"),
    "stop words only": (["the of", "and"], ValueError, "found none in 2 documents"),
    "one word only": (["gold", "gold gold"], ValueError, "found 1 in 2 documents"),
    "lists without words": ([[], []], ValueError, "documents must have words; got none"),
    "dicts without words": ([{}, {}], ValueError, "documents must have words; got none"),
    "lists of numbers": ([[1, 2, 3], [4]], ValueError, r"lengths from 1 to 3; give \(id, count\) pairs"),
    "triples": ([[(1, 2, 3)]], ValueError, r"must hold \(id, count\).*document 0 has another"),
    "negative ids": ([[(0, 1)], [(-1, 2)]], ValueError, "whole number from 0; document 1"),
    "words for ids": ([[("gold", 1)]], ValueError, "or dicts of words and counts"),
    "numbers among words": ([["gold"], ["tax", 7]], TypeError, "document 1 has one of type int"),
    "nothing among words": ([["gold", None]], TypeError, "of type NoneType"),
    "words for counts": ([{"gold": "tax"}], TypeError, "counts as values; document 0"),
    "weights": ([[(0, 0.5), (1, 2)]], ValueError, "words must be counted, not weighed"),
    "texts in a table": (
        pd.DataFrame({"id": [1, 2], "body": [SECRET, SECRET]}),
        ValueError,
        r"column 'body' of the table holds texts; give that column alone, as in X\['body'\]",
    ),
    "an iterator": (iter([SECRET]), TypeError, r"a list of documents; got a list_iterator; .* list\(X\)"),
    "a set": ({SECRET}, TypeError, r"a list of documents; got a set; make it a list"),
    "texts by name": ({"one": SECRET}, TypeError, r"got a mapping; give its values"),
    "lists of bytes": ([SECRET.encode()], TypeError, r"must be strings; document 0 holds bytes; decode them"),
    "an array of bytes": (np.array([SECRET.encode()]), TypeError, "document 0 holds bytes"),
    "counts of nothing": (np.zeros((3, 4)), ValueError, "must have words; got none in any of them"),
    "an array of texts": (np.array([[SECRET, SECRET]] * 3), ValueError, "counts must be numbers"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_documents_get_a_sentence(case):
    X, error, message = BAD[case]
    with pytest.raises(error, match=message) as caught:
        model().fit(X)
    assert "printed back" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("texts", [TEXTS, TfidfVectorizer().fit_transform(TEXTS)])
def test_weights_are_told_the_way_out(texts):
    if isinstance(texts, list):
        with pytest.raises(TypeError, match=r"TfidfVectorizer weighs them; take .*CountVectorizer"):
            model(vectorizer=TfidfVectorizer()).fit(texts)
        return
    with pytest.raises(ValueError, match=r"whole numbers .* not weighed as TF-IDF does"):
        model().fit(texts)
    assert model(inference=MeanField(max_sweeps=3, n_draws=2)).fit(texts).n_features_in_ > 2


@pytest.mark.parametrize(
    ("vectorizer", "X", "error", "message"),
    [
        (CountVectorizer, TEXTS, TypeError, "got the class CountVectorizer"),
        (HashingVectorizer(), TEXTS, TypeError, "get_feature_names_out, or None; got HashingV"),
        ("english", TEXTS, TypeError, "got str"),
        (CountVectorizer(), BAGS, TypeError, "must be fitted to name the words of lists of"),
        (CountVectorizer(), DICTS, TypeError, "must be fitted to name the words of dicts"),
        (
            CountVectorizer(min_df=25),
            TEXTS,
            ValueError,
            "found none in 24 documents; ask it for less",
        ),
    ],
)
def test_bad_vectorizers_get_a_sentence(vectorizer, X, error, message):
    with pytest.raises(error, match=message):
        model(vectorizer=vectorizer).fit(X)


def test_new_documents_must_be_like_those_of_the_fit():
    with pytest.raises(
        TypeError, match="the fit, which had counts; got texts; give counts, or fit"
    ):
        model().fit(COUNTS).transform(TEXTS)
    with pytest.raises(TypeError, match="which had lists of words; got texts"):
        model().fit(TOKENS).transform(TEXTS)
    with pytest.raises(TypeError, match="which had no words; got dicts"):
        model().fit(BAGS).transform(DICTS)
    with pytest.raises(TypeError, match="a single string"):
        model().fit(TEXTS).transform("gold tax")
    with pytest.raises(TypeError, match="a single string"):
        DynamicTopicModel(2, **OPTIONS).fit("gold", times=[1, 2, 3, 4])


def test_a_failed_fit_keeps_the_words():
    found = model().fit(TEXTS)
    with pytest.raises(ValueError, match="is missing"):
        found.fit(["gold", None])
    assert list(found.words_) == WORDS
    assert found.transform(TEXTS).shape == (24, 2)
