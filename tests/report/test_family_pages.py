"""Pages of the other families in a real browser: all that they promise is drawn, and nothing complains."""

import re

import numpy as np
import pandas as pd
import pytest

from browser import chromium, needs_browser, opened
from polystick import (
    CorrelatedMultinomial,
    DirichletMultinomial,
    Gibbs,
    MeanField,
    MultinomialGP,
    MultinomialHMM,
    MultinomialLDS,
    MultinomialRegression,
)

pytestmark = needs_browser
SHORT = Gibbs(n_draws=8, n_burn=8, n_chains=2)
NAMES = ["ash", "<b>beech</b>", "cedar", "elm", "fir", "oak"]


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.arange(1, 7), 24)
    return pd.DataFrame(rng.multinomial(60, share), columns=NAMES)


def kinds(page):
    return page.eval_on_selector_all("[data-kind]", "all => all.map(one => one.dataset.kind)")


def panel(page, title):
    return page.locator(f"[data-kind][aria-label='{title}']")


def fits_a_phone(browser, path):
    with opened(browser, path, width=400, dark=True) as page:
        return page.evaluate("document.documentElement.scrollWidth") <= 400


def test_rows_have_associations_posteriors_and_a_check(browser, counts, tmp_path):
    model = CorrelatedMultinomial(link="softmax", inference=SHORT, random_state=0).fit(counts)
    path = model.report(tmp_path / "rows.html", counts=counts)
    with opened(browser, path) as page:
        assert {"index", "map", "partners", "intervals"} <= set(kinds(page))
        assert page.locator("b").count() == 0
        rows = panel(page, "Rows and what the model takes their shares for")
        rows.locator("select").select_option(label="3")
        crosses = rows.locator("svg path[stroke-width='1.8']")
        assert crosses.count() == len(NAMES)
        check = panel(page, "Posterior predictive check")
        check.locator("[data-item='4']").click()
        assert page.url.endswith("#category=4")
        assert page.locator("[data-kind=index] [aria-current=true]").inner_text().startswith("fir")
    assert fits_a_phone(browser, path)


def test_rows_of_sticks_and_of_a_dirichlet_have_pages(browser, counts, tmp_path):
    sticks = CorrelatedMultinomial(inference=MeanField(), random_state=0).fit(counts)
    with opened(browser, sticks.report(tmp_path / "sticks.html")) as page:
        assert "no test" in page.locator("[data-kind=partners]").inner_text()
    dirichlet = DirichletMultinomial().fit(counts)
    with opened(browser, dirichlet.report(tmp_path / "dirichlet.html", counts=counts)) as page:
        assert "fitted in one step" in page.locator(".verdict").inner_text()
        assert "map" not in kinds(page)


def test_a_process_over_time_has_bands_and_what_was_counted(browser, counts, tmp_path):
    years = pd.DataFrame({"year": np.arange(1990, 2014)})
    model = MultinomialGP(inference=MeanField(), random_state=0).fit(years[:20], counts[:20])
    path = model.report(tmp_path / "paths.html", held_out=(years[20:], counts[20:]))
    with opened(browser, path, "#category=2") as page:
        lines = panel(page, "Probabilities")
        assert lines.locator("path[data-item='2'][stroke-width='3']").count() == 1
        assert lines.locator("svg circle").count() == 20
        lines.locator("svg").hover(position={"x": 300, "y": 100})
        assert re.match(r"(19|20)\d\d[\d.]*, .*%", lines.locator(".readout").inner_text())
        assert "nats per count" in panel(page, "How well held-out counts are foretold").inner_text()
        assert "length_scale" in panel(page, "Hyperparameters of the kernel").inner_text()
    assert fits_a_phone(browser, path)


def test_a_process_over_places_and_years_has_a_map_and_a_slider(browser, counts, tmp_path):
    places = pd.DataFrame(
        {"year": np.repeat([1990, 1991], 12), "lon": 2 * list(range(12)), "lat": 40.0}
    )
    places["lat"] += places["lon"] % 5
    model = MultinomialGP(inference=MeanField(), random_state=0).fit(places, counts)
    towns = places.loc[[3], ["lon", "lat"]].set_axis(["<i>Town</i>"])
    path = model.report(tmp_path / "map.html", places=towns)
    with opened(browser, path) as page:
        there = page.locator("[data-kind=places]")
        assert there.locator("circle").count() == 12
        assert there.locator("output").inner_text() == "year 1991"
        there.locator("#time").fill("0")
        assert there.locator("output").inner_text() == "year 1990"
        there.locator("circle[data-place='3']").click()
        said = there.locator(".readout").inner_text()
        assert said.startswith("<i>Town</i>: ")
        assert said.endswith("%")
    assert fits_a_phone(browser, path)


def test_dynamics_have_states_and_a_fan(browser, counts, tmp_path):
    model = MultinomialLDS(2, inference=SHORT, random_state=0).fit(counts)
    path = model.report(tmp_path / "dynamics.html", n_steps=7)
    with opened(browser, path) as page:
        assert panel(page, "States").locator("svg[data-lines='2']").count() == 1
        bands = panel(page, "Forecast").locator(
            "path[fill-opacity='0.2'], path[fill-opacity='0.08']"
        )
        assert bands.count() == 3 * len(NAMES)
        assert "half-life" in panel(page, "How long states last").inner_text()
        panel(page, "Forecast").locator("summary").click()
        rows = panel(page, "Forecast").locator("tbody tr")
        rows.first.wait_for(state="attached")  # the table is made when it is opened
        assert rows.count() == len(NAMES) * (24 + 7)
    assert fits_a_phone(browser, path)


def test_regimes_have_probabilities_over_time(browser, counts, tmp_path):
    model = MultinomialHMM(2, inference=SHORT, random_state=0).fit(counts)
    with opened(browser, model.report(tmp_path / "regimes.html")) as page:
        assert panel(page, "Regimes").locator("svg[data-lines='2']").count() == 1
        assert "state 1" in panel(page, "What each state says").inner_text()


def test_a_regression_has_effects_groups_and_contrasts_to_choose(browser, counts, tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "dose": rng.normal(size=24),
            "party": rng.choice(list("ABC"), 24),
            "state": list("wxyz") * 6,
        }
    )
    model = MultinomialRegression("dose + party", groups="state", inference=SHORT, random_state=0)
    path = model.fit(frame, counts).report(tmp_path / "regression.html")
    with opened(browser, path) as page:
        assert panel(page, "Along dose").locator("path[fill-opacity]").count() == len(NAMES)
        effects = panel(page, "Effect of party").locator("option").all_inner_texts()
        assert effects == ["party: A to B", "party: A to C"]
        contrast = panel(page, "Compare two values of party")
        there = contrast.locator("[data-item='0'] title")
        said = there.text_content()
        first, second = contrast.locator("select").all()
        first.select_option(label="C")
        second.select_option(label="A")
        numbers, turned = (re.findall(r"[\d.]+ %", text) for text in (said, there.text_content()))
        assert numbers == [
            turned[0],
            turned[2],
            turned[1],
        ]  # the signs change, the ends are exchanged
        assert panel(page, "Groups of state").locator("option").count() == 4
    assert fits_a_phone(browser, path)
