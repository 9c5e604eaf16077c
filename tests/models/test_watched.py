"""What a run is judged by is chosen where it hurts, and the lag that is told is the one that is measured."""

import numpy as np
import pytest

from polystick import DynamicMultinomial
from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition, Splits
from polystick.inference.diagnostics import bulk_ess
from polystick.inference.gibbs import Gibbs
from polystick.models import joint_cells, watched
from polystick.models.multinomial import CorrelatedCounts


def cells_of(successes, trials):
    splits = Splits(np.asarray(successes), np.asarray(trials))
    return watched.dense_cells(np.arange(len(splits.trials)), splits)


def test_lopsided_cells_come_first():
    trials = np.full((50, 10), 1000)
    successes = trials // 2
    successes[31, 4] = 0
    trials[12, 7] = successes[12, 7] = 0  # nothing to be slow about
    cells = cells_of(successes, trials)
    assert watched._slowest(cells)[0] == 31 * 10 + 4
    chosen = watched.choose_cells([cells])
    assert (31, 4) in set(zip(chosen.rows.tolist(), chosen.nodes.tolist()))
    assert (12, 7) not in set(zip(chosen.rows.tolist(), chosen.nodes.tolist()))


def test_one_rare_category_does_not_take_all_places():
    trials = np.full((200, 5), 10**6)
    successes = trials // 2
    successes[:, 2] = 0
    successes[::50, 4] = 3
    chosen = watched.choose_cells([cells_of(successes, trials)])
    assert {0, 1, 2, 3, 4} == set(chosen.nodes.tolist())
    assert len(chosen.rows) <= 2 * watched.N_CELLS


def test_blocks_of_rows_are_looked_at_together():
    trials = np.full((60, 4), 500)
    successes = np.random.default_rng(0).integers(0, 500, (60, 4))
    successes[57, 1] = 500
    cells = cells_of(successes, trials)
    blocks = [cells.at(slice(0, 80)), cells.at(slice(80, 240))]
    found = watched.choose_cells(blocks)
    assert (57, 1) in set(zip(found.rows.tolist(), found.nodes.tolist()))


def test_no_counts_at_all():
    empty = watched.choose_cells([cells_of(np.zeros((3, 2), int), np.zeros((3, 2), int))])
    assert len(empty.rows) == 0
    assert len(watched.Picked(np.arange(0))(np.arange(3))) == 0


@pytest.mark.parametrize("tree", [Decomposition.sticks([2, 0, 1, 3]), Decomposition.balanced(4)])
def test_the_category_on_the_rare_side_is_watched(tree):
    counts = np.array([[100, 0, 100, 100], [100, 100, 0, 100]])
    splits = tree.split(counts)
    watch = watched.RowWatch(cells_of(*splits), tree, "row")
    leaves = watched._first_leaves(tree.children)
    for row, node, category in zip(watch.cells.rows, watch.cells.nodes, watch.categories):
        successes, trials = splits.successes[row, node], splits.trials[row, node]
        side = int(successes > trials - successes)
        assert category == leaves[node, side]
        assert counts[row, category] <= trials / 2 or successes == trials - successes


class Plain(CorrelatedCounts):
    """Draws all psi by Pólya-gamma steps, and none together with the law."""

    def draw_rows(self, prior, shard, rows, key):
        plain = shard._replace(exact=np.zeros_like(shard.exact))
        return super().draw_rows(prior, plain, rows, key)

    def move_together(self, parameters, shards, rows, key, ordered_map=map):
        return parameters, rows


COUNTS = np.array([[5, 5], [0, 100], [0, 2000], [50, 50], [1, 10000], [30, 0]])


def watched_cells(kind):
    """Return what a run tells of a few lopsided cells, with mean and covariance known."""
    prior = NormalInverseWishart(np.zeros(1), 1e8, 4e8 * np.eye(1), 1e8)
    model = kind(prior, Decomposition.sticks([0, 1]))
    return Gibbs(4000, 500, n_chains=2).run(model, model.shards(COUNTS), seed=1)


def test_the_lag_is_what_it_takes(monkeypatch):
    monkeypatch.setattr(joint_cells, "TOLD", np.inf)
    psi = watched_cells(Plain).tree["watched"]["psi"].values
    measured, told = 8000 / bulk_ess(psi), watched.polya_gamma_lag(COUNTS.sum(axis=1), psi)
    slow = told > 10  # below, it is up to 2 too large: nothing is said of such cells
    assert slow.sum() == 3
    np.testing.assert_allclose(told[slow], measured[slow], rtol=0.2)
    assert (np.abs(told - measured)[~slow] < 3).all()


def test_lopsided_cells_are_drawn_without_lag():
    posterior = watched_cells(CorrelatedCounts)
    group = posterior.tree["watched"]
    assert 8000 / bulk_ess(group["psi"].values).min() < 3
    assert list(group["psi_lag"].values[[1, 2, 4, 5]]) == [1, 1, 1, 1]
    assert posterior.verdict().lag.value < 4


@pytest.mark.parametrize("size", [4, 100])
def test_what_is_told_is_what_the_rows_have(size):
    counts = np.random.default_rng(0).poisson([9.0, 1.0, 3.0, 0.1], (11, 4))
    tree = Decomposition.balanced(4)
    prior = NormalInverseWishart.weak(*tree.dirichlet_moments(1.0))
    model = CorrelatedCounts(prior, tree)
    settings = Gibbs(6, 3, n_chains=2, keep=("probabilities",))
    shards = model.shards(counts, size=size)
    posterior = settings.run(model, shards, seed=1)
    axes = model.watch(shards).axes["probabilities"]
    kept = posterior["probabilities"][:, :, axes["row"], axes["category"]]
    np.testing.assert_array_equal(posterior.tree["watched"]["probabilities"].values, kept)
    assert len(set(axes["row"])) > 5


def test_what_is_told_of_compositions_is_what_their_steps_have():
    """States are psi there."""
    rng = np.random.default_rng(0)
    sequences = [rng.multinomial(20, [0.6, 0.3, 0.1], size=n) for n in (9, 14)]
    inference = Gibbs(6, 3, n_chains=2)
    model = DynamicMultinomial(inference=inference, random_state=1).fit(sequences)
    watch = model.model_.watch(model.model_.shards(model.sequences_))
    group, kept = model.posterior_.tree["watched"], model.posterior_["states"]
    cells = watch.cells
    steps, nodes = cells.rows.astype(int), cells.nodes
    np.testing.assert_array_equal(group["psi"].values, kept[:, :, steps, nodes])
    pi = model.decomposition_.probabilities(kept)[:, :, steps, watch.categories]
    np.testing.assert_allclose(group["probabilities"].values, pi)
    assert len(set(nodes.tolist())) == 2


def test_documents_are_paired_in_the_order_of_the_blocks():
    class Block:
        def __init__(self, rows):
            self.rows = np.array(rows, dtype=np.uint64)

    blocks = [Block([4, 0, 2]), Block([5, 1, 3])]
    watch = watched.ShareWatch.of(blocks)
    shares = np.random.default_rng(0).dirichlet(np.ones(3), 6)
    taken = [watch.take(b, None, {"proportions": shares[b.rows.astype(int)]}) for b in blocks]
    joined = {"proportions": np.concatenate([part["proportions"] for part in taken])}
    told = watch.tell([None], [{}], [joined])["similarity"][0]
    pairs = watch.axes["similarity"]
    expected = [shares[a] @ shares[b] for a, b in zip(pairs["document"], pairs["and"])]
    np.testing.assert_allclose(told, expected)
    assert pairs["document"] == [4, 2, 1]
