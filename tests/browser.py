"""The machine's own Chromium, where there is one."""

import contextlib
import os
import shutil

import pytest

WHERE = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_browser = pytest.mark.skipif(
    WHERE is None, reason="needs Chromium, which this machine does not have"
)


@contextlib.contextmanager
def chromium():
    """Run a browser."""
    from playwright.sync_api import sync_playwright

    root = {"args": ["--no-sandbox"]} if os.geteuid() == 0 else {}
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=WHERE, **root)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def opened(browser, path, fragment="", width=1280, dark=False):
    """Open a page; nothing may be complained of, and nothing may be asked for but the page."""
    scheme = "dark" if dark else "light"
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(path.resolve().as_uri() + fragment)
        page.wait_for_selector("h1")
        yield page
        assert said == []
        assert [url for url in asked if not url.startswith(("file:", "data:,", "blob:"))] == []
        assert sum(url.startswith("file:") for url in asked) == 1
    finally:
        context.close()
