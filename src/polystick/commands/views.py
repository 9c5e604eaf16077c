"""What a fitted model has to tell, as tables: title -> data frame."""

import numpy as np
import pandas as pd

from polystick.printable import printable_line

__all__ = [
    "TABLES",
    "category_effects",
    "effect_tables",
    "has_associations",
    "known_pairs",
    "strongest_pairs",
    "text_of",
    "topic_labels",
    "topic_table",
    "write_shares",
]

_LEVEL = 0.9
_SMALL = 0.01  # all numbers of a column, such as effects of one year: three digits say too little
FEWEST = 5  # categories of which `category_association` can tell


def topic_table(estimator, names, n_words, by="probability"):
    """Return the topics, largest first: number, share, chains that have it and their words."""
    table = estimator.topics(n_words, words=names, by=by)
    words = table[[column for column in table.columns if column not in ("share", "chains")]]
    chains = {"chains": table["chains"].to_numpy()} if "chains" in table else {}
    return pd.DataFrame(
        {
            "topic": table.index,
            "share": table["share"].to_numpy(),
            **chains,
            "words": words.to_numpy(dtype=object).tolist(),
        }
    )


def topic_labels(estimator, names, n_words=3):
    """Return a few words for each topic, in the order of the topics."""
    words = topic_table(estimator, names, n_words).set_index("topic")["words"]
    return words.loc[list(estimator.topic_labels_)].map(", ".join)


def write_shares(run, path):
    """Write the shares of topics in the documents of a fit to a CSV file, a line for each document."""
    if run.kind != "topics":
        raise ValueError(f"--csv needs a run of topics; this is one of {run.kind}; leave it out")
    shares = run.estimator.document_topics()
    shares.columns = [f"topic {t}" if isinstance(t, int) else t for t in shares.columns]
    shares.round(6).to_csv(path)


def effect_tables(run, column):
    """Return the average change of each topic's share with a covariate, with a few of its words."""
    if run.kind == "regression":
        return _effects_on_categories(run.estimator, column)
    if run.kind != "topics" or run.options.get("prevalence") is None:
        raise ValueError(
            "--effects needs a run of topics with a --prevalence, or of regression; this is another: fit "
            'topics with --prevalence "FORMULA"'
        )
    table = run.estimator.effects(column, level=_LEVEL)
    labels = topic_labels(run.estimator, run.names)
    parts = {f"effect of {column} on the shares of topics": table}
    if table.index.nlevels > 1:
        parts = {
            f"effect of {column}, {change}": part.droplevel(0)
            for change, part in table.groupby(level=0, sort=False)
        }
    return {
        title: part.reset_index().assign(words=[labels[topic] for topic in part.index])
        for title, part in parts.items()
    }


def category_effects(model, column):
    """Return the average change of each category's probability with a covariate: what changes -> table.

    Numbers that the formula makes a factor, as by C(year), have levels and no "one more".
    """
    first, *others = model.design_.levels.get(column, (None,))
    if others:
        ends = {f"{first} to {other}": (first, other) for other in others}
        return {said: model.effects(column, pair, level=_LEVEL) for said, pair in ends.items()}
    values = model.effect_curves(column, n_draws=1).index.unique(0)
    said = f"{values[0]} to {values[1]}" if len(values) == 2 else "up by 1"
    return {said: model.effects(column, level=_LEVEL)}


def _effects_on_categories(model, column):
    return {
        f"effect of {column} on probabilities, {change}": table.reset_index()
        for change, table in category_effects(model, column).items()
    }


def strongest_pairs(correlation, n_pairs, labels):
    """Return the pairs of the highest and of the lowest correlation of log shares, with their intervals.

    A pair whose interval holds zero is left out. That the others are associated does not follow: see
    `topic_correlation`, and `known_pairs` for what does.
    """
    first, second = np.triu_indices(len(labels), 1)
    mean, lower, upper = (frame.to_numpy()[first, second] for frame in correlation[:3])
    pairs = pd.DataFrame(
        {
            "correlation": mean,
            "lower": lower,
            "upper": upper,
            "one": np.asarray(labels)[first],
            "other": np.asarray(labels)[second],
        }
    )
    return {
        "highest correlations of log shares": pairs[lower > 0].nlargest(n_pairs, "correlation"),
        "lowest correlations of log shares": pairs[upper < 0].nsmallest(n_pairs, "correlation"),
    }


def known_pairs(associations, n_pairs, labels):
    """Return the strongest pairs (`Association.table`) that are known to be associated, with labels."""
    known = associations[(associations["lower"] > 0) | (associations["upper"] < 0)].head(n_pairs)
    return pd.DataFrame(
        {
            "association": known["mean"].to_numpy(),
            "lower": known["lower"].to_numpy(),
            "upper": known["upper"].to_numpy(),
            "one": np.asarray(labels)[known["topic"]],
            "other": np.asarray(labels)[known["with"]],
        }
    )


