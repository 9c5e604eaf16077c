"""Covariates become the same numbers for new rows, or say in one sentence why they cannot."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest

from polystick.design import design
from polystick.estimators import covariates

RNG = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(
    {
        "x": 1e9 * RNG.standard_normal(N),
        "year": np.linspace(1900, 2000, N),
        "party": RNG.choice(list("DIR"), N),
        "wet": RNG.random(N) < 0.4,
        "era": RNG.integers(0, 3, N),
    },
    index=[f"row {i}" for i in range(N)],
)
FORMULAS = [
    "cr(year, df=5) + party",
    "cr(year, df=4) * party",
    "x * party + C(era) + wet",
    "poly(year, 3) + np.log(year):wet",
    "0 + party",
    "C(party, contr.sum) + scale(x)",
    "1",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_new_rows_get_the_numbers_of_the_fit(formula):
    made, matrix = design(FRAME, formula)
    some = FRAME.iloc[[7, 3, 50]]
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_allclose(again.matrix(some), matrix[[7, 3, 50]], rtol=1e-10, atol=1e-12)
    assert len(made.names) == len(made.terms) == matrix.shape[1]


def test_columns_inside_of_transforms_are_needed_too():
    made, _ = design(FRAME, "cr(year, df=5) + poly(x, 2):C(era)")
    assert set(made.variables) == {"year", "x", "era"}
    with pytest.raises(ValueError, match="'year' is missing"):
        made.matrix(FRAME.drop(columns="year"))
    with pytest.raises(ValueError, match="missing or infinite value in row 0 of column 'year'"):
        design(FRAME.assign(year=np.nan), "cr(year, df=5)")
    named, _ = design(FRAME.rename(columns={"x": "how wet"}), "`how wet` + party")
    assert set(named.variables) == {"how wet", "party"}


def test_columns_are_on_one_scale_whatever_their_units():
    _, matrix = design(FRAME, "x + wet")
    _, other = design(FRAME.assign(x=FRAME.x * 1e-250), "x + wet")
    _, huge = design(FRAME.assign(x=FRAME.x * 1e290), "x + wet")
    np.testing.assert_allclose(matrix.std(axis=0)[1:2], [0.5])
    assert np.ptp(matrix[:, 2]) == pytest.approx(1.0)
    np.testing.assert_allclose(huge, matrix)
    np.testing.assert_allclose(other[:, 2], matrix[:, 2])
    np.testing.assert_allclose(matrix[:, 1:].mean(axis=0), 0.0, atol=1e-12)


def test_coefficients_are_told_per_unit_of_the_columns_as_they_came():
    made, matrix = design(FRAME, "x + party")
    coefficients = np.arange(8.0).reshape(4, 2)
    raw = matrix * made.scale + made.centre
    own = made.unscaled(coefficients)
    np.testing.assert_allclose(raw @ own, matrix @ coefficients)


def test_columns_may_come_without_a_formula():
    values = RNG.standard_normal((9, 2))
    made, matrix = design(values)
    assert made.names == ("Intercept", "x0", "x1")
    np.testing.assert_allclose(made.matrix(values[:4]), matrix[:4])
    framed, same = design(pd.DataFrame(values, columns=["a", "b"]))
    assert framed.variables == ("a", "b")
    np.testing.assert_allclose(same, matrix)


@pytest.mark.parametrize(
    ("formula", "changes", "said"),
    [
        ("x", {"x": np.nan}, "missing or infinite value in row 0 of column 'x'"),
        ("x", {"x": np.inf}, "missing or infinite"),
        ("party", {"party": None}, "missing or infinite value in row 0 of column 'party'"),
        ("party ~ x", {}, "no response"),
        ("x | party", {}, "one part"),
        ("x + height", {}, "'height' is missing"),
        ("x +", {}, "cannot read the formula"),
        ("", {}, "must be a string"),
        ("0", {}, "must have a term"),
        ("x + one", {"one": 1.0}, "must vary"),
        ("x + twice", {"twice": 2 * FRAME.x + 3}, "collinear; term 'twice'"),
        ("party + C(party)", {}, "collinear"),
        ("np.log(x)", {}, "cannot make the columns"),
        ("party", {"party": pd.Categorical(FRAME.party, list("DIRX"))}, "a level without rows"),
        (None, {}, "must be numbers where there is no formula"),
    ],
)
def test_a_fit_says_what_is_wrong_with_its_covariates(formula, changes, said):
    with pytest.raises((ValueError, TypeError)) as error:
        design(FRAME.assign(**changes), formula)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("formula", "new", "said"),
    [
        ("party", FRAME.assign(party="Whig"), "levels seen in fit (D, I, R); got 'Whig'"),
        ("C(era)", FRAME.assign(era=9), "levels seen in fit (0, 1, 2); got 9"),
        ("C(era + 1)", FRAME.assign(era=9), "levels seen in fit"),
        ("x + party", FRAME[["x"]], "'party' is missing"),
        ("x + party", FRAME[["x", "party"]].to_numpy(), "must be a DataFrame"),
        ("x", FRAME.assign(x=np.nan), "missing"),
        ("x", FRAME.assign(x="high"), "cannot make the columns"),
        ("bs(year, df=4)", FRAME.assign(year=2300), "extrapolation"),
    ],
)
def test_new_rows_must_be_like_those_of_the_fit(formula, new, said):
    made, _ = design(FRAME, formula)
    with pytest.raises((ValueError, TypeError)) as error:
        made.matrix(new)
    assert said in str(error.value)


def test_more_columns_than_rows_are_allowed_and_told():
    with pytest.warns(RuntimeWarning, match="more than the 5 rows"):
        _, matrix = design(RNG.standard_normal((5, 9)))
    assert matrix.shape == (5, 10)


def test_rows_belong_together():
    counts = pd.DataFrame(np.ones((N, 3)), index=FRAME.index)
    made, _, kept = covariates.read(FRAME, "x + party", counts)
    assert list(kept.columns) == ["x", "party"] == list(made.variables)
    with pytest.raises(ValueError, match="same index"):
        covariates.read(FRAME, "x", counts.iloc[::-1])
    with pytest.raises(ValueError, match="equally many rows"):
        covariates.read(FRAME, "x", counts.iloc[:-1])


def test_formulas_say_what_they_need(monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ImportError, match=r"polystick\[formula\]"):
        design(FRAME, "x")
