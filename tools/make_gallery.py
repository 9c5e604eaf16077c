"""Run the pages of docs/gallery, and keep the explorers that they write for `make docs`.

python tools/make_gallery.py              explorers, to docs/_extra/explorers, which git ignores
python tools/make_gallery.py --pictures   and pictures, to docs/_static/gallery, which it keeps
"""

import os
import re
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def main():
    import matplotlib

    matplotlib.use("Agg")
    warnings.simplefilter("ignore")  # runs of the pages are short
    wanted = {".html": DOCS / "_extra" / "explorers"}
    if "--pictures" in sys.argv:
        wanted[".png"] = DOCS / "_static" / "gallery"
    for folder in wanted.values():
        folder.mkdir(parents=True, exist_ok=True)
    for page in sorted((DOCS / "gallery").glob("*.md")):
        if BLOCK.search(page.read_text()):
            run(page, wanted)


def run(page, wanted):
    """Run the blocks of a page in a folder of their own, and keep what is wanted of that."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        namespace = {"__name__": "__main__"}
        for code in BLOCK.findall(page.read_text()):
            exec(compile(code, page.name, "exec"), namespace)
        os.chdir(DOCS)
        for made in sorted(Path(folder).iterdir()):
            if made.suffix in wanted:
                shutil.copy(made, wanted[made.suffix])
                print(f"{made.name}: {made.stat().st_size / 1e3:.0f} kB", file=sys.stderr)


if __name__ == "__main__":
    main()
