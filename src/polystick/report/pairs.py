"""Which things of a page go together: their map, who goes along with whom, and the pairs that are known."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from polystick.layout import place, separate
from polystick.report import panels

__all__ = ["drawn", "known_table", "map_panel", "pairs_of", "part_of", "partners"]

_ROOM = np.array([1000.0, 750.0])  # of the map


def pairs_of(found, what, note):
    """Return the pairs i < j: `mean`, `lower` and `upper` of frames (K, K), with what they are called."""
    i, j = np.triu_indices(len(found.mean), 1)
    parts = {
        name: getattr(found, name).to_numpy(float)[i, j] for name in ("mean", "lower", "upper")
    }
    return {
        "what": what,
        "note": note,
        **{name: panels.short(part) for name, part in parts.items()},
    }


class Part(NamedTuple):
    """What is known of pairs, of some things only."""

    mean: pd.DataFrame
    lower: pd.DataFrame
    upper: pd.DataFrame


def part_of(found, names):
    """Return the part of frames (K, K) that is about these things."""
    return Part(*(getattr(found, name).loc[names, names] for name in Part._fields))


def partners(pairs, title):
    """Return the panel of who goes along with the chosen thing, and who keeps away."""
    return {"kind": "partners", "title": title, **pairs}


def map_panel(pairs, share, title):
    """Return the panel of the map: what goes together is near each other."""
    k = len(share)
    i, j = np.triu_indices(k, 1)
    parts = (pairs[name] for name in ("mean", "lower", "upper"))
    mean, lower, upper = (np.nan_to_num(np.array(part, float)) for part in parts)
    similarity = np.eye(k)
    similarity[i, j] = similarity[j, i] = np.clip(mean, -1, 1)
    attraction = np.maximum(similarity, 0) * (np.abs(similarity) >= _strength(mean, k))
    return {
        "kind": "map",
        "double": True,
        "title": title,
        "what": pairs["what"],
        "note": f"Near each other and joined: positive {pairs['what']}. Dashed lines: negative. "
        "Areas are shares.",
        "at": panels.short(_apart(place(similarity, attraction), share)),
        "size": panels.short(share),
        "lines": drawn(mean, lower, upper, k),
        "pairs": {name: pairs[name] for name in ("mean", "lower", "upper")},
    }


def known_table(association, title, most=200):
    """Return the table of the pairs whose intervals exclude zero, the strongest first."""
    found = association.table(most)
    if not len(found):
        note = "No pair has an interval that excludes zero."
        return panels.table(title, pd.DataFrame({"pairs": ["none"]}), note=note)
    note = "Pairs whose 90 % intervals exclude zero; nonzero is 1 where the sign is certain."
    return panels.table(title, found, note=note)


def _apart(at, share):
    """Return places in the unit square so that no circle lies on another."""
    radius = np.maximum(8, _ROOM.min() / 11 * np.sqrt(share / share.max()))
    boxes = np.repeat(2 * radius[:, None] + 6, 2, axis=1)
    return separate(at * _ROOM, boxes, _ROOM) / _ROOM


def _strength(mean, k):
    """Return the size beyond which there are about two pairs for each thing."""
    return np.sort(np.abs(mean))[::-1][min(2 * k, len(mean) - 1)]


def drawn(mean, lower, upper, k):
    """Return the numbers of the strongest pairs that are known not to be zero, two for each thing."""
    known = np.flatnonzero((lower > 0) | (upper < 0))
    best = known[np.argsort(-np.abs(mean[known]), kind="stable")][: 2 * k]
    return [int(n) for n in best]
