"""Pictures show what they are given."""

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


def test_correlation_puts_what_belongs_together_side_by_side():
    names = list("acbd")
    matrix = pd.DataFrame(np.eye(4), index=names, columns=names)
    for one, other, r in (("a", "b", 0.9), ("c", "d", 0.8), ("a", "c", -0.5)):
        matrix.loc[one, other] = matrix.loc[other, one] = r
    axes = plots.correlation(matrix)
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert abs(shown.index("a") - shown.index("b")) == 1
    assert abs(shown.index("c") - shown.index("d")) == 1
    np.testing.assert_array_equal(axes.images[0].get_array(), matrix.loc[shown, shown])


def test_given_axes_are_used():
    _, axes = plt.subplots()
    matrix = pd.DataFrame(np.eye(2), index=["x", "y"], columns=["x", "y"])
    assert plots.correlation(matrix, ax=axes) is axes
