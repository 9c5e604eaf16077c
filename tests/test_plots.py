"""Pictures show what they are given."""

from itertools import pairwise

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from polystick import CorrelatedMultinomial, Gibbs, Interval, MeanField, plots


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_correlation_puts_what_is_alike_side_by_side():
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


def some_correlation(k, seed=0):
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(k, 4))
    cov = loadings @ loadings.T + np.eye(k)
    sd = np.sqrt(np.diag(cov))
    return cov / np.outer(sd, sd)


def test_correlation_without_clustering_keeps_the_order_and_takes_arrays():
    matrix = some_correlation(7)
    axes = plots.correlation(matrix, cluster=False, label="of topics")
    np.testing.assert_array_equal(axes.images[0].get_array(), matrix)
    assert [label.get_text() for label in axes.get_yticklabels()] == list("0123456")
    assert axes.images[0].colorbar.ax.get_ylabel() == "of topics"


@pytest.mark.parametrize(("k", "all_shown"), [(50, True), (300, False)])
def test_many_labels_are_small_or_thinned_but_never_wrong(k, all_shown):
    names = [f"word{i}, word{i + 1}" for i in range(k)]
    matrix = pd.DataFrame(some_correlation(k), index=names, columns=names)
    axes = plots.correlation(matrix)
    assert (len(axes.get_yticks()) == k) == all_shown
    assert max(axes.figure.get_size_inches()) < 10
    shown = axes.images[0].get_array()
    for place, label in zip(axes.get_yticks(), axes.get_yticklabels()):
        row = shown[int(place)]
        np.testing.assert_array_equal(np.sort(row), np.sort(matrix.loc[label.get_text()]))
    assert no_overlap(axes, axes.get_yticklabels())


def no_overlap(axes, texts):
    """Whether texts one above the other do not touch, by more than a pixel."""
    axes.figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in texts), key=lambda box: box.y0)
    return all(lower.y1 < upper.y0 + 1 for lower, upper in pairwise(boxes))


def edges(axes):
    """Return the drawn pairs of nodes, positive and negative, by the places of the nodes."""
    nodes = axes.collections[2].get_offsets()
    place = {tuple(np.round(at, 6)): i for i, at in enumerate(np.asarray(nodes))}
    return [
        [tuple(place[tuple(np.round(end, 6))] for end in line) for line in lines.get_segments()]
        for lines in axes.collections[:2]
    ]


def test_graph_has_an_edge_per_strong_correlation():
    matrix = some_correlation(15)
    axes = plots.topic_graph(matrix, [f"topic {i}" for i in range(15)], threshold=0.4)
    i, j = np.triu_indices(15, 1)
    positive, negative = edges(axes)
    assert positive == [p for p in zip(i, j) if matrix[p] > 0.4]
    assert negative == [p for p in zip(i, j) if matrix[p] < -0.4]
    assert positive
    assert negative
    widths = axes.collections[0].get_linewidths()
    weights = [matrix[p] for p in positive]
    np.testing.assert_array_equal(np.argsort(widths), np.argsort(weights))
    # told apart by colour and by style
    looks = [(c.get_edgecolor()[0].tolist(), c.get_linestyle()[0][1]) for c in axes.collections[:2]]
    assert looks[0][0][:3] != looks[1][0][:3]
    assert looks[0][1] is None
    assert looks[1][1] is not None
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == [
        f"correlation above 0.4 ({len(positive)})",
        f"correlation below −0.4 ({len(negative)})",
    ]


def test_graph_labels_sit_on_their_nodes_and_areas_are_shares():
    labels = [f"war{i}, peace{i}" for i in range(6)]
    sizes = np.array([0.1, 0.2, 0.3, 0.1, 0.05, 0.25])
    frame = pd.DataFrame(some_correlation(6), index=labels, columns=labels)
    _, given = plt.subplots()
    axes = plots.topic_graph(frame, sizes=sizes, ax=given)
    assert axes is given
    nodes = axes.collections[2]
    areas = nodes.get_sizes()
    np.testing.assert_allclose(areas / areas.sum(), sizes)
    np.testing.assert_allclose([text.get_position() for text in axes.texts], nodes.get_offsets())
    assert [text.get_text() for text in axes.texts] == [f"war{i}\npeace{i}" for i in range(6)]
    assert axes.get_legend().get_texts()[-1].get_text() == "area: share of tokens"


