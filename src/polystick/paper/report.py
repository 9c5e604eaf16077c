"""What a reproduction leaves in its folder: pictures, tables, REPRODUCTION.md and report.html.

Each part leaves a record, <part>.json; the two pages are made from all records in the folder, so parts may
be run one by one, on different days.
"""

import base64
import html
import json
import os

from polystick import __version__
from polystick.paper import PARTS
from polystick.paper.parts import VERDICTS, Line

DPI = 120
COLUMNS = ("what", "the paper", "ours", "standard error", "verdict", "why")
HEAD = "The paper, reproduced"
ABOUT = (
    "Linderman, Johnson and Adams, Dependent Multinomial Models Made Easy: Stick-Breaking with the "
    "Pólya-gamma Augmentation (2015). Each line sets a number or a claim of the paper beside ours. Where the "
    "paper prints no number, its words stand there."
)


def write(folder, parts, full=False):
    """Write all files of parts, and the pages."""
    for part in parts:
        write_part(folder, part, full)
    write_pages(folder)


def write_part(folder, part, full):
    """Write a part's pictures (PNG, SVG), tables (CSV) and record (JSON)."""
    _check(part)
    for picture in part.pictures:
        for ending in ("png", "svg"):
            looks = {"dpi": DPI, "bbox_inches": "tight", "facecolor": "white"}
            picture.figure.savefig(folder / f"{picture.name}.{ending}", **looks)
        _close(picture.figure)
        picture.table.to_csv(folder / f"{picture.name}.csv", index=False, float_format="%.8g")
    record = {
        "name": part.name,
        "status": "done",
        "title": part.title,
        "mode": "full" if full else "quick",
        "version": __version__,
        "cores": os.cpu_count(),
        "seconds": round(float(part.seconds), 1),
        "settings": {str(key): str(value) for key, value in part.settings.items()},
        "pictures": [
            {"name": p.name, "title": p.title, "caption": p.caption} for p in part.pictures
        ],
        "lines": [line._asdict() for line in part.lines],
        "reading": part.reading,
    }
    _write_record(folder, record)


def write_absence(folder, outcome):
    """Write the record of a part that was skipped or failed."""
    _write_record(folder, outcome._asdict())


def read_records(folder):
    """Return the records in a folder, in the order of the paper."""
    paths = [folder / f"{name}.json" for name in PARTS]
    return [_read_record(path) for path in paths if path.exists()]


def _read_record(path):
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        known = record["name"] == path.stem and record["status"] in ("done", "skipped", "failed")
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise ValueError(
            f"{path} must be a record of an earlier run; it is not: choose another folder"
        )
    return record


def write_pages(folder):
    """Write REPRODUCTION.md and report.html from the records in a folder."""
    records = read_records(folder)
    (folder / "REPRODUCTION.md").write_text(as_markdown(records), encoding="utf-8")
    names = [picture["name"] for record in records for picture in record.get("pictures", [])]
    paths = {name: folder / f"{name}.png" for name in names}
    pictures = {
        name: base64.b64encode(path.read_bytes()).decode()
        for name, path in paths.items()
        if path.exists()  # somebody may have tidied up since an earlier run
    }
    (folder / "report.html").write_text(as_html(records, pictures), encoding="utf-8")


def count_verdicts(lines):
    """Return such as '3 agrees, 1 differs'."""
    verdicts = [line["verdict"] for line in lines]
    return ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts)


def _check(part):
    unknown = [line.verdict for line in part.lines if line.verdict not in VERDICTS]
    if unknown:
        raise ValueError(f"a verdict must be one of {', '.join(VERDICTS)}; got {unknown[0]!r}")


def _close(figure):
    """Let pyplot forget a figure that it may know."""
    import matplotlib.pyplot as plt

    plt.close(figure)


def _write_record(folder, record):
    text, path = json.dumps(record, indent=1, ensure_ascii=False), folder / f"{record['name']}.json"
    half = path.with_suffix(".json.part")  # a kill must not leave half a record
    half.write_text(text + "\n", encoding="utf-8")
    half.replace(path)


def _how(record):
    return (
        f"{record['mode'].capitalize()} settings, {record['seconds']:.0f} s on {record['cores']} cores, "
        f"polystick {record['version']}. Lines: {count_verdicts(record['lines'])}."
    )


# Markdown


