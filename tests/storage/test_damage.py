"""Damage: whatever happens to a file, reading it gives a sentence or what was written, and nothing else."""

import collections
import itertools
import json
import time

import numpy as np
import pytest

from every_face import answers, fitted
from hostile_models import CONTENT, encode, forged, parts_of, zipped
from polystick import Posterior, load

FEW, MANY = 40, 250  # on every commit; in `make slow`
LONGEST = 20.0  # seconds for one file, on a machine that does other things too


def flip(content, rng):
    place = rng.integers(len(content))
    content[place] ^= 1 << int(rng.integers(8))


def zero(content, rng):
    place = rng.integers(len(content))
    content[place : place + 64] = bytes(len(content[place : place + 64]))


def scramble(content, rng):
    place = rng.integers(len(content))
    content[place : place + 64] = rng.bytes(len(content[place : place + 64]))


def cut(content, rng):
    del content[rng.integers(len(content)) :]


def lose(content, rng):
    place = rng.integers(len(content))
    del content[place : place + int(rng.integers(1, 4096))]


def double(content, rng):
    start, place = rng.integers(len(content), size=2)
    content[place:place] = content[start : start + int(rng.integers(1, 4096))]


def swap(content, rng):
    size = int(rng.integers(8, 512))
    a, b = rng.integers(max(1, len(content) - size), size=2)
    content[a : a + size], content[b : b + size] = content[b : b + size], content[a : a + size]


def append(content, rng):
    content += rng.bytes(int(rng.integers(1, 200)))


ANYWHERE = (flip, flip, zero, scramble, cut, lose, double, swap, append)


def swap_parts(parts, rng):
    a, b = rng.choice([*parts], 2, replace=False)
    return {**parts, a: parts[b], b: parts[a]}


def lose_part(parts, rng):
    gone = rng.choice([*parts])
    return {name: part for name, part in parts.items() if name != gone}


def empty_part(parts, rng):
    return {**parts, rng.choice([*parts]): b""}


def flip_in_part(parts, rng):
    name = rng.choice([*parts])
    content = bytearray(parts[name])
    flip(content, rng)
    return {**parts, name: bytes(content)}


PARTS = (swap_parts, lose_part, empty_part, flip_in_part)


def damaged(content, kind, rng):
    content = bytearray(content)
    kind(content, rng)
    return bytes(content)


def judge(read, same):
    """Return "told", "harmless" or what went wrong."""
    start = time.monotonic()
    try:
        found = read()
    except ValueError as error:
        outcome = "told" if "\n" not in str(error) and len(str(error)) > 30 else f"said {error}"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"
    else:
        outcome = "harmless" if same(found) else "not detected"
    return outcome if time.monotonic() - start < LONGEST else "took too long"


def campaign(path, n, kinds, write, read, same):
    """Return how often each outcome came, over n damages whose kinds take turns."""
    outcomes = collections.Counter()
    for number, kind in zip(range(n), itertools.cycle(kinds)):
        write(path, kind, np.random.default_rng([number, 7]))
        outcomes[judge(lambda: read(path), same)] += 1
    return outcomes


def damage_models(tmp_path, n):
    path = fitted("rows").save(tmp_path / "rows.polystick")
    whole, parts = path.read_bytes(), parts_of(path)
    expected = answers("rows", fitted("rows"))

    def write(path, kind, rng):
        if kind in PARTS:
            zipped(path, kind(parts, rng))
        else:
            path.write_bytes(damaged(whole, kind, rng))

    def same(model):
        return all(map(np.array_equal, answers("rows", model), expected))

    return campaign(path, n, (*ANYWHERE, *PARTS), write, load, same)


def damage_posteriors(tmp_path, n):
    posterior = fitted("rows").posterior_
    path = posterior.save(tmp_path / "draws.nc")
    whole = path.read_bytes()

    def write(path, kind, rng):
        path.write_bytes(damaged(whole, kind, rng))

    def same(found):
        return found.tree.identical(posterior.tree)

    return campaign(path, n, ANYWHERE, write, Posterior.load, same)


CAMPAIGNS = {"models": damage_models, "posteriors": damage_posteriors}


@pytest.mark.parametrize("name", CAMPAIGNS)
@pytest.mark.parametrize("n", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_damage_is_told_or_harmless(tmp_path, name, n):
    outcomes = CAMPAIGNS[name](tmp_path, n)
    assert set(outcomes) <= {"told", "harmless"}, outcomes
    assert outcomes["told"] > n / 2


def test_the_campaign_sees_a_reader_without_checksums(tmp_path):
    """A reader that believes what it reads is caught: checksums are made to fit the damage."""
    path = fitted("rows").save(tmp_path / "rows.polystick")
    parts = parts_of(path)
    expected = answers("rows", fitted("rows"))

    def write(path, kind, rng):
        forged(path, {**parts, **kind({k: v for k, v in parts.items() if k[0] == "a"}, rng)})

    def same(model):
        return all(map(np.array_equal, answers("rows", model), expected))

    outcomes = campaign(path, 20, [flip_in_part], write, load, same)
    assert set(outcomes) - {"told", "harmless"}


# contents that were changed with care: checksums fit


JUNK = [
    None, True, -1, 2**70, 1.5, "", "x" * 50, [], [1], {},
    {"kind": "tuple", "items": []}, {"kind": "ndarray", "part": 0}, {"kind": "ndarray", "part": -1},
    {"kind": "dict", "items": [[[], 1]]}, {"kind": "set", "items": [[1]]}, {"kind": "float", "value": "nan"},
    {"kind": "object", "class": "design.Design", "state": {}}, {"kind": "scalar", "dtype": "O", "hex": ""},
    {"kind": "scalar", "dtype": "<f8", "hex": "00"}, {"kind": "Period", "ordinal": 2**80, "freq": "M"},
    {"kind": "Timestamp", "value": 5, "unit": "?", "zone": None}, {"kind": "range", "items": [0, 10**18, 1]},
    {"kind": "sparse", "form": "csr_array", "shape": [2, 2], "data": 0, "indices": 0, "indptr": 0},
    {"kind": "times", "part": 0, "unit": "ns", "zone": "Nowhere"}, {"kind": "slice", "items": [1, 2, 3]},
]  # fmt: skip


def places(node, path=()):
    """Yield the path of each node of a document."""
    yield path
    if isinstance(node, dict | list):
        for name, each in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(each, (*path, name))


def put_junk(content, rng):
    """Replace a node of a document by something else, or take it out."""
    paths = list(places(content))
    *above, last = paths[rng.integers(1, len(paths))]
    for name in above:
        content = content[name]
    if isinstance(content, dict) and rng.random() < 0.15:
        del content[last]
    else:
        content[last] = JUNK[rng.integers(len(JUNK))]


@pytest.mark.parametrize("name", ["rows", "regression, formula", "topics in time"])
@pytest.mark.parametrize("n", [FEW, pytest.param(10 * MANY, marks=pytest.mark.slow)])
def test_junk_whose_checksums_fit_is_read_or_told(tmp_path, name, n):
    path = fitted(name).save(tmp_path / "model.polystick")
    parts = parts_of(path)

    def write(path, kind, rng):
        content = json.loads(parts[CONTENT])
        kind(content, rng)
        forged(path, {**parts, CONTENT: encode(content)})

    outcomes = campaign(path, n, [put_junk], write, load, lambda model: True)
    assert set(outcomes) <= {"told", "harmless"}, outcomes
    assert outcomes["told"] > n / 4