def test_graph_labels_do_not_collide():
    labels = [f"government{i}, constitution{i}, state{i}" for i in range(50)]
    axes = plots.topic_graph(some_correlation(50), labels, threshold=0.5)
    axes.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    inside = axes.figure.bbox
    assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 for box in boxes)
    ends = np.array([[box.x0, box.y0, box.x1, box.y1] for box in boxes])
    wide = np.minimum(ends[:, None, 2], ends[None, :, 2]) - np.maximum(
        ends[:, None, 0], ends[None, :, 0]
    )
    high = np.minimum(ends[:, None, 3], ends[None, :, 3]) - np.maximum(
        ends[:, None, 1], ends[None, :, 1]
    )
    covered = np.clip(wide, 0, None) * np.clip(high, 0, None)
    areas = (ends[:, 2] - ends[:, 0]) * (ends[:, 3] - ends[:, 1])
    assert np.all(np.triu(covered, 1) < 0.1 * areas)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"correlation": np.ones((2, 3))}, r"must be square, not empty; got \(2, 3\)"),
        ({"correlation": [[1, 3], [3, 9]]}, "divide a covariance"),
        ({"correlation": [[1, 0.5], [0.1, 1]]}, "must be symmetric"),
        ({"correlation": [[1, np.nan], [np.nan, 1]]}, "must be symmetric"),
        ({"correlation": np.eye(3), "labels": ["a", "b"]}, "name the 3 topics; got 2"),
        ({"correlation": np.eye(2), "sizes": [1, -1]}, "2 finite shares"),
        ({"correlation": np.eye(2), "sizes": [1]}, "2 finite shares"),
        ({"correlation": np.eye(2), "threshold": 1.5}, "between 0 and 1; got 1.5"),
    ],
)
def test_bad_graphs(arguments, message):
    with pytest.raises(ValueError, match=message):
        plots.topic_graph(**arguments)


def test_bad_correlation():
    with pytest.raises(ValueError, match="must be square"):
        plots.correlation(np.ones((2, 3)))


def sizes_table():
    share = np.array([0.2, 0.5, 0.3])
    return pd.DataFrame(
        {"lower": share - 0.05, "share": share, "upper": share + 0.1}, index=["x", "y", "z"]
    )


def test_topic_sizes_are_sorted_with_their_intervals():
    axes = plots.topic_sizes(sizes_table())
    (dots,) = axes.lines
    np.testing.assert_allclose(dots.get_xdata(), [20, 30, 50])
    ends = [line[:, 0] for line in axes.collections[0].get_segments()]
    np.testing.assert_allclose(ends, [[15, 30], [25, 40], [45, 60]])
    labels = {t: label.get_text() for t, label in zip(axes.get_yticks(), axes.get_yticklabels())}
    assert labels == {0: "x", 1: "z", 2: "y"}  # places count upwards
    assert axes.get_xlabel() == "share of tokens (%)"
    _, given = plt.subplots()
    assert plots.topic_sizes(sizes_table(), ax=given) is given


def test_many_topic_sizes_have_readable_labels():
    share = np.random.default_rng(0).dirichlet(np.ones(50))
    table = pd.DataFrame({"share": share, "lower": 0.9 * share, "upper": 1.1 * share})
    axes = plots.topic_sizes(table)
    assert len(axes.get_yticklabels()) == 50
    assert no_overlap(axes, axes.get_yticklabels())


def test_bad_sizes():
    with pytest.raises(ValueError, match=r"\['upper'\] is missing"):
        plots.topic_sizes(sizes_table().drop(columns="upper"))
    with pytest.raises(ValueError, match="lower <= upper"):
        plots.topic_sizes(sizes_table().assign(lower=2.0))
    with pytest.raises(ValueError, match="must have rows"):
        plots.topic_sizes(sizes_table()[:0])


