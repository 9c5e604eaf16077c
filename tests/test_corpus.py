"""Corpora in parts: what is in a folder, how it is mapped, and what is refused."""

import json
import mmap
import os
import pickle

import numpy as np
import pytest
import scipy.sparse

from polystick import Corpus
from polystick.corpus import MANIFEST, CorpusError, CorpusWriter, FilePart
from polystick.models import documents

SIZES = (30, 1, 0, 17)


@pytest.fixture
def parts():
    rng = np.random.default_rng(1)
    return [scipy.sparse.csr_array(rng.poisson(0.3, (n, 12)).astype(np.int32)) for n in SIZES]


@pytest.fixture
def folder(parts, tmp_path):
    for number, counts in enumerate(parts):
        scipy.sparse.save_npz(tmp_path / f"part-{number:05d}.npz", counts, compressed=False)
    return tmp_path


def test_parts_of_others_get_a_manifest(folder, parts):
    corpus, whole = Corpus(folder), scipy.sparse.vstack(parts)
    manifest = json.loads((folder / MANIFEST).read_text())
    assert [part["rows"] for part in manifest["parts"]] == list(SIZES)
    assert corpus.shape == whole.shape
    assert corpus.n_tokens == whole.sum() == corpus.sum()
    np.testing.assert_array_equal(corpus.sum(axis=0), whole.sum(axis=0))
    for number, part in enumerate(parts):
        np.testing.assert_array_equal(corpus.part(number).toarray(), part.toarray())
    np.testing.assert_array_equal(corpus.row_cells(), np.diff(whole.indptr))
    np.testing.assert_array_equal(corpus.row_tokens(), whole.sum(axis=1))


def test_documents_are_taken_in_any_order(folder, parts):
    whole, order = scipy.sparse.vstack(parts).toarray(), np.random.default_rng(2).permutation(48)
    for corpus in (Corpus(folder), Corpus.of(parts)):
        np.testing.assert_array_equal(corpus.take(order).toarray(), whole[order])
        np.testing.assert_array_equal(corpus.take(order[:3]).toarray(), whole[order[:3]])
        for start, stop in ((2, 5), (0, 48), (7, 8)):  # neighbours, also over the borders of parts
            some = np.arange(start, stop)
            np.testing.assert_array_equal(corpus.take(some).toarray(), whole[some])


def test_uncompressed_parts_are_mapped_and_others_read(folder, parts):
    def is_mapped(array):
        while isinstance(array, np.ndarray):
            array = array.base
        return isinstance(getattr(array, "obj", array), mmap.mmap)

    assert is_mapped(Corpus(folder).parts[0].array("data"))
    scipy.sparse.save_npz(folder / "part-00000.npz", parts[0], compressed=True)
    (folder / MANIFEST).unlink()
    corpus = Corpus(folder)
    read = corpus.parts[0].array("data")
    assert not is_mapped(read)
    np.testing.assert_array_equal(read, parts[0].data)
    first = np.arange(parts[0].shape[0])[::-1]
    np.testing.assert_array_equal(corpus.take(first).toarray(), parts[0].toarray()[::-1])


