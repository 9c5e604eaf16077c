"""Pictures of sequences show what they are given."""

from dataclasses import replace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.stats import norm

from polystick import plots
from polystick.estimators.sequence_results import Filtered, Smoothed, forecast_of
from polystick.estimators.tables import steps_after
from test_plots import band

N_STEPS, N_NEW, K = 30, 6, 8
YEARS = pd.Index(np.arange(1990, 1990 + N_STEPS + N_NEW), name="year")
NAMES = np.array(list("abcdefgh"), dtype=object)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def some_probabilities(*shape, seed=0):
    return np.random.default_rng(seed).dirichlet(np.arange(1.0, K + 1), shape)


def some_smoothed(n_dims=3, seed=0):
    rng, pi = np.random.default_rng(seed), some_probabilities(N_STEPS)
    states = rng.normal(size=(N_STEPS, n_dims)).cumsum(axis=0) * np.arange(1, n_dims + 1)
    return Smoothed(states, rng.uniform(0.1, 0.5, states.shape), pi, 0.8 * pi, 1.1 * pi)


def some_filtered():
    whole = some_smoothed()
    return Filtered(whole.states, whole.states_sd, whole.probabilities)


def some_forecast(n_steps=N_NEW):
    return forecast_of(some_probabilities(40, n_steps, seed=1), 0.9)


def some_counts(n=N_STEPS):
    rng = np.random.default_rng(2)
    return rng.multinomial(rng.integers(0, 9, n), np.full(K, 1 / K))


def texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def shares_of(counts):
    return counts / np.where(counts.sum(axis=1) > 0, counts.sum(axis=1), np.nan)[:, None]


# states


def test_states_have_lines_and_bands():
    smoothed = some_smoothed()
    axes = plots.state_trajectories(smoothed, dimensions=[2, 0], level=0.5)
    assert texts(axes) == ["state 2", "state 0"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", "state")
    for line, area, j in zip(axes.lines, axes.collections, (2, 0), strict=True):
        middle, reach = smoothed.states[:, j], norm.ppf(0.75) * smoothed.states_sd[:, j]
        np.testing.assert_array_equal(line.get_xdata(), np.arange(N_STEPS))
        np.testing.assert_allclose(line.get_ydata(), middle)
        np.testing.assert_allclose(band(area), [middle - reach, middle + reach])
    assert len({line.get_color() for line in axes.lines}) == 2


def test_the_states_that_move_most_are_drawn_where_none_are_chosen():
    smoothed = some_smoothed(9)
    _, given = plt.subplots()
    axes = plots.state_trajectories(smoothed, times=YEARS[:N_STEPS], ax=given)
    assert axes is given
    assert axes.get_xlabel() == "year"
    moves = np.argsort(-smoothed.states.std(axis=0))[:6]
    assert texts(axes) == [f"state {j}" for j in sorted(moves)]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), smoothed.states[:, min(moves)])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"result": [some_smoothed()]}, TypeError, r"one sequence; got a list of 1: .* result\[0\]"),
        ({"result": some_forecast()}, TypeError, r"what smooth\(\) or filter\(\) .* got Forecast"),
        ({"result": replace(some_filtered(), states=np.zeros((N_STEPS, 0)))}, ValueError, "nothing"),
        ({"dimensions": [0, 3]}, ValueError, r"among 0\.\.2; got 3"),
        ({"dimensions": [-1]}, ValueError, r"among 0\.\.2; got -1"),
        ({"level": 90}, ValueError, "level must lie between 0 and 1; got 90"),
        ({"times": YEARS}, ValueError, r"states must have a row for each .* \(30, 3\) and \(36,\)"),
        ({"times": YEARS[:N_STEPS][::-1]}, ValueError, "times must ascend"),
    ],
)  # fmt: skip
def test_bad_states(change, error, message):
    with pytest.raises(error, match=message):
        plots.state_trajectories(**({"result": some_smoothed()} | change))


# probabilities


