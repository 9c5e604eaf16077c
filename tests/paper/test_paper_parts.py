"""Figure 1 and the appendix have the right numbers; the report has all of them, whatever fails."""

import base64
import json
import re
import subprocess
import sys
import types
from html.parser import HTMLParser

import numba
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from scipy import special, stats

from polystick import paper
from polystick.cli import main
from polystick.commands.reproduce import reproduce as command
from polystick.paper import (
    appendix,
    appendix_densities,
    appendix_ellipses,
    appendix_prediction,
    figure1,
    report,
)
from polystick.paper.parts import Line, Part, Picture, judged_above_zero

PLAIN = bool(numba.config.DISABLE_JIT)


def silent(sentence):
    pass


# figure 1


@pytest.mark.parametrize("correlation", [0.9, -0.9])
def test_integrals_over_the_simplex_agree_with_draws(correlation):
    panel = figure1.tilted("a", correlation)
    facts = figure1.integrate(panel, 100 if PLAIN else 500)
    n = 20_000 if PLAIN else 200_000
    psi = np.random.default_rng(0).multivariate_normal(panel.mean, panel.cov, n)
    first, rest = special.expit(psi[:, 0]), special.expit(-psi[:, 0])
    pi = np.stack([first, rest * special.expit(psi[:, 1]), rest * special.expit(-psi[:, 1])], 1)
    grid_error = 0.01 if PLAIN else 1e-3
    near = np.abs(pi[:, 0] - pi[:, 1]) < 0.1
    assert abs(facts.total - 1) < grid_error
    assert abs(facts.near_axis - near.mean()) < 5 * near.std() / np.sqrt(n) + grid_error
    assert np.all(np.abs(facts.means - pi.mean(0)) < 5 * pi.std(0) / np.sqrt(n) + grid_error)
    drawn = np.corrcoef(pi[:, :2].T)[0, 1]
    assert abs(facts.correlation - drawn) < 5 / np.sqrt(n) + grid_error


def test_the_integral_sees_a_wrong_jacobian():
    pi, area = figure1.cells(100)
    right = figure1.matched().log_density(pi)
    assert abs(np.exp(right) @ area - 1) < 0.01
    wrong = right + np.log(pi[:, 0])
    assert abs(np.exp(wrong) @ area - 1) > 0.5


def test_the_distance_from_a_uniform_density_has_its_ends():
    near = figure1.integrate(figure1.matched(), 200).from_uniform
    far = figure1.integrate(figure1.tilted("narrow", 0.0, variance=0.02), 200).from_uniform
    assert near < 0.1 < 0.9 < far < 1.01


def test_the_lattice_fills_the_simplex():
    pi = figure1.lattice(20)
    assert len(pi) == 21 * 22 // 2
    np.testing.assert_allclose(pi.sum(1), 1)
    np.testing.assert_allclose(pi.mean(0), 1 / 3)
    assert pi.min() > 0


# appendix A


def test_laws_of_psi_are_logits_of_betas():
    psi = np.linspace(-9, 9, 50)
    for k, found in enumerate(appendix_densities.log_densities(psi), start=1):
        share, jacobian = special.expit(psi), special.expit(psi) * special.expit(-psi)
        np.testing.assert_allclose(np.exp(found), stats.beta(1, 9 - k).pdf(share) * jacobian)
    np.testing.assert_allclose(found, stats.logistic.logpdf(psi))  # the last


def test_moments_are_those_known():
    mass, mean, variance, skewness = appendix_densities.moments()
    np.testing.assert_allclose(mass, 1, atol=1e-9)
    assert (round(mean[0], 2), round(variance[0], 2)) == (-2.59, 1.78)
    np.testing.assert_allclose(
        [mean[-1], variance[-1], skewness[-1]], [0, np.pi**2 / 3, 0], atol=1e-9
    )
    assert np.all(skewness[:-1] < -0.5)


# appendix B


def test_the_sampler_meets_the_exact_posterior_and_no_other():
    *_, law = appendix_ellipses.gibbs(100 if PLAIN else 1000, 20, seed=0)
    right, other = (appendix_ellipses.posterior(np.array(x)) for x in ([4, 3, 2], [3, 4, 2]))
    assert np.abs(appendix_ellipses._z(law.mean, right.mean)).max() < 4.5
    assert np.abs(appendix_ellipses._z(law.mean, other.mean)).max() > 6
    within, between = law.cov.mean(0), np.cov(law.mean.T)
    np.testing.assert_allclose(within + between, right.cov, rtol=0.2, atol=0.05)


