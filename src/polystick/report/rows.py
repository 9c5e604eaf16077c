"""The page of rows of counts: shares, which categories go together, rows with their posterior, checks."""

import numpy as np
import pandas as pd
import scipy.sparse

from polystick.report import pairs, panels
from polystick.report.covariates import evenly

__all__ = ["first_table", "tell"]

_LEVEL = 0.9
_MOST = 80  # categories
_MOST_ROWS = 40
_LEAST = 5  # categories that associations have a meaning for
_DRAWS = 100


def tell(model, counts=None):
    """Return the page of a model of rows of counts.

    counts : (n, K), those of the fit or others, whose rows are shown and checked
    """
    summary = _summary(model)
    shown = panels.largest(summary["share"], _MOST)
    names, summary = list(summary.index[shown]), summary.iloc[shown]
    index = _index(summary)
    together = _together(model, names, summary["share"].to_numpy())
    sections = [
        panels.section("Categories", index, *together, _spread(summary)),
        panels.section("Rows", *([] if counts is None else _rows(model, counts, shown))),
    ]
    subtitle = panels.of_how_many(len(model.categories_), len(shown), "categories")
    return panels.page("category", names, subtitle, index, sections)


def first_table(model):
    """Return (title, header, rows) of the largest categories."""
    table = model.summary().head(10)
    rows = [(name, f"{share:.1%}") for name, share in table["share"].items()]
    return f"the largest of {len(model.categories_)} categories", ("category", "share"), rows


def _summary(model):
    """Return the summary in the order of the categories."""
    kwargs = {"level": _LEVEL} if hasattr(model, "link") else {}
    return model.summary(**kwargs).loc[list(model.categories_)]


def _index(summary):
    bands = [summary.get(name) for name in ("lower", "upper")]
    note = "Average share over rows" + (
        "." if bands[0] is None else " of the fitted law, with 90 % intervals."
    )
    return panels.index("All categories", summary["share"], *bands, note=note)


def _spread(summary):
    if "spread lower" not in summary:
        return None
    bands = (summary[name] for name in ("spread", "spread lower", "spread upper"))
    note = "Standard deviation of the share from row to row, with 90 % intervals."
    items = list(range(len(summary)))
    return panels.intervals("How much shares vary", *bands, items=items, percent=True, note=note)


# which go together


def _together(model, names, share):
    """Return the panels of associations, or of correlations where nothing more is known."""
    if not hasattr(model, "log_share_correlation") or len(names) < 3:
        return []
    if model.link == "softmax" and len(model.categories_) >= _LEAST:
        found = model.category_association(level=_LEVEL)
        note = "Correlations of log abundances; 0 for categories that are independent."
        table = pairs.known_table(found, "Categories that are known to go together, or apart")
        told = pairs.pairs_of(pairs.part_of(found, names), "association", note)
    else:
        found, table = model.log_share_correlation(level=_LEVEL), None
        note = (
            "Correlations of log shares under the fitted law. They describe, and are no test: those of "
            'independent categories are not zero. link="softmax" tells associations.'
        )
        told = pairs.pairs_of(pairs.part_of(found, names), "correlation", note)
    title = "Categories that go along, or keep away"
    found = [pairs.map_panel(told, share, "Map of categories"), pairs.partners(told, title), table]
    return [panel for panel in found if panel is not None]


# rows


def _rows(model, counts, shown):
    """Return the panels of rows: those given with their posterior, and replicates beside what was counted."""
    dense = _dense(counts)
    picked = evenly(len(dense), _MOST_ROWS)
    some = counts.iloc[picked] if hasattr(counts, "iloc") else counts[picked]
    draws = model.predict_proba(some, return_draws=True)[-1]
    seen = _portions(dense)[picked][:, shown]
    yield _posterior(draws[:, :, shown], seen, _names(counts, picked))
    yield _check(model, counts, dense, shown)


def _dense(counts):
    if scipy.sparse.issparse(counts):
        return counts.toarray()
    return np.asarray(counts, float)


def _names(counts, picked):
    index = getattr(counts, "index", None)
    return [f"row {row}" if index is None else str(index[row]) for row in picked]


def _portions(counts):
    """Return the shares that were counted; NaN for rows without counts."""
    totals = counts.sum(axis=1, keepdims=True)
    return counts / np.where(totals > 0, totals, np.nan)


def _posterior(draws, seen, names):
    """Return the panel of rows: shares given their counts, with what was counted."""
    tail = (1 - _LEVEL) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
    groups = [
        {
            "name": name,
            "items": list(range(draws.shape[2])),
            "estimate": panels.short(draws[:, i].mean(axis=0)),
            "lower": panels.short(lower[i]),
            "upper": panels.short(upper[i]),
            "seen": panels.short(seen[i]),
        }
        for i, name in enumerate(names)
    ]
    return {
        "kind": "intervals",
        "title": "Rows and what the model takes their shares for",
        "groups": groups,
        "percent": True,
        "note": "Dots: posterior mean given the counts of the row, with 90 % intervals. Crosses: as counted.",
    }


_MEASURES = {
    "average share": lambda share, counts: share.mean(axis=-2),
    "standard deviation of shares over rows": lambda share, counts: share.std(axis=-2),
    "rows without any": lambda share, counts: (counts == 0).mean(axis=-2),
}


def _check(model, counts, dense, shown):
    """Return the posterior predictive check: rows like those, drawn anew, beside those that were counted."""
    fresh = np.zeros_like(dense)  # rows without counts: the law of new ones
    totals = dense.sum(axis=1).astype(int)
    again = model.predict_counts(_like(counts, fresh), totals=totals, n_draws=_DRAWS)
    groups = []
    for name, measure in _MEASURES.items():
        draws, seen = (measure(_shares(n), n)[..., shown] for n in (np.asarray(again), dense))
        lower, upper = np.quantile(draws, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
        parts = {"estimate": draws.mean(axis=0), "lower": lower, "upper": upper, "seen": seen}
        rounded = {part: panels.short(values) for part, values in parts.items()}
        groups.append({"name": name, "items": list(range(len(shown))), **rounded})
    return {
        "kind": "intervals",
        "title": "Posterior predictive check",
        "groups": groups,
        "percent": True,
        "note": "Crosses: the rows as counted. Dots with 90 % intervals: new rows of as many counts, drawn "
        "from the model. Crosses far outside say what the model misses.",
    }


def _shares(counts):
    return counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1)


def _like(counts, values):
    if isinstance(counts, pd.DataFrame):
        return pd.DataFrame(values, index=counts.index, columns=counts.columns)
    return values
