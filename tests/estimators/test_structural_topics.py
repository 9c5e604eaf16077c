"""Topics whose shares depend on covariates: what is told of them, new documents, and what is refused."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polystick import (
    CorrelatedTopicModel,
    DynamicTopicModel,
    Gibbs,
    MeanField,
    StochasticVI,
    choose_n_topics,
)
from polystick.baselines import LDA
from polystick.conjugate import NormalInverseWishart
from polystick.estimators.prevalence import Prevalence
from polystick.estimators.topic_effects import ExpectedShares
from polystick.models.folding import content_ids
from topic_tools import JIT, needs_jit

pytest.importorskip("formulaic")

N, T, OWN = (160, 4, 10) if JIT else (20, 4, 3)
FORMULA = "cr(year, df=4) + party"
SHORT = Gibbs(30, 60, n_chains=2) if JIT else Gibbs(2, 2, n_chains=2)


def corpus(n=N, seed=5):
    """Return counts, covariates and true shares: topic 0 is of party D, 1 of R, 2 of late years."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "year": rng.integers(1900, 2000, n),
            "party": rng.choice(["D", "R"], n),
            "form": rng.choice(["spoken", "written", "both"], n),
        }
    )
    late = (frame.year - 1950) / 40
    logits = np.column_stack([frame.party == "D", frame.party == "R", late, 0 * late]).astype(float)
    shares = np.exp(1.2 * logits + 0.4 * rng.standard_normal((n, T)))
    shares /= shares.sum(axis=1, keepdims=True)
    words = np.repeat(np.eye(T), OWN, axis=1) + 0.02
    words /= words.sum(axis=1, keepdims=True)
    return rng.multinomial(40 if JIT else 8, shares @ words), frame, shares


COUNTS, FRAME, SHARES = corpus()


