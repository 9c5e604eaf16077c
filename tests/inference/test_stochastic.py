"""Stochastic variational inference: mean field in the limit, and the same bits however it is run."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference.execution import Threads
from polystick.inference.factors import flattened
from polystick.inference.files import CheckpointError
from polystick.inference.held import HeldRows
from polystick.inference.mean_field import MeanField
from polystick.inference.stochastic import StochasticVI
from polystick.models.multinomial import CorrelatedCounts
from toy_model import BLOCK, Factor, NestedToy, Toy, exact_posterior

X = np.random.default_rng(5).normal(1.0, 1.4, size=203)
PRIOR = NormalInverseWishart.weak(np.zeros(2), np.ones(2))
COUNTS = CorrelatedCounts(PRIOR, Decomposition.sticks([0, 1, 2]))
SHORT = StochasticVI(batch_size=20, n_passes=3, n_draws=4)


def run(settings=SHORT, model=Toy(), x=X, **options):
    return settings.run(model, model.shards(x), seed=11, **options)


def bounds(posterior):
    return posterior.tree["optimisation"]["elbo"].values


def same(left, right):
    np.testing.assert_array_equal(bounds(left), bounds(right))
    one, other = flattened(left.factor), flattened(right.factor)
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])
    for what in (0, 1):
        np.testing.assert_array_equal(left.running("level")[what], right.running("level")[what])
    assert left.tree.attrs == right.tree.attrs


# one batch of all rows and rate 1: mean field


class Whole(StochasticVI):
    def rate(self, step):
        return 1.0


def counts_shards():
    rng = np.random.default_rng(3)
    _, _, counts = COUNTS.simulate(rng.integers(0, 60, size=90), rng)
    return COUNTS.shards(counts, size=20)


@pytest.mark.parametrize(
    ("model", "shards"),
    [(Toy(), Toy().shards(X)), (COUNTS, counts_shards())],
    ids=["toy", "counts"],
)
def test_one_full_batch_at_rate_one_is_mean_field(model, shards):
    for n in (1, 2, 7):
        whole = Whole(batch_size=10**6, n_passes=n, n_draws=1).run(model, shards, seed=2)
        with pytest.warns(ConvergenceWarning):
            field = MeanField(1e-15, max_sweeps=n, n_draws=1).run(model, shards, seed=2)
        np.testing.assert_allclose(bounds(whole), bounds(field), rtol=1e-10)
        found, expected = flattened(whole.factor), flattened(field.factor)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-10, atol=1e-12)


def test_without_a_delay_the_first_step_goes_all_the_way():
    settings = replace(SHORT, batch_size=len(X), delay=0, n_passes=1)
    assert settings.rate(1) == 1.0
    once = MeanField(1e-15, max_sweeps=1, n_draws=1)
    with pytest.warns(ConvergenceWarning):
        expected = once.run(Toy(), Toy().shards(X), seed=1).factor
    found = run(settings).factor
    assert (found.mean, found.variance) == pytest.approx((expected.mean, expected.variance), 1e-12)


# many batches: mean field in the end


LONG = StochasticVI(batch_size=20, n_passes=40, n_draws=1)


def left_of_the_start(settings, n_steps):
    """Return the weight that the start still has in the natural parameters."""
    return np.prod([1 - settings.rate(step) for step in range(1, n_steps + 1)])


def distances(model):
    """How far runs of three seeds end from the optimum, and their precision from what it must be.

    The first in standard deviations of the noise: a step halves the gap at rate 1, and its target has half
    of the noise of a batch's mean, so the gap of a run at a constant rate has variance rate * noise^2.
    """
    noise = 0.5 * X.std() / np.sqrt(LONG.batch_size)
    gaps, wrong = [], []
    for seed in (1, 2, 3):
        posterior = LONG.run(model, model.shards(X), seed=seed)
        n_steps, factor = posterior.tree.attrs["n_sweeps"], posterior.factor
        gaps.append((factor.mean - exact_posterior(X)[0]) / np.sqrt(LONG.rate(n_steps)) / noise)
        left = left_of_the_start(LONG, n_steps)
        precision = (1 - left) * (len(X) + 1) + left * 1.0
        wrong.append(factor.variance * precision - 1)
    return np.abs(gaps).max(), np.abs(wrong).max()


def test_converges_to_the_optimum_of_mean_field():
    gap, wrong = distances(Toy())
    assert gap < 5
    assert wrong < 1e-9


@pytest.mark.parametrize("factor", [None, 0.5, 2.0])
def test_a_wrong_scale_is_caught(factor):
    """None: batches that stand for themselves only.

    It shows in the precision; the prior, worth one row, is too weak to move the mean far.
    """

    class Sabotaged(Toy):
        def scale(self, statistics, by):
            return super().scale(statistics, factor * by if factor else 1.0)

    assert distances(Sabotaged())[1] > 0.4


def test_totals_scaled_apart_from_the_rows_are_caught():
    class Sabotaged(Toy):
        def scale(self, statistics, by):
            scaled = super().scale(statistics, by)
            return scaled._replace(total=0.9 * scaled.total)

    assert distances(Sabotaged())[0] > 5


def test_a_rate_that_does_not_shrink_is_caught():
    class Sabotaged(Toy):
        def blend(self, factor, other, rate):
            return super().blend(factor, other, 1.0)

    assert distances(Sabotaged())[0] > 5


def test_counts_converge_to_mean_field():
    rng = np.random.default_rng(3)
    _, _, counts = COUNTS.simulate(rng.integers(20, 60, size=160), rng)
    shards = COUNTS.shards(counts, size=10)
    field = MeanField(1e-9, n_draws=1).run(COUNTS, shards, seed=1)
    settings = StochasticVI(batch_size=40, n_passes=60, n_draws=1)
    found = settings.run(COUNTS, shards, seed=1)
    gap = field.tree.attrs["elbo"] - found.tree.attrs["elbo"]
    assert -1e-6 * len(counts) < gap < 1e-3 * len(counts)
    sd = np.sqrt(np.diag(field.factor.expected_cov) / field.factor.strength)
    assert np.abs(found.factor.mean - field.factor.mean).max() < 0.1 * sd.min()
    left = left_of_the_start(settings, 240)
    assert found.factor.degrees == pytest.approx(PRIOR.degrees + (1 - left) * len(counts))


# batches


@pytest.mark.parametrize(
    ("batch_size", "rows"), [(256, 64), (64, 64), (65, 33), (100, 50), (3, 3), (1, 1), (1000, 63)]
)
def test_a_batch_is_a_whole_number_of_blocks(batch_size, rows):
    assert StochasticVI(batch_size=batch_size).rows_per_block == rows


def visited(settings, x=X):
    """Return the row ids of each step, and the number they stand for."""
    seen, steps = [], []

    class Looking(Toy):
        def update_rows(self, prior, shard, rows, key):
            seen.append(shard.rows)
            return super().update_rows(prior, shard, rows, key)

        def scale(self, statistics, by):
            steps.append((np.concatenate(seen), by * statistics.n_rows))
            seen.clear()
            return super().scale(statistics, by)

    run(settings, Looking(), x)
    return steps


def test_a_pass_visits_each_row_once_in_batches_of_one_size():
    steps = visited(SHORT)
    assert len(steps) == 3 * 10
    assert all(stands_for == pytest.approx(len(X)) for _, stands_for in steps)
    assert all(abs(len(rows) - 20) <= BLOCK for rows, _ in steps)
    passes = [np.concatenate([rows for rows, _ in steps[i : i + 10]]) for i in (0, 10, 20)]
    for rows in passes:
        assert sorted(rows) == list(range(len(X)))
    assert not np.array_equal(passes[0], passes[1])


@pytest.mark.parametrize("n_rows", [1, 5, 19, 31])
def test_few_rows(n_rows):
    posterior = run(x=X[:n_rows])
    assert posterior.tree.attrs["n_sweeps"] == 3 * max(1, round(n_rows / 20))
    assert np.isfinite(posterior.tree.attrs["elbo"])


def test_rows_end_at_the_last_factor():
    """Also those of the first batch of a single pass, which have seen the start only."""
    posterior = run(replace(SHORT, n_passes=1))
    level, _ = posterior.running("level")
    np.testing.assert_allclose(level, (posterior.factor.mean + X) / 2)


def test_the_bound_that_is_told_is_that_of_all_rows():
    posterior = run()
    held = started(X)
    (statistics,) = held.step("update_rows", [posterior.factor], [None]).statistics
    assert posterior.tree.attrs["elbo"] == Toy().elbo(posterior.factor, statistics)


# runs


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_bits_do_not_depend_on_threads(n_threads):
    same(run(execution=Threads(n_threads)), run())


def stop_at(step):
    def tell(progress):
        if progress.sweep == step:
            raise RuntimeError("pulled the plug")

    return tell


@pytest.mark.parametrize("model", [Toy(), NestedToy()], ids=["one law", "two laws"])
def test_resumes_after_any_step(tmp_path, model):
    settings, x = replace(SHORT, n_passes=2), X[:85]  # 4 batches
    whole = run(settings, model, x)
    for step in range(1, 9):
        folder = tmp_path / str(step)
        with pytest.raises(RuntimeError, match="pulled the plug"):
            run(settings, model, x, checkpoint=folder, every=0.0, progress=stop_at(step))
        same(run(settings, model, x, checkpoint=folder, resume=True), whole)


@pytest.mark.parametrize("settings", [StochasticVI(20, n_passes=2, n_draws=1), MeanField(1e-3)])
def test_rows_that_remember_resume_too(tmp_path, settings):
    """An update of the toy's rows starts from nothing; here it starts from where they stood."""

    def fit(**options):
        return settings.run(COUNTS, counts_shards(), seed=3, **options)

    with pytest.raises(RuntimeError, match="pulled the plug"):
        fit(checkpoint=tmp_path, every=0.0, progress=stop_at(3))
    resumed, whole = fit(checkpoint=tmp_path, resume=True), fit()
    assert len(bounds(whole)) > 4
    np.testing.assert_array_equal(bounds(resumed), bounds(whole))
    np.testing.assert_array_equal(resumed.factor.scale, whole.factor.scale)


