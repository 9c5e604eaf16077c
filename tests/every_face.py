"""Every public estimator, fitted to next to nothing: for tests that walk over all of them."""

import functools
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Matern

from polystick import (
    CorrelatedMultinomial,
    CorrelatedTopicModel,
    DynamicMultinomial,
    DynamicTopicModel,
    Gibbs,
    MeanField,
    MultinomialGP,
    MultinomialLDS,
    MultinomialRegression,
    StochasticVI,
    baselines,
    covariances,
)

__all__ = ["FACES", "answers", "fitted"]

_RNG = np.random.default_rng(8)
WORDS = _RNG.poisson(0.8, (16, 12))
ROWS = _RNG.multinomial(20, [0.4, 0.3, 0.2, 0.1], size=16)
TABLE = pd.DataFrame(ROWS, columns=["ash", "birch", "cedar", "oak"])
PLACES = np.arange(16.0)[:, None]
GRID = np.column_stack([np.repeat(np.arange(4.0), 4), np.tile(np.arange(4.0), 4)])
LABELS = np.eye(4, dtype=int)[np.arange(16) % 4]
STEPS = [ROWS[:9], ROWS[9:]]
TOKENS = _RNG.integers(4, size=30)
TEXTS = [f"the {tree} fell on the {beast} that ran" for tree, beast in zip(
    ["ash", "birch", "cedar", "oak"] * 4, ["fox", "hare", "wolf"] * 6
)]  # fmt: skip
ABOUT = pd.DataFrame({"year": np.arange(16.0), "party": ["left", "right", "left", "none"] * 4})
TIMES = np.arange(16) // 4
GIBBS = Gibbs(n_draws=4, n_burn=2, n_chains=2)
FIELD = MeanField(max_sweeps=3, n_draws=4)
BATCHES = StochasticVI(8, n_passes=1, n_draws=4)


class Case(NamedTuple):
    """An estimator, what it is fitted to, and what the fit is asked afterwards."""

    model: Any
    data: tuple
    ask: Callable
    about: Mapping[str, Any] = MappingProxyType({})


def _run(inference):
    return {"inference": inference, "random_state": 5, "n_jobs": 1}


def _rows(model, X):
    yield model.predict_proba(X)
    yield model.transform(X)
    yield model.score_samples(X)
    yield model.predict_counts(X, n_draws=8)
    yield model.summary()


def _softmax_rows(model, X):
    yield from _rows(model, X)


def _documents(model, X, **about):
    yield model.transform(X, **about)
    yield model.score_samples(X, **about)
    yield model.topics(3)
    yield model.topic_sizes()
    if hasattr(model, "topic_correlation") and not isinstance(
        model, DynamicTopicModel | baselines.LDA
    ):
        yield model.topic_correlation()


def _dated(model, X, **about):
    yield from _documents(model, X, **about)
    yield model.shares_over_time()


def _effects(model, X, **about):
    yield from _documents(model, X, **about)
    yield model.effects("party")


def _process(model, Z, X):
    yield model.predict_proba(Z + 0.5)
    yield model.score(Z, X)
    if hasattr(model, "predict_counts"):
        yield model.predict_counts(Z[:3], totals=9)


def _regression(model, Z, X):
    yield model.predict_proba(Z)
    yield model.score(Z, X)
    yield model.effects("year" if model.formula else "x0")


def _labels(model, Z, X):
    yield model.predict_proba(Z)
    yield model.score(Z, X)


def _sequences(model, X):
    yield model.score(X)
    yield from model.forecast(3)


def _composition(model, X):
    yield model.score(X)
    yield model.predict_proba(X)
    yield from model.forecast(3)


