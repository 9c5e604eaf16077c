"""The page of a regression: what each covariate does to each category, contrasts, groups."""

import numpy as np

from polystick.report import panels
from polystick.report.covariates import contrasts, effects_in_rows, evenly

__all__ = ["first_table", "tell"]

_LEVEL = 0.9
_MOST_AVERAGED = 200  # rows


def tell(model):
    """Return the page of a regression; intervals are 90 %, effects are averages over rows of the fit."""
    frame, names = model.frame_, list(model.categories_)
    places = {name: i for i, name in enumerate(names)}
    variables = model.design_.variables
    index = _index(model, frame)
    sections = [
        panels.section(
            "What covariates do",
            index,
            *effects_in_rows(model, frame, variables, places, "Probability of each category"),
        ),
        panels.section("Compare", *contrasts(model, frame, variables, places)),
        panels.section(
            "What covariates do not explain", _spread(model, places), *_groups(model, places)
        ),
    ]
    subtitle = (
        f"{len(names)} categories, explained by {', '.join(map(str, variables)) or 'nothing'}"
    )
    return panels.page("category", names, subtitle, index, sections)


def first_table(model):
    """Return (title, header, rows) of what was explained by what; effects would take their time."""
    rows = [
        ("categories", len(model.categories_)),
        ("rows", len(model.frame_)),
        ("covariates", ", ".join(map(str, model.design_.variables))),
        ("groups", ", ".join(map(str, model.group_names_))),
    ]
    return "what was learned from", ("", ""), [row for row in rows if row[1] != ""]


def _index(model, frame):
    """Return the panel of average probabilities over the rows of the fit."""
    picked = evenly(len(frame), _MOST_AVERAGED)
    draws = model.predict_proba(frame.iloc[picked], return_draws=True)[-1].mean(axis=1)
    lower, upper = np.quantile(draws, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    note = "Average probability over the rows of the fit, with 90 % intervals."
    return panels.index("All categories", draws.mean(axis=0), lower, upper, note=note)


def _spread(model, places):
    table = model.variance_components(level=_LEVEL)
    if not len(table):
        return None
    parts = {name: part.droplevel(0) for name, part in table.groupby(level=0, sort=False)}
    note = (
        "Standard deviation of a probability between groups, and of rows beyond (overdispersion)."
    )
    return panels.changes("Spread", parts, places, percent=True, note=note)


def _groups(model, places):
    """Yield a panel for each factor of groups: how its groups differ from a typical one."""
    for factor in model.group_names_:
        table = model.group_effects(factor, level=_LEVEL)
        parts = {name: part.droplevel(0) for name, part in table.groupby(level=0, sort=False)}
        note = f"Difference from a typical {factor}, at the average row; 90 % intervals."
        yield panels.changes(f"Groups of {factor}", parts, places, percent=True, note=note)
