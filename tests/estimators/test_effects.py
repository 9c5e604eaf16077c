"""Average effects: against what a law says in closed form, and what it refuses."""

import numpy as np
import pandas as pd
import pytest

from polystick.estimators import effects as module
from polystick.estimators.effects import Effects

RNG = np.random.default_rng(1)
N, S = 700, 50
FRAME = pd.DataFrame(
    {
        "x": RNG.uniform(0, 1, N),
        "party": RNG.choice(list("DIR"), N),
        "wet": RNG.integers(0, 2, N),
        "era": RNG.choice(["new", "old"], N),
    }
)
NOISE = 0.01 * RNG.standard_normal(S)


def shares(frame):
    """Return (S, n, 2): 0.3 + (0.2 x^2 + 0.1 [party is R] (1 + [wet])) times a draw about 1."""
    x, wet = frame.x.to_numpy(float), frame.wet.to_numpy(float)
    line = 0.2 * x**2 + 0.1 * (frame.party == "R").to_numpy() * (1 + wet)
    first = 0.3 + np.multiply.outer(1 + NOISE, line)
    return np.stack([first, 1 - first], axis=2)


MADE = Effects(shares, FRAME, pd.Index(["yes", "no"], name="category"), ("x", "party", "wet"))
LEVEL = 1 + NOISE.mean()


def test_effects_are_average_differences():
    by_change = MADE.effects("x", change=0.5)
    wanted = LEVEL * 0.2 * np.mean((FRAME.x + 0.5) ** 2 - FRAME.x**2)
    np.testing.assert_allclose(by_change.estimate, [wanted, -wanted])
    np.testing.assert_allclose(by_change.p_positive, [1.0, 0.0])
    ends = np.quantile((1 + NOISE) * wanted / LEVEL, [0.05, 0.95])
    np.testing.assert_allclose(by_change.loc["yes", ["lower", "upper"]].to_numpy(float), ends)
    between = MADE.effects("x", change=(0.2, 0.4))
    np.testing.assert_allclose(between.estimate["yes"], LEVEL * 0.2 * (0.16 - 0.04))


def test_a_slope_is_a_derivative_that_stays_inside_the_range():
    seen = []
    made = Effects(
        lambda f: seen.append((f.x.min(), f.x.max())) or shares(f), FRAME, MADE.names, ("x",)
    )
    slope = made.effects("x", change="slope")
    np.testing.assert_allclose(slope.estimate["yes"], LEVEL * 0.4 * FRAME.x.mean(), rtol=1e-3)
    assert min(low for low, _ in seen) >= FRAME.x.min()
    assert max(high for _, high in seen) <= FRAME.x.max()


def test_factors_are_compared_with_their_first_level():
    table = MADE.effects("party")
    assert table.index.names == ["party", "category"]
    assert list(dict.fromkeys(table.index.get_level_values(0))) == ["D to I", "D to R"]
    assert table.loc[("D to I", "yes"), "estimate"] == 0.0
    assert table.loc[("D to I", "yes"), "p_positive"] == 0.5
    wanted = LEVEL * 0.1 * (1 + FRAME.wet.mean())
    np.testing.assert_allclose(table.loc[("D to R", "yes"), "estimate"], wanted)
    np.testing.assert_allclose(MADE.effects("party", change=("D", "R")).estimate["yes"], wanted)


def test_numbers_that_are_a_factor_have_levels_and_no_one_more():
    frame = FRAME.assign(wet=FRAME.wet + 3 * (FRAME.era == "new"))  # 0, 1, 3, 4
    made = Effects(shares, frame, MADE.names, MADE.variables, {"wet": (0, 1, 3, 4)})
    table = made.effects("wet")
    assert list(dict.fromkeys(table.index.get_level_values(0))) == ["0 to 1", "0 to 3", "0 to 4"]
    wanted = LEVEL * 0.3 * np.mean(FRAME.party == "R")
    np.testing.assert_allclose(table.loc[("0 to 3", "yes"), "estimate"], wanted)
    assert made.curves("wet").index.unique(0).tolist() == [0, 1, 3, 4]
    with pytest.raises(TypeError, match="pair of levels"):
        made.effects("wet", change=1)


def test_two_values_are_compared_with_each_other():
    wanted = LEVEL * 0.1 * np.mean(FRAME.party == "R")
    np.testing.assert_allclose(MADE.effects("wet").estimate["yes"], wanted)


def test_contrasts_within_groups_and_interactions():
    within = MADE.contrasts({"party": ("D", "R")}, by="era")
    assert within.index.names == ["era", "category"]
    for era, some in FRAME.groupby("era"):
        wanted = LEVEL * 0.1 * (1 + some.wet.mean())
        np.testing.assert_allclose(within.loc[(era, "yes"), "estimate"], wanted)
    both = MADE.contrasts({"party": ("D", "R"), "wet": (0, 1)})
    np.testing.assert_allclose(both.estimate, [LEVEL * 0.1, -LEVEL * 0.1])


def test_curves_are_averages_at_places():
    curve = MADE.curves("x", at=[0.0, 0.5])
    rest = LEVEL * 0.1 * np.mean((FRAME.party == "R") * (1 + FRAME.wet))
    np.testing.assert_allclose(curve.loc[(0.0, "yes"), "estimate"], 0.3 + rest)
    np.testing.assert_allclose(
        curve.loc[(0.5, "yes"), "estimate"], 0.35 + rest + 0.05 * (LEVEL - 1)
    )
    assert list(curve.columns) == ["estimate", "lower", "upper"]
    assert len(MADE.curves("x")) == 2 * module.N_GRID
    assert len(MADE.curves("party")) == 6


def test_rows_are_read_a_few_at_a_time(monkeypatch):
    whole = MADE.effects("party")
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 13)
    pd.testing.assert_frame_equal(MADE.effects("party"), whole)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda m: m.effects("z"), "no covariate 'z'; it has x, party, wet"),
        (lambda m: m.effects("era"), "no covariate 'era'"),
        (lambda m: m.effects("party", change=1), "pair of levels"),
        (lambda m: m.effects("party", change="slope"), "pair of levels"),
        (lambda m: m.effects("party", change=("D", "X")), "among 'D', 'I', 'R'; got 'X'"),
        (lambda m: m.effects("x", change=("a", "b")), "must be numbers"),
        (lambda m: m.effects("x", change="steep"), 'or "slope"'),
        (lambda m: m.effects("x", level=1.5), "level"),
        (lambda m: m.contrasts("party"), "one or two columns"),
        (lambda m: m.contrasts({"party": "DR"}), "pair of values"),
        (lambda m: m.contrasts({"party": ("D", "R")}, by="county"), "by must be a column"),
        (lambda m: m.contrasts({"party": ("D", "R")}, by="x"), "at most 40 values"),
    ],
)
def test_what_makes_no_sense_is_refused(ask, said):
    with pytest.raises((ValueError, TypeError)) as error:
        ask(MADE)
    assert said in str(error.value)
