"""What each part of the reproduction hands over: pictures, and lines that compare us with the paper."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

VERDICTS = ("agrees", "differs", "undecided", "not in the paper", "not comparable")
SURE = 2.0  # standard errors from zero


class Line(NamedTuple):
    """One number or claim of the paper, beside ours."""

    what: str
    paper: str
    ours: str
    error: str  # standard error of ours, or what bounds its error
    verdict: str  # one of VERDICTS
    why: str


class Picture(NamedTuple):
    """A figure with each number that it shows."""

    name: str  # of its files, without ending
    title: str
    caption: str
    figure: "Figure"
    table: "pd.DataFrame"


class Part(NamedTuple):
    """A figure or table of the paper, done again."""

    name: str
    title: str
    settings: dict[str, str]
    pictures: list[Picture]
    lines: list[Line]
    reading: str  # a paragraph: what holds, what does not, why
    seconds: float


def judged(holds):
    """Return the verdict on a claim of the paper that we can check."""
    return "agrees" if holds else "differs"


def judged_above_zero(estimate, error):
    """Return the verdict on a claim that a difference is above zero."""
    return "undecided" if abs(estimate) < SURE * error else judged(estimate > 0)
