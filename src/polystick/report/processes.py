"""The page of a process: probabilities along an input or on a map, what was counted, the kernel."""

import numpy as np
import pandas as pd

from polystick.report import panels

__all__ = ["first_table", "tell"]

_LEVEL = 0.9
_TIMES_SD = 1.645  # a band of 90 %
_MOST = 60  # categories
_POINTS = 120  # along an input
_DRAWS = 32
_MOST_NUMBERS = 60_000  # on a map
_LATITUDES, _LONGITUDES = ("lat", "latitude"), ("lon", "lng", "long", "longitude")


def tell(model, held_out=None, inputs=None, places=None):
    """Return the page of a process.

    held_out : (inputs, counts) that the fit has not seen, to be scored
    inputs : names of the columns of the inputs, where the data of the fit had none
    places : table whose index has the names of places on the map, with columns for both of its axes
    """
    columns = _columns(model, inputs)
    seen = model.inputs_
    probabilities = np.asarray(model.predict_proba(_framed(model, seen)))
    weights = np.asarray(model.counts_.sum(axis=1)).ravel()
    share = np.average(probabilities, axis=0, weights=weights if weights.any() else None)
    shown = panels.largest(share, _MOST)
    index = panels.index("All categories", share[shown], note="Average probability of a count.")
    sections = [
        panels.section(
            "Categories", index, *_pictures(model, columns, probabilities, shown, places)
        ),
        panels.section("Held-out counts", _scores(model, held_out)),
        panels.section("Kernel", _kernel(model)),
    ]
    subtitle = panels.of_how_many(len(share), len(shown), "categories")
    subtitle += f" over {', '.join(columns)}: {len(seen)} places"
    return panels.page("category", model.categories_[shown], subtitle, index, sections)


def first_table(model):
    """Return (title, header, rows) of the largest categories, by what was counted."""
    counts = np.asarray(model.counts_.sum(axis=0)).ravel()
    best = np.argsort(-counts, kind="stable")[:10]
    rows = [(model.categories_[k], f"{counts[k] / max(counts.sum(), 1):.1%}") for k in best]
    return f"the largest of {len(counts)} categories", ("category", "share of counts"), rows


def _columns(model, inputs):
    n = model.inputs_.shape[1]
    known = getattr(model, "feature_names_in_", [f"input {i + 1}" for i in range(n)])
    names = [str(name) for name in (known if inputs is None else inputs)]
    if len(names) != n:
        raise ValueError(f"inputs must be {n} names, one for each column; got {len(names)}")
    return names


def _framed(model, Z):
    """Return inputs under the names that the fit knows."""
    names = getattr(model, "feature_names_in_", None)
    return Z if names is None else pd.DataFrame(Z, columns=names)


def _pictures(model, columns, probabilities, shown, named):
    """Return the panels of probabilities: along one input, or on a map of two, with time if there is."""
    if len(columns) == 1:
        return [_paths(model, columns[0], shown)]
    places = _places_of(columns)
    if places is None:
        return [_table(model, columns, probabilities, shown)]
    return [_map(model, columns, places, probabilities, shown, named)]


# one input


def _paths(model, column, shown):
    """Return the panel of paths with bands, and of the shares that were counted."""
    at = model.inputs_[:, 0]
    dense = np.union1d(at if len(at) <= _POINTS else [], np.linspace(at.min(), at.max(), _POINTS))
    mean, sd = _moments(model, dense[:, None])
    bands = [np.clip(mean + side * sd, 0, 1)[:, shown].T for side in (-_TIMES_SD, _TIMES_SD)]
    return panels.lines(
        "Probabilities", dense, mean[:, shown].T, lower=bands[0], upper=bands[1],
        items=list(range(len(shown))), percent=True, double=True, x_label=column,
        note="Bands hold 90 %; points are the shares that were counted, of the chosen category.",
        **_counted(model, at, shown),
    )  # fmt: skip


def _moments(model, Z):
    mean, sd = model.predict_proba(_framed(model, Z), return_std=True, n_draws=_DRAWS)
    return np.asarray(mean), np.asarray(sd)


def _counted(model, at, shown):
    counts = np.asarray(model.counts_, float)
    totals = counts.sum(axis=1, keepdims=True)
    share = counts[:, shown] / np.where(totals > 0, totals, np.nan)
    return {"seen": panels.short(share.T), "seen_at": at.tolist()}


# a map


