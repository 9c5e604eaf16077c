"""Who names no command, no model or no folder is told what there is, what it would do and how long."""

import json
import re
import shlex

import numba
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from polystick.cli import main
from polystick.commands.guide import columns_of
from polystick.commands.rehearsal import spoken

needs_jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="fits need the compiler")


def call(*arguments, code=0):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.poisson(9.0, (12, 3)), columns=["oak", "ash", "old elm"])
    frame.insert(0, "year", [1990, 2000, 2010] * 4)
    frame.insert(0, "wood", list("aaabbbcccddd"))
    frame.to_csv("my trees.csv", index=False)
    return frame


def suggested(said):
    return [shlex.split(line)[1:] for line in said.splitlines() if line.startswith("    polystick")]


def test_without_arguments_the_first_steps_are_shown():
    said = call()
    names = set(re.findall(r"polystick (\w+)", said))
    assert {"demo", "fit", "show", "plot", "score"} <= names
    assert all(main.get_command(None, name) for name in names - {"COMMAND"})


def test_fit_alone_is_its_help():
    assert "polystick fit FILE" in call("fit")


def test_columns_are_told_apart(table):
    table["height"], table["share"] = 1.5, -1
    table["note"] = ["felled in the storm of the year before"] * 12
    table["id"], table["tag"] = np.arange(12), [f"tree{i}" for i in range(12)]
    found = columns_of(table)
    assert found.counts == ["oak", "ash", "old elm"]
    assert found.numbers == ["year", "height", "share"]
    assert (found.groups, found.labels, found.texts) == (["wood"], ["id", "tag"], ["note"])


@needs_jit
def test_each_suggestion_is_a_command_that_works(table):
    said = call("fit", "my trees.csv")
    assert "12 rows and 5 columns" in said
    assert f"oak, ash, old elm: {table.iloc[:, 2:].to_numpy().sum()} in all" in said
    commands = suggested(said)
    assert [words[1] for words in commands] == ["multinomial", "multinomial", "regression", "gp"]
    for words in commands:
        assert "oak, ash, old elm" in call(*words, "--draws", 2, "--burn", 1, "--chains", 1)


def test_lines_of_counts_and_texts_have_commands_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    long = pd.DataFrame(
        {"wood": ["a", "a", "b", "b"], "tree": ["oak", "ash"] * 2, "n": [3, 1, 2, 2]}
    )
    long.to_csv("long.csv", index=False)
    assert suggested(call("fit", "long.csv"))[0][-4:] == ["--name", "tree", "--value", "n"]
    texts = pd.DataFrame({"body": ["the oak is an old tree"] * 4, "year": [1990, 2000, 2010, 2020]})
    texts.to_csv("texts.csv", index=False)
    assert suggested(call("fit", "texts.csv"))[1][-2:] == ["--prevalence", "year"]
    (tmp_path / "texts.jsonl").write_text(json.dumps({"text": "one two three"}) + "\n")
    said = call("fit", "texts.jsonl")
    assert "1 texts of 3 words" in said
    assert [words[1] for words in suggested(said)] == ["topics", "lds"]
    (tmp_path / "empty.csv").write_text("height\n1.5\n")
    said = call("fit", "empty.csv")
    assert "nothing here that could be counted" in said
    assert suggested(said) == []


@needs_jit
def test_without_a_folder_a_fit_says_what_it_would_do(table, tmp_path):
    said = call("fit", "multinomial", "my trees.csv", "--ignore", "wood,year")
    assert "12 rows, 3 categories" in said
    assert "4 chains of 500 sweeps to forget and 1000 draws" in said
    assert re.search(r"takes about \d+ seconds?\.", said)
    assert [path.name for path in tmp_path.iterdir()] == ["my trees.csv"]
    field = call("fit", "multinomial", "my trees.csv", "--ignore", "wood,year", "--mean-field")
    assert "climb a bound" in field


def test_a_run_needs_its_folder(table):
    for option in ("--json", "--resume"):
        said = call("fit", "multinomial", "my trees.csv", option, code=2)
        assert f"{option} is of a run, which needs --out" in said


def test_what_is_no_file_is_no_command():
    assert "No such command 'topcs'" in call("fit", "topcs", code=2)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "1 second"),
        (61, "61 seconds"),
        (120, "2 minutes"),
        (5399, "90 minutes"),
        (7000, "2 hours"),
    ],
)
def test_times_are_said_as_people_say_them(seconds, said):
    assert spoken(seconds) == said
