"""`polystick report`: the page of a run, with the documents of a file."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from polystick.cli import main

SHORT = ["--draws", "6", "--burn", "4", "--chains", "2"]


def call(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.output


def data_of(path):
    (found,) = re.findall(r'id="data">(.*?)</script>', path.read_text(), re.S)
    return json.loads(found)


def kinds_of(data):
    return {panel["kind"] for section in data["sections"] for panel in section["panels"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file of speeches, and a run of them."""
    folder, rng = tmp_path_factory.mktemp("speeches"), np.random.default_rng(0)
    words = [
        "ash",
        "beech",
        "cedar",
        "elm",
        "fir",
        "larch",
        "maple",
        "oak",
        "pine",
        "rowan",
        "willow",
        "yew",
    ]
    lines = [
        json.dumps({"text": "Beginning " + " ".join(rng.choice(words, 30))}) for _ in range(30)
    ]
    (folder / "speeches.jsonl").write_text("\n".join(lines))
    call("fit", "topics", folder / "speeches.jsonl", "--topics", 5, "--out", folder / "run", *SHORT)
    return folder


def test_a_page_of_topics_shows_the_associations_of_the_run(folder):
    said = call("report", folder / "run", "--out", folder / "page.html", "--title", "Speeches")
    assert "page.html" in said
    data = data_of(folder / "page.html")
    assert data["title"] == "Speeches"
    assert "documents" not in kinds_of(data)
    (partners,) = (p for s in data["sections"] for p in s["panels"] if p["kind"] == "partners")
    assert partners["what"] == "association"
    assert len(partners["mean"]) == 10


def test_a_page_of_topics_shows_documents_of_a_file(folder):
    page = folder / "with.html"
    call("report", folder / "run", "--out", page, "--data", folder / "speeches.jsonl")
    data = data_of(page)
    (shown,) = (p for s in data["sections"] for p in s["panels"] if p["kind"] == "documents")
    assert all(one["text"].startswith("Beginning ") for one in shown["documents"])


def test_ways_to_read_need_a_file(folder):
    said = call("report", folder / "run", "--out", folder / "no.html", "--text", "body", code=1)
    assert "--text says how to read a file: give one by --data" in said


def test_other_models_take_files_like_that_of_the_fit(tmp_path):
    rng = np.random.default_rng(0)
    counts = pd.DataFrame(rng.poisson([6, 4, 2], (12, 3)), columns=["ash", "beech", "cedar"])
    file, page = tmp_path / "dated.csv", tmp_path / "page.html"
    counts.assign(year=range(2000, 2012)).to_csv(file, index=False)
    call("fit", "multinomial", file, "--ignore", "year", "--mean-field", "--out", tmp_path / "rows")
    call("report", tmp_path / "rows", "--out", page, "--data", file)
    titles = {
        panel["title"] for section in data_of(page)["sections"] for panel in section["panels"]
    }
    assert "Posterior predictive check" in titles
    call("fit", "gp", file, "--inputs", "year", "--mean-field", "--out", tmp_path / "process")
    call("report", tmp_path / "process", "--out", page, "--data", file)
    assert "nats per count" in page.read_text()
    call("fit", "lds", file, "--ignore", "year", "--states", 2, "--out", tmp_path / "steps", *SHORT)
    said = call("report", tmp_path / "steps", "--out", page, "--data", file, code=1)
    assert "shows what it was fitted to; leave --data out" in said
