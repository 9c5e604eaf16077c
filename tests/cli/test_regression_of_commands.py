"""Regressions from a shell: covariates and groups beside counts, effects, scores, and what is refused."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from test_texts_of_commands import call

from polystick import Gibbs, MultinomialRegression
from polystick.commands import pictures, runs, views
from polystick.commands.formulas import columns_of

pytest.importorskip("formulaic")

NAMES = ["ash", "beech", "cedar"]
SHORT = ["--draws", 4, "--burn", 4, "--chains", 1, "--seed", 3]
FORMULA = "poly(year, degree=2) + place + soil"
_RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "year": 2000 + np.arange(24) % 6,
        "place": ["north", "south", "south"] * 8,
        "soil": list("aabbccab") * 3,
        "state": list("wxyz") * 6,
    }
)
_SOUTH = (FRAME["place"] == "south").to_numpy()[:, None]
COUNTS = pd.DataFrame(_RNG.poisson(np.where(_SOUTH, [60, 20, 10], [10, 20, 60])), columns=NAMES)
TABLE = pd.concat([FRAME.assign(note="dry"), COUNTS], axis=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("regression")
    TABLE.to_csv(folder / "table.csv", index=False)
    TABLE.drop(columns="soil").to_csv(folder / "less.csv", index=False)
    TABLE.assign(soil="d").to_csv(folder / "clay.csv", index=False)
    TABLE.assign(state="v").to_csv(folder / "new.csv", index=False)
    (folder / "lines.jsonl").write_text('{"tokens": ["ash", "beech"]}\n')
    given = ["--formula", FORMULA, "--groups", "state", "--ignore", "note", *SHORT]
    call("fit", "regression", folder / "table.csv", *given, "--out", folder / "run")
    return folder


@pytest.fixture(scope="module")
def fitted():
    """What the same fit is in Python."""
    sizes = Gibbs(n_draws=4, n_burn=4, n_chains=1)
    model = MultinomialRegression(FORMULA, groups="state", inference=sizes, random_state=3)
    return model.fit(FRAME, COUNTS)


def test_a_run_is_the_fit_of_python(folder, fitted):
    stored = runs.open_run(folder / "run")
    assert stored.names == NAMES
    assert stored.estimator.overdispersion_ == "full"
    assert list(stored.estimator.design_.variables) == columns_of(FORMULA)
    for name in ("coefficients", "group_effects", "noise_cov"):
        np.testing.assert_array_equal(
            stored.estimator.posterior_.flat(name), fitted.posterior_.flat(name)
        )


def test_tables_are_of_effects_and_of_variance_components(folder, fitted):
    shown = call("show", folder / "run").output
    assert "effect of place on probabilities, north to south" in shown
    assert "effect of year on probabilities, up by 1" in shown
    tables = json.loads(call("show", folder / "run", "--json").stdout)["tables"]
    *effects, spread = tables
    assert len(effects) == 4  # of soil two
    assert [row["component"] for row in tables[spread]] == ["state"] * 3 + ["overdispersion"] * 3
    np.testing.assert_allclose(
        [row["estimate"] for row in tables[spread]], fitted.variance_components()["estimate"]
    )
    (largest,) = json.loads(call("show", folder / "run", "--json", "--rows", 1).stdout)["tables"][
        "effect of place on probabilities, north to south"
    ]
    assert largest["category"] == fitted.effects("place")["estimate"].abs().idxmax()


def test_small_effects_have_digits_that_tell():
    table = pd.DataFrame({"estimate": [0.00012, -0.0034], "p_positive": [0.0, 0.0], "size": [1, 2]})
    assert views.text_of(table).splitlines() == [
        "estimate  p_positive  size",
        " 0.00012       0.000     1",
        "-0.00340       0.000     2",
    ]


def test_effects_of_one_column_are_shown(folder, fitted):
    shown = json.loads(call("show", folder / "run", "--effects", "place", "--json").stdout)
    ((title, rows),) = shown["tables"].items()
    assert title == "effect of place on probabilities, north to south"
    assert [row["category"] for row in rows] == NAMES
    np.testing.assert_allclose(
        [row["estimate"] for row in rows], fitted.effects("place")["estimate"]
    )
    assert rows[0]["p_positive"] == 1  # ash is of the south
    soil = json.loads(call("show", folder / "run", "--effects", "soil", "--json").stdout)
    assert [title.split(", ")[1] for title in soil["tables"]] == ["a to b", "a to c"]


def test_numbers_that_are_a_factor_have_levels(folder, tmp_path):
    given = ["--formula", "C(year)", "--ignore", "note,state,place,soil", *SHORT]
    call("fit", "regression", folder / "table.csv", *given, "--out", tmp_path / "run")
    shown = json.loads(call("show", tmp_path / "run", "--json").stdout)
    changes = [title.split(", ")[1] for title in shown["tables"] if "effect" in title]
    assert changes == [f"2000 to {year}" for year in range(2001, 2006)]


def test_pictures_are_curves_and_dots(folder, tmp_path):
    pytest.importorskip("matplotlib")
    drawn = json.loads(call("plot", folder / "run", "--out", tmp_path / "out", "--json").stdout)
    names = ["effect_year", "effect_place", "effect_soil", "trace"]
    assert drawn["pictures"] == [str(tmp_path / "out" / f"{name}.png") for name in names]
    assert all((tmp_path / "out" / f"{name}.png").stat().st_size > 1000 for name in names)


def test_what_is_drawn_has_names(folder):
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    figures = dict(pictures.PICTURES["regression"](runs.open_run(folder / "run")))
    axes = {name: figure.axes[0] for name, figure in figures.items()}
    assert [len(axes["effect_year"].collections), len(axes["effect_year"].containers)] == [3, 0]
    (dots,) = axes["effect_place"].containers
    assert len(dots[0].get_xdata()) == 3
    assert [c.get_label() for c in axes["effect_soil"].containers] == ["a to b", "a to c"]
    plt.close("all")


def test_files_are_scored_with_groups_known_or_new(folder, fitted):
    said = json.loads(call("score", folder / "run", folder / "table.csv", "--json").stdout)
    assert said["log_likelihood_per_count"] == pytest.approx(fitted.score(FRAME, COUNTS))
    new = call("score", folder / "run", folder / "new.csv", "--groups", "new", "--json")
    assert json.loads(new.stdout)["log_likelihood_per_count"] == pytest.approx(
        fitted.score(FRAME, COUNTS, groups="new")
    )


def test_options_reach_the_model(folder, tmp_path):
    """A line for each count; crossed groups in two ways of writing; no formula but a level."""
    long = FRAME.join(COUNTS).melt([*FRAME], var_name="tree", value_name="n")
    long.to_csv(tmp_path / "long.csv", index=False)
    given = ["--name", "tree", "--value", "n", "--groups", "state,soil", "--groups", "place"]
    more = ["--formula", "1", "--overdispersion", "diagonal", "--link", "softmax", *SHORT]
    out = tmp_path / "run"
    call("fit", "regression", tmp_path / "long.csv", *given, *more, "--out", out)
    model = runs.open_run(out).estimator
    assert model.groups == ["state", "soil", "place"]
    assert (model.overdispersion_, model.link) == ("diagonal", "softmax")
    assert sorted(runs.open_run(out).names) == NAMES
    assert "spread of probabilities" in call("show", out).output
    more = ["--formula", "year", "--ignore", "note,soil,state,place", "--overdispersion", "none"]
    out = tmp_path / "plain"
    call("fit", "regression", folder / "table.csv", *more, *SHORT, "--out", out)
    assert runs.open_run(out).estimator.overdispersion_ is None
    said = call("score", out, folder / "table.csv", "--groups", "new", code=1).output
    assert "--groups is for regressions with groups" in said


def test_a_longer_run_is_the_same_run(folder, tmp_path):
    given = ["--formula", FORMULA, "--groups", "state", "--ignore", "note", "--seed", 3]
    fit = ["fit", "regression", folder / "table.csv", *given, "--out", tmp_path / "run"]
    call(*fit, "--draws", 2, "--burn", 4, "--chains", 1)
    call(*fit, "--draws", 4, "--resume")
    one, whole = (runs.open_run(f / "run").estimator for f in (tmp_path, folder))
    np.testing.assert_array_equal(
        one.posterior_.flat("coefficients"), whole.posterior_.flat("coefficients")
    )


def test_what_is_refused(folder, tmp_path):
    table, out = folder / "table.csv", ["--out", tmp_path / "run", *SHORT]
    fit = ["fit", "regression", table, "--ignore", "note"]
    rest = [*fit, "--ignore", "note,place,soil,state"]
    cases = [
        ([*fit, "--formula", "age + year", *out], "must have the column 'age'; its columns are"),
        ([*fit, "--formula", "year", "--groups", "county", *out], "must have the column 'county'"),
        ([*fit, "--formula", "year", *out], "column 'place' of"),
        ([*fit, "--formula", "note", *out], "'note' is wanted, so --ignore must not name it"),
        ([*rest, "--formula", "ash ~ year", *out], "no response"),
        ([*rest, "--formula", "year +", *out], "cannot read the formula"),
        ([*fit, "--formula", "year", "--name", "year", *out], "holds what is counted (--name)"),
        ([*fit, "--formula", "year", "--mean-field", "--out", "run"], "leave --mean-field out"),
        ([*fit, "--formula", "year", "--stop-words", "none", *out], "--stop-words is for texts"),
        (["fit", "regression", folder / "lines.jsonl", "--formula", "1", *out], "must be a table"),
        (["score", folder / "run", folder / "less.csv"], "must have the column 'soil'"),
        (["score", folder / "run", folder / "clay.csv"], "factor 'soil' must have levels seen"),
        (
            ["score", folder / "run", folder / "new.csv"],
            "use --groups new for groups of their kind",
        ),
        (["score", folder / "run", table, "--text", "note"], "--text is for topics"),
        (["score", folder / "run", table, "--method", "completion"], "--method is for topics"),
        (["show", folder / "run", "--effects", "age"], "no covariate 'age'"),
        (["show", folder / "run", "--by", "frex"], "--by needs a run of topics"),
    ]
    for arguments, match in cases:
        said = call(*arguments, code=1).output
        assert match in said, (arguments, said)
    assert not (tmp_path / "run").exists()


def test_without_formulaic_a_sentence_says_what_to_install(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    given = ["--formula", FORMULA, "--ignore", "note,state", *SHORT, "--out", tmp_path / "run"]
    said = call("fit", "regression", folder / "table.csv", *given, code=1).output
    assert "formulas need formulaic; install polystick[formula]\n" in said


FORMULAS = {
    "1": [],
    "cr(year, df=5) + party": ["year", "party"],
    "year*party + year:state - 1": ["year", "party", "state"],
    "np.log(income) + I(age**2) + log(age)": ["income", "age"],
    "C(party, contr.treatment('D')) + `a b`": ["party", "a b"],
    'C(df, contr.treatment("np")) + cr (cr, df = 4) + {age + 1e3}': ["df", "cr", "age"],
    "größe + x_1": ["größe", "x_1"],
    "I(age == 3) + scale(age, center=True)": ["age"],
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_columns_of_a_formula(formula):
    assert columns_of(formula) == FORMULAS[formula]
