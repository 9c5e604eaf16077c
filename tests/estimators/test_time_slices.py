"""Time stamps of many kinds become slices without gaps, or an error that says what to do."""

import datetime

import numpy as np
import pandas as pd
import pytest

from polystick.estimators.time_slices import TimeSlices, check_length

YEARS = [2003, 2000, 2001, 2003]
KINDS = {
    "list": YEARS,
    "short integers": np.array(YEARS, dtype=np.int16),
    "unsigned integers": np.array(YEARS, dtype=np.uint32),
    "objects": np.array(YEARS, dtype=object),
    "series with an index of its own": pd.Series(YEARS, index=[9, 9, 3, 1]),
    "nullable integers": pd.array(YEARS, dtype="Int64"),
    "strings": [f"{year}-07-01" for year in YEARS],
    "years as strings": [str(year) for year in YEARS],
    "times of the day": [f"{year}-12-31T23:59:59.5" for year in YEARS],
    "dates": [datetime.date(year, 1, 1) for year in YEARS],
    "datetimes": [datetime.datetime(year, 12, 31, 23) for year in YEARS],
    "days of NumPy": np.array([f"{year}-02-03" for year in YEARS], dtype="datetime64[D]"),
    "nanoseconds": pd.to_datetime([f"{year}-02-03" for year in YEARS]).as_unit("ns"),
    "series of dates": pd.Series(pd.to_datetime([f"{year}-02-03" for year in YEARS])),
    "categories": pd.Categorical([f"{year}-02-03" for year in YEARS]),
    "periods": pd.PeriodIndex([str(year) for year in YEARS], freq="Y"),
    "list of periods": [pd.Period(year=year, freq="Y") for year in YEARS],
}


@pytest.mark.parametrize("times", KINDS.values(), ids=KINDS.keys())
def test_slices_are_whole_and_in_order(times):
    slices = TimeSlices.spanning(times)
    assert [int(str(label)) for label in slices.labels] == [2000, 2001, 2002, 2003]
    assert len(slices) == 4
    found = slices.number(times)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, [3, 0, 1, 3])


def test_integers_may_be_anything():
    slices = TimeSlices.spanning([-2, 1])
    assert list(slices.labels) == [-2, -1, 0, 1]
    np.testing.assert_array_equal(slices.number([0, -2]), [2, 0])


def test_one_time_is_one_slice():
    for times in ([7, 7], ["2000-01-01", "2000-12-31"]):
        slices = TimeSlices.spanning(times)
        assert len(slices) == 1
        np.testing.assert_array_equal(slices.number(times), [0, 0])


DATES = ["2000-01-31", "2000-02-01", "2000-03-31", "2000-04-01", "2001-01-01"]


@pytest.mark.parametrize(
    ("freq", "n", "numbers"),
    [
        ("Y", 2, [0, 0, 0, 0, 1]),
        ("Q", 5, [0, 0, 0, 1, 4]),
        ("M", 13, [0, 1, 2, 3, 12]),
        ("W", 49, [0, 0, 8, 8, 48]),  # from Monday to Sunday
        ("D", 337, [0, 1, 60, 61, 336]),
        ("Y-JAN", 2, [0, 1, 1, 1, 1]),  # the year that ends with January
    ],
)  # fmt: skip
def test_dates_are_cut_by_the_frequency(freq, n, numbers):
    slices = TimeSlices.spanning(DATES, freq)
    assert len(slices) == n
    np.testing.assert_array_equal(slices.number(DATES), numbers)


@pytest.mark.parametrize(
    ("freq", "labels", "numbers"),
    [("5Y", ["1990", "1995"], [0, 0, 1, 1]), ("10Y", ["1990"], [0, 0, 0, 0])],
)
def test_a_slice_may_be_several_years_long(freq, labels, numbers):
    dates = ["1990-06-01", "1994-12-31", "1995-01-01", "1998-01-01"]
    slices = TimeSlices.spanning(dates, freq)
    assert list(slices.labels.astype(str)) == labels
    np.testing.assert_array_equal(slices.number(dates), numbers)
    np.testing.assert_array_equal(slices.number(pd.PeriodIndex(dates, freq="M")), numbers)
    for outside in ("1989-12-31", "2000-01-01"):
        with pytest.raises(ValueError, match=f"as in fit; got {outside}"):
            slices.number([outside])


