"""The page of topics: a map, their words, which go together, who speaks of them, when, and why."""

import numpy as np
import pandas as pd

from polystick.report import pairs, panels, topic_words
from polystick.report.covariates import effects
from polystick.report.documents import documents_panel

__all__ = ["first_table", "tell"]

_LABEL_WORDS = 3
_LEVEL = 0.9


def tell(model, documents=None, texts=None, times=None, covariates=None, words=None,
         association=None):  # fmt: skip
    """Return the page of a topic model.

    documents, times, covariates : as in `transform`: those whose texts and shares are shown
    texts : a string for each document, where documents are counts
    words : V names, where the data of the fit had none
    association : what `topic_association` returned, to be shown in place of correlations of log shares
    """
    if documents is None and not all(value is None for value in (texts, times, covariates)):
        raise ValueError("texts, times and covariates are those of documents: give documents too")
    sizes = model.topic_sizes(level=_LEVEL).loc[list(model.topic_labels_)]
    names = model.words_ if words is None else list(words)
    share = sizes["share"].to_numpy()
    found = topic_words.panel(model, names, share)
    together = _pairs(model, association)
    known = _known(model, times, covariates)
    shares = None if documents is None else np.asarray(model.transform(documents, **known))
    speak = (
        None if shares is None else documents_panel(model, documents, texts, shares, known, names)
    )
    index = _index(sizes, model)
    first = panels.section(
        "Topics",
        index,
        None if together is None else pairs.map_panel(together, share, "Map of topics"),
        found,
        None
        if together is None
        else pairs.partners(together, "Topics that go along, or keep away"),
        _chains(model),
    )
    sections = [
        first,
        panels.section("Documents", speak),
        panels.section("Over time", _over_time(model, shares, times)),
        panels.section("What covariates do", *_effects(model)),
    ]
    return {
        "noun": "topic",
        "order": index["order"],
        "items": [
            {"name": str(name), "label": label}
            for name, label in zip(sizes.index, labels(model, words))
        ],
        "subtitle": _subtitle(model),
        "sections": [section for section in sections if section["panels"]],
    }


def first_table(model):
    """Return (title, header, rows) of the largest topics."""
    table = model.summary(7)
    rows = [(name, f"{share:.1%}", words) for name, share, words in
            zip(table.index, table["share"], table["likeliest"])]  # fmt: skip
    return f"the largest of {len(rows)} topics", ("topic", "share", "likeliest words"), rows[:10]


def labels(model, words=None):
    """Return a few words for each topic, or the label that it was given."""
    words = model.topics(_LABEL_WORDS, words=words).loc[list(model.topic_labels_)]
    words = words[[column for column in words.columns if column not in ("share", "chains")]]
    told = [", ".join(map(str, row)) for row in words.to_numpy(dtype=object)]
    return [
        each if isinstance(name, int | np.integer) else f"{name}: {each}"
        for name, each in zip(model.topic_labels_, told)
    ]


def _subtitle(model):
    n = len(model.topic_labels_)
    return f"{n} topics over {model.n_features_in_} words"


def _index(sizes, model):
    """Return the panel that lists the topics with their shares."""
    bands = (sizes["share"], sizes["lower"], sizes["upper"])
    found = panels.index("All topics", *bands, note="Share of all words, with a 90 % interval.")
    if "chains" in sizes:
        n_chains = len(model.posterior_.log_likelihood)
        found |= {"chains": sizes["chains"].tolist(), "n_chains": n_chains}
    return found


# which topics go together


def _pairs(model, association):
    """Return the pairs of topics: what is told of them, and how sure."""
    if association is not None:
        note = (
            "Associations of topics in documents: 0 for topics that are independent but for sharing their "
            "documents."
        )
        return pairs.pairs_of(association, "association", note)
    if not hasattr(model, "topic_correlation"):
        return None
    note = (
        "Correlations of log shares under the fitted law, with 90 % intervals. They describe, and are no "
        "test: those of independent topics are not zero. For one give "
        "association=model.topic_association(documents)."
    )
    return pairs.pairs_of(model.topic_correlation(level=_LEVEL), "correlation", note)


# chains


def _chains(model):
    """Return the panel of which chain has which topic."""
    agreement = model.agreement_
    if agreement is None:
        return None
    return {
        "kind": "chains",
        "title": "Which chains share a topic",
        "note": "How alike a topic is in each chain: 1 for equal topics, and from 0.8 on it is taken for "
        f"the same. {model.posterior_.tree.attrs.get('told', '')}",
        "similarity": panels.short(agreement.similarity),
        "found": agreement.found.tolist(),
        "best": int(agreement.best),
    }  # fmt: skip


# time and covariates


def _known(model, times, covariates):
    """Return by name what a model must know of documents; one whose topics stand still takes no times."""
    given = {
        "times": times if hasattr(model, "shares_over_time") else None,
        "covariates": covariates,
    }
    return {name: value for name, value in given.items() if value is not None}


def _over_time(model, shares, times):
    """Return the panel of shares over time: those of the law, or else averages of the documents."""
    if hasattr(model, "shares_over_time"):
        found = model.shares_over_time(level=_LEVEL)
        parts = (found.mean, found.lower, found.upper)
        return _time_panel(parts, "Expected shares, with 90 % intervals.")
    if shares is None or times is None:
        return None
    grouped = pd.DataFrame(shares).groupby(pd.Index(times))
    mean = grouped.mean()
    error = 1.645 * grouped.std().div(np.sqrt(grouped.size()), axis=0)
    return _time_panel(
        (mean, (mean - error).clip(lower=0), (mean + error).clip(upper=1)),
        "Average shares of the documents of each time; bands are 1.645 standard errors over documents.",
    )


def _time_panel(parts, note):
    mean, lower, upper = parts
    return panels.lines(
        "Shares over time", mean.index, mean.to_numpy().T, lower=lower.to_numpy().T, upper=upper.to_numpy().T,
        items=list(range(mean.shape[1])), percent=True, note=note, x_label="time", wide=True,
    )  # fmt: skip


def _effects(model):
    """Return the panels of what each covariate does."""
    if getattr(model, "prevalence_", None) is None:
        return []
    places = {name: i for i, name in enumerate(model.topic_labels_)}
    told = model.prevalence_
    return effects(model, told.frame, told.design.variables, places, "Share of each topic")
