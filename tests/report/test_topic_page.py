"""The page of topics in a real browser: what is clicked, found, linked to and saved, and what is harmless."""

import json
import re

import numpy as np
import pytest

from browser import chromium, needs_browser, opened
from polystick import LDA, CorrelatedTopicModel, DynamicTopicModel, Gibbs

pytestmark = needs_browser
HOSTILE = '</script><img src=x onerror="document.title=1">'
THEMES = [["army", "navy", "war"], ["bank", "gold", "tariff"], ["land", "rail", "farm"]]
WORDS = {word for theme in THEMES for word in theme}


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    found = [" ".join(rng.choice(THEMES[i % 3], 40)) for i in range(60)]
    found[0] += f" {HOSTILE} \u2028 <!-- army \ud800"
    return found


@pytest.fixture(scope="module")
def model(texts):
    short = Gibbs(n_draws=8, n_burn=20, n_chains=2)
    return CorrelatedTopicModel(3, inference=short, random_state=0).fit(texts)


@pytest.fixture(scope="module")
def path(model, texts, tmp_path_factory):
    model.set_labels({0: HOSTILE})
    path = tmp_path_factory.mktemp("pages") / "topics.html"
    years = np.repeat([1900, 1910, 1920], 20)
    assert model.report(path, documents=texts, times=years, title=f"Speeches {HOSTILE}") == path
    return path


def chosen(page):
    return page.locator("circle[stroke-width='2.5']").get_attribute("data-item")


def test_all_panels_are_drawn(browser, path):
    with opened(browser, path) as page:
        kinds = page.eval_on_selector_all("[data-kind]", "all => all.map(one => one.dataset.kind)")
        for kind in ("index", "map", "words", "partners", "documents", "chains", "lines", "facts"):
            assert kind in kinds
        assert page.locator("[data-kind=map] circle").count() == 3
        assert "chains" in page.locator(".verdict").first.inner_text()
        assert page.locator("[data-kind=table]").inner_text().count("run longer") >= 1


def test_a_click_anywhere_selects_everywhere(browser, path):
    with opened(browser, path) as page:
        page.locator("[data-kind=map] circle[data-item='2']").click()
        assert chosen(page) == "2"
        assert page.url.endswith("#topic=2")
        best = page.locator("[data-kind=words] .words button").first.inner_text()
        assert page.locator(".bar .chosen").inner_text().count(best)
        assert page.locator("[data-kind=index] [aria-current=true]").inner_text().count(best)
        assert page.locator("[data-kind=documents] mark").first.inner_text() in WORDS
        page.locator("[data-kind=index] button", has_text=re.compile("script")).first.click()
        assert chosen(page) == "0"
        page.locator("[data-kind=chains] tbody button").nth(1).click()
        now = chosen(page)
        page.keyboard.press("ArrowRight")
        assert chosen(page) != now


def test_words_are_ordered_by_the_slider_and_by_frex(browser, path):
    with opened(browser, path) as page:
        slider = page.locator("#relevance")
        slider.fill("0")
        assert page.locator("output").inner_text() == "0.00"
        assert "relevance=0" in page.url
        shares = page.locator("[data-kind=words] .words .number")
        slider.fill("1")
        percents = [float(text.split()[0]) for text in shares.all_inner_texts()]
        assert percents == sorted(percents, reverse=True)
        page.locator("#frex").check()
        assert "frex=1" in page.url


def test_a_search_finds_the_topic_of_a_word(browser, path):
    with opened(browser, path) as page:
        page.keyboard.press("/")
        page.keyboard.type("gol")
        page.locator("#hits button").first.wait_for()
        assert page.locator("#hits strong").first.inner_text() == "gold"
        page.keyboard.press("Enter")
        assert "word=gold" in page.url
        assert "gold" in page.locator("[data-kind=words] .words").inner_text()
        assert "gold" in page.locator("[data-kind=documents] mark.sure").all_inner_texts()
        page.locator("#search").fill("zzz")
        assert "nothing has" in page.locator("#hits").inner_text()


def test_an_address_opens_what_it_names(browser, path):
    with opened(browser, path, "#topic=1&relevance=0.3&word=navy") as page:
        assert chosen(page) == "1"
        assert page.locator("output").inner_text() == "0.30"
    with opened(browser, path, "#topic=<script>&relevance=x") as page:
        assert chosen(page) is not None


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_phone_shows_all_of_it_by_day_and_night(browser, path, dark):
    with opened(browser, path, width=400, dark=dark) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        wide = "[...document.querySelectorAll('.panel')].some(p => p.getBoundingClientRect().right > 400)"
        assert not page.evaluate(wide)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", colour))) < 200) == dark


def test_names_and_documents_are_shown_as_text(browser, path):
    with opened(browser, path) as page:
        assert page.title() == f"Speeches {HOSTILE}"
        assert page.locator("h1").inner_text() == f"Speeches {HOSTILE}"
        assert page.locator("img").count() == 0
        assert HOSTILE in page.locator("[data-kind=index]").inner_text()
        saved = page.locator("[data-kind=documents] details summary")
        saved.click()
        page.locator("[data-kind=documents] table").wait_for()
        assert "<!-- army" in page.locator("[data-kind=documents] table").inner_text()


def test_the_numbers_of_a_picture_are_saved(browser, path):
    with opened(browser, path) as page:
        with page.expect_download() as caught:
            page.locator("[data-kind=index] button.plain", has_text="CSV").click()
        lines = caught.value.path().read_text(encoding="utf-8-sig").splitlines()
        assert lines[0] == "topic,label,share,lower,upper,chains"
        assert len(lines) == 4
        assert abs(sum(float(line.split(",")[-4]) for line in lines[1:]) - 1) < 0.01


def test_tables_stand_behind_pictures(browser, path):
    with opened(browser, path) as page:
        pictures = page.locator("[role=img]")
        assert all(pictures.nth(i).get_attribute("aria-label") for i in range(pictures.count()))
        page.locator("[data-kind=map] summary").click()
        page.locator("[data-kind=map] tbody").wait_for()
        assert page.locator("[data-kind=map] tbody tr").count() == 3


def test_topics_over_time_and_those_without_correlations_have_pages(browser, texts, tmp_path):
    short, years = Gibbs(n_draws=6, n_burn=6, n_chains=1), np.repeat([1900, 1910, 1920], 20)
    moving = DynamicTopicModel(3, inference=short, random_state=0).fit(texts, times=years)
    still = LDA(3, inference=short, random_state=0).fit(texts)
    with opened(browser, moving.report(tmp_path / "moving.html")) as page:
        assert page.locator("[data-kind=lines] svg[data-lines='3']").count() == 1
    with opened(browser, still.report(tmp_path / "still.html")) as page:
        assert page.locator("[data-kind=map]").count() == 0
        assert page.locator("[data-kind=words]").count() == 1


def test_what_a_page_is_not_given_is_refused(model, texts, tmp_path):
    with pytest.raises(
        TypeError, match=r"takes documents, texts, times, .*; got counts: leave it out"
    ):
        model.report(tmp_path / "page.html", counts=1)
    with pytest.raises(ValueError, match="give documents too"):
        model.report(tmp_path / "page.html", texts=texts)
    with pytest.raises(FileNotFoundError, match="must exist before a page"):
        model.report(tmp_path / "none" / "page.html")
    assert not list(tmp_path.iterdir())


def test_data_cannot_leave_their_element(path):
    (element,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.S
    )
    assert not set("<>\u2028\u2029") & set(element)
    assert json.loads(element)["items"][0]["label"].startswith(HOSTILE)