def test_periods_keep_their_length_unless_asked():
    months = pd.PeriodIndex(["2000-01", "2000-06"], freq="M")
    assert len(TimeSlices.spanning(months)) == 6
    quarters = TimeSlices.spanning(months, "Q")
    assert list(quarters.labels.astype(str)) == ["2000Q1", "2000Q2"]
    np.testing.assert_array_equal(quarters.number(months), [0, 1])


def test_new_times_may_be_of_another_kind():
    slices = TimeSlices.spanning(["2000-05-01", "2002-01-01"], "Q")
    np.testing.assert_array_equal(slices.number([pd.Timestamp("2000-07-01")]), [1])
    np.testing.assert_array_equal(slices.number([pd.Period("2000-12", "M")]), [2])
    np.testing.assert_array_equal(slices.number(["2001-01-01"]), [3])


def test_time_zones_keep_the_local_day():
    """New Year in Tokyo is the old year in Greenwich; the clock on the wall decides."""
    stamps = pd.DatetimeIndex(["2000-01-01 00:30", "2001-01-01 00:30"], tz="Asia/Tokyo")
    slices = TimeSlices.spanning(stamps, "M")
    assert [str(slices.labels[i]) for i in (0, -1)] == ["2000-01", "2001-01"]
    np.testing.assert_array_equal(slices.number(stamps), [0, 12])
    strings = ["2000-01-01T00:30+09:00", "2001-01-01T00:30+09:00"]
    np.testing.assert_array_equal(slices.number(strings), [0, 12])


BAD = {
    "none": ([], ValueError, "at least one time stamp; got none"),
    "fractions": ([2000.5], TypeError, "integers, dates or periods; got float64"),
    "whole numbers as floats": ([2000.0], TypeError, "integers, dates or periods; got float64"),
    "truth": ([True, False], TypeError, "integers, dates or periods; got bool"),
    "words": (["soon"], TypeError, "integers, dates or periods"),
    "one bad date": (["2000-01-01", "2000-02-30"], TypeError, "integers, dates or periods"),
    "lengths of time": (pd.to_timedelta(["1D"]), TypeError, "integers, dates or periods"),
    "missing": ([2000, None], ValueError, "must not be missing"),
    "missing date": (pd.to_datetime(["2000-01-01", None]), ValueError, "must not be missing"),
    "missing integer": (pd.array([2000, None], dtype="Int64"), ValueError, "must not be missing"),
    "many clocks": (["2000-01-01T00+01:00", "2000-01-01T00+02:00"], TypeError, "timezones"),
    "a table": (np.ones((2, 2), int), ValueError, "1-dimensional"),
}


@pytest.mark.parametrize(("times", "error", "message"), BAD.values(), ids=BAD.keys())
def test_bad_times(times, error, message):
    with pytest.raises(error, match=message):
        TimeSlices.spanning(times)


@pytest.mark.parametrize("freq", ["M", 10, None])
def test_whole_numbers_have_no_frequency(freq):
    with pytest.raises(ValueError, match="freq is of no use to whole numbers"):
        TimeSlices.spanning([1990, 2000], freq)


def test_bad_frequency():
    with pytest.raises(ValueError, match="Invalid frequency: eon"):
        TimeSlices.spanning(["2000-01-01"], "eon")


@pytest.mark.parametrize(
    ("fitted", "new", "error", "message"),
    [
        ([1, 3], [2, 4], ValueError, "from 1 to 3, as in fit; got 4; fit with"),
        ([1, 3], [0], ValueError, "from 1 to 3, as in fit; got 0"),
        ([1, 3], ["2000-01-01"], TypeError, "must be integers, as in fit"),
        (["2000-01-01"], [2000], TypeError, "must be dates or periods, as in fit; got int64"),
        (["2000-01-01"], ["2001-01-01"], ValueError, "from 2000 to 2000, as in fit; got 2001-01-01"),
        ([1, 3], [None], ValueError, "must not be missing"),
    ],
)  # fmt: skip
def test_new_times_must_fit(fitted, new, error, message):
    with pytest.raises(error, match=message):
        TimeSlices.spanning(fitted).number(new)


def test_check_length():
    check_length([1, 2], 2)
    with pytest.raises(TypeError, match="a time stamp for each document"):
        check_length(None, 2)
    with pytest.raises(ValueError, match="each of the 2 documents; got 3"):
        check_length([1, 2, 3], 2)
