"""Pictures of associations show what is known, and nothing else."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from polystick import plots
from polystick.estimators.association import Association

NAMES = list("abcdefg")
KNOWN = {("a", "d"): 0.8, ("b", "f"): -0.6, ("d", "g"): 0.3}
UNKNOWN = {("c", "e"): 0.9}  # large, but its interval holds zero


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def an_association(known=KNOWN, unknown=UNKNOWN):
    mean = pd.DataFrame(np.eye(len(NAMES)), index=NAMES, columns=NAMES)
    gap = pd.DataFrame(0.0, index=NAMES, columns=NAMES)
    for table, reach in ((known, 0.1), (unknown, 1.5)):
        for (one, other), value in table.items():
            mean.loc[one, other] = mean.loc[other, one] = value
            gap.loc[one, other] = gap.loc[other, one] = reach
    lower, upper = mean - gap, mean + gap
    return Association(mean, lower, upper, 0 * mean, 0 * mean, 0.9)


def shown(axes):
    """Return the cells that have a colour, with their names: (row, column) -> value."""
    names = [label.get_text() for label in axes.get_yticklabels()]
    cells = np.ma.filled(np.ma.masked_invalid(axes.images[0].get_array()), np.nan)
    return {
        (names[i], names[j]): float(cells[i, j]) for i, j in np.argwhere(np.isfinite(cells))
    }, names


def test_only_what_is_known_has_a_colour():
    axes = plots.association(an_association())
    cells, names = shown(axes)
    assert cells == {**KNOWN, **{(b, a): value for (a, b), value in KNOWN.items()}}
    assert [label.get_text() for label in axes.get_xticklabels()] == names
    assert "90%" in axes.images[0].colorbar.ax.get_ylabel()


def test_categories_that_go_together_are_side_by_side_and_lonely_ones_last():
    _, names = shown(plots.association(an_association()))
    assert abs(names.index("a") - names.index("d")) == 1
    assert set(names[-2:]) == {"c", "e"}
    _, given = shown(plots.association(an_association(), cluster=False))
    assert given == NAMES


def test_a_grey_cell_is_not_the_colour_of_zero():
    colours = plots.association(an_association()).images[0].get_cmap()
    assert not np.allclose(colours.get_bad(), colours(0.5), atol=0.02)


@pytest.mark.parametrize("draw", [plots.association, plots.association_graph])
def test_nothing_known_is_a_picture_too(draw):
    axes = draw(an_association(known={}))
    axes.figure.canvas.draw()
    assert not axes.images or shown(axes)[0] == {}
    assert not any(len(lines.get_segments()) for lines in axes.collections[:2] if axes.texts)


def edges(axes):
    """Return names of the drawn pairs, positive and negative."""
    at = {tuple(np.round(text.get_position(), 6)): text.get_text() for text in axes.texts}
    return [
        [tuple(at[tuple(np.round(end, 6))] for end in line) for line in lines.get_segments()]
        for lines in axes.collections[:2]
    ]


def test_the_graph_has_an_edge_for_each_that_is_known():
    axes = plots.association_graph(an_association())
    assert edges(axes) == [[("a", "d"), ("d", "g")], [("b", "f")]]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["go together (2)", "go against each other (1)"]


def test_the_graph_can_be_kept_to_strong_ones():
    axes = plots.association_graph(an_association(), threshold=0.5)
    assert edges(axes) == [[("a", "d")], [("b", "f")]]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["go together, above 0.5 (1)", "go against each other, below −0.5 (1)"]


def test_shares_find_their_names_in_any_order():
    shares = pd.Series(np.arange(1.0, 8), index=NAMES)
    axes = plots.association_graph(an_association(), sizes=shares[::-1])
    areas = axes.collections[2].get_sizes()
    np.testing.assert_allclose(areas / areas.sum(), shares / shares.sum())
    assert [text.get_text() for text in axes.texts] == NAMES
    assert axes.get_legend().get_texts()[-1].get_text() == "area: share"


def test_axes_labels_and_refusals():
    _, given = plt.subplots()
    found = an_association()
    assert plots.association(found, ax=given) is given
    axes = plots.association_graph(found, labels=[f"{name}, long" for name in NAMES])
    assert axes.texts[0].get_text() == "a\nlong"
    with pytest.raises(ValueError, match="labels must name the 7 categories"):
        plots.association_graph(found, labels=["a"])
    with pytest.raises(ValueError, match="sizes must be 7"):
        plots.association_graph(found, sizes=pd.Series([1.0], index=["a"]))
    with pytest.raises(ValueError, match="threshold"):
        plots.association_graph(found, threshold=2)