FACES = {
    "rows": Case(CorrelatedMultinomial(**_run(GIBBS)), (TABLE,), _rows),
    "rows, mean field": Case(CorrelatedMultinomial(**_run(FIELD)), (ROWS,), _rows),
    "rows, factors": Case(
        CorrelatedMultinomial(link="softmax", **_run(GIBBS)), (ROWS,), _softmax_rows
    ),
    "rows, Dirichlet": Case(baselines.DirichletMultinomial(random_state=5), (ROWS,), _rows),
    "topics": Case(CorrelatedTopicModel(3, **_run(GIBBS)), (WORDS,), _documents),
    "topics, mean field": Case(CorrelatedTopicModel(3, **_run(FIELD)), (TEXTS,), _documents),
    "topics, batches": Case(CorrelatedTopicModel(3, **_run(BATCHES)), (WORDS,), _documents),
    "topics, tree": Case(
        CorrelatedTopicModel(3, word_tree="similar", **_run(GIBBS)), (WORDS,), _documents
    ),
    "topics, seeds": Case(
        CorrelatedTopicModel(3, seed_words={"wood": ["ash", "oak"]}, **_run(GIBBS)),
        (TEXTS,),
        _documents,
    ),
    "topics, prevalence": Case(
        CorrelatedTopicModel(3, prevalence="cr(year, df=3) + party", **_run(GIBBS)),
        (WORDS,),
        _effects,
        {"covariates": ABOUT},
    ),
    "topics in time": Case(DynamicTopicModel(3, **_run(GIBBS)), (WORDS,), _dated, {"times": TIMES}),
    "topics in time, prevalence": Case(
        DynamicTopicModel(3, prevalence="party", **_run(GIBBS)),
        (WORDS,),
        _effects,
        {"times": TIMES, "covariates": ABOUT},
    ),
    "topics that evolve": Case(
        DynamicTopicModel(3, evolving=True, **_run(GIBBS)), (WORDS,), _dated, {"times": TIMES}
    ),
    "topics, softmax": Case(
        baselines.LogisticNormalTopicModel(3, **_run(GIBBS)), (WORDS,), _documents
    ),
    "topics, LDA": Case(baselines.LDA(3, **_run(GIBBS)), (WORDS,), _documents),
    "process": Case(MultinomialGP(**_run(GIBBS)), (PLACES, ROWS), _process),
    "process, mean field": Case(
        MultinomialGP(covariances.OwnNoise() + Matern(3.0, nu=1.5), **_run(FIELD)),
        (PLACES, ROWS),
        _process,
    ),
    "process in the plane": Case(MultinomialGP(**_run(GIBBS)), (GRID, ROWS), _process),
    "process on a grid": Case(
        MultinomialGP(
            covariances.Separable(
                covariances.OnColumns(Matern(2.0, nu=1.5), 0), covariances.OnColumns(RBF(2.0), 1)
            ),
            solver="separable",
            **_run(GIBBS),
        ),
        (GRID, ROWS),
        _process,
    ),
    "process in time": Case(
        MultinomialGP(Matern(3.0, nu=1.5), solver="markov", **_run(GIBBS)), (PLACES, ROWS), _process
    ),
    "process, softmax": Case(baselines.LogisticNormalGP(**_run(GIBBS)), (PLACES, ROWS), _process),
    "process, raw": Case(baselines.RawGP(), (PLACES, ROWS), _process),
    "process, static": Case(baselines.Static(), (PLACES, ROWS), _process),
    "regression": Case(MultinomialRegression(**_run(GIBBS)), (PLACES, TABLE), _regression),
    "regression, formula": Case(
        MultinomialRegression("year + party", **_run(GIBBS)), (ABOUT, ROWS), _regression
    ),
    "regression, mean field": Case(
        MultinomialRegression("year", groups="party", **_run(FIELD)), (ABOUT, ROWS), _regression
    ),
    "regression, groups": Case(
        MultinomialRegression("year", groups="party", **_run(GIBBS)), (ABOUT, ROWS), _regression
    ),
    "regression, softmax": Case(
        MultinomialRegression(link="softmax", **_run(GIBBS)), (PLACES, ROWS), _regression
    ),
    "regression, probit": Case(
        baselines.MultinomialProbit(**_run(GIBBS)), (PLACES, LABELS), _labels
    ),
    "states": Case(MultinomialLDS(1, **_run(GIBBS)), (STEPS,), _sequences),
    "states, memory": Case(
        MultinomialLDS(1, memory="both", **_run(GIBBS)), ([TOKENS, TOKENS[:9]],), _sequences
    ),
    "states, regimes": Case(MultinomialLDS(1, n_regimes=2, **_run(GIBBS)), (STEPS,), _sequences),
    "states, mean field": Case(MultinomialLDS(2, **_run(FIELD)), (STEPS,), _sequences),
    "states, softmax": Case(baselines.LogisticNormalLDS(1, **_run(GIBBS)), (STEPS,), _sequences),
    "states, raw": Case(baselines.RawLDS(1, **_run(GIBBS)), (STEPS,), _sequences),
    "states, hidden": Case(baselines.MultinomialHMM(2, **_run(GIBBS)), (STEPS,), _sequences),
    "unigram": Case(baselines.SmoothedUnigram(), (STEPS,), _sequences),
    "composition": Case(DynamicMultinomial(**_run(GIBBS)), (ROWS,), _composition),
}


@functools.cache
def fitted(name):
    """Return the fitted estimator; it is shared, so leave it as it is."""
    case = FACES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(case.model).fit(*case.data, **case.about)


def answers(name, model):
    """Return all that a model says, as plain arrays and texts."""
    case = FACES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [_plain(said) for said in case.ask(model, *case.data, **case.about)]


def _plain(said):
    said = (
        said.to_frame()
        if hasattr(said, "to_frame") and not isinstance(said, pd.DataFrame)
        else said
    )
    if isinstance(said, pd.DataFrame):
        return said.to_csv()  # as many digits as tell all numbers apart
    return said if isinstance(said, str) else np.asarray(said)
