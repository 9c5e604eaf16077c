"""The models of the command line: how each is made, what it reads, and what its options are."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from polystick.commands.documents import Documents
from polystick.commands.files import Reading, Table, read, read_frame, table_of, with_columns
from polystick.commands.formulas import columns_of
from polystick.commands.packed import ending_of
from polystick.commands.packing import is_corpus
from polystick.commands.texts import TABLES, count_words, read_texts
from polystick.corpus import Corpus

_LEAST_TOPICS = 5  # that associations have a meaning for
_TOPIC_STATES = 32  # of topics, which are large, in the folder of a run
_LEAST_BYTES, _MOST_BYTES = 2**22, 2**28  # of the draws of a variable


class Data(NamedTuple):
    """What `fit` and `score` of an estimator take."""

    arguments: tuple
    names: list  # of the categories
    n_rows: int
    n_counts: int
    notes: list  # sentences for the user
    vectorizer: object | None = None  # what counted the words of texts
    covariates: pd.DataFrame | None = None  # of the rows, where the model wants them

    @property
    def about(self):
        """What else is known of the rows, by keyword."""
        return {} if self.covariates is None else {"covariates": self.covariates}


class Model(NamedTuple):
    """A model as the command line knows it."""

    make: Callable[..., Any]  # (options, common arguments of estimators) -> estimator
    read: Callable[..., Data]  # (path, reading, options, names of the fit or None) -> data
    defaults: dict
    row: str  # what a row is


def make_estimator(
    kind, options, n_categories, *, progress=False, checkpoint=None, vectorizer=None
):
    """Return the estimator that the options ask for."""
    common = {
        "inference": _inference(options, _bytes_of(kind, options, n_categories)),
        "random_state": options["seed"],
        "n_jobs": options["threads"],
        "progress": progress,
        "checkpoint": checkpoint,
        "checkpoint_every": options.get("checkpoint_every") or 60.0,
    }
    given = {**options, "n_categories": n_categories, "vectorizer": vectorizer}
    return MODELS[kind].make(given, common)


def defaults_of(kind, given):
    """Return the options of a run where the command line has none."""
    defaults = {**COMMON, **MODELS[kind].defaults}
    if kind == "topics" and (given.get("mean_field") or given.get("svi")):
        return {**defaults, "draws": _TOPIC_STATES}
    return {**defaults, **_SOFTMAX} if given.get("link") == "softmax" else defaults


def read_data(kind, path, options, names=None):
    """Return the data in a file, as the model wants them; names: the categories of the fit, or None."""
    given = {field: options.get(field) for field in Reading._fields}
    reading = Reading(**{field: value for field, value in given.items() if value is not None})
    data = MODELS[kind].read(path, reading, options, names)
    if not data.n_counts:
        of_the_fit = "" if names is None else " of the categories of the fit"
        raise ValueError(f"{path} must have counts{of_the_fit}; it has none")
    return data


def associations_of(kind, estimator, data):
    """Return all pairs of topics as a table; None where there are too few, or the run has not ended."""
    finished = estimator.posterior_.tree.attrs.get("finished", 1)
    if kind != "topics" or estimator.n_topics < _LEAST_TOPICS or not finished:
        return None
    (counts,) = data.arguments
    if isinstance(counts, Corpus):  # pairs are drawn of documents in memory
        return None
    weights = counts.data if hasattr(counts, "indptr") else np.asarray(counts)
    if (weights % 1 != 0).any():  # mean field takes weights, and draws do not
        return None
    return estimator.topic_association(counts, **data.about).table(None, all_pairs=True)


def _bytes_of(kind, options, n_categories):
    """Return how many bytes draws of a variable may take: of topics, as many as 32 of their states."""
    if kind != "topics":
        return _MOST_BYTES
    states = _TOPIC_STATES * 4 * options["topics"] * n_categories
    return min(_MOST_BYTES, max(_LEAST_BYTES, states))


def _inference(options, max_bytes):
    from polystick import Gibbs, MeanField, StochasticVI

    if options.get("svi"):
        return StochasticVI(n_draws=options["draws"], max_bytes=max_bytes)
    if options["mean_field"]:
        return MeanField(n_draws=options["draws"], max_bytes=max_bytes)
    sizes = {f"n_{name}": options[name] for name in ("draws", "burn", "chains")}
    until = {name: options.get(name) or None for name in ("min_ess", "max_draws")}
    return Gibbs(**sizes, **until, max_bytes=max_bytes)


# how they are made


def _make_topics(options, common):
    from polystick import CorrelatedTopicModel

    more = {
        "vectorizer": options["vectorizer"],
        "prevalence": _kept(options.get("prevalence")),
        "groups": options.get("groups"),
    }
    return CorrelatedTopicModel(options["topics"], **more, **common)


def _make_multinomial(options, common):
    from polystick import CorrelatedMultinomial

    link, covariance = options.get("link", "stick"), options.get("covariance")
    return CorrelatedMultinomial(link=link, covariance=covariance, **common)


def _make_gp(options, common):
    from polystick import MultinomialGP

    return MultinomialGP(**common)


def _make_lds(options, common):
    from polystick import MultinomialLDS

    return MultinomialLDS(options["states"], n_categories=options["n_categories"], **common)


def _make_regression(options, common):
    from polystick import MultinomialRegression

    asked = options["overdispersion"]
    return MultinomialRegression(
        _kept(options["formula"]),
        groups=options.get("groups"),
        overdispersion=None if asked == "none" else asked,
        link=options["link"],
        **common,
    )


def _kept(formula):
    """Return a formula that the folder of a run can hold; raise now, not when hours have passed."""
    if formula is not None and importlib.util.find_spec("formulaic"):
        from polystick.storage import refuse_calls

        refuse_calls(formula)
    return formula


# what they read


def _read_counts(path, reading, options, names):
    (counts, *_), notes = _table(path, reading, names)
    _refuse_gaps(counts, path)
    return Data((counts,), list(counts.columns), len(counts), _total(counts), notes)


def _read_documents(path, reading, options, names):
    """Return counts of words, of texts or as the file has them, and covariates where there is a formula."""
    data = _read_words(path, reading, options, names)
    if options.get("prevalence") is None:
        return data
    return data._replace(covariates=_columns_beside(Path(path), reading, data.n_rows))


def _read_corpus(folder, names):
    corpus = Corpus(folder)
    words = range(corpus.shape[1]) if corpus.words is None else corpus.words
    found = [str(word) for word in words]
    if names is not None and found != list(names):
        raise ValueError(f"the corpus {folder} must have the words of the fit; it has others")
    return Data((corpus,), found, len(corpus), int(corpus.n_tokens), [])


def _columns_beside(path, reading, n_rows):
    """Return all columns of a table that has a row for each document."""
    if ending_of(path) not in TABLES or reading.name is not None:
        raise ValueError(
            f"--prevalence speaks of columns of a table with a row for each document; {path} is another: "
            "give a CSV, TSV or parquet file, without --name"
        )
    frame = read_frame(path)
    if len(frame) != n_rows:
        raise ValueError(
            f"{path} must have a row for each document; it has {len(frame)} and {n_rows} documents"
        )
    return frame


def _read_words(path, reading, options, names):
    if is_corpus(path):
        return _read_corpus(Path(path), names)
    texts = read_texts(path, reading)
    if texts is None:
        return _read_counts(path, reading, options, names)
    (counts, *_), vectorizer = count_words(texts, reading, names)
    return Data(
        (counts,),
        list(counts.columns),
        len(counts),
        _total(counts),
        _emptied(texts, counts),
        vectorizer,
    )


def _emptied(texts, counts):
    """Say how many documents have no words, or none that count."""
    has_text = np.array([bool(text.strip()) for text in texts])
    has_words = counts.sum(axis=1).to_numpy() > 0
    found = {"no text": ~has_text, "no word that is counted": has_text & ~has_words}
    return [
        f"{_counted(who.sum(), 'document')} {what}; {'it is' if who.sum() == 1 else 'they are'} kept as empty"
        for what, who in found.items()
        if who.any()
    ]


def _counted(n, noun):
    return f"{n} {noun} has" if n == 1 else f"{n} {noun}s have"


def _read_inputs(path, reading, options, names):
    table, notes = _table(path, reading, names, beside=options["inputs"])
    for name in options["inputs"]:
        if name not in table.beside.columns:
            raise ValueError(
                f"{path} must have the column {name!r}, an input; only tables (CSV, TSV, parquet) have "
                "columns beside the counts"
            )
    counts, inputs = table.counts, table.beside[list(options["inputs"])]
    _refuse_gaps(counts, path)
    return Data((inputs, counts), list(counts.columns), len(counts), _total(counts), notes)


def _read_regression(path, reading, options, names):
    """Return covariates, which are the columns that the formula and the groups name, and counts."""
    if ending_of(Path(path)) not in TABLES:
        raise ValueError(
            f"{path} must be a table (CSV, TSV, parquet), for --formula speaks of columns beside the counts"
        )
    nested = (column for each in options.get("groups") or () for column in each.split("/"))
    wanted = list(dict.fromkeys([*columns_of(options["formula"]), *map(str.strip, nested)]))
    for option in ("name", "value"):
        if getattr(reading, option) in wanted:
            raise ValueError(
                f"the column {getattr(reading, option)!r} holds what is counted (--{option}), so --formula "
                "and --groups must not name it"
            )
    table, notes = _table(path, reading, names, beside=wanted)
    counts, covariates = table.counts, table.beside[wanted]
    _refuse_gaps(counts, path)
    return Data((covariates, counts), list(counts.columns), len(counts), _total(counts), notes)


def _read_sequences(path, reading, options, names):
    """Return words in their order, or the rows of a table as the steps of a sequence."""
    column = options.get("sequence")
    found = read(path, reading, beside=() if column is None else (column,))
    if isinstance(found, Table):
        return _sequences_of_rows(path, reading, column, names)
    if column is not None and names is None:
        raise ValueError(f"--sequence is for tables; {path} has a sequence for each document")
    of_the_fit, names = names, list(table_of(found, names, reading.max_words).counts.columns)
    place = {name: k for k, name in enumerate(names)}
    sequences = [np.array([place[w] for w in ws if w in place], int) for ws in found.tokens]
    kept = [sequence for sequence in sequences if len(sequence) > 1]
    n_short = len(sequences) - len(kept)
    notes = [f"{n_short} sequences of fewer than 2 words are left out"] if n_short else []
    if of_the_fit is not None:
        notes += _dropped(sum(map(len, found.tokens)) - sum(map(len, sequences)))
    return Data((kept,), names, len(kept), sum(map(len, kept)), notes)


def _sequences_of_rows(path, reading, column, names):
    table, notes = _table(path, reading, names, beside=() if column is None else (column,))
    counts = table.counts.astype(float)
    rows = [counts.index]
    if column is not None:
        nameless = np.flatnonzero(table.beside[column].isna())
        if len(nameless):
            raise ValueError(
                f"the column {column!r} of {path} must name a sequence in each row; row "
                f"{nameless[0]} has none"
            )
        rows = table.beside.groupby(column, sort=False).groups.values()
    sequences = [counts.loc[each] for each in rows]
    return Data((sequences,), list(counts.columns), len(sequences), _total(counts), notes)


def _table(path, reading, names, beside=()):
    """Return a table, its categories those of the fit, and what was dropped."""
    found = read(path, reading, beside)
    if isinstance(found, Documents):
        table = table_of(found, names, reading.max_words)
        n_words = sum(map(len, found.tokens))
        return table, _dropped(n_words - _total(table.counts)) if names else []
    if names is None or list(found.counts.columns) == list(names):
        return found, []
    if not found.is_open:
        _refuse_other_categories(found.counts.columns, names, path)
        return found._replace(counts=found.counts[names]), []
    counts = with_columns(found.counts, names)
    return found._replace(counts=counts), _dropped(_total(found.counts) - _total(counts))


def _refuse_other_categories(columns, names, path):
    lost, new = set(names) - set(columns), set(columns) - set(names)
    if lost or new:
        wrong = f"{min(new)!r} is not one: --ignore it" if not lost else f"it lacks {min(lost)!r}"
        if all(name.isdigit() for name in columns):
            wrong += ", and has no names: give them by --vocabulary"
        raise ValueError(f"{path} must have the {len(names)} categories of the fit; {wrong}")


def _refuse_gaps(counts, path):
    """Name the place of a number that is not there; matrices and words have none."""
    if any(isinstance(dtype, pd.SparseDtype) for dtype in counts.dtypes):
        return
    rows, columns = np.nonzero(counts.isna().to_numpy())
    if len(rows):
        name = counts.columns[columns[0]]
        raise ValueError(f"column {name!r} of {path} must hold counts; row {rows[0]} has none")


def _dropped(n_counts):
    return [f"{n_counts} counts of categories unknown to the fit are ignored"] if n_counts else []


def _total(counts):
    total = float(counts.sum().sum())
    return int(total) if total.is_integer() else total


_ROWS = {"draws": 1000, "burn": 500, "chains": 4, "min_ess": 0, "max_draws": None, "link": "stick"}
_SOFTMAX = {"min_ess": 200, "max_draws": 4000}  # chains take longer to agree
_TOPICS = {"draws": 200, "burn": 200, "chains": 3, "min_ess": 400, "max_draws": 500}
_DONE = {"draws": 250, "burn": 300, "chains": 4, "min_ess": 400, "max_draws": 1000}
MODELS = {
    "topics": Model(_make_topics, _read_documents, {**_TOPICS, "topics": 20}, "document"),
    "multinomial": Model(_make_multinomial, _read_counts, _ROWS, "row"),
    "regression": Model(
        _make_regression, _read_regression, {**_ROWS, **_SOFTMAX, "overdispersion": "auto"}, "row"
    ),
    "gp": Model(_make_gp, _read_inputs, {**_DONE, "burn": 250}, "row"),
    "lds": Model(_make_lds, _read_sequences, {**_DONE, "states": 5}, "sequence"),
}
COMMON = {"seed": 0, "threads": None, "mean_field": False}
