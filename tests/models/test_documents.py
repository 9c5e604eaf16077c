"""Documents are cut into blocks that together are the corpus."""

import numpy as np
import pytest
import scipy.sparse

from polystick.models import documents


def rebuilt(shards, n_words):
    """Return the dense counts that blocks were cut from, cell by cell."""
    rows = []
    for shard in shards:
        for start, stop in zip(shard.starts, shard.stops):
            row = np.zeros(n_words, shard.counts.dtype)
            for cell in range(start, stop):
                row[shard.words[cell]] += shard.counts[cell]
            rows.append(row)
    return np.array(rows)


def some_counts(n, n_words=7, seed=1):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.4, (n, n_words))
    counts[[0, n // 2, -1]] = 0
    return counts


@pytest.mark.parametrize("n", [1, 511, 512, 513, 1024, 1200])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_blocks_are_the_corpus(n, kind):
    counts = some_counts(n)
    shards = documents.cut(kind(counts))
    assert len(shards) == (1 if n <= 512 else 2 if n <= 1024 else 4)
    work = np.array([len(s.words) + documents.ROW_WORK * len(s.rows) for s in shards])
    assert np.abs(work - work.mean()).max() <= 7 + documents.ROW_WORK  # that of one document
    np.testing.assert_array_equal(rebuilt(shards, 7), counts)
    np.testing.assert_array_equal(np.concatenate([s.rows for s in shards]), np.arange(n))
    totals = np.concatenate([s.totals for s in shards])
    np.testing.assert_array_equal(totals, counts.sum(axis=1))


def test_vocabulary_and_columns_tell_the_words():
    for shard in documents.cut(some_counts(40), size=6):
        np.testing.assert_array_equal(shard.vocabulary, np.unique(shard.words))
        np.testing.assert_array_equal(shard.vocabulary[shard.columns], shard.words)


def test_kinds_of_numbers():
    whole, weights = (documents.cut(some_counts(9).astype(t))[0] for t in (np.int64, np.float64))
    kinds = {"rows": "uint64", "starts": "int64", "stops": "int64", "words": "int32"}
    kinds |= {"counts": "int32", "vocabulary": "int32", "columns": "int32"}
    for name, kind in kinds.items():
        assert getattr(whole, name).dtype == kind
    assert weights.counts.dtype == "float64"
    np.testing.assert_array_equal(weights.totals, whole.totals)


def test_ids_go_with_their_documents():
    ids = np.array([9, 2, 2**64 - 1, 4], dtype=np.uint64)
    shards = documents.cut(some_counts(4), size=3, ids=ids)
    np.testing.assert_array_equal(np.concatenate([s.rows for s in shards]), ids)


def test_documents_without_words_are_kept():
    (shard,) = documents.cut(np.zeros((5, 3), int))
    np.testing.assert_array_equal(shard.totals, np.zeros(5))
    assert len(shard.words) == len(shard.vocabulary) == 0


def test_a_part_of_the_cells_has_its_own_totals():
    """Folding looks at the first words of a document only."""
    (shard,) = documents.cut(np.array([[2, 0, 3], [0, 0, 0], [1, 1, 4]]))
    part = shard._replace(starts=shard.starts + np.array([1, 0, 2]))
    np.testing.assert_array_equal(part.totals, [3, 0, 4])
