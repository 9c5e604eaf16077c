"""Sums over blocks have the bits of one tree, whoever adds which neighbours."""

from typing import NamedTuple

import numpy as np
import pytest

from polystick.inference.sums import TreeSum, total

SIZES = [1, 2, 3, 5, 8, 13, 64, 100]


class Whole:
    """Whole numbers, which say so."""

    exact = True

    def __init__(self, values):
        self.values = values

    def __add__(self, other):
        return Whole(self.values + other.values)


class Statistics(NamedTuple):
    outer: np.ndarray
    tally: Whole
    value: float


@pytest.fixture
def blocks():
    rng = np.random.default_rng(7)
    scales = 10.0 ** rng.integers(-6, 6, 100)
    return [
        Statistics(s * rng.normal(size=(2, 2)), Whole(rng.integers(9, size=3)), float(s))
        for s in scales
    ]


def by_halves(values, size):
    """The slow, obvious twin: the left half is the largest power of two below the size."""
    if len(values) == 1:
        return values[0]
    half = size // 2
    if len(values) <= half:
        return by_halves(values, half)
    return by_halves(values[:half], half) + by_halves(values[half:], half)


def tree_of(values):
    return by_halves(values, 1 << (len(values) - 1).bit_length())


@pytest.mark.parametrize("n", SIZES)
def test_the_tree_is_that_of_its_twin(n, blocks):
    found = total(blocks[:n], n)
    np.testing.assert_array_equal(found.outer, tree_of([b.outer for b in blocks[:n]]))
    assert found.value == tree_of([b.value for b in blocks[:n]])
    np.testing.assert_array_equal(found.tally.values, sum(b.tally.values for b in blocks[:n]))


def test_another_order_has_other_bits(blocks):
    assert total(blocks, 100).outer.tobytes() != sum(b.outer for b in blocks).tobytes()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("n_shards", [2, 3, 5, 7])
def test_shards_add_up_to_the_same_bits(n, n_shards, blocks):
    whole, shards = total(blocks[:n], n), []
    for numbers in np.array_split(np.arange(n), n_shards):
        shard = TreeSum(n, int(numbers[0]) if len(numbers) else n)
        for i in numbers:
            shard.add(blocks[i])
        shards.append(shard)
    joined = TreeSum(n)
    for shard in shards:
        joined.join(shard)
    np.testing.assert_array_equal(joined.value.outer, whole.outer)
    assert joined.value.value == whole.value


def test_pairs_of_shards_may_be_joined_first(blocks):
    n, shards = 37, []
    for start in range(0, n, 6):
        shards.append(TreeSum(n, start))
        for block in blocks[start : min(n, start + 6)]:
            shards[-1].add(block)
    while len(shards) > 1:
        for left, right in zip(shards[::2], shards[1::2]):
            left.join(right)
        shards = shards[::2]
    np.testing.assert_array_equal(shards[0].value.outer, total(blocks[:n], n).outer)


def test_few_sums_are_held_and_no_block_is_written_to(blocks):
    before = [block.outer.copy() for block in blocks]
    held = TreeSum(100)
    for block in blocks:
        held.add(block)
        assert len(held._nodes) <= 7
    for block, copy in zip(blocks, before):
        np.testing.assert_array_equal(block.outer, copy)
