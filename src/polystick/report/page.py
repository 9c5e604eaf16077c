"""The page: data, styles and scripts in one HTML file that asks nobody for anything.

Its policy forbids all that is not written in it: scripts and styles are known by their hashes, so that not
even a name that is a script could run.
"""

import base64
import functools
import hashlib
import html as escaping
import json
import math
from importlib import resources

__all__ = ["encoded", "html"]

STYLES = ("page.css",)
SCRIPTS = (
    "elements.js",
    "selection.js",
    "axes.js",
    "tables.js",
    "topics.js",
    "charts.js",
    "places.js",
    "page.js",
)

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<noscript>This page draws its pictures with scripts that are in it; please allow them.</noscript>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def html(data):
    """Return a page that shows these data."""
    style, script = _package_files(STYLES), _package_files(SCRIPTS)
    return _PAGE.format(
        policy=_policy(style, script),
        title=escaping.escape(str(data["title"])),
        style=style,
        data=encoded(data),
        script=script,
    )


def encoded(data):
    """Return data as JSON that can stand in a script element: nothing in it ends the element or a line."""
    text = json.dumps(_plain(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text.encode("utf-8", "replace").decode()  # halves of signs, which no file can hold


def _plain(value):
    """Return data with NumPy's numbers as Python's, and those that JSON lacks as null."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value == int(value) and abs(value) < 2**53 else value
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _policy(style, script):
    known = f"script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:"
    return f"default-src 'none'; {known}; base-uri 'none'; form-action 'none'"


def _hash(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@functools.cache
def _package_files(names):
    folder = resources.files("polystick.report")
    return "\n" + "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