def _topics(run, n_words, n_rows, by="probability"):
    labels = topic_labels(run.estimator, run.names)
    if run.associations is not None:
        pairs = {"topics that go together, or apart": known_pairs(run.associations, n_rows, labels)}
    else:
        pairs = strongest_pairs(run.estimator.topic_correlation(level=_LEVEL), n_rows, labels)
    return {"topics": topic_table(run.estimator, run.names, n_words, by), **pairs}


def _multinomial(run, n_words, n_rows):
    model = run.estimator
    shares = model.summary(level=_LEVEL).rename_axis("category").reset_index()
    tables = {"shares, and their spread over rows": shares.head(n_rows)}
    if has_associations(run):
        tables["which categories go together"] = model.category_association(level=_LEVEL).table(
            n_rows
        )
    return tables


def _regression(run, n_words, n_rows):
    model = run.estimator
    effects: dict[str, pd.DataFrame] = {}
    for column in model.design_.variables:
        effects |= _effects_on_categories(model, column)
    found = {title: _largest(table, n_rows) for title, table in effects.items()}
    spread = model.variance_components(level=_LEVEL)
    if len(spread):
        title = "spread of probabilities between groups, and of rows beyond (overdispersion)"
        parts = [_largest(part, n_rows) for _, part in spread.groupby(level=0, sort=False)]
        found[title] = pd.concat(parts).reset_index()
    return found


def _largest(table, n_rows):
    """Return the rows of the largest estimates, in their order."""
    size = table["estimate"].abs().to_numpy()
    return table.iloc[np.sort(np.argsort(-size, kind="stable")[:n_rows])]


def has_associations(run):
    """Whether a run of rows of counts can tell which categories go together."""
    return run.estimator.link == "softmax" and len(run.names) >= FEWEST


def _gp(run, n_words, n_rows):
    estimator = run.estimator
    kernel = _kernel(estimator)
    inputs = pd.DataFrame(estimator.inputs_, columns=run.options["inputs"])
    probabilities = estimator.predict_proba(inputs)
    order = np.argsort(-probabilities.mean(axis=0), kind="stable")[:n_rows]
    lowest, highest = probabilities.argmin(axis=0)[order], probabilities.argmax(axis=0)[order]
    places = [
        ", ".join(f"{name} {value:g}" for name, value in zip(run.options["inputs"], place))
        for place in estimator.inputs_
    ]
    ranges = pd.DataFrame(
        {
            "category": np.asarray(run.names)[order],
            "average": probabilities.mean(axis=0)[order],
            "lowest": probabilities[lowest, order],
            "lowest at": [places[i] for i in lowest],
            "highest": probabilities[highest, order],
            "highest at": [places[i] for i in highest],
        }
    )
    return {"kernel": kernel, "probabilities": ranges}


def _kernel(estimator):
    """Return the hyperparameters that were learned, in their own units."""
    theta = np.exp(estimator.posterior_.flat("theta"))
    names = estimator.posterior_.tree["posterior"]["theta"].coords["kernel_parameter"].values
    low, high = np.quantile(theta, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    return pd.DataFrame(
        {"hyperparameter": names, "mean": theta.mean(axis=0), "lower": low, "upper": high}
    )


def _lds(run, n_words, n_rows):
    estimator = run.estimator
    sizes = np.abs(np.linalg.eigvals(estimator.posterior_.flat("dynamics")))
    sizes = -np.sort(-sizes, axis=1)
    low, high = np.quantile(sizes, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    mean = sizes.mean(axis=0)
    modes = pd.DataFrame({"eigenvalue (size)": mean, "lower": low, "upper": high})
    modes["half-life (steps)"] = np.where(
        mean < 1, np.log(0.5) / np.log(np.minimum(mean, 1)), np.inf
    )
    probabilities = np.concatenate([part.probabilities for part in estimator.smooth()])
    shares = pd.DataFrame(
        {
            "category": run.names,
            "average": probabilities.mean(axis=0),
            "lowest": probabilities.min(axis=0),
            "highest": probabilities.max(axis=0),
        }
    )
    return {"dynamics": modes, "probabilities": shares.nlargest(n_rows, "average")}


TABLES = {
    "topics": _topics,
    "multinomial": _multinomial,
    "regression": _regression,
    "gp": _gp,
    "lds": _lds,
}


def text_of(table):
    """Return a table as lines: words to the left, numbers to the right."""
    if not len(table):
        return "  none whose interval excludes zero"
    columns = [_column(printable_line(name), table[name]) for name in table.columns]
    return "\n".join("  ".join(cells).rstrip() for cells in zip(*columns))


def _column(name, values):
    """Return the cells of a column, all of one width."""
    if pd.api.types.is_float_dtype(values):
        largest = values.abs().max()
        form = "{:.5f}" if 0 < largest < _SMALL else "{:.3f}" if largest <= 1 else "{:.4g}"
        cells = [form.format(value) for value in values]
    else:
        said = [" ".join(value) if isinstance(value, list) else value for value in values]
        cells = [printable_line(cell) for cell in said]
    width = max(map(len, [name, *cells]))
    is_number = pd.api.types.is_numeric_dtype(values)
    return [cell.rjust(width) if is_number else cell.ljust(width) for cell in (name, *cells)]
