"""Make the bundled counts of names from the shared file: everything but the coordinates.

    python tools/make_names.py FOLDER        with ssa_names_1960_2013_top200.npz in FOLDER

The counts are a work of the US Social Security Administration, in the public domain.
"""

import sys
from pathlib import Path

import numpy as np

TARGET = Path(__file__).parents[1] / "src" / "polystick" / "datasets" / "names.npz"


def bundled(source):
    """Return the arrays that are bundled."""
    kept = {name: source[name] for name in source if name not in ("lat", "lon")}
    return {n: v.astype(np.int32) if v.dtype.kind in "iu" else v for n, v in kept.items()}


if __name__ == "__main__":
    with np.load(Path(sys.argv[1]) / "ssa_names_1960_2013_top200.npz") as source:
        np.savez_compressed(TARGET, **bundled(source))
