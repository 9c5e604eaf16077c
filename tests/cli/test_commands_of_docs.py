"""Each command that the pages show runs, in the order of its page."""

import re
import shlex
from pathlib import Path

import numba
import pytest
from click.testing import CliRunner

from polystick.cli import main

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(?P<language>python|sh)\n(?P<text>.*?)^```$", re.M | re.S)
needs_jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="fits need the compiler")


def commands(text):
    """Return ("python", code) and ("polystick", arguments) of a page, in order."""
    for block in BLOCK.finditer(text):
        if block["language"] == "python":
            yield "python", block["text"]
            continue
        for line in block["text"].splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["polystick"]:
                yield "polystick", words[1:]


@needs_jit
def test_commands_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "command_line.md").read_text()
    n_run = 0
    for kind, what in commands(page):
        if kind == "python":
            exec(what, {})
            continue
        result = CliRunner().invoke(main, what)
        assert result.exit_code == 0, (what, result.output)
        n_run += 1
    assert n_run >= 10


def test_commands_of_the_readme_exist():
    """They are run elsewhere: the demo by tests/cli, `make` by CI, `reproduce` by tests/paper."""
    shown = [what for kind, what in commands((ROOT / "README.md").read_text()) if kind != "python"]
    assert shown
    for arguments in shown:
        command, *rest = arguments
        options = {word for word in rest if word.startswith("--")}
        context = main.make_context("polystick", [command, "--help"], resilient_parsing=True)
        known = main.get_command(context, command)
        assert known is not None, arguments
        while hasattr(known, "commands") and rest:  # fit topics
            known, rest = known.get_command(context, rest[0]), rest[1:]
        names = {name for p in known.params for name in (*p.opts, *p.secondary_opts)}
        assert options <= names, arguments