def test_a_finished_run_can_be_made_longer(tmp_path):
    run(checkpoint=tmp_path)
    longer = replace(SHORT, n_passes=5)
    same(run(longer, checkpoint=tmp_path, resume=True), run(longer))


@pytest.mark.parametrize("change", [{"batch_size": 24}, {"delay": 1.0}, {"forgetting": 0.9}])
def test_a_run_of_other_rates_is_not_resumed(tmp_path, change):
    run(checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match=f"differs in {next(iter(change))}"):
        run(replace(SHORT, **change), checkpoint=tmp_path, resume=True)


def test_ctrl_c_keeps_what_there_is(tmp_path):
    def tell(progress):
        seen.append(progress)
        if progress.sweep == 13:
            os.kill(os.getpid(), signal.SIGINT)

    seen = []
    with pytest.warns(RuntimeWarning, match="interrupted .* 13; the factors of 13 sweeps are kept"):
        posterior = run(progress=tell, checkpoint=tmp_path, every=1e9)
    assert posterior.tree.attrs["n_sweeps"] == 13
    assert seen[-1].total == 30
    np.testing.assert_array_equal(bounds(posterior), [progress.value for progress in seen])
    same(run(checkpoint=tmp_path, resume=True), run())


def test_what_the_posterior_says():
    posterior = run()
    attrs = posterior.tree.attrs
    assert (attrs["inference"], attrs["n_sweeps"], attrs["seed"]) == ("stochastic", 30, "11")
    assert posterior["theta"].shape == (1, 4, 1)
    assert bounds(posterior).shape == (30,)


