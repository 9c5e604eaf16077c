"""Make the pictures of docs/explorer.md in Chromium: python tools/make_explorer_pictures.py.

It takes about a minute. Where there is no Chromium it says so and leaves the pictures as they are.
"""

import shutil
import tempfile
from pathlib import Path

from PIL import Image

from polystick import DynamicTopicModel, Gibbs, MeanField, MultinomialGP, datasets

OUT = Path(__file__).parents[1] / "docs" / "_static"
_COLOURS = 64
NAMES = ("chromium", "chromium-browser", "google-chrome")


def write_topics(path):
    addresses = datasets.load_state_of_the_union()
    inference = Gibbs(n_draws=60, n_burn=60, n_chains=2)
    model = DynamicTopicModel(20, inference=inference, random_state=1)
    model.fit(addresses.counts, times=addresses.years)
    more = {"documents": addresses.counts, "words": addresses.words, "times": addresses.years}
    model.report(path, title="State of the Union addresses", **more)


def write_names(path):
    years = range(1960, 2014, 13)
    names = datasets.load_names("M", n_names=8, years=years).reset_index()
    centres = datasets.load_state_centres()
    inputs = names[["year"]].join(centres.loc[names["state"]].reset_index(drop=True))
    counts = names.drop(columns=["year", "state"])
    model = MultinomialGP(inference=MeanField(), random_state=0).fit(inputs, counts)
    model.report(path, title="Names of boys, by year and state", places=centres)


PAGES = {"explorer_topics": write_topics, "explorer_names": write_names}


def main():
    from playwright.sync_api import sync_playwright

    where = next(filter(None, map(shutil.which, NAMES)), None)
    if where is None:
        print("no Chromium here: the pictures stay as they are")
        return
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=where, args=["--no-sandbox"])
        for name, write in PAGES.items():
            path = Path(folder) / f"{name}.html"
            write(path)
            take(browser, path, OUT / f"{name}.png")
        browser.close()


def click(page):
    """Choose a place, where there is a map of places."""
    place = page.locator("[data-kind=places] circle").nth(20)
    if place.count():
        place.click()


def take(browser, path, out):
    page = browser.new_page(viewport={"width": 1180, "height": 1000}, color_scheme="light")
    page.goto(path.as_uri())
    page.wait_for_selector("svg circle")
    click(page)
    page.screenshot(path=out)
    page.close()
    Image.open(out).convert("RGB").quantize(_COLOURS).save(
        out, optimize=True
    )  # a third of the size
    print(f"{out.name}: {out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
