"""What a model has learned, as one self-contained HTML page; the compact version is for notebooks.

A file of each family turns a fitted model into plain data, `page` puts it into the page, and the scripts
there draw it: they know kinds of panels and no model.
"""

import importlib
import inspect
import os
from pathlib import Path

from polystick.report import facts, glance, page

__all__ = ["compact", "write"]


def write(model, family, path, title=None, **about):
    """Write the page of a fitted model, whole or not at all, and return its path."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {path.parent} must exist before a page is written to it"
        )
    content = page.html(told(model, family, title, about)).encode()
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def told(model, family, title, about):
    """Return all that the page of a model shows, as plain data."""
    name = type(model).__name__
    if family is None:
        _refuse_strange(name, about, [])
        found: dict = {"items": [], "noun": "item", "sections": []}
    else:
        tell = importlib.import_module(f"polystick.report.{family}").tell
        _refuse_strange(name, about, list(inspect.signature(tell).parameters)[1:])
        found = tell(model, **about)
    found["sections"].append(facts.section(model))
    return {"title": title or name, "model": name, "verdict": facts.verdict(model), **found}


def compact(model, family):
    """Return a few lines of HTML about a fitted model: how large, how sure, and its first table."""
    first = None
    if family is not None:
        first = importlib.import_module(f"polystick.report.{family}").first_table(model)
    return glance.html(type(model).__name__, facts.verdict(model), first)


def _refuse_strange(name, about, known):
    if strange := sorted(set(about) - set(known)):
        raise TypeError(
            f"the page of {name} takes {', '.join(known) or 'nothing more'}; got {strange[0]}: leave it out"
        )