def test_trace_has_a_line_per_chain():
    values = np.random.default_rng(0).normal(size=(3, 40))
    axes = plots.trace(values, burn=10, label="bound")
    assert len(axes.lines) == 3
    for line, expected in zip(axes.lines, values):
        np.testing.assert_array_equal(line.get_ydata(), expected)
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 41))
    (shade,) = axes.patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (0.5, 10.5)
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("bound", "sweep")
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["chain 0", "chain 1", "chain 2", "burn-in"]


def test_a_single_trace_needs_no_legend():
    _, given = plt.subplots()
    axes = plots.trace([1.0, 2.0, 3.0], ax=given)
    assert axes is given
    assert axes.get_legend() is None
    assert not axes.patches


def test_a_steep_start_does_not_flatten_the_rest():
    values = np.concatenate([[-1e6, -1e3], np.tile([0.0, 1.0], 20)])
    low, high = plots.trace(values, burn=2).get_ylim()
    assert low == pytest.approx(-2.15)
    assert high == pytest.approx(1.15)
    low, _ = plots.trace(values).get_ylim()
    assert low < -1e6
    low, high = plots.trace(np.zeros(5), burn=2).get_ylim()
    assert low < 0 < high


@pytest.mark.parametrize(
    ("values", "burn", "message"),
    [
        (np.zeros((2, 2, 2)), None, r"\(n_chains, n_draws\), not empty; got \(2, 2, 2\)"),
        ([], None, "not empty"),
        ([1.0, np.nan], None, "must be finite"),
        ([1.0, 2.0], 2, "below the number of draws, 2; got 2"),
        ([1.0, 2.0], -1, "at least 0"),
    ],
)
def test_bad_traces(values, burn, message):
    with pytest.raises(ValueError, match=message):
        plots.trace(values, burn)


def some_shares(n_times=60, n_topics=5):
    rng = np.random.default_rng(1)
    return rng.dirichlet(np.arange(1.0, n_topics + 1), n_times)


def band(collection):
    """Return the lowest and highest value of a band at each time."""
    points = pd.DataFrame(collection.get_paths()[0].vertices)
    return points.groupby(0)[1].agg(["min", "max"]).to_numpy().T


def test_shares_over_time_show_lines_and_bands_from_the_largest():
    times, shares = np.arange(1900, 1960), some_shares()
    axes = plots.shares_over_time(
        shares, 0.9 * shares, 1.1 * shares, times=times, labels=list("abcde")
    )
    order = np.argsort(-shares.mean(axis=0))
    assert [line.get_label() for line in axes.lines] == ["abcde"[j] for j in order]
    for line, area, j in zip(axes.lines, axes.collections, order):
        np.testing.assert_array_equal(line.get_xdata(), times)
        np.testing.assert_allclose(line.get_ydata(), 100 * shares[:, j])
        np.testing.assert_allclose(band(area), [90 * shares[:, j], 110 * shares[:, j]])
    assert len({line.get_color() for line in axes.lines}) == 5
    assert axes.get_ylabel() == "share of tokens (%)"
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["abcde"[j] for j in order]


def test_other_topics_are_grey_and_counted():
    frame = pd.DataFrame(some_shares(n_topics=12), columns=[f"t{j}" for j in range(12)])
    years = pd.Index(np.arange(60), name="year")
    _, given = plt.subplots()
    axes = plots.shares_over_time(frame, times=years, n_shown=3, ax=given)
    assert axes is given
    assert len(axes.lines) == 12
    assert {line.get_color() for line in axes.lines[3:]} == {plots.OTHERS}
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == [*frame.mean().sort_values(ascending=False).index[:3], "9 others"]
    assert axes.get_xlabel() == "year"


def test_many_lines_differ_in_colour_or_style():
    axes = plots.shares_over_time(some_shares(n_topics=20), n_shown=20)
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 20


