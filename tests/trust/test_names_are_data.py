"""Names come from strangers: they are written as they are, and are never obeyed."""

import re
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import polystick
from polystick import plots
from polystick.cli import main
from polystick.printable import printable, printable_line

plt = pytest.importorskip("matplotlib.pyplot")

NAMES = [
    "$x_1$",
    "from $5 to $9",
    r"$\\frac{1}$",
    "\x1b[2J\x1b[31mred",
    "\x9b31mred",
    "nul\0nul",
    "bell\a\b\r",
    "abc\u202ecba",
    "\u2066isolated\u200f",
    "<script>alert(1)</script>",
    "two\nlines",
]
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
K = len(NAMES)
RNG = np.random.default_rng(0)
SHARES = RNG.dirichlet(np.ones(K), size=9)
CORRELATION = pd.DataFrame(np.corrcoef(SHARES.T), NAMES, NAMES)
TIMES = pd.Index(np.arange(9), name="$t$ \x1b[2J")
SIZES = pd.DataFrame({"share": 0.1, "lower": 0.05, "upper": 0.2}, index=NAMES)
EFFECTS = pd.DataFrame(
    {"estimate": 0.1, "lower": 0.05, "upper": 0.2}, index=pd.Index(NAMES, name="$p$")
)


def frame():
    return pd.DataFrame(SHARES, TIMES, NAMES)


PICTURES = {
    "paths": lambda: plots.category_paths(TIMES, frame(), categories=NAMES),
    "map": lambda: plots.category_map(RNG.normal(size=(K, 2)), SHARES[0], names=NAMES),
    "heat": lambda: plots.correlation(CORRELATION),
    "graph": lambda: plots.topic_graph(CORRELATION),
    "sizes": lambda: plots.topic_sizes(SIZES),
    "shares": lambda: plots.shares_over_time(frame(), n_shown=K),
    "areas": lambda: plots.shares_over_time(frame(), n_shown=K, stacked=True),
    "effects": lambda: plots.effects(EFFECTS),
}


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_picture_has_names_and_no_formulas(name):
    from matplotlib.cbook import is_math_text
    from matplotlib.text import Text

    figure = PICTURES[name]().figure
    figure.canvas.draw()
    said = [text.get_text() for text in figure.findobj(Text)]
    plt.close(figure)
    joined = "\n".join(said)
    assert any(name.replace("$", r"\$") in joined for name in NAMES[:2])
    assert [text for text in said if is_math_text(text) or OBEYED.search(text)] == []


def test_what_would_be_obeyed_is_shown():
    assert [printable_line(name) for name in NAMES[3:]] == [
        r"\x1b[2J\x1b[31mred",
        r"\x9b31mred",
        r"nul\x00nul",
        r"bell\x07\x08\r",
        r"abc\u202ecba",
        r"\u2066isolated\u200f",
        "<script>alert(1)</script>",
        r"two\nlines",
    ]
    assert printable("Pólya\t\n数 ñ العربية") == "Pólya\t\n数 ñ العربية"
    assert printable("\ud800").encode() == rb"\ud800"


def test_commands_speak_by_one_voice():
    folder = Path(polystick.__file__).parent / "commands"
    loud = [path.name for path in folder.glob("*.py") if "click.echo(" in path.read_text()]
    assert sorted(loud) == ["reproduce.py", "speech.py"]  # the paper's names are our own


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without the compiler")
def test_a_terminal_obeys_no_name(tmp_path):
    table = pd.DataFrame(RNG.poisson(4, (8, K)), columns=NAMES)
    table.to_parquet(tmp_path / "odd.parquet")
    table.assign(**{"text \x1b[2J": "no"}).to_parquet(tmp_path / "worse.parquet")
    short = ["--draws", "4", "--burn", "2", "--chains", "2", "--out"]
    fit = [str(tmp_path / "odd.parquet"), *short, str(tmp_path / "run")]
    calls = [
        ["fit", "multinomial", *fit],
        ["show", str(tmp_path / "run")],
        ["fit", "multinomial", str(tmp_path / "worse.parquet"), *short, str(tmp_path / "other")],
    ]
    done = [CliRunner().invoke(main, call) for call in calls]
    assert [call.exit_code for call in done] == [0, 0, 1], done[0].output
    assert r"\x1b[2J" in done[1].stdout
    assert r"\x1b[2J" in done[2].stderr
    assert [OBEYED.search(call.output) for call in done] == [None] * 3
    assert len(re.findall("^.*two.*$", done[1].stdout, re.M)) == done[1].stdout.count("two")