def test_probabilities_of_a_sequence_have_lines_bands_and_dots():
    smoothed, counts = some_smoothed(), some_counts()
    axes = plots.probability_paths(
        smoothed, counts=scipy.sparse.csr_array(counts), categories=["g", "b"], labels=NAMES
    )
    assert texts(axes) == ["g", "b"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", "probability (%)")
    drawn = zip(axes.lines[::2], axes.lines[1::2], axes.collections, (6, 1), strict=True)
    for line, dots, area, j in drawn:
        np.testing.assert_array_equal(line.get_xdata(), np.arange(N_STEPS))
        np.testing.assert_allclose(line.get_ydata(), 100 * smoothed.probabilities[:, j])
        np.testing.assert_allclose(
            band(area), [100 * smoothed.lower[:, j], 100 * smoothed.upper[:, j]]
        )
        np.testing.assert_allclose(dots.get_ydata(), 100 * shares_of(counts)[:, j])
        assert dots.get_color() == line.get_color()


def test_forecasts_have_bands_and_other_probabilities_have_none():
    forecast, filtered = some_forecast(), some_filtered()
    axes = plots.probability_paths(forecast, times=YEARS[N_STEPS:], categories=[3])
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), YEARS[N_STEPS:])
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 100 * forecast.mean[:, 3])
    sides = [100 * forecast.lower[:, 3], 100 * forecast.upper[:, 3]]
    np.testing.assert_allclose(band(axes.collections[0]), sides)
    for result in (filtered, filtered.probabilities):
        axes = plots.probability_paths(result)
        largest = np.argsort(-filtered.probabilities.mean(axis=0))[:6]
        assert texts(axes) == [str(j) for j in largest]
        np.testing.assert_allclose(
            axes.lines[0].get_ydata(), 100 * filtered.probabilities[:, largest[0]]
        )
        assert not axes.collections


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"result": [some_smoothed()] * 2}, TypeError, "one sequence; got a list of 2"),
        ({"result": np.ones(5)}, ValueError, r"\(steps, categories\); got shape \(5,\)"),
        ({"result": 100 * some_filtered().probabilities}, ValueError, "divide per cent by 100"),
        ({"labels": NAMES[:3]}, ValueError, "name the 8 categories; got 3"),
        ({"categories": ["a"]}, ValueError, "among the labels; got 'a', and the first .* 0, 1"),
        ({"counts": np.arange(N_STEPS)}, ValueError, r"8 categories; got shape \(30, 1\)"),
    ],
)
def test_bad_probabilities(change, error, message):
    with pytest.raises(error, match=message):
        plots.probability_paths(**({"result": some_smoothed()} | change))


# what may come


def test_a_fan_goes_on_from_the_last_step_of_the_history():
    smoothed, forecast, counts = some_smoothed(), some_forecast(), some_counts(N_STEPS + 2)
    axes = plots.forecast_fan(
        forecast, smoothed, times=YEARS, counts=counts, categories=["h", "c"], labels=NAMES
    )
    assert texts(axes) == ["h", "c"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("year", "probability (%)")
    *lines, border = axes.lines
    areas = axes.collections
    np.testing.assert_array_equal(border.get_xdata(), YEARS[N_STEPS - 1])
    inner = np.quantile(forecast.draws, [0.25, 0.75], axis=0)
    for place, j in enumerate((7, 2)):
        line, dots, fan = lines[2 * place], lines[2 * place + 1], lines[4 + place]
        old, outer, middle = areas[place], areas[2 + 2 * place], areas[3 + 2 * place]
        np.testing.assert_array_equal(line.get_xdata(), YEARS[:N_STEPS])
        np.testing.assert_allclose(line.get_ydata(), 100 * smoothed.probabilities[:, j])
        sides = np.stack([smoothed.lower[:, j], smoothed.upper[:, j]])
        np.testing.assert_allclose(band(old), 100 * sides)
        np.testing.assert_array_equal(dots.get_xdata(), YEARS[: N_STEPS + 2])
        np.testing.assert_allclose(dots.get_ydata(), 100 * shares_of(counts)[:, j])
        np.testing.assert_array_equal(fan.get_xdata(), YEARS[N_STEPS - 1 :])
        joined = [smoothed.probabilities[-1, j], *forecast.mean[:, j]]
        np.testing.assert_allclose(fan.get_ydata(), 100 * np.array(joined))
        ahead = np.stack([forecast.lower[:, j], forecast.upper[:, j]])
        np.testing.assert_allclose(band(outer), 100 * np.hstack([sides[:, -1:], ahead]))
        np.testing.assert_allclose(band(middle), 100 * inner[:, :, j])
        assert line.get_color() == fan.get_color()
        assert fan.get_linestyle() == "--"


def test_a_history_without_bands_has_a_fan_from_the_first_new_step():
    filtered, forecast = some_filtered(), some_forecast(1)
    axes = plots.forecast_fan(forecast, filtered, categories=[5])
    outer, _ = axes.collections
    np.testing.assert_allclose(
        band(outer), [100 * forecast.lower[:, 5], 100 * forecast.upper[:, 5]]
    )
    assert axes.get_xlabel() == "step"
    np.testing.assert_array_equal(axes.lines[1].get_xdata(), [N_STEPS - 1, N_STEPS])
    axes = plots.forecast_fan(forecast, filtered.probabilities)
    both = np.vstack([filtered.probabilities, forecast.mean]).sum(axis=0)
    assert texts(axes) == [str(j) for j in np.argsort(-both)[:6]]


def test_no_part_of_a_fan_is_cut_off():
    flat = np.full((N_STEPS, K), 0.01)
    flat[:, 0] = 0.93
    draws = np.tile(flat[0, ::-1], (10, N_NEW, 1))
    axes = plots.forecast_fan(forecast_of(draws, 0.9), flat, categories=[K - 1])
    assert axes.get_ylim()[1] > 93
    assert axes.get_xlim()[1] > N_STEPS + N_NEW - 1


def test_times_of_a_fan_may_be_periods():
    months = pd.period_range("2020-01", periods=N_STEPS + N_NEW, freq="M")
    axes = plots.forecast_fan(some_forecast(), some_smoothed(), times=months, counts=some_counts())
    axes.figure.canvas.draw()
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), months[:N_STEPS].to_timestamp())


