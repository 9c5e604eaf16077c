"""Make the bundled counts of names from the shared file: the 300 most frequent of each sex, 1960-2013.

    python tools/make_names.py FOLDER        with ssa_names_by_state_full.npz in FOLDER

All of the 100 most frequent boys' names of 1910-2013, those of the paper, are among them. The counts are a
work of the US Social Security Administration, in the public domain.
"""

import sys
from pathlib import Path

import numpy as np

TARGET = Path(__file__).parents[1] / "src" / "polystick" / "datasets" / "names.npz"
YEARS = np.arange(1960, 2014)
N_NAMES = 300


def bundled(source):
    """Return the arrays that are bundled."""
    rows = {name: source[name] for name in ("state", "sex", "year", "name", "count")}
    inside = np.isin(rows["year"], YEARS)
    rows = {name: values[inside].astype(np.int64) for name, values in rows.items()}
    kept = {"years": YEARS.astype(np.int32), "states": source["state_codes"]}
    for code, sex in enumerate(source["sex_codes"]):
        mine = {name: values[rows["sex"] == code] for name, values in rows.items()}
        totals = np.bincount(mine["name"], mine["count"], minlength=len(source["names"]))
        top = np.argsort(-totals, kind="stable")[:N_NAMES]
        kept |= {f"counts_{sex}": table(mine, top), f"names_{sex}": source["names"][top]}
    return kept


def table(rows, top):
    """Return counts (years, states, names)."""
    place = np.full(rows["name"].max() + 1, -1)
    place[top] = np.arange(len(top))
    inside = place[rows["name"]] >= 0
    year, state, name, count = (rows[key][inside] for key in ("year", "state", "name", "count"))
    shape = len(YEARS), rows["state"].max() + 1, len(top)
    counts = np.zeros(
        shape, np.uint16, order="F"
    )  # years are alike: side by side they compress well
    counts[year - YEARS[0], state, place[name]] = count
    return counts


if __name__ == "__main__":
    with np.load(Path(sys.argv[1]) / "ssa_names_by_state_full.npz") as source:
        np.savez_compressed(TARGET, **bundled(dict(source)))
