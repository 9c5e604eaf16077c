"""The examples of the pages run, in order, and print what the pages show."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib.pyplot
import numba
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "index",
            "guide",
            "topics",
            "regression",
            "regression_peers",
            "processes",
            "sequences",
            "explorer",
            "scale",
        )
    ),
    "docs/own_models.md",
    "docs/polyagamma.md",
    "docs/peers.md",
    *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "gallery").glob("[!i]*.md")),
]
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n+^```text\n(?P<output>.*?)^```$)?", re.M | re.S
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def examples(text):
    """Return the line, the code and the shown output (or None) of each block of Python."""
    return [
        (text.count("\n", 0, m.start("code")), m["code"], m["output"]) for m in BLOCK.finditer(text)
    ]


def run(page, line, code, namespace):
    """Return what the code prints; its line numbers are those of the page."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + code, page, "exec"), namespace)
    return printed.getvalue()


def differences(printed, shown):
    """Compare words exactly, and numbers to one in a hundred: another machine may round otherwise."""
    words = [" ".join(NUMBER.sub("#", text).split()) for text in (printed, shown)]
    if words[0] != words[1]:
        return words
    pairs = zip(*(map(float, NUMBER.findall(text)) for text in (printed, shown)))
    return [(a, b) for a, b in pairs if abs(a - b) > 0.011 + 0.01 * abs(b)]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without the compiler")
@pytest.mark.parametrize("page", PAGES)
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    found = examples((ROOT / page).read_text())
    assert found
    namespace = {"__name__": "__main__"}
    for line, code, shown in found:
        printed = run(page, line, code, namespace)
        if shown is not None:
            assert differences(printed, shown) == [], f"{page}, line {line}; printed:\n{printed}"
    matplotlib.pyplot.close("all")


def test_the_comparison_sees_words_and_numbers():
    shown = "bound -120 in 3 sweeps\n[[0.5 1.0]]"
    assert differences("bound  -121 in 3 sweeps\n[[0.51 1.]]", shown) != []
    assert differences("bound  -121 in 3 sweeps\n[[0.51 1.0]]", shown) == []
    assert differences("bound -60 in 3 sweeps\n[[0.5 1.0]]", shown) == [(-60.0, -120.0)]
    assert differences("bond -120 in 3 sweeps\n[[0.5 1.0]]", shown) != []


def test_blocks_are_found_with_their_output():
    text = "a\n```python\nx = 1\n```\n\n```text\n1\n```\n\nb\n\n```python\ny\n```\nc\n```text\nz\n```\n"
    assert examples(text) == [(2, "x = 1\n", "1\n"), (12, "y\n", None)]
