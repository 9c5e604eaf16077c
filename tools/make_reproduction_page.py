"""Bring what `polystick reproduce` wrote into docs/reproduction.md, below the words that we wrote by hand.

polystick reproduce all --full --out FOLDER
python tools/make_reproduction_page.py FOLDER
"""

import re
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PAGE, PICTURES = DOCS / "reproduction.md", DOCS / "_static" / "reproduction"
MARK = f"<!-- below: tools/{Path(__file__).name} -->\n"


def page(by_hand, report):
    """Return the page: what is above the mark, and the report without its title and links to tables."""
    report = report.split("\n", 1)[1]
    report = re.sub(r"\]\((\w+\.png)\)", rf"]({PICTURES.relative_to(DOCS)}/\1)", report)
    report = re.sub(r" Numbers: \[[^\]]*\]\([^)]*\)\.", "", report)
    return by_hand.split(MARK)[0] + MARK + report


def copy_pictures(folder, report):
    """Replace the pictures by those that the report shows."""
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    for name in re.findall(r"\]\((\w+\.png)\)", report):
        shutil.copy(folder / name, PICTURES / name)


if __name__ == "__main__":
    source = Path(sys.argv[1])
    written = (source / "REPRODUCTION.md").read_text(encoding="utf-8")
    copy_pictures(source, written)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), written), encoding="utf-8")
