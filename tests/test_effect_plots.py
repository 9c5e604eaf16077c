"""Pictures of effects show each category where it is, in percentage points."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from polystick import plots


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


NAMES = pd.Index(["ash", "birch", "cedar"], name="category")
ONE = pd.DataFrame(
    {"estimate": [0.1, -0.3, 0.2], "lower": [0.0, -0.4, 0.1], "upper": [0.3, -0.1, 0.25]}, NAMES
)


def test_effects_are_dots_with_intervals_the_largest_on_top():
    axes = plots.effects(ONE)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cedar", "ash", "birch"]
    line, _, (bars,) = axes.containers[0]
    np.testing.assert_allclose(line.get_xdata(), [20.0, 10.0, -30.0])
    np.testing.assert_allclose(
        [s[:, 0] for s in bars.get_segments()], [[10, 25], [0, 30], [-40, -10]]
    )
    low, high = axes.get_ylim()
    assert low > high  # the first is on top
    unsorted = plots.effects(ONE, sort=False)
    assert [label.get_text() for label in unsorted.get_yticklabels()] == list(NAMES)


def test_comparisons_stand_side_by_side():
    turned = -ONE.rename(columns={"lower": "upper", "upper": "lower"})
    table = pd.concat({"old": ONE, "new": turned}, names=["era"])
    _, given = plt.subplots()
    axes = plots.effects(table, given)
    assert axes is given
    assert [c.get_label() for c in axes.containers] == ["old", "new"]
    places = [c[0].get_ydata() for c in axes.containers]
    assert not np.intersect1d(*places).size
    assert axes.get_legend().get_title().get_text() == "era"


def curve(values):
    parts = {v: ONE.abs() * (1 + i) / 10 for i, v in enumerate(values)}
    return pd.concat(parts, names=["year"])


def test_curves_are_lines_with_bands():
    axes = plots.effect_curves(curve([1990.0, 2000.0, 2010.0]), categories=["cedar", "ash"])
    assert [line.get_label() for line in axes.lines] == ["cedar", "ash"]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [2.0, 4.0, 6.0])
    assert len(axes.collections) == 2
    assert axes.get_xlabel() == "year"


def test_levels_of_a_factor_are_dots():
    axes = plots.effect_curves(curve(["D", "R"]))
    assert len(axes.containers) == 3
    assert [label.get_text() for label in axes.get_xticklabels()] == ["D", "R"]


@pytest.mark.parametrize("draw", [plots.effects, plots.effect_curves])
def test_other_tables_are_refused(draw):
    with pytest.raises(ValueError, match="without lower"):
        draw(ONE.drop(columns="lower"))
    with pytest.raises(ValueError, match="estimate, lower and upper"):
        draw([1, 2])
    if draw is plots.effect_curves:
        with pytest.raises(ValueError, match=r"rows \(value, category\)"):
            draw(ONE)
