"""Files of all kinds become the same corpus, a few documents at a time."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
from click.testing import CliRunner

from polystick import Corpus
from polystick.cli import main
from polystick.commands.packing import Choice, pack_files
from polystick.texts import default_vectorizer

RNG = np.random.default_rng(4)
WORDS = np.array(["Army", "navy", "the", "gold", "x1", "snake_case", "über", "land", "rare"])
TEXTS = [" ".join(RNG.choice(WORDS[:-1], RNG.integers(3, 9))) + "." for _ in range(250)]
TEXTS[7] = "rare, isn't it? gold-land 1812"


def call(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "lines.txt").write_text("\n".join(TEXTS))
    with gzip.open(folder / "packed.txt.gz", "wt") as file:
        file.write("\n".join(TEXTS))
    (folder / "texts.jsonl").write_text("\n".join(json.dumps({"text": t}) for t in TEXTS))
    frame = pd.DataFrame({"body": TEXTS, "year": 1900})
    frame.to_csv(folder / "table.csv", index=False)
    frame.to_parquet(folder / "table.parquet", index=False)
    (folder / "each").mkdir()
    for i, text in enumerate(TEXTS):
        (folder / "each" / f"{i:04d}.txt").write_text(text)
    return folder


def expected():
    vectorizer = default_vectorizer()
    return vectorizer.fit_transform(TEXTS).toarray(), vectorizer.get_feature_names_out()


@pytest.mark.parametrize(
    "name",
    ["lines.txt", "packed.txt.gz", "texts.jsonl", "table.csv", "table.parquet", "each"],
)
def test_texts_are_counted_as_by_the_default_vectorizer(name, folder, tmp_path):
    more = ["--text", "body"] if name.startswith("table") else []
    said = call("pack", folder / name, "--out", tmp_path / "corpus", "--rows", 60, *more)
    corpus, (counts, words) = Corpus(tmp_path / "corpus"), expected()
    assert said.startswith(f"250 documents, {len(words)} words (")
    assert corpus.words.tolist() == words.tolist()
    assert [part.n_rows for part in corpus.parts] == [60, 60, 60, 60, 10]
    found = scipy.sparse.vstack(list(corpus.matrices())).toarray()
    np.testing.assert_array_equal(found, counts)
    assert {p.name.split("-")[0] for p in (tmp_path / "corpus").iterdir()} == {
        "part", "corpus.json", "words.txt",
    }  # fmt: skip


def test_which_words_are_kept(folder, tmp_path):
    more = ["--min-df", 1, "--max-df", 1.0, "--stop-words", "none", "--max-words", 4]
    call("pack", folder / "lines.txt", folder / "each", "--out", tmp_path / "corpus", *more)
    vectorizer = default_vectorizer(min_df=1, max_df=1.0, stop_words=None, max_features=4)
    counts = vectorizer.fit_transform(TEXTS + TEXTS).toarray()
    corpus = Corpus(tmp_path / "corpus")
    assert corpus.words.tolist() == vectorizer.get_feature_names_out().tolist()
    np.testing.assert_array_equal(corpus.part(0).toarray(), counts)


COUNTS = RNG.poisson(0.4, (40, 6))
NAMES = [f"w{k}" for k in range(6)]


def write_counts(folder):
    """Write files that all hold the same counts."""
    csr = scipy.sparse.csr_array(COUNTS)
    parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": csr.shape}
    np.savez(folder / "counts.npz", **parts, vocab=np.array(NAMES))
    pd.DataFrame(COUNTS, columns=NAMES).to_csv(folder / "counts.csv", index=False)
    scipy.io.mmwrite(folder / "counts.mtx", scipy.sparse.coo_array(COUNTS))
    (folder / "names.txt").write_text("\n".join(NAMES))
    rows, columns = COUNTS.nonzero()
    cells = [f"{i + 1} {j + 1} {COUNTS[i, j]}" for i, j in zip(rows, columns)]
    (folder / "docword.txt").write_text("\n".join(["40", "6", str(len(cells)), *cells]))


@pytest.mark.parametrize("name", ["counts.npz", "counts.csv", "counts.mtx", "docword.txt"])
def test_counts_stay_what_they_are(name, tmp_path):
    write_counts(tmp_path)
    more = [] if name in ("counts.npz", "counts.csv") else ["--vocabulary", tmp_path / "names.txt"]
    call("pack", tmp_path / name, "--out", tmp_path / "corpus", "--rows", 25, *more)
    corpus = Corpus(tmp_path / "corpus")
    assert corpus.words.tolist() == NAMES
    found = scipy.sparse.vstack(list(corpus.matrices())).toarray()
    np.testing.assert_array_equal(found, COUNTS)


def test_a_corpus_is_fitted_and_scored_from_the_shell(folder, tmp_path):
    call("pack", folder / "lines.txt", "--out", tmp_path / "corpus", "--rows", 100)
    run = ["--topics", 2, "--mean-field", "--out", tmp_path / "run", "--json"]
    output = call("fit", "topics", tmp_path / "corpus", *run)
    outcome = json.loads(output[output.index("{") :].splitlines()[0])
    assert outcome["rows"] == 250
    assert "perplexity" in call("score", tmp_path / "run", tmp_path / "corpus", "--json")


# what is refused


def refused(*arguments):
    return call("pack", *arguments, code=1)


def test_what_can_not_be_packed(folder, tmp_path):
    out = ["--out", tmp_path / "corpus"]
    (tmp_path / "tokens.jsonl").write_text('{"tokens": ["a", "b"]}\n{"tokens": "a"}\n')
    assert "must be a list of words, as in the first; line 2 has str" in refused(
        tmp_path / "tokens.jsonl", *out
    )
    assert not (tmp_path / "corpus").exists()
    (tmp_path / "tokens.jsonl").write_text('{"tokens": ["a", "b"]}\n')
    assert "must all hold texts or all words" in refused(
        folder / "lines.txt", tmp_path / "tokens.jsonl", *out
    )
    assert "must be a file or a folder; there is none" in refused(tmp_path / "nothing.txt", *out)
    assert "must have the column 'no'" in refused(folder / "table.csv", "--text", "no", *out)
    assert "two words at least; 0 of" in refused(folder / "lines.txt", "--min-df", 900, *out)
    (tmp_path / "docword.x.txt").write_text("2\n3\n2\n2 1 1\n1 1 1\n")
    assert "must be in the order of documents" in refused(tmp_path / "docword.x.txt", *out)
    call("pack", folder / "lines.txt", *out)
    assert "already holds a corpus; choose another" in refused(folder / "lines.txt", *out)


def test_memory_holds_few_documents(folder, tmp_path, monkeypatch):
    """Parts are put aside as they fill up: what is read is not kept."""
    seen = []
    pack_files(
        [folder / "lines.txt"], tmp_path / "corpus", None, Choice(), 50,
        lambda n: seen.append(len(list((tmp_path / "corpus").glob("*/part-*.npz")))),
    )  # fmt: skip
    assert seen[-1] == 5
