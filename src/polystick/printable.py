r"""Names are data: none of them may move a terminal's cursor, turn a line around or end a string.

Control characters, marks of direction and halves of letters are written as escapes, such as \x1b.
"""

import re

__all__ = ["printable", "printable_line"]

_INVISIBLE = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_ODD = re.compile(f"[{_INVISIBLE}]")


def printable(text: object) -> str:
    """Return text that shows what it holds; lines stay lines."""
    return _ODD.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def printable_line(text: object) -> str:
    """Return text on a single line."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")
