"""Data of pages, their writer, and what notebooks show: no browser is needed."""

import base64
import hashlib
import json
import re

import numpy as np
import pytest

from polystick import CorrelatedTopicModel, Gibbs, MeanField, MultinomialLDS, SmoothedUnigram
from polystick.report import page, panels

SHORT = Gibbs(n_draws=6, n_burn=4, n_chains=2)


@pytest.fixture(scope="module")
def model():
    counts = np.random.default_rng(0).poisson(1.0, (20, 12))
    return CorrelatedTopicModel(3, inference=SHORT, random_state=0).fit(counts)


def test_the_policy_knows_the_scripts_and_styles_by_their_hashes():
    text = page.html({"title": "t", "items": [], "sections": []})
    (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', text)
    assert policy.startswith("default-src 'none';")
    for tag in ("script", "style"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:", text.replace("http://www.w3.org/2000/svg", ""))


def test_numbers_that_json_lacks_become_null():
    told = json.loads(
        page.encoded({"a": [np.nan, np.inf, np.float32(2.5)], "b": np.int64(3), 4: None})
    )
    assert told == {"a": [None, None, 2.5], "b": 3, "4": None}


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "\u2028", "\ud800", "&lt;"])
def test_texts_come_out_as_they_went_in(text):
    coded = page.encoded([text])
    assert not set("<>\u2028\ud800") & set(coded)
    assert json.loads(coded)[0] in (text, "?")


def test_numbers_keep_the_digits_that_a_picture_shows():
    assert panels.short([123456.0, 0.000123456, 0, -1.23456]) == [123500.0, 0.0001235, 0.0, -1.235]


def test_a_notebook_shows_what_was_learned_and_the_parameters_before(model):
    new = CorrelatedTopicModel(3)
    assert "polystick" not in new._repr_html_().partition("sk-top-container")[0]
    assert "largest of 3 topics" not in new._repr_html_()
    shown = model._repr_html_()
    assert "largest of 3 topics" in shown
    assert "have not converged" in shown
    assert "sk-top-container" in shown
    assert "<script" not in shown.partition("<details>")[0]


def test_a_notebook_shows_names_as_text(model):
    words = ["<img src=x>", *(f"w{i}" for i in range(11))]
    counts = np.random.default_rng(0).poisson(1.0, (20, 12)) + 9 * (np.arange(12) == 0)
    import pandas as pd

    hostile = CorrelatedTopicModel(3, inference=SHORT, random_state=0)
    shown = hostile.fit(pd.DataFrame(counts, columns=words))._repr_html_()
    assert "&lt;img src=x&gt;" in shown
    assert "<img src=x>" not in shown


def test_fits_of_mean_field_have_pages_too(tmp_path):
    counts = np.random.default_rng(0).poisson(1.0, (20, 12))
    inference = MeanField(n_draws=4, tolerance=1e-2)
    model = CorrelatedTopicModel(3, inference=inference, random_state=0).fit(counts)
    text = model.report(tmp_path / "page.html").read_text()
    assert "mean field" in text.lower()
    assert "Bound" in text


@pytest.mark.parametrize(
    ("face", "told"),
    [
        (MultinomialLDS(2, n_regimes=2, inference=SHORT, random_state=1), '"regime"'),
        (SmoothedUnigram(), "What comes next"),
    ],
    ids=["regimes", "unigram"],
)
def test_sequences_have_a_page_whatever_their_law_is(face, told, tmp_path):
    counts = np.random.default_rng(3).multinomial(20, [0.5, 0.3, 0.2], size=12)
    text = (
        face.set_output(transform="xarray").fit(counts).report(tmp_path / "page.html").read_text()
    )
    assert told in text
