"""How many topics, which come back, and which are read as one."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

from polystick import (
    LDA,
    CorrelatedTopicModel,
    DynamicTopicModel,
    Gibbs,
    MeanField,
    choose_n_topics,
    plots,
    topic_stability,
)
from polystick.estimators.topic_choice import _rate
from topic_tools import needs_jit

matplotlib.use("Agg")
SHORT = Gibbs(10, 30, n_chains=1)


def corpus(n=100, seed=2):
    """Return documents of four topics, of four words each."""
    rng = np.random.default_rng(seed)
    topics = np.kron(np.eye(4), np.ones(4)) / 4
    counts = rng.multinomial(40, rng.dirichlet([0.3] * 4, n) @ topics)
    return pd.DataFrame(counts, columns=list("abcdefghijklmnop"))


@needs_jit
def test_the_true_number_scores_best():
    counts = corpus()
    table = choose_n_topics(counts, [4, 2], model=LDA(inference=SHORT), n_words=4)
    assert table.index.tolist() == [2, 4]
    assert table["score"].idxmax() == 4
    assert table.loc[2, "gain"] < -3 * table.loc[2, "gain_error"] < 0
    assert table.loc[4, ["gain", "gain_error"]].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(table["gain"], table["score"] - table["score"].max())
    assert table["npmi"].notna().all()
    assert table.loc[4, "diversity"] > 0.6
    again = choose_n_topics(sparse.csr_array(counts), [4], model=LDA(inference=SHORT), n_words=4)
    assert again.loc[4, "score"] == pytest.approx(table.loc[4, "score"])
    above, below = plots.n_topics(table)
    assert above.lines[0].get_ydata().tolist() == table["gain"].tolist()
    assert below.lines[0].get_ydata().tolist() == table["npmi"].tolist()


@needs_jit
def test_texts_and_times_are_taken_too():
    counts = corpus(40)
    words = [list(np.repeat(list(counts.columns), row)) for row in counts.to_numpy()]
    texts = pd.Series([" ".join(each) for each in words])
    face = LDA(inference=SHORT, vectorizer=CountVectorizer(token_pattern="[a-p]"))
    table = choose_n_topics(texts, [2, 3], model=face)
    expected = choose_n_topics(counts, [2, 3], model=LDA(inference=SHORT))
    pd.testing.assert_frame_equal(table, expected)
    again = choose_n_topics(list(texts), [2, 3], model=face)
    pd.testing.assert_frame_equal(again, expected)
    pd.testing.assert_frame_equal(choose_n_topics(words, [2, 3], model=face), expected)
    moving = DynamicTopicModel(inference=SHORT)
    days = pd.date_range("2000-01-01", periods=40, freq="90D")
    for times in (list(range(1960, 2000)), days, days.to_period("Y")):
        table = choose_n_topics(counts, [2], model=moving, times=times)
        assert np.isfinite(table.to_numpy()).all()
    with pytest.raises(TypeError, match="a time stamp for each document"):
        choose_n_topics(counts, [2], model=moving)


def test_errors_are_those_of_the_bootstrap():
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 40, 300)
    values = -tokens * rng.gamma(5.0, 1.0, 300)
    rate, error = _rate(values, sparse.csr_array(tokens[:, None]))
    assert rate == values.sum() / tokens.sum()
    picked = rng.integers(300, size=(4000, 300))
    drawn = values[picked].sum(axis=1) / tokens[picked].sum(axis=1)
    assert error == pytest.approx(drawn.std(), rel=0.1)


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="n_topics must have numbers to choose from"):
        choose_n_topics(corpus(8), [])
    with pytest.raises(TypeError, match=r"numbers to choose from.* got 5: put a single one"):
        choose_n_topics(corpus(8), 5)
    with pytest.raises(ValueError, match="number of documents must be at least 4; got 3"):
        choose_n_topics(corpus(3), [2])
    with pytest.raises(ValueError, match="n_topics must be at least 2; got 1"):
        choose_n_topics(corpus(8), [1, 2])
    with pytest.raises(ValueError, match="must be of `choose_n_topics`"):
        plots.n_topics(pd.DataFrame({"gain": [0.0]}))


@needs_jit
def test_topics_that_come_back_are_told_from_others():
    first, same, other = corpus(), corpus(seed=3), corpus()
    other = other[other.columns[[*range(8), 8, 12, 9, 13, 10, 14, 11, 15]]]
    other.columns = first.columns  # words of the last two topics have changed places
    models = [
        CorrelatedTopicModel(4, inference=MeanField(1e-4), random_state=i).fit(counts)
        for i, counts in enumerate((first, same, other))
    ]
    table = topic_stability(models)
    assert list(table.columns) == ["share", "model 1", "model 2", "found"]
    assert (table["model 1"] > 0.9).all()
    assert sorted(table["found"]) == [0.5, 0.5, 1.0, 1.0]
    kept = [
        set(row) < set("abcdefgh") for row in models[0].topics(4).loc[table.index, 1:].to_numpy()
    ]
    assert (table["found"] == 1.0).tolist() == kept
    with pytest.raises(ValueError, match="two or more; got 1"):
        topic_stability(models[:1])
    with pytest.raises(NotFittedError):
        topic_stability([models[0], CorrelatedTopicModel(4)])
    fewer = CorrelatedTopicModel(2, inference=MeanField(1e-2), random_state=0).fit(first)
    with pytest.raises(ValueError, match=r"as many topics as each other; got \[4, 2\]"):
        topic_stability([models[0], fewer])
    renamed = CorrelatedTopicModel(4, inference=MeanField(1e-2), random_state=0)
    with pytest.raises(ValueError, match="must know the same words"):
        topic_stability([models[0], renamed.fit(first.rename(columns={"a": "zebra"}))])


@needs_jit
@pytest.mark.parametrize("face", [CorrelatedTopicModel, LDA, DynamicTopicModel])
def test_merged_topics_are_sums(face):
    counts = corpus()
    times = {"times": np.repeat([0, 1], 50)} if face is DynamicTopicModel else {}
    model = face(4, inference=SHORT, random_state=0).fit(counts, **times)
    before, shares = model.topics_.copy(), model.transform(counts, **times)
    view = model.set_labels({2: "two"}).merged([["two", 0]])
    assert view.groups == [[0, 2], [1], [3]]
    assert list(view.labels) == ["0 + two", 1, 3]
    found = view.transform(counts, **times)
    np.testing.assert_allclose(found[:, 0], shares[:, 0] + shares[:, 2])
    np.testing.assert_array_equal(found[:, 1:], shares[:, [1, 3]])
    share = model.posterior_["share"][0].mean(axis=0)
    mixed = (share[0] * before[0] + share[2] * before[2]) / (share[0] + share[2])
    np.testing.assert_allclose(view.topics_[0], mixed)
    np.testing.assert_allclose(view.shares_.sum(), 1.0)
    table = view.table(3, by="frex")
    assert table["share"].is_monotonic_decreasing
    assert table.shape == (3, 4)
    assert list(view.document_topics(counts, **times).columns) == ["0 + two", 1, 3]
    np.testing.assert_array_equal(model.topics_, before)
    for groups, message in (([[0, 1], [1]], "must not share"), ([[]], "empty"), ([[9]], "0 to 3")):
        with pytest.raises(ValueError, match=message):
            model.merged(groups)
    for groups in ([0, 1], "ab"):
        with pytest.raises(TypeError, match=r"lists of topics, such as \[\[0, 3\]"):
            model.merged(groups)