def as_markdown(records):
    """Return the page as Markdown, with pictures beside it."""
    pieces = [f"# {HEAD}", ABOUT, *(_part_as_markdown(record) for record in records)]
    return "\n\n".join(pieces) + "\n"


def _part_as_markdown(record):
    if record["status"] != "done":
        return f"## {record['name']}: {record['status']}\n\n{record['sentence']}"
    settings = "\n".join(f"- {key}: {value}" for key, value in record["settings"].items())
    rows = [COLUMNS, ["---"] * len(COLUMNS), *(Line(**line) for line in record["lines"])]
    table = "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in rows)
    pictures = [
        f"![{p['title']}]({p['name']}.png)\n\n{p['caption']} Numbers: [{p['name']}.csv]({p['name']}.csv)."
        for p in record["pictures"]
    ]
    pieces = [f"## {record['title']}", _how(record), record["reading"], table, *pictures]
    return "\n\n".join([*pieces, "Settings:", settings])


def _cell(text):
    return " ".join(str(text).split()).replace("|", "\\|")


# HTML

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
h2 { margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1rem }
table { border-collapse: collapse; font-size: 0.85rem; width: 100% }
th, td { border-bottom: 1px solid #ddd; padding: 0.4rem 0.5rem; text-align: left; vertical-align: top }
td { overflow-wrap: break-word }
.verdict { white-space: nowrap; font-weight: 600 }
.agrees { color: #0072b2 } .differs { color: #b34700 }
.absent { background: #fff3e0; padding: 0.5rem 1rem }
figure { margin: 2rem 0 } img { max-width: 100%; height: auto }
figcaption, .how { color: #555; font-size: 0.9rem }
"""
SIGNS = {"agrees": "✓ ", "differs": "✗ "}  # not told by colour alone


def as_html(records, pictures):
    """Return the page as HTML that needs no other file; pictures are PNG by name, in base 64."""
    parts = "\n".join(_part_as_html(record, pictures) for record in records)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{HEAD}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{HEAD}</h1>\n<p>{html.escape(ABOUT)}</p>\n"
        f"{_overview(records)}\n{parts}\n</body>\n</html>\n"
    )


def _overview(records):
    rows = [
        f'<tr><td><a href="#{record["name"]}">{record["name"]}</a></td><td>{record["status"]}</td>'
        f"<td>{count_verdicts(record.get('lines', []))}</td></tr>"
        for record in records
    ]
    head = "<tr><th>part</th><th>status</th><th>lines</th></tr>"
    return f"<table>\n<thead>{head}</thead>\n<tbody>{''.join(rows)}</tbody>\n</table>"


def _part_as_html(record, pictures):
    name, say = record["name"], html.escape
    if record["status"] != "done":
        head = f'<h2 id="{name}">{name}: {record["status"]}</h2>'
        return f'{head}\n<p class="absent">{say(record["sentence"])}</p>'
    settings = "".join(
        f"<li>{say(key)}: {say(value)}</li>" for key, value in record["settings"].items()
    )
    head = "".join(f"<th>{column}</th>" for column in COLUMNS)
    rows = "\n".join(_row(Line(**line)) for line in record["lines"])
    there = [picture for picture in record["pictures"] if picture["name"] in pictures]
    figures = "\n".join(_figure(picture, pictures) for picture in there)
    return (
        f'<h2 id="{name}">{say(record["title"])}</h2>\n<p class="how">{say(_how(record))}</p>\n'
        f"<p>{say(record['reading'])}</p>\n<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n"
        f"</tbody>\n</table>\n{figures}\n<p>Settings</p>\n<ul>{settings}</ul>"
    )


def _row(line):
    cells = [html.escape(text) for text in line]
    place = line._fields.index("verdict")
    cells[place] = SIGNS.get(line.verdict, "") + cells[place]
    looks = [""] * len(cells)
    looks[place] = f' class="verdict {line.verdict.replace(" ", "-")}"'
    return "<tr>" + "".join(f"<td{look}>{cell}</td>" for look, cell in zip(looks, cells)) + "</tr>"


def _figure(picture, pictures):
    name, title, caption = (html.escape(picture[key]) for key in ("name", "title", "caption"))
    return (
        f'<figure>\n<img src="data:image/png;base64,{pictures[picture["name"]]}" alt="{title}">\n'
        f'<figcaption>{caption} Numbers: <a href="{name}.csv">{name}.csv</a>.</figcaption>\n</figure>'
    )