def named(result, index):
    return replace(result, categories=np.array(NAMES, dtype=object), index=index)


def test_a_fan_needs_nothing_but_a_forecast():
    forecast = named(some_forecast(), pd.RangeIndex(N_STEPS, N_STEPS + N_NEW))
    axes = plots.forecast_fan(forecast, categories=["c", "h"])
    assert texts(axes) == ["c", "h"]
    assert axes.get_xlabel() == "step"
    line, outer, inner = axes.lines[0], *axes.collections[:2]
    np.testing.assert_array_equal(line.get_xdata(), forecast.index)
    np.testing.assert_allclose(line.get_ydata(), 100 * forecast.mean[:, 2])
    np.testing.assert_allclose(
        band(outer), 100 * np.stack([forecast.lower, forecast.upper])[..., 2]
    )
    half = 100 * np.quantile(forecast.draws, [0.25, 0.75], axis=0)[..., 2]
    np.testing.assert_allclose(band(inner), half)
    later = some_counts(N_NEW)
    axes = plots.forecast_fan(forecast, counts=later, categories=["h"])
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 100 * shares_of(later)[:, 7])


@pytest.mark.parametrize("given", [None, pd.RangeIndex(N_STEPS)])
def test_steps_without_names_are_numbered(given):
    smoothed, after = named(some_smoothed(), given), steps_after(given, N_STEPS, N_NEW)
    axes = plots.forecast_fan(named(some_forecast(), after), smoothed, categories=["h"])
    assert axes.get_xlabel() == "step"
    np.testing.assert_array_equal(
        axes.lines[1].get_xdata(), np.arange(N_STEPS - 1, N_STEPS + N_NEW)
    )


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(2 * np.arange(N_STEPS)),
        pd.date_range("2020-01-31", periods=N_STEPS, freq="ME"),
        pd.period_range("2020-01", periods=N_STEPS, freq="M", name="month"),
    ],
)
def test_a_fan_goes_on_with_the_index_of_its_history(index):
    after = steps_after(index, N_STEPS, N_NEW)
    axes = plots.forecast_fan(named(some_forecast(), after), named(some_smoothed(), index))
    axes.figure.canvas.draw()
    assert axes.get_xlabel() == (index.name or "time")
    expected = after.to_timestamp() if hasattr(after, "to_timestamp") else after
    np.testing.assert_array_equal(axes.lines[6].get_xdata()[1:], np.asarray(expected))


def test_pictures_take_names_and_times_from_results():
    before, after = YEARS[:N_STEPS], YEARS[N_STEPS:]
    smoothed, forecast = named(some_smoothed(), before), named(some_forecast(), after)
    axes = plots.forecast_fan(forecast, smoothed, categories=["h"])
    assert axes.get_xlabel() == "year"
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), before)
    np.testing.assert_array_equal(axes.lines[1].get_xdata(), YEARS[N_STEPS - 1 :])
    axes = plots.probability_paths(smoothed)
    assert set(texts(axes)) <= set(NAMES)
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), before)
    np.testing.assert_array_equal(plots.state_trajectories(smoothed).lines[0].get_xdata(), before)
    words = named(smoothed, pd.Index([f"step {i}" for i in range(N_STEPS)]))
    axes = plots.forecast_fan(forecast, words)  # no times: numbers
    assert axes.get_xlabel() == "step"
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), np.arange(N_STEPS))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"forecast": [some_forecast()]}, TypeError, "one sequence; got a list of 1"),
        ({"history": [some_smoothed()]}, TypeError, "one sequence; got a list of 1"),
        ({"forecast": some_smoothed()}, TypeError, r"what forecast\(\) returns .*; got Smoothed"),
        ({"history": np.full((9, 2), 0.5)}, ValueError, "the same categories; got 2 and 8"),
        ({"times": YEARS[:N_STEPS]}, ValueError, r"together must have .* \(36, 8\) and \(30,\)"),
        ({"labels": NAMES[:3]}, ValueError, "name the 8 categories; got 3"),
        ({"categories": ["z"]}, ValueError, "among the labels; got 'z'"),
        ({"counts": some_counts(40)}, ValueError, r"the 36 times .*; got shape \(40, 8\)"),
    ],
)
def test_bad_fans(change, error, message):
    given = {"history": some_smoothed(), "forecast": some_forecast()}
    with pytest.raises(error, match=message):
        plots.forecast_fan(**(given | change))