def test_a_factor_that_breaks_down_is_told():
    class Broken(Toy):
        def blend(self, factor, other, rate):
            raise np.linalg.LinAlgError("not positive definite")

    with pytest.raises(FloatingPointError, match="broke down in sweep 1"):
        run(model=Broken())


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"forgetting": 0.5}, ValueError),
        ({"forgetting": 1.01}, ValueError),
        ({"forgetting": np.nan}, ValueError),
        ({"forgetting": "fast"}, TypeError),
        ({"delay": -1.0}, ValueError),
        ({"delay": np.inf}, ValueError),
        ({"delay": np.nan}, ValueError),
        ({"delay": None}, TypeError),
        ({"batch_size": 0}, ValueError),
        ({"batch_size": 2.5}, TypeError),
        ({"n_passes": 0}, ValueError),
        ({"n_draws": 0}, ValueError),
        ({"max_bytes": 0}, ValueError),
    ],
)
def test_bad_settings(settings, error):
    with pytest.raises(error, match=f"{next(iter(settings))} must be"):
        StochasticVI(**settings)


# streams


def batches(x, size=20):
    for i in range(0, len(x), size):
        ids = np.arange(i, min(i + size, len(x)), dtype=np.uint64)
        yield Toy().shards(x[i : i + size], ids)


def absorbed(x, corpus_size, settings=SHORT, model=Toy(), execution=None):
    first = next(batches(x))
    stream = settings.start(model, first, seed=4, corpus_size=corpus_size)
    for shards in batches(x):
        stream.absorb(shards, execution)
    return stream


def test_a_stream_learns_what_its_corpus_says():
    """Rows that never come back, from a law that a corpus of the given size would tell of."""
    x = np.random.default_rng(8).normal(1.0, 1.4, size=4000)
    for corpus_size in (len(x), 50):
        stream = absorbed(x, corpus_size)
        assert stream.n_steps == 200
        mean = corpus_size * x.mean() / (corpus_size + 2)
        noise = 0.5 * x.std() / np.sqrt(20)
        assert abs(stream.factor.mean - mean) < 5 * np.sqrt(SHORT.rate(200)) * noise
        left = left_of_the_start(SHORT, 200)
        assert 1 / stream.factor.variance == pytest.approx(1 + (1 - left) * corpus_size)


