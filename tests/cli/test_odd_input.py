"""What is taken, and said to be odd."""

import pytest
from click.testing import CliRunner

from polystick.cli import main

ROWS = "\n3,1,2\n4,0,2\n1,5,2\n"
SHORT = ["--draws", "2", "--burn", "0", "--chains", "1", "--threads", "1", "--min-ess", "0"]


def call(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


@pytest.mark.parametrize(
    ("header", "is_told"),
    [("2,7,5", True), ("0,1,2", False), ("1990,1991,1992", False), ("ash,7,5", False)],
)
def test_a_first_line_that_may_be_counts_is_told(tmp_path, header, is_told):
    path = tmp_path / "counts.csv"
    path.write_text(header + ROWS)
    done = call("fit", "multinomial", path, *SHORT, "--out", tmp_path / "run")
    assert done.exit_code == 0
    assert ("all of them are numbers (2, 7, 5)" in done.stderr) == is_told


@pytest.mark.parametrize("command", [["fit", "multinomial"], ["plot"], ["pack"]])
def test_a_folder_without_a_name_is_not_where_the_shell_is(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("ash,oak,elm" + ROWS)
    done = call(*command, "counts.csv", "--out", "")
    assert done.exit_code == 2
    assert "it must have a name; got none" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["counts.csv"]