def test_overlap_and_coverage_of_a_gaussian_with_itself():
    mean, cov = np.array([0.3, -0.2]), np.array([[0.5, 0.2], [0.2, 0.8]])
    psi = appendix_ellipses.posterior().psi
    step = appendix_ellipses.GRID[1] - appendix_ellipses.GRID[0]
    mass = stats.multivariate_normal(mean, cov).pdf(psi) * step**2
    exact = appendix_ellipses.Exact(mass, psi, mean, cov)
    assert abs(appendix_ellipses.overlap(exact, mean, cov) - 1) < 1e-6
    assert abs(appendix_ellipses.covered(exact, mean, cov) - 0.9) < 0.01
    assert appendix_ellipses.overlap(exact, mean + 5, cov) < 0.01
    edge = appendix_ellipses.ellipse(mean, cov)
    distances = appendix_ellipses.distances(edge, mean, cov)
    np.testing.assert_allclose(distances, stats.chi2.ppf(0.9, 2))


def fake_predictions(spread, n_runs=400):
    rng = np.random.default_rng(0)
    shape = (n_runs, len(appendix_prediction.N_STATES), len(appendix_prediction.NEW), 3)
    return {
        c: 0.3 + sd * rng.normal(size=shape) for c, sd in ((True, 0.01), (False, 0.01 * spread))
    }


def test_ratios_of_variances_are_found_with_their_errors():
    value, error = appendix_prediction.ratio(fake_predictions(3.0), 0, appendix_prediction.AHEAD)
    n_free = 399 * 3 * appendix_prediction.AHEAD.sum()
    assert abs(error - 9 * np.sqrt(4 / n_free)) < 0.2 * error
    assert abs(value - 9) < 5 * error
    verdicts = [line.verdict for line in appendix_prediction.lines(fake_predictions(1.0))]
    assert verdicts == ["differs"] * 4 + ["agrees"]  # no gain, yet the same mean


