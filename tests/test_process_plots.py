"""Pictures of Gaussian processes show what they are given."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from polystick import plots
from test_plots import band

YEARS = pd.Index(np.arange(1990, 2010), name="year")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def some_paths(n_categories=8, seed=0):
    values = np.random.default_rng(seed).dirichlet(np.arange(1.0, n_categories + 1), len(YEARS))
    return pd.DataFrame(values, index=YEARS, columns=list("abcdefghij")[:n_categories])


def some_counts(n=30, n_categories=8):
    rng = np.random.default_rng(1)
    return rng.multinomial(rng.integers(0, 9, n), np.full(n_categories, 1 / n_categories))


def test_paths_have_lines_bands_and_dots_of_the_chosen_categories():
    paths, counts = some_paths(), some_counts()
    when = np.random.default_rng(2).integers(1985, 2015, 30)
    axes = plots.category_paths(
        YEARS,
        paths,
        0.8 * paths,
        1.1 * paths,
        counts=counts,
        counted_at=when,
        categories=["g", "b"],
    )
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["g", "b"]
    lines, dots, areas = axes.lines[::2], axes.lines[1::2], axes.collections
    assert len(lines) == len(dots) == len(areas) == 2
    shares = counts / np.where(counts.sum(axis=1) > 0, counts.sum(axis=1), np.nan)[:, None]
    assert np.isnan(shares).any()  # a row without counts has no dot
    for line, dot, area, name in zip(lines, dots, areas, "gb"):
        np.testing.assert_array_equal(line.get_xdata(), YEARS)
        np.testing.assert_allclose(line.get_ydata(), 100 * paths[name])
        np.testing.assert_allclose(band(area), [80 * paths[name], 110 * paths[name]])
        np.testing.assert_array_equal(dot.get_xdata(), when)
        np.testing.assert_allclose(dot.get_ydata(), 100 * shares[:, "abcdefgh".index(name)])
        assert dot.get_color() == line.get_color()
        assert dot.get_linestyle() == "None"
    assert lines[0].get_color() != lines[1].get_color()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("year", "probability (%)")


def test_the_largest_paths_are_drawn_where_none_are_chosen():
    paths = some_paths()
    _, given = plt.subplots()
    axes = plots.category_paths(YEARS, paths.to_numpy(), labels=list(paths.columns), ax=given)
    assert axes is given
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == list(paths.mean().sort_values(ascending=False).index[:6])
    assert not axes.collections
    axes = plots.category_paths(YEARS, paths.to_numpy(), categories=[3])
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 100 * paths["d"])


def test_counts_may_be_at_the_times_of_the_probabilities_and_times_may_be_dates():
    paths, counts = some_paths(), some_counts(len(YEARS))
    periods = pd.period_range("1990", periods=len(YEARS), freq="Y")
    axes = plots.category_paths(periods, paths, counts=pd.DataFrame(counts), categories=["a"])
    line, dots = axes.lines
    np.testing.assert_array_equal(dots.get_xdata(), line.get_xdata())
    axes.figure.canvas.draw()


def test_dots_at_zero_are_seen():
    counts = np.zeros((len(YEARS), 8), int)
    counts[:, 0] = 5
    axes = plots.category_paths(YEARS, some_paths(), counts=counts, categories=["b"])
    low, high = axes.get_ylim()
    assert -0.1 * high < low < 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": np.arange(9)}, r"a row for each of the times; got \(20, 8\) and \(9,\)"),
        ({"times": YEARS[::-1]}, "times must ascend"),
        ({"probabilities": 100 * some_paths()}, "between 0 and 1; got .*; divide per cent by 100"),
        ({"lower": some_paths()}, "both lower and upper"),
        ({"lower": some_paths(), "upper": some_paths(7)}, r"shape \(20, 8\); got \(20, 7\)"),
        ({"labels": ["a"]}, "name the 8 categories; got 1"),
        ({"categories": ["a", "z"]}, "among the labels; got 'z', and the first labels are a, b"),
        ({"counts": some_counts(5)}, r"each of the 20 times and 8 categories; got shape \(5, 8\)"),
        ({"counts": some_counts(20, 5)}, r"got shape \(20, 5\); say when .* counted_at"),
    ],
)
def test_bad_paths(change, message):
    with pytest.raises(ValueError, match=message):
        plots.category_paths(**({"times": YEARS, "probabilities": some_paths()} | change))


PLACES = pd.DataFrame({"longitude": [-120.0, -75.0, -90.0], "latitude": [37.0, 41.0, 31.0]})
SHARES = np.array([0.2, 0.1, 0.4])


def drawn(axes):
    """Return places, values and areas of the dots, in the order of the longitudes."""
    (dots,) = axes.collections
    order = np.argsort(dots.get_offsets()[:, 0])
    sizes = np.broadcast_to(dots.get_sizes(), len(order))
    return np.asarray(dots.get_offsets())[order], dots.get_array()[order], sizes[order]


def test_map_colours_are_probabilities_and_areas_sizes():
    axes = plots.category_map(
        PLACES, SHARES, [4.0, 1.0, 2.0], names=["CA", "NY", "LA"], label="of X"
    )
    order = [0, 2, 1]
    places, values, areas = drawn(axes)
    np.testing.assert_allclose(places, PLACES.to_numpy()[order])
    np.testing.assert_allclose(values, 100 * SHARES[order])
    np.testing.assert_allclose(areas / areas[0], [1, 0.5, 0.25])
    assert {text.get_text(): text.xy for text in axes.texts} == {
        name: tuple(place) for name, place in zip(["CA", "NY", "LA"], PLACES.to_numpy())
    }
    (dots,) = axes.collections
    assert dots.colorbar.ax.get_ylabel() == "of X"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("longitude", "latitude")
    assert axes.get_aspect() == pytest.approx(1 / np.cos(np.radians(36.0)))


def test_small_dots_are_still_seen_and_lie_on_top():
    places = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    axes = plots.category_map(places, SHARES, [0.0, 1.0, 1e-6], geographic=False)
    (dots,) = axes.collections
    assert dots.get_sizes().min() > 20
    assert dots.get_sizes().tolist() == sorted(dots.get_sizes(), reverse=True)
    assert axes.get_aspect() == "auto"


def test_maps_that_are_to_be_compared_share_their_limits():
    _, given = plt.subplots()
    axes = plots.category_map(PLACES.to_numpy(), SHARES, limits=(0.0, 0.5), ax=given)
    assert axes is given
    assert axes.collections[0].get_clim() == (0.0, 50.0)
    assert plots.category_map(PLACES, SHARES).collections[0].get_clim() == (10.0, 40.0)
    assert len(np.unique(drawn(axes)[2])) == 1
    plots.category_map(PLACES[:1], SHARES[:1]).figure.canvas.draw()  # a single place has no width


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"places": np.zeros((3, 3))}, r"two columns, not empty; got shape \(3, 3\)"),
        ({"places": np.full((3, 2), np.nan)}, "places must be finite"),
        ({"probability": np.ones((3, 4)) / 4}, r"got shape \(3, 4\); choose the column of one"),
        ({"probability": 100 * SHARES}, "between 0 and 1; got 10 to 40; divide per cent"),
        ({"sizes": [1.0, 2.0]}, "sizes must be 3 finite numbers"),
        ({"sizes": [1.0, -2.0, 0.0]}, "not negative"),
        ({"names": ["CA"]}, "names must be 3, one for each place; got 1"),
    ],
)
def test_bad_maps(change, message):
    with pytest.raises(ValueError, match=message):
        plots.category_map(**({"places": PLACES, "probability": SHARES} | change))
