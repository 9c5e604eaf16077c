"""What CONTRIBUTING.md asks of a model is what the protocols ask for, and what the schedules call."""

import ast
import re
from pathlib import Path

from polystick.inference.protocols import BatchModel, Extras, GibbsModel, members
from toy_model import Toy

ROOT = Path(__file__).parents[1]
INFERENCE = ROOT / "src" / "polystick" / "inference"
QUOTED = re.compile(r"`([a-z_]+(?:\([^`=.]*\))?)`")  # without a dot: those are of other rooms
STEPS = ("Write the sweep", "Say what to keep", "Mean field")
ASKED = {**members(GibbsModel), **members(BatchModel), **members(Extras)}
CALLERS = {"model", "extras"}  # what the schedules call a model


def protocol():
    """Return what the protocols list: "name" or "name(arguments)"."""
    return {
        name if arguments is None else f"{name}({', '.join(arguments)})"
        for name, arguments in ASKED.items()
    }


def told(page):
    """Return what the steps of CONTRIBUTING.md name."""
    parts = [re.search(rf"^\d\. \*\*{step}.*?(?=^\d\. )", page, re.M | re.S)[0] for step in STEPS]
    return {" ".join(name.split()) for part in parts for name in QUOTED.findall(part)}


def names(signatures):
    return {signature.split("(")[0] for signature in signatures}


def test_contributing_tells_the_protocol():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert told(page) ^ protocol() == set()


def test_the_comparison_sees_arguments_and_their_order():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    for wrong in ("initial_parameters(key)", "initial_parameters(key, shards)"):
        old = page.replace("`initial_parameters(shards, key)`", f"`{wrong}`")
        assert names(told(old)) == names(protocol())
        assert told(old) ^ protocol() == {wrong, "initial_parameters(shards, key)"}


def accesses(source):
    """Yield (name, names of the arguments or None) of each use of a model in a source."""
    tree = ast.parse(source)
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and last_word(node.value) in CALLERS:
            call = called.get(id(node))
            yield node.attr, None if call is None else [last_word(arg) for arg in call.args]
        elif is_question(node):
            yield node.args[1].value, None
        elif is_step(node):
            yield node.args[0].value, None


def is_question(node):
    """Tell whether a node is getattr or hasattr of a model."""
    asks = isinstance(node, ast.Call) and last_word(node.func) in {"getattr", "hasattr"}
    return asks and last_word(node.args[0]) in CALLERS and isinstance(node.args[1], ast.Constant)


def is_step(node):
    """Tell whether a node has a method of the model, by its name, called where the rows are."""
    sent = isinstance(node, ast.Call) and last_word(node.func) in {"step", "start"}
    return sent and bool(node.args) and isinstance(node.args[0], ast.Constant)


def last_word(node):
    """Return what a name or the last attribute of it says; a cast or an index is looked through."""
    if isinstance(node, ast.Subscript):
        return last_word(node.value)
    if isinstance(node, ast.Call) and last_word(node.func) == "cast":
        return last_word(node.args[1])
    return getattr(node, "attr", getattr(node, "id", None))


def all_accesses():
    return [use for path in INFERENCE.glob("*.py") for use in accesses(path.read_text())]


def test_the_schedules_ask_for_nothing_else():
    assert {name for name, _ in all_accesses()} == set(ASKED)


def test_the_schedules_give_what_the_protocols_say():
    """As many arguments; and one that is called as some argument of the method stands in its place."""
    calls = [(name, given) for name, given in all_accesses() if given is not None]
    assert len({name for name, _ in calls}) > 15
    for name, given in calls:
        assert len(given) == len(ASKED[name]), name
        for i, word in enumerate(given):
            assert word == ASKED[name][i] or word not in ASKED[name], (name, given)


def test_the_walk_sees_what_is_asked():
    source = "run.model.f(a, self.b[0]); getattr(model, 'g'); cast(X, model).h(c); o.k(); held.step('i', d)"
    found = [("f", ["a", "b"]), ("g", None), ("h", ["c"]), ("i", None)]
    assert sorted(accesses(source)) == found


def test_the_smallest_model_has_all_that_is_not_optional():
    optional = {*members(Extras)} - {*members(GibbsModel)} - {*members(BatchModel)}
    assert {name for name in ASKED if not hasattr(Toy, name)} == optional