# whole parts


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Return the folder of a run of both parts, with fewer runs of the process."""
    folder = tmp_path_factory.mktemp("quick")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(figure1.N_CELLS, False, 300)
        patch.setitem(appendix_prediction.N_RUNS, False, 4)
        patch.setitem(appendix_ellipses.N_CHAINS, False, 100)
        outcomes = paper.reproduce(["figure1", "appendix"], folder, say=silent)
    assert [outcome.status for outcome in outcomes] == ["done", "done"], outcomes
    return folder


needs_jit = pytest.mark.skipif(PLAIN, reason="needs the compiler: 640,000 cells and a process")


@needs_jit
def test_quick_runs_leave_pictures_tables_and_lines(quick):
    stems = ["figure1", "appendix_densities", "appendix_ellipses", "appendix_prediction"]
    for stem in stems:
        assert (quick / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (quick / f"{stem}.svg").read_text()
        table = pd.read_csv(quick / f"{stem}.csv")
        assert len(table) > 500
    records = report.read_records(quick)
    assert [record["name"] for record in records] == ["figure1", "appendix"]
    assert [len(record["lines"]) for record in records] == [4, 14]
    totals = [float(value) for value in records[0]["lines"][0]["ours"].split(", ")]
    np.testing.assert_allclose(totals, 1, atol=1e-3)
    ahead = next(line for line in records[1]["lines"] if "ten steps ahead" in line["what"])
    assert float(ahead["ours"]) > 2


@needs_jit
def test_tables_have_what_is_drawn(quick):
    table = pd.read_csv(quick / "figure1.csv")
    assert set(table.panel) == {"correlated", "anti-correlated", "near-spherical"}
    on_psi = table[(table.space == "psi") & (table.panel == "near-spherical")]
    mean, variance = figure1.matched().mean, np.diag(figure1.matched().cov)
    law = stats.norm(mean, np.sqrt(variance))
    expected = law.pdf(on_psi[["psi_1", "psi_2"]].to_numpy()).prod(axis=1)
    np.testing.assert_allclose(on_psi.density, expected, rtol=1e-5)
    on_simplex = table[table.space == "simplex"]
    np.testing.assert_allclose(on_simplex[["pi_1", "pi_2", "pi_3"]].sum(axis=1), 1, atol=1e-6)
    picture = appendix_densities.picture()
    for line in picture.figure.axes[1].lines:
        values = np.concatenate([picture.table.log_density, picture.table.log_gaussian])
        assert np.isin(line.get_ydata(), values).all()


@needs_jit
def test_settings_tell_what_was_run(quick):
    settings = report.read_records(quick)[1]["settings"]
    assert "4 runs" in settings["prediction"]
    assert "100 chains" in settings["conditionals"]
    assert "200 runs" in appendix._settings(full=True)["prediction"]


# the report


def some_part(name="names", verdict="agrees"):
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([1, 2], [3, 4])
    table = pd.DataFrame({"x": [1, 2], "y": [3, 4]})
    lines = [
        Line("a | b <c>", "4.2", "4.3", "0.1", verdict, "because & so"),
        Line("second", "most", "few", "0.2", "differs", "x < y"),
    ]
    picture = Picture(f"{name}_1", "A title", "A caption <1>.", figure, table)
    return Part(name, "Names <again>", {"sweeps": "20"}, [picture], lines, "It holds.", 1.5)


class Structure(HTMLParser):
    """What a page consists of; fails at tags that do not match."""

    def __init__(self):
        super().__init__()
        self.open, self.cells, self.images = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.images.append(dict(attrs)["src"])
        elif tag != "meta":
            self.open.append(tag)
            if tag == "td":
                self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


def test_the_report_has_each_line_and_needs_no_other_file(tmp_path):
    report.write(tmp_path, [some_part()])
    page = Structure()
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page.feed(text)
    assert page.open == []
    assert page.cells[-12:-6] == ["a | b <c>", "4.2", "4.3", "0.1", "✓ agrees", "because & so"]
    assert page.cells[-6:] == ["second", "most", "few", "0.2", "✗ differs", "x < y"]
    (image,) = page.images
    kind, data = image.split(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data) == (tmp_path / "names_1.png").read_bytes()
    assert not re.search(r'(src|href)="(http|/)', text)


def test_the_markdown_is_a_table(tmp_path):
    report.write(tmp_path, [some_part()])
    text = (tmp_path / "REPRODUCTION.md").read_text(encoding="utf-8")
    rows = [row for row in text.splitlines() if row.startswith("| ")]
    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {8}
    assert r"| a \| b <c> | 4.2 | 4.3 | 0.1 | agrees | because & so |" in rows
    assert "![A title](names_1.png)" in text
    assert pd.read_csv(tmp_path / "names_1.csv").y.tolist() == [3, 4]


def test_later_runs_keep_earlier_parts_in_the_report(tmp_path):
    report.write(tmp_path, [some_part("sequences")])
    report.write(tmp_path, [some_part("names")])
    assert [record["name"] for record in report.read_records(tmp_path)] == ["names", "sequences"]
    (tmp_path / "names_1.png").unlink()
    report.write_pages(tmp_path)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").count("<img") == 1


# what goes wrong


def missing(full, say):
    raise FileNotFoundError("ap.tgz is not here; put it into the folder that POLYSTICK_DATA names")


def without_pooch(full, say):
    try:
        raise ModuleNotFoundError("No module named 'pooch'", name="pooch")
    except ImportError as error:
        raise ImportError("downloading needs pooch: pip install polystick[data]") from error


def broken(full, say):
    raise RuntimeError("the matrix is singular")


@pytest.fixture
def parts(monkeypatch):
    """Let topics miss their data, names break and the others work."""
    runs = {name: lambda full, say, name=name: some_part(name) for name in paper.PARTS}
    runs |= {"topics": missing, "names": broken}
    for name, run in runs.items():
        module = types.SimpleNamespace(run=run)
        monkeypatch.setitem(sys.modules, f"polystick.paper.{name}", module)
    return runs


def test_a_part_that_fails_does_not_lose_the_others(parts, tmp_path):
    said = []
    outcomes = paper.reproduce(paper.PARTS, tmp_path, say=said.append)
    assert [o.status for o in outcomes] == ["done", "skipped", "failed", "done", "done"]
    for name in ("figure1", "sequences", "appendix"):
        assert (tmp_path / f"{name}_1.png").exists()
    for page in ("REPRODUCTION.md", "report.html"):
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert "ap.tgz is not here" in text
        assert "RuntimeError: the matrix is singular" in text
        assert text.count("It holds.") == 3
    assert any("ap.tgz is not here" in sentence for sentence in said)
    assert "Traceback" in (tmp_path / "names_error.txt").read_text()


def test_files_are_there_when_a_part_ends(parts, tmp_path, monkeypatch):
    def look(full, say):
        assert "It holds." in (tmp_path / "report.html").read_text(encoding="utf-8")
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["polystick.paper.sequences"], "run", look)
    with pytest.raises(KeyboardInterrupt):
        paper.reproduce(["figure1", "sequences"], tmp_path, say=silent)
    assert (tmp_path / "figure1_1.csv").exists()


def test_no_downloader_is_no_data_but_other_imports_must_work(parts, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["polystick.paper.names"], "run", without_pooch)
    monkeypatch.setitem(sys.modules, "polystick.paper.topics", None)  # its import fails
    outcomes = paper.reproduce(["names", "topics"], tmp_path, say=silent)
    assert [outcome.status for outcome in outcomes] == ["skipped", "failed"]
    assert outcomes[0].sentence == "downloading needs pooch: pip install polystick[data]"


def test_an_unknown_verdict_is_a_failure(parts, tmp_path, monkeypatch):
    run = lambda full, say: some_part("figure1", verdict="fine")
    monkeypatch.setattr(sys.modules["polystick.paper.figure1"], "run", run)
    (outcome,) = paper.reproduce(["figure1"], tmp_path, say=silent)
    assert outcome.status == "failed"
    assert "a verdict must be one of agrees" in outcome.sentence


# the command


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["figure1", "appendix"], 0),
        (["topics"], 1),  # asked for by name
        (["figure1", "topics"], 1),
        (["names"], 1),
        (["everything"], 2),
        (["--slow"], 2),
    ],
)
def test_exit_codes(parts, tmp_path, arguments, code):
    result = CliRunner().invoke(command, [*arguments, "--out", str(tmp_path / "new" / "out")])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    if "topics" in arguments:
        assert "skipped: ap.tgz is not here" in result.stdout


@pytest.mark.parametrize("arguments", [[], ["all"], ["all", "topics"]])
def test_all_goes_on_without_data_and_says_so(parts, tmp_path, monkeypatch, arguments):
    works = sys.modules["polystick.paper.figure1"].run
    monkeypatch.setattr(sys.modules["polystick.paper.names"], "run", works)
    result = CliRunner().invoke(command, [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == int("topics" in arguments)
    assert "skipped: ap.tgz is not here" in result.stdout
    assert "second: few (paper: most)" in result.stdout


def test_json_is_all_of_the_output(parts, tmp_path):
    arguments = ["topics", "figure1", "--full", "--json", "--out", str(tmp_path)]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [(p["name"], p["status"]) for p in found["parts"]] == [
        ("figure1", "done"),
        ("topics", "skipped"),
    ]
    assert found["parts"][0]["mode"] == "full"
    assert found["parts"][0]["lines"][0]["what"] == "a | b <c>"


def test_the_folder_must_be_one(parts, tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        result = CliRunner().invoke(command, ["figure1", "--out", str(out)])
        assert result.exit_code == 2
        assert "--out" in result.output
        assert "Traceback" not in result.output


@pytest.mark.parametrize("content", ["{}", "[1]", "no", '{"name": "names", "status": "other"}'])
def test_a_record_of_somebody_else_is_refused_at_once(parts, tmp_path, content):
    (tmp_path / "names.json").write_text(content)
    result = CliRunner().invoke(main, ["reproduce", "figure1", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "names.json must be a record of an earlier run" in result.output
    assert "started" not in result.output


def test_the_command_is_loaded_in_no_time():
    code = """
import sys
import polystick.commands.reproduce
print(sorted({"numpy", "pandas", "matplotlib", "numba", "sklearn"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_difference_within_its_error_is_undecided():
    assert [judged_above_zero(x, 1.0) for x in (2.1, 1.9, -1.9, -2.1)] == [
        "agrees",
        "undecided",
        "undecided",
        "differs",
    ]
