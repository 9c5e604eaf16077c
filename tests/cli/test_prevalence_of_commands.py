"""Structural topics from a shell: a formula of other columns, effects, scores, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from test_texts_of_commands import SHORT, TEXTS, call

from polystick.commands import runs

pytest.importorskip("formulaic")

TABLE = pd.DataFrame(
    {"body": TEXTS, "party": ["D", "R"] * 10, "year": range(1980, 2000), "era": list("abcab") * 4}
)
COUNTS = pd.DataFrame(np.random.default_rng(0).poisson(2.0, (20, 4)), columns=["a", "b", "c", "d"])
FORMULA = "year + party + era"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prevalence")
    TABLE.to_csv(folder / "table.csv", index=False)
    TABLE.drop(columns="era").to_csv(folder / "less.csv", index=False)
    COUNTS.assign(party=TABLE.party, year=TABLE.year).to_csv(folder / "counts.csv", index=False)
    (folder / "lines.txt").write_text("\n".join(TEXTS))
    given = ["--text", "body", "--prevalence", FORMULA, *SHORT]
    call("fit", "topics", folder / "table.csv", *given, "--out", folder / "run")
    return folder


def test_effects_are_shown_for_each_topic(folder):
    shown = call("show", folder / "run", "--effects", "party").output
    assert "effect of party on the shares of topics" in shown
    assert "p_positive" in shown
    table = call("show", folder / "run", "--effects", "party", "--json").output
    (rows,) = json.loads(table)["tables"].values()
    assert [row["topic"] for row in rows] == [0, 1]
    model = runs.open_run(folder / "run").estimator
    np.testing.assert_allclose([row["estimate"] for row in rows], model.effects("party").estimate)
    assert set(rows[0]["words"].split(", ")) <= {*model.words_}
    three = json.loads(call("show", folder / "run", "--effects", "era", "--json").output)
    assert list(three["tables"]) == ["effect of era, a to b", "effect of era, a to c"]
    assert "topics" in call("show", folder / "run").output


def test_pictures_of_effects_are_drawn(folder, tmp_path):
    pytest.importorskip("matplotlib")
    call("plot", folder / "run", "--out", tmp_path / "pictures")
    drawn = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert {"effect_year.png", "effect_party.png", "effect_era.png"} <= drawn


def test_new_files_are_scored_with_their_columns(folder):
    said = json.loads(call("score", folder / "run", folder / "table.csv", "--json").output)
    model = runs.open_run(folder / "run").estimator
    assert said["log_likelihood_per_count"] == pytest.approx(
        model.score(TABLE["body"], covariates=TABLE)
    )


def test_a_table_of_counts_has_covariates_too(folder, tmp_path):
    given = ["--ignore", "party,year", "--prevalence", "party + year", *SHORT]
    call("fit", "topics", folder / "counts.csv", *given, "--out", tmp_path / "run")
    model = runs.open_run(tmp_path / "run").estimator
    assert list(model.words_) == ["a", "b", "c", "d"]
    assert model.prevalence_.design.variables == ("party", "year")


def test_documents_may_be_in_groups(folder, tmp_path):
    given = ["--text", "body", "--prevalence", "year", "--groups", "party,era", *SHORT]
    call("fit", "topics", folder / "table.csv", *given, "--out", tmp_path / "run")
    model = runs.open_run(tmp_path / "run").estimator
    assert model.groups == ["party", "era"]
    shown = call("show", tmp_path / "run", "--effects", "era", "--json").output
    assert list(json.loads(shown)["tables"]) == ["effect of era, a to b", "effect of era, a to c"]
    new = TABLE.assign(era="a new one")
    new.to_csv(tmp_path / "new.csv", index=False)
    said = json.loads(call("score", tmp_path / "run", tmp_path / "new.csv", "--json").output)
    found = model.score(new["body"], covariates=new)
    assert said["log_likelihood_per_count"] == pytest.approx(found)


def test_what_is_refused(folder, tmp_path):
    out = ["--out", tmp_path / "run", *SHORT]
    texts = ["--text", "body", "--prevalence"]
    table, lines = folder / "table.csv", folder / "lines.txt"
    cases = [
        (["fit", "topics", lines, "--prevalence", "year", *out], "columns of a table"),
        (["fit", "topics", table, *texts, "age", *out], "'age' is missing"),
        (["fit", "topics", table, *texts, "year", "--svi", *out], "leave --svi out"),
        (["fit", "topics", table, *texts, "year", "--mean-field", *out], "leave --mean-field out"),
        (["fit", "topics", table, "--text", "body", "--groups", "era", *out], "--prevalence 1"),
        (["fit", "topics", table, *texts, "year", "--groups", "author", *out], "'author'"),
        (["score", folder / "run", folder / "less.csv"], "'era' is missing"),
        (["show", folder / "run", "--effects", "age"], "no covariate 'age'"),
    ]
    for arguments, match in cases:
        said = call(*arguments, code=1).output
        assert match in said, said
    call("fit", "topics", lines, *out)
    said = call("show", tmp_path / "run", "--effects", "year", code=1).output
    assert "needs a run of topics with a --prevalence" in said
