"""Public signatures say what they take and what they give."""

import inspect
import types

import pytest

import polystick


def functions_of(thing, name, seen):
    """Yield (name, function) of what a public name has that is ours, each once."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, types.ModuleType):
        for own in getattr(thing, "__all__", [key for key in vars(thing) if key[0] != "_"]):
            if getattr(getattr(thing, own), "__module__", "").startswith("polystick"):
                yield from functions_of(getattr(thing, own), f"{name}.{own}", seen)
    elif inspect.isclass(thing):
        for own in dir(thing):
            if own == "__init__" or not own.startswith("_"):
                found = inspect.getattr_static(thing, own)
                found = found.fget if isinstance(found, property) else found
                yield from functions_of(getattr(found, "__func__", found), f"{name}.{own}", seen)
    elif inspect.isfunction(thing) and thing.__module__.startswith("polystick"):
        yield name, inspect.unwrap(thing)


def without_annotations(function):
    """Return the names of the arguments that say nothing, and "return" if what is returned does not."""
    signature = inspect.signature(function)
    silent = [
        each.name
        for number, each in enumerate(signature.parameters.values())
        if each.annotation is each.empty and (number or each.name not in ("self", "cls", "face"))
    ]
    return silent + ["return"] * (signature.return_annotation is signature.empty)


def public_functions():
    seen = set()
    for name in polystick.__all__:
        yield from functions_of(getattr(polystick, name), name, seen)


def test_public_signatures_are_annotated():
    silent = {name: without_annotations(function) for name, function in public_functions()}
    assert not {name: missing for name, missing in silent.items() if missing}
    assert len(silent) > 300


@pytest.mark.parametrize("function", [lambda x: x, lambda self, x: x])
def test_a_signature_that_says_nothing_is_seen(function):
    assert without_annotations(function)[-2:] == ["x", "return"]