def test_stacked_shares_fill_the_whole():
    times, shares = np.arange(60), some_shares()
    axes = plots.shares_over_time(
        shares, times=times, labels=list("abcde"), n_shown=3, stacked=True
    )
    order = np.argsort(-shares.mean(axis=0))
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == [*("abcde"[j] for j in order[:3]), "2 others"]
    parts = [shares[:, order[3:]].sum(axis=1), *(shares[:, j] for j in order[:3][::-1])]
    edge = np.zeros(60)
    for area, part in zip(axes.collections, parts, strict=True):
        np.testing.assert_allclose(band(area), [edge, edge + 100 * part], atol=1e-9)
        edge = edge + 100 * part
    np.testing.assert_allclose(edge, 100)


def test_periods_dates_and_gaps():
    shares = some_shares(10)
    shares[4:6] = np.nan
    periods = pd.period_range("1990", periods=10, freq="Y")
    for times in (periods, periods.to_timestamp(), periods.to_timestamp().to_numpy()):
        axes = plots.shares_over_time(shares, times=times)
        line = axes.lines[0]
        assert np.isnan(line.get_ydata()[4:6]).all()
        assert line.get_marker() == "."  # a time between two gaps is seen
        np.testing.assert_array_equal(
            np.asarray(line.get_xdata(), "datetime64[Y]"),
            np.arange(1990, 2000).astype(str).astype("M8[Y]"),
        )
        axes.figure.canvas.draw()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": np.arange(9)}, r"a row for each of the times; got \(10, 5\) and \(9,\)"),
        ({"times": np.arange(10)[::-1]}, "times must ascend"),
        ({"times": np.zeros(10)}, "times must ascend"),
        ({"lower": some_shares(10)}, "both lower and upper"),
        (
            {"lower": np.zeros((10, 5)), "upper": np.ones((10, 5)), "stacked": True},
            "areas have none",
        ),
        ({"lower": np.zeros((10, 5)), "upper": np.ones((10, 4))}, r"\(10, 5\); got \(10, 4\)"),
        ({"labels": ["a"]}, "name the 5 topics; got 1"),
    ],
)
def test_bad_shares(change, message):
    with pytest.raises(ValueError, match=message):
        plots.shares_over_time(**({"times": np.arange(10), "shares": some_shares(10)} | change))


# what models return


def test_pictures_take_what_models_return():
    rng = np.random.default_rng(0)
    counts = pd.DataFrame(rng.multinomial(40, [0.4, 0.3, 0.2, 0.1], size=12), columns=list("abcd"))
    model = CorrelatedMultinomial(inference=Gibbs(8, 4, n_chains=2), random_state=0).fit(counts)
    found = model.log_share_correlation()
    image = plots.correlation(found, cluster=False).images[0]
    np.testing.assert_array_equal(image.get_array(), found.mean)
    edges = plots.topic_graph(found).get_legend().get_texts()
    assert texts_of(edges) == texts_of(plots.topic_graph(found.mean).get_legend().get_texts())
    axes = plots.trace(model.posterior_)
    assert axes.get_ylabel() == "log likelihood"
    for line, chain in zip(axes.lines, model.posterior_.log_likelihood, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), chain)
    model.set_params(inference=MeanField(n_draws=4)).fit(counts)
    (line,) = plots.trace(model.posterior_).lines
    assert line.axes.get_ylabel() == "bound"
    np.testing.assert_array_equal(line.get_ydata()[-1], model.posterior_.tree.attrs["elbo"])


def texts_of(texts):
    return [text.get_text() for text in texts]


def test_shares_over_time_take_an_interval():
    years = pd.RangeIndex(1990, 2000, name="year")
    mean = pd.DataFrame(some_shares(10), index=years)
    given = Interval(mean, 0.9 * mean, 1.1 * mean)
    axes = plots.shares_over_time(given)
    assert axes.get_xlabel() == "year"
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), years)
    assert len(axes.collections) == 5
    assert len(plots.shares_over_time(given, stacked=True).collections) == 5
