"""A few lines of HTML about a fitted model, for a notebook: no scripts, no styles that leave their place."""

from html import escape

__all__ = ["html"]

_CELL = "text-align:left;padding:0.1em 1em 0.1em 0"


def html(name, verdict, table):
    """Return HTML: the name, whether to trust the run, and a table (title, header, rows) or None."""
    sign = {True: "✓", False: "⚠", None: "·"}[verdict["good"]]
    parts = [f"<strong>{escape(name)}</strong>", f"<div>{sign} {escape(verdict['text'])}</div>"]
    if table is not None:
        parts.append(_table(*table))
    parts.append('<div><code>.report("page.html")</code> writes all of it as a page.</div>')
    return f'<div class="polystick">{"".join(parts)}</div>'


def _table(title, header, rows):
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(str(name))}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(str(cell))}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    head = f"<caption>{escape(title)}</caption><thead><tr>{head}</tr></thead>"
    return f"<table>{head}<tbody>{body}</tbody></table>"