def test_blocks_are_cut_part_by_part(folder, parts):
    blocks = documents.cut(Corpus(folder), 8)
    apart = [block for part in parts for block in documents.cut(part, 8) if len(block.rows)]
    found = [block for block in blocks if len(block.rows)]
    assert [len(b.rows) for b in found] == [len(b.rows) for b in apart]
    for one, other in zip(found, apart):
        for name in ("starts", "stops", "words", "counts", "vocabulary", "columns"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(np.concatenate([b.rows for b in blocks]), np.arange(48))
    assert sum(blocks.lengths) == len(blocks.ids) == 48
    assert [len(r) for r in blocks.parts] == [len(documents.cut(part, 8)) for part in parts]


def test_blocks_drag_no_corpus_along(folder):
    blocks = documents.cut(Corpus(folder), 8)
    blocks[0]
    again = pickle.loads(pickle.dumps(blocks))
    np.testing.assert_array_equal(again[1].words, blocks[1].words)
    for part in blocks.corpus.parts:
        assert len(pickle.dumps(part)) < 2000


def test_shuffled_blocks_are_those_of_a_shuffled_matrix(folder, parts):
    order = np.random.default_rng(2).permutation(48)
    whole = scipy.sparse.vstack(parts, format="csr")[order]
    expected = documents.cut(whole, 8, order.astype(np.uint64), slices=order)
    found = documents.cut(Corpus(folder), 8, order, slices=np.arange(48))
    for one, other in zip(found, expected, strict=True):
        for name in ("rows", "starts", "stops", "words", "counts"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        np.testing.assert_array_equal(one.given["slices"], other.given["slices"])


def test_words_and_counts_come_back(tmp_path, parts):
    writer = CorpusWriter(tmp_path / "corpus", 12)
    for part in parts:
        writer.add(part)
    assert not (tmp_path / "corpus" / MANIFEST).exists()
    writer.close([f"w{k}" for k in range(12)])
    corpus = Corpus(tmp_path / "corpus")
    assert corpus.words.tolist() == [f"w{k}" for k in range(12)]
    assert repr(corpus).endswith("of 12 words, in 4 parts>")
    corpus.check()


# what can't be used


def test_a_part_that_changed_is_named(folder):
    corpus = Corpus(folder)
    path = folder / "part-00003.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=r"part-00003\.npz has changed since its manifest"):
        corpus.check()
    path.unlink()
    with pytest.raises(CorpusError, match=r"the corpus lacks .*part-00003\.npz"):
        corpus.check()


def test_a_part_that_changes_under_a_run_is_named(folder):
    corpus, path = Corpus(folder), folder / "part-00003.npz"
    corpus.check()
    before, content = corpus.part(3).toarray(), path.read_bytes()
    changed = bytearray(content)
    changed[len(content) // 2] ^= 1
    _write_at(path, changed, 1)
    with pytest.raises(CorpusError, match=r"part-00003\.npz has changed since its manifest"):
        corpus.part(3)
    _write_at(path, content, 2)
    np.testing.assert_array_equal(corpus.part(3).toarray(), before)


def _write_at(path, content, seconds):
    """Write a file at a time of its own, which clocks that tick slowly would give twice."""
    path.write_bytes(content)
    os.utime(path, (seconds, seconds))


def test_folders_that_are_no_corpora(tmp_path, folder, parts):
    with pytest.raises(CorpusError, match="must be a folder with parts of a corpus"):
        Corpus(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=r"must hold parts of a corpus, such as part-00000\.npz"):
        Corpus(tmp_path / "empty")
    scipy.sparse.save_npz(folder / "part-00004.npz", parts[0][:, :11])
    with pytest.raises(CorpusError, match=r"the same columns; part-00000\.npz has 12"):
        Corpus(folder)
    (folder / "part-00004.npz").write_bytes(b"PK nothing")
    with pytest.raises(
        CorpusError, match=r"must be a CSR matrix as scipy\.sparse\.save_npz writes"
    ):
        Corpus(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data": np.array([-1, 2])}, "must hold counts, numbers from 0 on"),
        ({"data": np.array([np.inf, 2.0])}, "must hold finite counts"),
        ({"indices": np.array([0, 3])}, "must be words from 0 to 2; got others"),
    ],
)
def test_parts_that_hold_no_counts(tmp_path, change, said):
    arrays = {"data": np.array([1, 2]), "indices": np.array([0, 1]), "indptr": np.array([0, 2])}
    np.savez(tmp_path / "part-00000.npz", **{**arrays, **change}, shape=np.array([1, 3]))
    with pytest.raises(CorpusError, match=said):
        Corpus(tmp_path)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"kind": "other", "format": 1}'])
def test_a_damaged_manifest(folder, content):
    Corpus(folder)
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(CorpusError, match="pack the corpus again"):
        Corpus(folder)


def test_a_manifest_that_leads_elsewhere(folder):
    Corpus(folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["parts"][0]["file"] = "../secret.npz"
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(CorpusError, match="names parts outside its folder"):
        Corpus(folder)


def test_parts_of_unlike_width(parts):
    with pytest.raises(CorpusError, match="the same columns"):
        Corpus.of([parts[0], parts[1][:, :5]])
    with pytest.raises(CorpusError, match="the same columns"):
        Corpus.of([])


def test_objects_are_not_unpickled(tmp_path):
    path = tmp_path / "part-00000.npz"
    np.savez(path, data=np.array([{}], dtype=object))
    with pytest.raises(CorpusError, match="must be a CSR matrix"):
        FilePart(path, 1, 1.0, "").array("data")
