"""Panels: what a page shows, as plain data that its scripts know how to draw.

A panel is a dict with a `kind` and a `title`; `note` says how to read it. Where things of the page (topics,
categories) are meant, they are given by number.
"""

import numpy as np
import pandas as pd

__all__ = [
    "changes",
    "curves",
    "facts",
    "index",
    "intervals",
    "largest",
    "lines",
    "of_how_many",
    "page",
    "section",
    "short",
    "table",
]

_DIGITS = 4  # significant: more than a picture can show


def section(title, *panels):
    """Return panels under a title, those that are None left out."""
    return {"title": title, "panels": [panel for panel in panels if panel is not None]}


def short(values):
    """Return numbers with few digits, as nested lists."""
    values = np.asarray(values, float)
    with np.errstate(all="ignore"):
        size = np.floor(np.log10(np.abs(values)))
    size = np.where(np.isfinite(size), size, 0)
    places = np.clip(_DIGITS - 1 - size, -300, 300)
    with np.errstate(all="ignore"):
        rounded = np.where(
            np.abs(values) < 1e-300, 0, np.round(values * 10.0**places) / 10.0**places
        )
    return rounded.tolist()


def index(title, share, lower=None, upper=None, **more):
    """Return the panel that lists all things of a page with their shares, the largest first."""
    order = np.argsort(-np.asarray(share), kind="stable").tolist()
    lower, upper = (share if band is None else band for band in (lower, upper))
    parts = {"estimate": short(share), "lower": short(lower), "upper": short(upper)}
    return {"kind": "index", "title": title, "order": order, **parts, **more}


def page(noun, names, subtitle, first, sections):
    """Return what a family tells: its things, the panel that lists them, and sections."""
    return {
        "noun": noun,
        "items": [{"name": str(name), "label": str(name)} for name in names],
        "order": first["order"],
        "subtitle": subtitle,
        "sections": [section for section in sections if section["panels"]],
    }


def largest(share, most):
    """Return the numbers of the largest, in the order in which they came."""
    return np.sort(np.argsort(-np.asarray(share), kind="stable")[:most])


def of_how_many(n, shown, plural):
    """Return how many things there are, and how many of them are shown."""
    return f"{n} {plural}" if shown == n else f"the {shown} largest of {n} {plural}"


def intervals(title, estimate, lower, upper, *, items=None, labels=None, **more):
    """Return a panel of estimates with intervals: of things of the page, or with labels of their own."""
    rows = {"estimate": short(estimate), "lower": short(lower), "upper": short(upper)}
    who = {"items": items} if labels is None else {"labels": [str(label) for label in labels]}
    return {"kind": "intervals", "title": title, "groups": [{"name": "", **rows, **who}], **more}


def changes(title, tables, places, **more):
    """Return a panel of tables of effects, one at a time: what changes -> table by thing."""
    groups = [
        {
            "name": str(name),
            "items": [places[thing] for thing in part.index],
            "estimate": short(part["estimate"]),
            "lower": short(part["lower"]),
            "upper": short(part["upper"]),
        }
        for name, part in tables.items()
    ]
    return {"kind": "intervals", "title": title, "groups": groups, **more}


def lines(title, x, y, *, lower=None, upper=None, items=None, names=None, **more):
    """Return a panel of lines over x: y (series, x), with bands where they are known."""
    panel = {"kind": "lines", "title": title, **axis(x), "y": short(y), **more}
    panel |= {"items": items} if names is None else {"names": [str(name) for name in names]}
    if lower is not None:
        panel |= {"lower": short(lower), "upper": short(upper)}
    return panel


def curves(title, table, places, **more):
    """Return a panel of curves from a table with `estimate`, `lower`, `upper` by value and thing."""
    parts = {name: table[name].unstack() for name in ("estimate", "lower", "upper")}
    estimate = parts["estimate"]
    items = [places[thing] for thing in estimate.columns]
    bands = {name: parts[name].to_numpy().T for name in ("lower", "upper")}
    return lines(title, estimate.index, estimate.to_numpy().T, items=items, **bands, **more)


def axis(x):
    """Return the places on an axis: numbers and, where they say more, their labels."""
    index = pd.Index(x)
    if index.dtype.kind in "iuf":
        return {"x": short_places(index)}
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex):
        years = index.year + (index.dayofyear - 1) / 365.25
        return {"x": np.round(years, 4).tolist(), "marks": [str(label) for label in x]}
    return {"x": list(range(len(index))), "marks": [str(label) for label in x], "steps": True}


def short_places(index):
    """Return numbers as they are, but for what no picture can show."""
    return [float(f"{value:.7g}") for value in index]


def table(title, frame, **more):
    """Return a panel that is a table."""
    columns = [
        {"name": str(name), "numbers": bool(frame[name].dtype.kind in "iuf")}
        for name in frame.columns
    ]
    cells = [short(frame[name]) if frame[name].dtype.kind in "iuf" else list(map(str, frame[name]))
             for name in frame.columns]  # fmt: skip
    return {"kind": "table", "title": title, "columns": columns, "cells": cells, **more}


def facts(title, pairs, **more):
    """Return a panel of names and what they are."""
    return {"kind": "facts", "title": title, "pairs": [[str(a), str(b)] for a, b in pairs], **more}