def test_a_stream_of_whole_corpora_is_mean_field():
    stream = Whole().start(Toy(), Toy().shards(X), seed=1, corpus_size=len(X))
    for _ in range(3):
        stream.absorb(Toy().shards(X))
    with pytest.warns(ConvergenceWarning):
        field = MeanField(1e-15, max_sweeps=3, n_draws=1).run(Toy(), Toy().shards(X), seed=1)
    np.testing.assert_allclose(stream.elbo, bounds(field), rtol=1e-10)
    assert stream.factor.mean == pytest.approx(field.factor.mean, rel=1e-10)


def test_a_stream_has_the_same_bits_on_any_threads():
    one, three = absorbed(X, 500), absorbed(X, 500, execution=Threads(3))
    assert one.factor == three.factor
    assert one.elbo == three.elbo


def test_a_stream_can_be_read_at_any_time():
    stream = absorbed(X[:40], 500)
    posterior = stream.posterior()
    assert posterior.factor == stream.factor
    assert posterior["theta"].shape == (1, 4, 1)
    assert posterior.tree.attrs["n_sweeps"] == 2
    assert posterior.tree.attrs["elbo"] == stream.elbo[-1]
    stream.absorb(Toy().shards(X[40:60]))
    assert stream.posterior().factor != posterior.factor


def test_a_stream_starts_from_its_first_batch():
    class Warm(Toy):
        def initial_factor(self, shards, key):
            return Factor(mean=np.concatenate([shard.x for shard in shards]).mean())

    stream = SHORT.start(Warm(), Toy().shards(X[:7]), seed=1, corpus_size=100)
    assert stream.factor.mean == pytest.approx(X[:7].mean())
    assert stream.n_steps == 0


def test_a_step_that_fails_leaves_the_stream_as_it_was():
    stream = absorbed(X[:40], 500)
    before = stream.factor
    with pytest.raises(FloatingPointError, match="of row 2 is not finite"):
        stream.absorb(Toy().shards(np.array([0.0, 1.0, np.nan])))
    assert (stream.factor, stream.n_steps) == (before, 2)


def test_bad_corpus_sizes():
    for wrong, error in ((0, ValueError), (2.5, TypeError), (None, TypeError)):
        with pytest.raises(error, match="corpus_size must be"):
            SHORT.start(Toy(), Toy().shards(X), seed=1, corpus_size=wrong)
    stream = SHORT.start(Toy(), Toy().shards(X), seed=1, corpus_size=10)
    with pytest.raises(ValueError, match=r"corpus_size must be .* got 10, and a batch of 203 rows"):
        stream.absorb(Toy().shards(X))


# steps on some of the blocks


def started(x, model=Toy()):
    held = HeldRows(map, model, model.shards(x), 1)
    held.start("initial_row_factors", [None])
    return held


def states(held):
    return list(held.describe(lambda model, shard, rows: rows))


def test_other_blocks_keep_their_state():
    held = started(X[:23])
    before = states(held)
    (some,) = held.step("update_rows", [Factor()], [None], blocks=[4, 1]).statistics
    assert some.n_rows == 8
    changed = [i for i, state in enumerate(states(held)) if state is not before[i]]
    assert changed == [1, 4]
    np.testing.assert_array_equal(states(held)[4].mean, X[16:20] / 2)


class Weighty(Toy):
    """Statistics with arrays: of the block's own, and of several kinds of numbers."""

    def update_rows(self, prior, shard, rows, key):
        rows, statistics = super().update_rows(prior, shard, rows, key)
        return rows, statistics._replace(total=prior[int(shard.rows[0]) // BLOCK])


@pytest.mark.parametrize("kinds", [["f8"] * 6, ["i4", "i4", "f8", "f4", "i8", "f8"]])
def test_sums_in_place_touch_no_block_and_lose_nothing(kinds):
    rng = np.random.default_rng(1)
    given = [(1e3 * rng.normal(size=5)).astype(kind) for kind in kinds]
    copies = [array.copy() for array in given]
    held = started(X[:23], Weighty())
    given_prior = type("Given", (list,), {"mean": 0.0, "variance": 1.0})(given)
    (statistics,) = held.step("update_rows", [given_prior], [None]).statistics
    a, b, c, d, e, f = copies
    expected = ((a + b) + (c + d)) + (e + f)
    np.testing.assert_array_equal(statistics.total, expected, strict=True)
    for array, copy in zip(given, copies):
        np.testing.assert_array_equal(array, copy)
