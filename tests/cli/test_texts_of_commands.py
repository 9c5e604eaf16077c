"""Texts on disk: lines, folders, columns of tables and lines of JSON mean the same topics."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from polystick import CorrelatedTopicModel, Gibbs
from polystick.cli import main
from polystick.commands import runs

MONEY, WAR = ["bank", "gold", "tax", "trade"], ["army", "navy", "treaty", "war"]
_RNG = np.random.default_rng(0)
TEXTS = ["The " + " and ".join(_RNG.choice(MONEY if i % 2 else WAR, 12)) for i in range(20)]
WORDS = sorted(MONEY + WAR)
SHORT = ["--topics", 2, "--draws", 4, "--burn", 4, "--chains", 1]


def call(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "lines.txt").write_text("\n\n".join(TEXTS) + "\n")
    table = pd.DataFrame({"id": range(20), "place": "x", "body": TEXTS})
    table.to_csv(folder / "table.csv", index=False)
    table.to_csv(folder / "table.tsv.gz", index=False, sep="\t")
    table.to_parquet(folder / "table.parquet", index=False)
    (folder / "lines.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    (folder / "speeches").mkdir()
    for i, text in enumerate(TEXTS):
        (folder / "speeches" / f"{i:02}.txt").write_text(text)
    (folder / "speeches" / "README.md").write_text("not a speech")
    return folder


@pytest.fixture(scope="module")
def run(folder):
    call("fit", "topics", folder / "lines.txt", "--out", folder / "run", *SHORT)
    return folder / "run"


FILES = {
    "lines.txt": [],
    "speeches": [],
    "lines.jsonl": [],
    "table.csv": ["--text", "body"],
    "table.tsv.gz": ["--text", "body"],
    "table.parquet": ["--text", "body"],
}


@pytest.mark.parametrize("name", FILES)
def test_all_kinds_of_texts_mean_the_same(folder, run, name, tmp_path):
    call("fit", "topics", folder / name, *FILES[name], "--out", tmp_path / "run", *SHORT)
    assert json.loads((tmp_path / "run" / "categories.json").read_text()) == WORDS
    one, other = (runs.open_run(each).estimator for each in (run, tmp_path / "run"))
    np.testing.assert_array_equal(one.topics_, other.topics_)
    scores = [call("score", run, folder / file, *FILES[file], "--json").stdout for file in FILES]
    assert len(set(scores)) == 1
    assert json.loads(scores[0])["counts"] == 20 * 12


def test_a_run_of_texts_takes_texts_in_python_too(run, folder):
    model = runs.open_run(run).estimator
    assert list(model.words_) == WORDS
    np.testing.assert_array_equal(model.transform(TEXTS[:2]), model.transform(pd.Series(TEXTS[:2])))
    shown = json.loads(call("show", run, "--words", 3, "--json").stdout)["tables"]["topics"]
    assert {word for row in shown for word in row["words"]} <= set(WORDS)
    assert "topic_sizes.png" in call("plot", run, "--out", folder / "pictures").stdout


def test_files_of_a_folder_name_the_documents(folder):
    from polystick.commands.models import read_data

    (counts,) = read_data("topics", folder / "speeches", {}).arguments
    assert list(counts.index[:2]) == ["00.txt", "01.txt"]
    assert list(counts.columns) == WORDS


def words_of(folder, *options):
    from polystick.commands.models import read_data

    (folder / "own.txt").write_text("gold gold tax the\ngold tax bank the\ngold war the army")
    return read_data("topics", folder / "own.txt", dict(options)).names


def test_options_choose_the_words(tmp_path):
    (tmp_path / "stop").write_text("Gold\nwar\n")
    assert words_of(tmp_path) == ["army", "bank", "gold", "tax", "war"]
    assert words_of(tmp_path, ("min_df", 2)) == ["gold", "tax"]
    assert words_of(tmp_path, ("max_df", 0.5)) == ["army", "bank", "war"]
    assert "the" in words_of(tmp_path, ("stop_words", "none"))
    kept = words_of(tmp_path, ("stop_words", str(tmp_path / "stop")))
    assert kept == ["army", "bank", "tax", "the"]
    assert words_of(tmp_path, ("max_words", 2)) == ["gold", "tax"]


def test_options_arrive_from_the_command_line(folder, tmp_path):
    options = ["--stop-words", "none", "--min-df", 2, "--max-df", "1.0", "--svi", "--draws", 5]
    call("fit", "topics", folder / "lines.txt", *options, "--topics", 2, "--out", tmp_path / "run")
    run = runs.open_run(tmp_path / "run")
    assert run.names == sorted([*WORDS, "and", "the"])
    assert type(run.estimator.inference_).__name__ == "StochasticVI"
    assert run.options["min_df"] == 2
    bare = ["--stop-words", "--topics", 2, "--draws", 4, "--burn", 4, "--chains", 1]
    call("fit", "topics", folder / "lines.txt", *bare, "--out", tmp_path / "bare")
    assert runs.open_run(tmp_path / "bare").names == WORDS


def test_cells_without_text_are_empty_documents(tmp_path):
    (tmp_path / "gaps.csv").write_text("n,body\n1,gold tax gold\n2,\n3,war army\n4,war tax\n")
    out = ["--out", tmp_path / "run"]
    result = call("fit", "topics", tmp_path / "gaps.csv", "--text", "body", *out, *SHORT)
    assert "Note: 1 document has no text; it is kept as empty" in result.stderr
    assert "4 documents, 4 categories, 7 counts" in result.stdout


BAD = {
    "texts without --text": (
        ["table.csv", "--ignore", "place"],
        "column 'body' of table.csv holds texts, not counts; learn their topics by fit topics --text body",
    ),
    "the likely column": (["table.csv"], "--text body"),
    "no such column": (["table.csv", "--text", "words"], "'words', with the texts; its columns are id"),
    "column of numbers": (["table.csv", "--text", "id"], "the column 'id' of table.csv must hold texts"),
    "empty folder": (["nothing"], "the folder nothing must hold files that end in .txt"),
    "empty file": (["empty.txt"], "empty.txt must have a line for each document"),
    "no UTF-8": (["latin.txt"], "latin.txt must be text in UTF-8; byte 3 begins no"),
    "no UTF-8 in a folder": (["mixed"], "latin.txt must be text in UTF-8"),
    "no UTF-8 in a table": (["latin.csv", "--text", "a"], "latin.csv must be text in UTF-8"),
    "no words": (["numbers.txt"], "at least 2 different words that are counted; the vectorizer found none"),
    "too much asked": (["lines.txt", "--min-df", "21"], "the vectorizer found none in 20"),
    "stop words of no file": (["lines.txt", "--stop-words", "gone"], "there is no file gone"),
    "text of lines": (["lines.txt", "--text", "body"], "--text is for .csv"),
    "frequencies of counts": (["counts.csv", "--min-df", "2"], "--min-df is for texts: .txt"),
    "two ways": (["lines.txt", "--svi", "--mean-field"], "leave one of them out"),
    "burn of a stream": (["lines.txt", "--svi", "--burn", "3"], "leave it out with --svi"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_texts_get_a_sentence(folder, case, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "nothing").mkdir(exist_ok=True)
    (folder / "mixed").mkdir(exist_ok=True)
    for name in ("latin.txt", "mixed/latin.txt", "latin.csv"):
        (folder / name).write_bytes((b"a,b\n" if "csv" in name else b"abc") + b"\xe9t\xe9 gold,1\n")
    (folder / "empty.txt").write_text("\n \n")
    (folder / "numbers.txt").write_text("1 2\n3 4\n")
    (folder / "counts.csv").write_text("a,b\n1,2\n3,4\n")
    arguments, sentence = BAD[case]
    result = call("fit", "topics", *arguments, "--topics", 2, "--out", tmp_path / "run", code=1)
    assert sentence in result.stderr
    assert len(result.stderr) < 400
    assert TEXTS[0] not in result.stderr
    assert not (tmp_path / "run").exists()


def test_other_models_want_files(folder, tmp_path):
    for kind, file in (("lds", "speeches"), ("multinomial", "speeches")):
        result = call("fit", kind, folder / file, "--out", tmp_path / "run", code=1)
        assert "must be a file" in result.stderr


def test_frequencies_are_numbers_or_shares():
    for value in ("0", "-1", "1.5", "many"):
        arguments = ["fit", "topics", "x.txt", "--min-df", value, "--out", "r"]
        assert "a share such as 0.1" in call(*arguments, code=2).stderr


def test_documents_of_unknown_words_are_told(run, tmp_path):
    (tmp_path / "new.txt").write_text("gold tax zebra\nzebra lion\nlion\nwar war\n")
    result = call("score", run, tmp_path / "new.txt", "--json")
    assert "Note: 2 documents have no word that is counted; they are kept as empty" in result.stderr
    assert json.loads(result.stdout)["counts"] == 4


def test_words_are_shown_by_a_measure(run, tmp_path):
    model = runs.open_run(run).estimator
    for by in ("probability", "relevance", "frex"):
        tables = json.loads(call("show", run, "--words", 3, "--by", by, "--json").stdout)["tables"]
        expected = model.topics(3, by=by)[[1, 2, 3]].to_numpy().tolist()
        assert [row["words"] for row in tables["topics"]] == expected
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,4\n")
    call("fit", "multinomial", tmp_path / "rows.csv", "--mean-field", "--out", tmp_path / "rows")
    said = call("show", tmp_path / "rows", "--by", "frex", code=1).stderr
    assert "--by needs a run of topics" in said


# what a folder of topics holds


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_folder_holds_each_draw_once_and_no_checkpoint(tmp_path):
    rng = np.random.default_rng(0)
    words = np.array([f"{a}{b}{c}" for a in "abcdefghij" for b in "klmnopqrst" for c in "uvwxyz"])
    lines = [" ".join(rng.choice(words[i % 3 :: 3], 40)) for i in range(60)]
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    start = ["fit", "topics", tmp_path / "lines.txt", "--topics", 20, "--draws", 40, "--burn", 4]
    out = tmp_path / "run"
    call(*start, "--chains", 2, "--out", out, "--threads", 1)
    topics = runs.open_run(out).estimator.posterior_["topics"]
    assert topics.shape[:3] == (2, 40, 20)
    assert size_of(out) < topics.nbytes
    assert not (out / "checkpoint").exists()
    assert (out / "model.polystick").stat().st_size < topics.nbytes / 20
    told = call(*start, "--chains", 2, "--out", out, "--resume", code=1).stderr
    assert "has ended, and its checkpoint is gone" in told
    kept = ["--keep-checkpoint", "--chains", 1, "--out", tmp_path / "kept"]
    call(*start, *kept)
    told = call("fit", "topics", tmp_path / "lines.txt", "--out", tmp_path / "kept", "--resume",
                "--draws", 42, "--json").stdout  # fmt: skip
    assert json.loads(told)["sweeps"] == 46


def test_slim_draws_tell_the_same():
    from polystick.commands.slim import rounded, slimmed

    texts = [f"{line} {' '.join(WORDS)}" for line in TEXTS]
    gibbs = Gibbs(40, 10, n_chains=2, max_bytes=4000)
    model = CorrelatedTopicModel(12, inference=gibbs, random_state=0, n_jobs=1).fit(texts)
    whole, slim = model.posterior_, slimmed(model.posterior_)
    assert whole["topics"].shape[1] < 40
    assert set(slim.names()) == set(whole.names())
    even = 1 / len(WORDS)
    known = whole["topics"] > 1e-3 * even
    np.testing.assert_allclose(slim["topics"][known], whole["topics"][known], rtol=2**-8)
    assert slim["topics"].min() > 0
    for name in ("mean", "share", "cov"):
        np.testing.assert_array_equal(slim[name], whole[name])
    np.testing.assert_array_equal(slim.running("proportions")[0], whole.running("proportions")[0])
    values = np.random.default_rng(0).gamma(0.1, size=1000).astype(np.float32) + np.float32(1e-30)
    np.testing.assert_allclose(rounded(values), values, rtol=2**-8)
    assert len(np.unique(rounded(values).view(np.uint32) & 0xFFFF)) == 1


def test_large_covariances_are_thinned_with_topics(monkeypatch):
    from polystick.commands import slim

    gibbs = Gibbs(40, 10, n_chains=2, max_bytes=2**13)
    model = CorrelatedTopicModel(4, inference=gibbs, random_state=0, n_jobs=1).fit(TEXTS)
    whole = model.posterior_
    assert whole["topics"].shape[1] < whole["cov"].shape[1] == 40
    monkeypatch.setattr(slim, "_MOST", 1500)
    thin = slim.slimmed(whole)
    np.testing.assert_array_equal(thin["cov"], whole["cov"][:, ::2])
    names = ("mean", "cov", "topics")
    for one, other in zip(thin.together(names)[:2], whole.together(names)[:2]):
        np.testing.assert_array_equal(one, other)
