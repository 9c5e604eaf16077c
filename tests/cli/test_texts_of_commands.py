"""Texts on disk: lines, folders, columns of tables and lines of JSON mean the same topics."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

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
    assert "Note: 1 documents have no text; they are kept as empty ones" in result.stderr
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