def fitted(formula=FORMULA, **options):
    options = {"inference": SHORT, "random_state": 0, "progress": False, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CorrelatedTopicModel(T, prevalence=formula, **options).fit(COUNTS, covariates=FRAME)


@pytest.fixture(scope="module")
def model():
    return fitted()


def of_truth(model):
    """Return the topic of the fit that has the words of each true topic."""
    return model.topics_.reshape(T, T, OWN).sum(axis=2).argmax(axis=0)


# effects


@needs_jit
def test_effects_are_those_that_made_the_corpus(model):
    names = of_truth(model)
    assert sorted(names) == list(range(T))
    table = model.effects("party").iloc[names]
    d, r = (SHARES[FRAME.party == party].mean(axis=0) for party in "DR")
    np.testing.assert_allclose(table.estimate, r - d, atol=0.06)
    assert table.estimate.sum() == pytest.approx(0.0, abs=1e-12)
    assert (table.lower <= table.estimate).all()
    assert (table.upper >= table.estimate).all()
    np.testing.assert_array_equal(table.p_positive.iloc[:2], [0.0, 1.0])
    grows = model.effects("year", change=(1910, 1990)).iloc[names]
    early, late = SHARES[FRAME.year < 1920].mean(axis=0), SHARES[FRAME.year > 1980].mean(axis=0)
    np.testing.assert_allclose(grows.estimate, late - early, atol=0.12)


@needs_jit
def test_effects_are_what_draws_of_documents_average_to(model):
    """E pi of the regression is the average of simulated shares; nothing is told in logits."""
    law = model.model_.shares.told
    best = model.posterior_.best_chain
    state = {name: model.posterior_[name][best, -1] for name in law}
    rng, link = np.random.default_rng(3), model.model_.link
    found = []
    for party in "DR":
        x = model.prevalence_.columns(FRAME.assign(party=party))
        line = state["mean"] + x @ state["coefficients"]
        noise = rng.standard_normal((400, *line.shape)) @ np.linalg.cholesky(state["cov"]).T
        found.append(link.shares((line + noise).reshape(-1, T - 1)).mean(axis=0))
    expected = ExpectedShares(model.model_, model.prevalence_, [state])
    told = [expected(FRAME.assign(party=p))[0].mean(axis=0) for p in "DR"]
    np.testing.assert_allclose(told, found, atol=0.005)
    again = [expected(FRAME.assign(party=p))[0].mean(axis=0) for p in "DR"]
    np.testing.assert_array_equal(told, again)


@needs_jit
def test_tables_of_effects_have_labels_of_topics(model):
    labelled = pickle.loads(pickle.dumps(model)).set_labels({1: "peace"})
    for table in (labelled.effects("party"), labelled.contrasts({"party": ("R", "D")})):
        assert list(table.index) == [0, "peace", 2, 3]
        assert table.index.name == "topic"
    there, back = labelled.effects("party"), labelled.contrasts({"party": ("R", "D")})
    np.testing.assert_allclose(there.estimate, -back.estimate)
    within = labelled.contrasts({"party": ("D", "R")}, by="party")
    assert within.index.names == ["party", "topic"]
    curves = labelled.effect_curves("year", at=[1920, 1980])
    np.testing.assert_allclose(curves.estimate.groupby(level=0).sum(), 1.0)


@needs_jit
def test_the_first_level_of_a_factor_is_one_like_the_others():
    """Which level comes first changes no column of a factor, but for their order."""
    turned = FRAME.assign(form=pd.Categorical(FRAME.form, ["written", "spoken", "both"]))
    one, two = (Prevalence.of("form", frame, COUNTS) for frame in (FRAME, turned))
    left, right = one.columns(FRAME), two.columns(turned)
    assert left.shape[1] == 3
    np.testing.assert_allclose(left.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.sort(left, axis=1), np.sort(right, axis=1))
    spread = {len(np.unique(column.round(9))) for column in left.T}
    assert spread == {2}
    whole = Prevalence.of("0 + form", FRAME, COUNTS).columns(FRAME)
    np.testing.assert_allclose(np.sort(whole, axis=1), np.sort(left, axis=1))


def test_units_and_bases_do_not_matter():
    one, two = (
        Prevalence.of(formula, frame, COUNTS)
        for formula, frame in (
            ("year + I(year ** 2)", FRAME),
            ("poly(when, 2)", FRAME.assign(when=1e-3 * FRAME.year)),
        )
    )
    single = Prevalence.of("poly(year, 2)", FRAME, COUNTS)
    np.testing.assert_allclose(
        single.columns(FRAME), two.columns(FRAME.assign(when=1e-3 * FRAME.year)), atol=1e-6
    )
    assert set(one.terms) == {0, 1}
    assert set(single.terms) == {0}
    for made in (one, single):
        x = made.columns(FRAME)
        np.testing.assert_allclose(x.mean(axis=0), 0.0, atol=1e-8)
        np.testing.assert_allclose(np.square(x).mean(axis=0), 1.0)


def test_a_basis_that_adds_up_to_one_loses_a_column():
    made = Prevalence.of("cr(year, df=4)", FRAME, COUNTS)
    x = made.columns(FRAME)
    assert x.shape == (N, 3)
    np.testing.assert_allclose(x.T @ x / N, np.eye(3), atol=1e-8)


# new documents


def test_new_documents_are_folded_in_with_their_covariates(model):
    nothing = np.zeros((2, COUNTS.shape[1]), int)
    pair = pd.DataFrame({"year": [1950, 1950], "party": ["D", "R"]})
    for method in ("fast", "exact"):
        shares = model.transform(nothing, covariates=pair, method=method)
        assert shares.shape == (2, T)
        assert np.abs(shares[0] - shares[1]).max() > (0.1 if JIT else 0.0)
    for method in ("fast", "exact"):
        every = model.transform(COUNTS[:6], covariates=FRAME[:6], method=method)
        one = model.transform(COUNTS[3:4], covariates=FRAME[3:4], method=method)
        np.testing.assert_array_equal(every[3], one[0])


def test_documents_alike_in_words_but_not_in_covariates_share_no_stream(model):
    same = np.repeat(COUNTS[:1], 3, axis=0)
    frame = pd.DataFrame({"year": [1950, 1950, 1951], "party": ["D", "D", "D"]})
    _, draws = model.transform(same, covariates=frame, return_draws=True, n_draws=4)
    np.testing.assert_array_equal(draws[:, 0], draws[:, 1])
    assert (draws[:, 0] != draws[:, 2]).any()
    x = model.prevalence_.columns(frame)
    ids = content_ids(csr_array(same), {"covariates": x})
    assert ids[0] == ids[1] != ids[2]
    rounded = {"covariates": np.nextafter(x, np.inf), "other": -np.zeros(3)}
    again = content_ids(csr_array(same), rounded)
    there = content_ids(csr_array(same), {"covariates": x, "other": np.zeros(3)})
    np.testing.assert_array_equal(again, there)
    turned = content_ids(csr_array(same), {"covariates": x[:, ::-1]})
    assert turned[0] != ids[0]


@needs_jit
def test_every_method_takes_covariates(model):
    counts, frame = COUNTS[:6], FRAME[:6]
    assert np.isfinite(model.score(counts, covariates=frame))
    assert np.isfinite(model.perplexity(counts, covariates=frame))
    held = model.score_samples(counts, covariates=frame, method="held_out", n_draws=2)
    assert held.shape == (6,)
    assert model.predict_counts(counts, covariates=frame, n_draws=2).shape == (2, *counts.shape)
    assert model.sample_prior(6, covariates=frame).shape == (1, *counts.shape)
    table = model.document_topics(counts, covariates=frame)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert len(model.document_topics()) == N
    assert len(model.representative_documents(counts, covariates=frame, n=1))
    merged = model.merged([[0, 1]]).transform(counts, covariates=frame)
    assert merged.shape == (6, T - 1)
    assert model.topic_correlation(n_draws=4).mean.shape == (T, T)
    assert model.summary().shape[0] == T
    assert len(model.topic_sizes()) == T


@needs_jit
def test_arviz_and_the_choice_of_topics_take_covariates(model):
    pytest.importorskip("arviz")
    few = {"covariates": FRAME, "n_draws": 4}
    tree = model.to_arviz(COUNTS, log_likelihood=True, prior_predictive=True, **few)
    for name in ("log_likelihood", "prior_predictive", "observed_data"):
        assert getattr(tree, name).sizes["document" if name != "observed_data" else "category"]
    face = CorrelatedTopicModel(prevalence="party", inference=SHORT, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        table = choose_n_topics(pd.DataFrame(COUNTS), [2, 4], model=face, covariates=FRAME)
    assert np.isfinite(table["score"]).all()


@needs_jit
def test_covariates_help_where_words_are_few(model):
    """Held-out documents of the same corpus are likelier with their own covariates than with others'."""
    counts, frame, _ = corpus(80, seed=6)
    few = np.minimum(counts, 1) * (np.random.default_rng(1).random(counts.shape) < 0.15)
    other = frame.assign(party=np.where(frame.party == "D", "R", "D"))
    right, wrong = (
        model.score_samples(few, covariates=each, method="held_out", n_draws=4)
        for each in (frame, other)
    )
    gain = right - wrong
    assert gain.mean() > 3 * gain.std() / np.sqrt(len(gain))


# runs


def test_threads_leave_the_bits():
    one, two = (fitted(n_jobs=jobs) for jobs in (1, 2))
    for name in ("coefficients", "mean", "cov", "topics"):
        np.testing.assert_array_equal(one.posterior_[name], two.posterior_[name])


def test_a_run_that_was_cut_goes_on_with_the_same_bits(tmp_path, model):
    def tell(progress):
        if progress.sweep == (70 if JIT else 3):
            raise RuntimeError("pulled the plug")

    with pytest.raises(RuntimeError, match="plug"):
        fitted(progress=tell, checkpoint=tmp_path / "run")
    options = {"inference": SHORT, "random_state": 0, "checkpoint": tmp_path / "run"}
    again = CorrelatedTopicModel(T, prevalence=FORMULA, progress=False, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again.fit(COUNTS, covariates=FRAME, resume=True)
    for name in ("coefficients", "mean", "cov", "topics"):
        np.testing.assert_array_equal(again.posterior_[name], model.posterior_[name])


@needs_jit
def test_texts_and_pickles(model):
    words = np.array([f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(COUNTS.shape[1])])
    texts = pd.Series([" ".join(np.repeat(words, row)) for row in COUNTS], index=range(10, 10 + N))
    frame = FRAME.set_index(texts.index).assign(text=texts)
    told = CorrelatedTopicModel(
        T, prevalence="party", inference=SHORT, random_state=0, progress=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        shares = clone(told).fit_transform(frame["text"], covariates=frame)
        assert told.fit(frame["text"], covariates=frame).words_.shape[0] <= COUNTS.shape[1]
    np.testing.assert_array_equal(shares, told.transform(frame["text"], covariates=frame))
    again = pickle.loads(pickle.dumps(model))
    few = {"covariates": FRAME[:3]}
    np.testing.assert_array_equal(
        again.transform(COUNTS[:3], **few), model.transform(COUNTS[:3], **few)
    )
    pd.testing.assert_frame_equal(again.effects("party"), model.effects("party"))


# what is refused


def refused(error, match, formula=FORMULA, counts=COUNTS, covariates=FRAME, **options):
    face = CorrelatedTopicModel(T, prevalence=formula, random_state=0, **options)
    with pytest.raises(error, match=match) as caught:
        face.fit(counts, covariates=covariates)
    assert "\n" not in str(caught.value)
    assert not hasattr(face, "posterior_") or face._posterior is None


def test_bad_fits_get_one_sentence():
    refused(TypeError, "covariates must hold what prevalence=.*; got none", covariates=None)
    refused(TypeError, "takes no covariates here", formula=None)
    refused(ValueError, "equally many rows", covariates=FRAME[:5])
    turned = FRAME.sample(frac=1, random_state=1)
    refused(ValueError, "same index", counts=pd.DataFrame(COUNTS), covariates=turned)
    refused(ValueError, "'age' is missing", formula="age")
    refused(ValueError, "no response", formula="year ~ party")
    refused(ValueError, "missing or infinite value in row 3", covariates=with_gap())
    refused(ValueError, "must have a covariate", formula="1")
    refused(ValueError, "must vary", formula="year + one", covariates=FRAME.assign(one=1.0))
    twice = FRAME.assign(again=2 * FRAME.year)
    refused(ValueError, "collinear", formula="year + again", covariates=twice)
    refused(TypeError, "DataFrame", covariates=FRAME.to_numpy())
    for schedule in (MeanField(), StochasticVI()):
        refused(TypeError, "prevalence needs inference=Gibbs", inference=schedule)
    flat = NormalInverseWishart.weak(np.zeros(T - 1), 1.0)
    refused(TypeError, "prior that learns its scale", prior=flat)


def with_gap():
    return FRAME.assign(year=FRAME.year.astype(float).where(FRAME.index != 3))


def test_bad_new_documents_get_one_sentence(model):
    few = COUNTS[:4]
    cases = [
        (None, TypeError, "got none"),
        (FRAME[:3], ValueError, "equally many rows"),
        (FRAME[:4].drop(columns="party"), ValueError, "'party' is missing"),
        (FRAME[:4].assign(party="X"), ValueError, "levels seen in fit"),
        (with_gap()[:4], ValueError, "missing or infinite"),
    ]
    for covariates, error, match in cases:
        with pytest.raises(error, match=match) as caught:
            model.transform(few, covariates=covariates)
        assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match="takes no times"):
        model.transform(few, covariates=FRAME[:4], times=[1, 2, 3, 4])
    with pytest.raises(ValueError, match="no covariate 'form'"):
        model.effects("form")
    with pytest.raises(ValueError, match="n_draws"):
        model.effects("party", n_draws=0)


def test_models_without_prevalence_say_so():
    plain = CorrelatedTopicModel(2, inference=MeanField(0.1, 3, 4), random_state=0, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain.fit(COUNTS[:8])
    with pytest.raises(ValueError, match="effects need shares that depend on covariates"):
        plain.effects("party")
    with pytest.raises(TypeError, match="takes no covariates here"):
        plain.transform(COUNTS[:8], covariates=FRAME[:8])
    for face in (LDA(2), DynamicTopicModel(2)):
        given = {"times": [1] * 8} if isinstance(face, DynamicTopicModel) else {"covariates": FRAME}
        with pytest.raises((TypeError, ValueError)):
            face.fit(COUNTS[:8], **given, **({"covariates": FRAME} if "times" in given else {}))
    stream = CorrelatedTopicModel(2, prevalence="party", inference=StochasticVI())
    with pytest.raises(TypeError, match="prevalence needs inference=Gibbs"):
        stream.partial_fit(COUNTS[:8], corpus_size=8)


# documents within groups


def authored(seed=8):
    """Return counts and covariates: authors differ in their use of topic 0, twelve documents each."""
    rng = np.random.default_rng(seed)
    n_authors = 8 if JIT else 3
    frame = pd.DataFrame({"author": np.repeat([f"author {i}" for i in range(n_authors)], 12)})
    frame["party"] = rng.choice(["D", "R"], len(frame))
    away = np.repeat(np.linspace(-2, 2, n_authors), 12)
    logits = np.column_stack([away, 0.8 * (frame.party == "R"), 0 * away, 0 * away])
    shares = np.exp(logits + 0.4 * rng.standard_normal(logits.shape))
    shares /= shares.sum(axis=1, keepdims=True)
    words = np.repeat(np.eye(T), OWN, axis=1) + 0.02
    words /= words.sum(axis=1, keepdims=True)
    return rng.multinomial(40 if JIT else 8, shares @ words), frame


def fit_authored(**options):
    counts, frame = authored()
    options = {"prevalence": "party", "groups": "author", **options}
    model = CorrelatedTopicModel(T, inference=SHORT, random_state=0, progress=False, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(counts, covariates=frame), counts, frame


@needs_jit
def test_documents_within_authors():
    model, counts, frame = fit_authored()
    own = of_truth(model)[0]
    curve = model.effect_curves("author")["estimate"].unstack()[model._topic_index[own]]
    assert curve.corr(pd.Series(np.arange(8.0), index=curve.index)) > 0.9
    assert set(model.effects("party").columns) >= {"estimate", "lower", "upper"}
    assert model.effects("author", ("author 0", "author 7"))["p_positive"].iloc[own] > 0.95
    new = frame.head(3).assign(author="nobody known")
    assert np.isfinite(model.transform(counts[:3], covariates=new)).all()
    line = model.prevalence_.columns(new)[:, -8:]
    np.testing.assert_allclose(line, -1 / 8)


def test_what_groups_of_documents_need():
    with pytest.raises(ValueError, match="groups need a prevalence"):
        fit_authored(prevalence=None)
    with pytest.raises(ValueError, match="must be columns of the covariates"):
        fit_authored(groups="writer")
    model, counts, frame = fit_authored(prevalence="1")
    with pytest.raises(ValueError, match="'author' is missing"):
        model.transform(counts[:2], covariates=frame[["party"]].head(2))


# beside levels that move with time


def dated(formula="party", **options):
    options = {"inference": SHORT, "random_state": 0, "progress": False, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DynamicTopicModel(T, prevalence=formula, **options)
        return model.fit(COUNTS, times=FRAME.year // 20, covariates=FRAME)


@needs_jit
def test_effects_stand_beside_levels_that_move():
    model = dated(groups="form")
    names = of_truth(model)
    assert sorted(names) == list(range(T))
    d, r = (SHARES[FRAME.party == party].mean(axis=0) for party in "DR")
    np.testing.assert_allclose(model.effects("party").iloc[names].estimate, r - d, atol=0.06)
    over_time = model.shares_over_time().mean.iloc[:, names]
    late = FRAME.year // 20 == FRAME.year.max() // 20
    found, true = over_time.iloc[-1].to_numpy(), SHARES[late].mean(axis=0)
    np.testing.assert_allclose(found, true, atol=0.12)
    assert over_time.iloc[-1, 2] > over_time.iloc[0, 2] + 0.15
    assert model.effect_curves("form").shape == (3 * T, 3)
    new = FRAME.head(5).assign(form="sung")
    shares = model.transform(COUNTS[:5], times=[95, 96, 97, 98, 99], covariates=new)
    assert shares.shape == (5, T)


def test_what_dated_documents_lack_is_said():
    with pytest.raises(TypeError, match="covariates must hold what"):
        DynamicTopicModel(T, prevalence="party").fit(COUNTS, times=FRAME.year)
    with pytest.raises(TypeError, match="needs a prior that learns its scale"):
        dated(prior=NormalInverseWishart.weak(np.zeros(T - 1), np.ones(T - 1)))
    with pytest.raises(TypeError, match="its shares depend on none"):
        DynamicTopicModel(T).fit(COUNTS, times=FRAME.year, covariates=FRAME)
