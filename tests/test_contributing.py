"""What CONTRIBUTING.md asks of a model is what the schedules ask for."""

import ast
import re
from pathlib import Path

from toy_model import Toy

ROOT = Path(__file__).parents[1]
INFERENCE = ROOT / "src" / "polystick" / "inference"
LISTED = re.compile(r"^    ([a-z_]+(?:\([^)]*\))?) +->", re.M)  # name(arguments)  -> what it gives
QUOTED = re.compile(r"`([a-z_]+(?:\([^`=.]*\))?)`")  # without a dot: those are of other rooms
STEPS = ("Write the sweep", "Say what to keep", "Mean field")


def protocol():
    """Return what the docstrings of the schedules list: "name" or "name(arguments)"."""
    found = set()
    for path in INFERENCE.glob("*.py"):
        text = ast.get_docstring(ast.parse(path.read_text()), clean=False) or ""
        found |= set(LISTED.findall(text))
    return found


def told(page):
    """Return what the steps of CONTRIBUTING.md name."""
    parts = [re.search(rf"^\d\. \*\*{step}.*?(?=^\d\. )", page, re.M | re.S)[0] for step in STEPS]
    return {" ".join(name.split()) for part in parts for name in QUOTED.findall(part)}


def names(signatures):
    return {signature.split("(")[0] for signature in signatures}


def test_contributing_tells_the_protocol():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert told(page) ^ protocol() == set()
    old = page.replace("`initial_parameters(shards, key)`", "`initial_parameters(key)`")
    assert names(told(old)) == names(protocol())
    assert told(old) ^ protocol() == {"initial_parameters(key)", "initial_parameters(shards, key)"}


def test_the_schedules_ask_for_nothing_else():
    used = set()
    for path in INFERENCE.glob("*.py"):
        text = path.read_text()
        used |= set(re.findall(r"\bmodel\.([a-z_]+)\b", text))
        used |= set(re.findall(r"(?:get|has)attr\((?:self\.|run\.)?model, \"([a-z_]+)\"", text))
    assert used == names(protocol())


def test_the_smallest_model_has_all_that_is_not_optional():
    optional = {"settle", "agree", "move_together", "describe_parameters", "diagnose"}
    optional |= {"identified", "watch", "rhat_limit", "advice", "has_labels"}
    assert {name for name in names(protocol()) if not hasattr(Toy, name)} == optional
