"""The seam: whoever maps the blocks, the bits are the same."""

import random
import weakref
from typing import NamedTuple

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference import execution as executions
from polystick.inference.execution import (
    Serial,
    Threads,
    available_threads,
    execution_for,
)
from polystick.inference.factors import reorder
from polystick.inference.gibbs import Gibbs
from polystick.inference.held import HeldRows, Worked
from polystick.models.multinomial import CorrelatedCounts
from toy_model import Toy

X = np.random.default_rng(5).normal(1.0, 1.4, size=53)
GIBBS = Gibbs(n_draws=10, n_burn=3, n_chains=2, keep=("level",))


class ThreeMachines(Serial):
    """Blocks dealt to three machines that finish in any order: a cluster in miniature."""

    def map(self, function, items):
        items = list(items)
        order = list(range(len(items)))
        shards = [order[i::3] for i in range(3)]
        random.Random(1).shuffle(shards)
        results = {i: function(items[i]) for shard in shards for i in reversed(shard)}
        return (results[i] for i in order)


class Hasty(Serial):
    """Sabotage: each state stays where it belongs, but the sums are formed in another order."""

    def map(self, function, items):
        results = [function(item) for item in items]
        if not isinstance(results[0], Worked):
            return iter(results)
        n_blocks = len(results) // GIBBS.n_chains
        chains = [results[i : i + n_blocks] for i in range(0, len(results), n_blocks)]
        turned = [[each.statistics for each in chain[::-1]] for chain in chains]
        told = zip(results, [statistics for chain in turned for statistics in chain])
        return (each._replace(statistics=statistics) for each, statistics in told)


def draws(execution):
    return GIBBS.run(Toy(), Toy().shards(X), seed=8, execution=execution)


@pytest.mark.parametrize("execution", [Threads(1), Threads(2), Threads(4), ThreeMachines()])
def test_same_bits_whoever_maps(execution):
    expected, found = draws(Serial()), draws(execution)
    for name in ("theta", "level"):
        np.testing.assert_array_equal(found[name], expected[name])
    np.testing.assert_array_equal(found.running("square"), expected.running("square"))


def test_another_order_of_summation_is_caught():
    hasty, right = draws(Hasty()), draws(Serial())
    assert not np.array_equal(hasty["theta"], right["theta"])
    np.testing.assert_allclose(hasty["theta"], right["theta"], rtol=1e-9)


@pytest.mark.parametrize("execution", [Threads(2), ThreeMachines()])
def test_the_real_model_has_the_same_bits_whoever_maps(execution):
    rng = np.random.default_rng(2)
    prior = NormalInverseWishart.weak(np.zeros(2), np.ones(2))
    model = CorrelatedCounts(prior, Decomposition.sticks([0, 1, 2]))
    counts = rng.multinomial(20, [0.5, 0.3, 0.2], size=200)
    gibbs, shards = Gibbs(5, 2, n_chains=2), model.shards(counts, size=30)
    expected = gibbs.run(model, shards, seed=1)
    found = gibbs.run(model, shards, seed=1, execution=execution)
    np.testing.assert_array_equal(found["cov"], expected["cov"])
    hasty = gibbs.run(model, shards, seed=1, execution=Hasty())
    assert not np.array_equal(hasty["cov"], expected["cov"])


def test_threads_map_in_order_with_few_results_in_flight():
    done = []
    with Threads(2) as threads:
        for i, value in enumerate(threads.map(lambda i: done.append(i) or i, range(1000))):
            assert value == i
            assert len(done) <= i + 6 * 16


def test_an_error_in_a_block_reaches_the_caller():
    def broken(i):
        if i == 3:
            raise ZeroDivisionError("block 3")
        return i

    with Threads(2) as threads, pytest.raises(ZeroDivisionError, match="block 3"):
        list(threads.map(broken, range(9)))


class Ragged(NamedTuple):
    steps: np.ndarray  # as many as a block has steps, not rows


class RaggedToy(Toy):
    def initial_row_factors(self, prior, shard):
        first = int(shard.rows[0])
        return Ragged(np.arange(first // 4 + 3.0) + 10 * first + prior)


def test_rows_are_saved_and_loaded_as_they_were(tmp_path):
    """Also where a block's state is not as long as its rows."""
    shards = Toy().shards(X)
    held, other = (HeldRows(map, RaggedToy(), shards, 2) for _ in range(2))
    held.start("initial_row_factors", [0.0, 1.0])
    other.start("initial_row_factors", [-1.0, -1.0])
    files = held.save(tmp_path, 3)
    assert list(files) == ["polystick-rows-0-3.npz"]
    other.load(tmp_path, files)
    for one, two in zip(states(held), states(other), strict=True):
        np.testing.assert_array_equal(one.steps, two.steps)
    assert list(held.save(tmp_path, 4).values()) == list(other.save(tmp_path, 5).values())


def states(held):
    return list(held.describe(lambda model, shard, rows: rows))


def test_a_last_look_lets_states_go_block_by_block():
    def look(model, shard, rows):
        return weakref.ref(rows.steps), rows.steps.copy()

    held, other = (HeldRows(map, RaggedToy(), Toy().shards(X), 1) for _ in range(2))
    for each in (held, other):
        each.start("initial_row_factors", [0.0])
    seen = []
    for reference, steps in held.describe(look, last=True):
        assert reference() is None
        seen.append(steps)
    kept = list(other.describe(look))
    assert all(reference() is not None for reference, _ in kept)
    for steps, (_, those) in zip(seen, kept, strict=True):
        np.testing.assert_array_equal(steps, those)


def test_rows_are_put_in_order_in_their_place():
    rng = np.random.default_rng(0)
    values, order = rng.normal(size=(50, 3, 2)), rng.permutation(50)
    expected = values[order]
    reorder(values, order)
    np.testing.assert_array_equal(values, expected)


def test_blas_has_one_thread_inside_a_step():
    seen = []

    class Looking(Toy):
        def draw_rows(self, prior, shard, rows, key):
            seen.extend(d["num_threads"] for d in threadpool_info() if d["user_api"] == "blas")
            return super().draw_rows(prior, shard, rows, key)

    Gibbs(1, 0, n_chains=1).run(Looking(), Toy().shards(X[:5]), seed=1)
    assert set(seen) == {1}


def test_execution_for():
    assert isinstance(execution_for(1), Serial)
    assert execution_for(3).n_threads == 3
    assert execution_for(None).n_threads == available_threads()
    every = execution_for(-1)
    assert isinstance(every, Serial) or every.n_threads == available_threads()
    assert isinstance(execution_for(-1000), Serial)


@pytest.mark.parametrize(
    ("content", "cores"),
    [("150000 100000", 2), ("100000 100000", 1), ("max 100000", 2**31), ("", 2**31)],
)
def test_cgroup_quota(tmp_path, content, cores):
    (tmp_path / "cpu.max").write_text(content)
    assert executions._cgroup_cores(tmp_path / "cpu.max") == cores
    assert executions._cgroup_cores(tmp_path / "nowhere") == 2**31
