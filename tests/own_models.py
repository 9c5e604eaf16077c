"""The examples of docs/own_models.md, as the page has them."""

import re
from functools import cache
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "own_models.md"
BLOCK = re.compile(r"^```(?:python|py)\n(.*?)^```$", re.M | re.S)


def source(sign):
    """Return the block of the page that has this in it."""
    (found,) = [code for code in BLOCK.findall(PAGE.read_text()) if sign in code]
    return found


@cache
def example(*signs):
    """Return the names that these blocks define, run one after the other."""
    namespace = {"__name__": "own_models_page"}
    for sign in signs:
        exec(compile(source(sign), str(PAGE), "exec"), namespace)
    return namespace
