"""Each command that the pages show runs, in the order of its page."""

import json
import re
import shlex
from pathlib import Path

import numba
import numpy as np
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
    n_run, session = 0, {}  # blocks of a page are one session of Python
    for kind, what in commands(page):
        if kind == "python":
            exec(what, session)
            continue
        result = CliRunner().invoke(main, what)
        assert result.exit_code == 0, (what, result.output)
        n_run += 1
    assert n_run >= 10


@needs_jit
def test_commands_of_the_readme(tmp_path, monkeypatch):
    """Two are run elsewhere: the demo by its own test, `reproduce` by tests/paper."""
    monkeypatch.chdir(tmp_path)
    rng, words = (
        np.random.default_rng(0),
        np.array(["army", "navy", "bank", "gold", "land", "rail"]),
    )
    for name in ("speeches", "others"):
        texts = (" ".join(rng.choice(words, 30)) for _ in range(40))
        lines = "\n".join(json.dumps({"text": text}) for text in texts)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    page = (ROOT / "README.md").read_text()
    shown = [what for kind, what in commands(page) if kind == "polystick"]
    ran = [what for what in shown if what[0] not in ("demo", "reproduce")]
    assert [what[0] for what in ran] == ["fit", "show", "score", "plot"]
    for arguments in ran:
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, (arguments, result.output)
    for command, *rest in (what for what in shown if what not in ran):
        parsed = main.get_command(None, command).make_context(
            command, rest
        )  # refuses what is unknown
        assert parsed.params["out"]