def _places_of(columns):
    """Return (number of the column to the right, of that upwards, of time or None), or None."""
    names = [name.lower() for name in columns]
    east = next((i for i, name in enumerate(names) if name in _LONGITUDES), None)
    north = next((i for i, name in enumerate(names) if name in _LATITUDES), None)
    if east is not None and north is not None and len(names) <= 3:
        time = next((i for i in range(len(names)) if i not in (east, north)), None)
        return east, north, time
    return (0, 1, None) if len(names) == 2 else None


def _map(model, columns, places, probabilities, shown, named):
    """Return the panel of a map of probabilities, with a slider through time."""
    east, north, time = places
    seen = model.inputs_
    spots, of_spot = np.unique(seen[:, [east, north]], axis=0, return_inverse=True)
    times = np.zeros(1) if time is None else np.unique(seen[:, time])
    times = times[_evenly(len(times), _MOST_NUMBERS // (len(spots) * len(shown)))]
    table = np.full((len(times), len(spots), len(shown)), np.nan)
    when = np.zeros(len(seen)) if time is None else seen[:, time]
    known = np.isin(when, times)
    table[np.searchsorted(times, when[known]), of_spot.ravel()[known]] = probabilities[known][
        :, shown
    ]
    return {
        "kind": "places",
        "title": "Probabilities on the map",
        "double": True,
        "percent": True,
        "at": panels.short(spots),
        "names": _names(spots, named, [columns[east], columns[north]]),
        "geographic": columns[east].lower() in _LONGITUDES,
        "axes": [columns[east], columns[north]],
        "times": None if time is None else times.tolist(),
        "time": None if time is None else columns[time],
        "p": panels.short(np.moveaxis(table, 2, 0)),
        "note": "The larger and darker, the more probable is the chosen category there."
        + " Choose a place to see it through time." * (time is not None),
    }


def _evenly(n, most):
    return np.unique(np.linspace(0, n - 1, max(1, min(n, most))).round().astype(int))


def _names(spots, named, axes):
    """Return names of places on the map: those that a table has for them, else their coordinates."""
    names = [f"{x:.4g}, {y:.4g}" for x, y in spots]
    if named is None:
        return names
    known = {tuple(at): str(name) for name, at in zip(named.index, named[axes].to_numpy(float))}
    return [known.get(tuple(at), name) for at, name in zip(spots, names)]


def _table(model, columns, probabilities, shown):
    """Return the table of where each category is least and most probable."""
    p, at = probabilities[:, shown], model.inputs_
    said = [", ".join(f"{name} {x:.4g}" for name, x in zip(columns, row)) for row in at]
    low, high = p.argmin(axis=0), p.argmax(axis=0)
    every = np.arange(p.shape[1])
    frame = pd.DataFrame(
        {
            "category": model.categories_[shown],
            "lowest": p[low, every],
            "lowest at": [said[i] for i in low],
            "highest": p[high, every],
            "highest at": [said[i] for i in high],
        }
    )
    return panels.table("Where categories are least and most probable", frame, double=True)


# how well, and by what


def _scores(model, held_out):
    """Return how well held-out counts are foretold, beside one law for all places."""
    if held_out is None:
        return None
    inputs, counts = held_out
    found = float(model.score(inputs, counts))
    seen = np.asarray(model.counts_.sum(axis=0), float).ravel() + 1
    new = np.asarray(counts.sum(axis=0), float).ravel()
    static = float(new @ np.log(seen / seen.sum()) / new.sum())
    pairs = [
        ("log likelihood per count", f"{found:.4f} nats"),
        ("perplexity", f"{np.exp(-found):.2f}"),
        ("with the overall frequencies for every place", f"{static:.4f} nats"),
        ("better by", f"{found - static:+.4f} nats per count"),
        ("rows and counts", f"{len(new) and counts.shape[0]}, {new.sum():g}"),
    ]
    return panels.facts("How well held-out counts are foretold", pairs)


def _kernel(model):
    """Return the hyperparameters that were learned, in their own units."""
    posterior = getattr(model, "posterior_", None)
    if posterior is None or "theta" not in posterior.names():
        return None
    theta = np.exp(posterior.flat("theta"))
    if not theta.shape[-1]:
        return None
    names = posterior.tree["posterior"]["theta"].coords["kernel_parameter"].values
    lower, upper = np.quantile(theta, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    parts = {"hyperparameter": names, "mean": theta.mean(axis=0), "lower": lower, "upper": upper}
    note = "Posterior means with 90 % intervals, in their own units."
    return panels.table("Hyperparameters of the kernel", pd.DataFrame(parts), note=note)
