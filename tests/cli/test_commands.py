"""Each command in this process: what it reads, writes, says, and refuses."""

import bz2
import gzip
import json
import lzma
import re
import sys
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
from click.testing import CliRunner

from polystick import Posterior
from polystick.cli import COMMANDS, main
from polystick.commands import runs
from polystick.commands.models import read_data
from polystick.commands.runs import open_run
from polystick.demo import N_TOPICS

COUNTS = np.random.default_rng(0).poisson([6, 4, 2], (12, 3))
NAMES = ["ash", "beech", "cedar"]
SHORT = ["--draws", "4", "--burn", "2", "--chains", "2"]


needs_jit = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without the compiler")


def call(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of all kinds with the same counts."""
    folder = tmp_path_factory.mktemp("files")
    wide = pd.DataFrame(COUNTS, columns=NAMES)
    wide.to_csv(folder / "wide.csv", index=False)
    wide[NAMES[::-1]].to_csv(folder / "turned.tsv", index=False, sep="\t")
    dated = wide.assign(year=np.arange(2000, 2012), site="x")
    dated.to_csv(folder / "dated.csv.gz", index=False)
    dated.to_parquet(folder / "dated.parquet", index=False)
    dated.set_index(["site", "year"]).to_parquet(folder / "indexed.parquet")
    long = dated.drop(columns="site").melt(id_vars="year", var_name="tree", value_name="n")
    long.to_csv(folder / "long.csv", index=False)
    words = [{"tokens": list(np.repeat(NAMES, row))} for row in COUNTS.tolist()]
    texts = [{"text": " ".join(record["tokens"]).title()} for record in words]
    for name, lines in (("tokens", words), ("texts", texts)):
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    csr = scipy.sparse.csr_array(COUNTS)
    parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": csr.shape}
    np.savez(folder / "csr.npz", **parts, vocab=np.array(NAMES))
    np.savez(folder / "dense.npz", table=COUNTS, names=np.array(NAMES))
    scipy.io.mmwrite(folder / "matrix.mtx", csr.tocoo())
    (folder / "names.txt").write_text("\n".join(NAMES))
    return folder


@pytest.fixture(scope="module")
def run(folder):
    call("fit", "multinomial", folder / "wide.csv", "--out", folder / "run", *SHORT)
    return folder / "run"


@pytest.fixture(scope="module")
def softmax(folder):
    """A run of six categories, of which the second and the fifth go together."""
    rng = np.random.default_rng(2)
    log_abundance = rng.normal(size=(60, 6))
    log_abundance[:, 4] = log_abundance[:, 1] + 0.3 * rng.normal(size=60)
    shares = np.exp(log_abundance) / np.exp(log_abundance).sum(axis=1, keepdims=True)
    table = pd.DataFrame(rng.multinomial(200, shares), columns=[f"tree {i}" for i in range(6)])
    table.to_csv(folder / "together.csv", index=False)
    options = ["--link", "softmax", "--covariance", "full", "--out", folder / "softmax"]
    sizes = ["--draws", "150", "--burn", "100", "--chains", "2"]
    call("fit", "multinomial", folder / "together.csv", *options, *sizes)
    return folder / "softmax"


@pytest.fixture(scope="module")
def topics(folder):
    arguments = ["--topics", 2, "--out", folder / "topics", *SHORT]
    call("fit", "topics", folder / "texts.jsonl", *arguments)
    return folder / "topics"


@pytest.fixture(scope="module")
def process(folder):
    place = ["--inputs", "year", "--ignore", "site", "--out", folder / "process"]
    call("fit", "gp", folder / "dated.csv.gz", *place, *SHORT)
    return folder / "process"


def score(run, file, *more):
    return json.loads(call("score", run, file, "--json", *more).stdout)


@pytest.mark.parametrize("name", sorted([*COMMANDS, "demo"]))
def test_help_has_an_example(name):
    assert f"Example: polystick {name}" in " ".join(call(name, "--help").stdout.split())


@needs_jit
def test_dynamics_are_learned_shown_scored_and_drawn(folder):
    out = folder / "dynamics"
    call("fit", "lds", folder / "texts.jsonl", "--states", 2, "--out", out, *SHORT)
    shown = json.loads(call("show", out, "--json").stdout)["tables"]
    assert len(shown["dynamics"]) == 2
    assert [row["category"] for row in shown["probabilities"]] == NAMES
    assert 1 < score(out, folder / "texts.jsonl")["perplexity"] < 4
    assert "paths.png" in call("plot", out, "--out", folder / "drawn").stdout


@pytest.mark.parametrize("kind", ["topics", "multinomial", "gp", "lds"])
def test_each_model_has_an_example(kind):
    assert f"Example: polystick fit {kind}" in " ".join(call("fit", kind, "--help").stdout.split())


def test_a_run_holds_what_it_says(run):
    settings = json.loads((run / "settings.json").read_text())
    assert settings["model"] == "multinomial"
    assert settings["options"]["seed"] == 0
    assert settings["data"] == {"file": "wide.csv", "rows": 12, "categories": 3,
                                "counts": int(COUNTS.sum()), "sweeps": 6}  # fmt: skip
    assert json.loads((run / "categories.json").read_text()) == NAMES
    assert Posterior.load(run / "draws.nc")["mean"].shape == (2, 4, 2)


@needs_jit  # a score takes seconds without it
@pytest.mark.parametrize(
    "file",
    ["turned.tsv", "csr.npz", "dense.npz", "tokens.jsonl", "texts.jsonl", "matrix.mtx", "long.csv"],
)
def test_all_kinds_of_files_mean_the_same(folder, run, file):
    more = {"matrix.mtx": ["--vocabulary", folder / "names.txt"],
            "long.csv": ["--name", "tree", "--value", "n"]}  # fmt: skip
    expected, found = (
        score(run, folder / name, *more.get(name, [])) for name in ("wide.csv", file)
    )
    assert found == expected
    assert found["perplexity"] == pytest.approx(np.exp(-found["log_likelihood_per_count"]))
    assert 1 < found["perplexity"] < 4


@pytest.mark.parametrize("name", ["csr.npz", "matrix.mtx", "dated.parquet", "tokens.jsonl"])
@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
def test_all_kinds_of_files_may_be_packed(folder, tmp_path, name, ending, pack):
    packed = tmp_path / (name + ending)
    packed.write_bytes(pack.compress((folder / name).read_bytes()))
    options = {"ignore": ["year", "site"]} if name == "dated.parquet" else {}
    (plain,), (same,) = (
        read_data("multinomial", path, options).arguments for path in (folder / name, packed)
    )
    pd.testing.assert_frame_equal(plain, same)


@needs_jit
def test_a_score_knows_how_the_fit_was_read(folder, tmp_path):
    long = pd.read_csv(folder / "long.csv")
    long.rename(columns={"n": "found"}).to_csv(tmp_path / "other.csv", index=False)
    start = ["--name", "tree", "--value", "n", "--out", tmp_path / "run", *SHORT]
    call("fit", "multinomial", folder / "long.csv", *start)
    same = score(tmp_path / "run", folder / "long.csv")
    assert score(tmp_path / "run", tmp_path / "other.csv", "--value", "found") == same


def test_a_score_of_nothing_is_none(folder, run):
    (folder / "others.jsonl").write_text('{"text": "oak elm"}\n{"text": "oak"}')
    result = call("score", run, folder / "others.jsonl", code=1)
    assert "must have counts of the categories of the fit; it has none" in result.stderr


def test_an_input_that_is_ignored_gets_a_sentence(folder, tmp_path):
    arguments = ["--inputs", "year", "--ignore", "year,site", "--out", tmp_path / "r"]
    result = call("fit", "gp", folder / "dated.csv.gz", *arguments, code=1)
    assert "'year' is wanted, so --ignore must not name it" in result.stderr


def test_sequences_must_have_names_and_say_what_they_drop(folder, tmp_path):
    table = pd.DataFrame(COUNTS, columns=NAMES).assign(site=["x"] * 10 + [None] * 2)
    table.to_csv(tmp_path / "sites.csv", index=False)
    with pytest.raises(ValueError, match="must name a sequence in each row; row 10 has none"):
        read_data("lds", tmp_path / "sites.csv", {"sequence": "site"})
    with pytest.raises(ValueError, match="--sequence is for tables"):
        read_data("lds", folder / "tokens.jsonl", {"sequence": "site"})
    (tmp_path / "new.jsonl").write_text('{"text": "ash oak beech oak cedar"}')
    data = read_data("lds", tmp_path / "new.jsonl", {}, NAMES)
    assert data.notes == ["2 counts of categories unknown to the fit are ignored"]
    np.testing.assert_array_equal(data.arguments[0][0], [0, 1, 2])


def test_a_run_keeps_its_names(folder, tmp_path):
    wide = pd.read_csv(folder / "wide.csv")
    wide.to_csv(tmp_path / "counts.csv", index=False)
    start = ["fit", "multinomial", tmp_path / "counts.csv", "--out", tmp_path / "run", *SHORT]
    call(*start)
    wide.rename(columns={"beech": "birch"}).to_csv(tmp_path / "counts.csv", index=False)
    result = call(*start, "--resume", code=1)
    assert "has other categories: 'beech' where this file has 'birch'" in result.stderr
    assert json.loads((tmp_path / "run" / "categories.json").read_text()) == NAMES


@needs_jit
@pytest.mark.parametrize("file", ["dated.csv.gz", "dated.parquet", "indexed.parquet"])
def test_columns_can_be_left_out(folder, run, file):
    more = ["--ignore", "year,site"]
    assert score(run, folder / file, *more) == score(run, folder / "wide.csv")


def test_words_unknown_to_the_fit_are_said(folder, run):
    (folder / "more.jsonl").write_text('{"text": "ash oak beech oak"}\n{"text": "cedar"}')
    result = call("score", run, folder / "more.jsonl")
    assert "Note: 2 counts of categories unknown to the fit are ignored" in result.stderr
    assert "2 rows, 3 counts" in result.stdout


def test_topics_are_shown(topics):
    text = call("show", topics, "--words", 2).stdout
    assert "topics\ntopic  share  chains  words" in text
    assert "lowest correlations of log shares" in text
    assert "go together" not in text
    shown = json.loads(call("show", topics, "--json", "--words", 2).stdout)
    assert shown["model"] == "topics"
    table = shown["tables"]["topics"]
    assert sum(row["share"] for row in table) == pytest.approx(1)
    assert all(len(row["words"]) == 2 and set(row["words"]) <= set(NAMES) for row in table)


@needs_jit
def test_shares_of_documents_are_written(topics, run, tmp_path):
    call("show", topics, "--csv", tmp_path / "shares.csv")
    table = pd.read_csv(tmp_path / "shares.csv", index_col="document")
    assert all(name.startswith("topic ") for name in table.columns)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=1e-5)
    told = open_run(topics).estimator.posterior_.running("proportions")[0]
    np.testing.assert_allclose(table, told, atol=1e-6)
    refused = call("show", run, "--csv", tmp_path / "none.csv", code=1)
    assert "--csv needs a run of topics" in refused.stderr


def test_topics_that_go_together_are_shown(folder, tmp_path):
    """From five topics on; the fit has left all pairs, for it has the documents."""
    out = tmp_path / "run"
    call("fit", "topics", folder / "texts.jsonl", "--topics", 5, "--out", out, *SHORT)
    pairs = pd.read_csv(out / "associations.csv")
    assert list(pairs.columns[:5]) == ["topic", "with", "mean", "lower", "upper"]
    assert len(pairs) == 10
    assert "log shares" not in call("show", out).stdout
    tables = json.loads(call("show", out, "--json").stdout)["tables"]
    known = (pairs["lower"] > 0) | (pairs["upper"] < 0)
    assert len(tables["topics that go together, or apart"]) == known.sum()
    pairs.assign(mean=0.5, lower=0.2, upper=0.7).to_csv(out / "associations.csv", index=False)
    assert call("show", out, "--rows", 3).stdout.count("0.500  0.200  0.700") == 3


@needs_jit
def test_topics_are_scored_in_two_ways(folder, topics):
    one, other = (score(topics, folder / "texts.jsonl", "--method", method)
                  for method in ("completion", "held-out"))  # fmt: skip
    assert one == score(topics, folder / "texts.jsonl") != other


def test_a_process_is_shown_and_scored(folder, process):
    shown = json.loads(call("show", process, "--json", "--rows", 2).stdout)["tables"]
    assert [row["category"] for row in shown["probabilities"]] == NAMES[:2]
    assert shown["probabilities"][0]["lowest at"].startswith("year 20")
    lengths = {row["hyperparameter"]: row for row in shown["kernel"]}["k1__k2__length_scale"]
    assert 0 < lengths["lower"] <= lengths["mean"] <= lengths["upper"]
    assert 1 < score(process, folder / "dated.csv.gz")["perplexity"] < 4


def test_a_multinomial_is_shown(run):
    shown = json.loads(call("show", run, "--json", "--rows", 2).stdout)
    assert list(shown["tables"]) == ["shares, and their spread over rows"]  # and no pairs
    (shares,) = shown["tables"].values()
    assert [row["category"] for row in shares] == NAMES[:2]
    assert all(row["lower"] <= row["share"] <= row["upper"] for row in shares)
    assert "Gibbs: 2 chains x 4 draws" in shown["summary"]


@needs_jit
def test_which_categories_go_together_is_shown(softmax):
    shown = json.loads(call("show", softmax, "--json").stdout)
    shares, pairs = shown["tables"].values()
    assert list(shown["tables"])[1] == "which categories go together"
    assert {pairs[0]["category"], pairs[0]["with"]} == {"tree 1", "tree 4"}
    assert 0 < pairs[0]["lower"] <= pairs[0]["mean"] <= pairs[0]["upper"] <= 1
    goes_with = {row["category"]: row["goes with"] for row in shares}
    assert goes_with["tree 1"].startswith("+tree 4")
    assert "which categories go together\ncategory" in call("show", softmax).stdout
    settings = json.loads((softmax / "settings.json").read_text())["options"]
    assert (settings["link"], settings["covariance"]) == ("softmax", "full")


@needs_jit
def test_few_categories_have_no_associations(folder, tmp_path):
    options = ["--link", "softmax", "--out", tmp_path / "few", *SHORT]
    call("fit", "multinomial", folder / "wide.csv", *options)
    shown = json.loads(call("show", tmp_path / "few", "--json").stdout)
    assert list(shown["tables"]) == ["shares, and their spread over rows"]
    drawn = json.loads(call("plot", tmp_path / "few", "--out", tmp_path / "out", "--json").stdout)
    assert [Path(path).stem for path in drawn["pictures"]] == ["shares", "trace"]


@pytest.mark.parametrize("option", [["--link", "softmax"], ["--covariance", "factor"]])
def test_what_has_no_mean_field_gets_a_sentence(folder, tmp_path, option):
    arguments = ["fit", "multinomial", folder / "wide.csv", *option, "--out", tmp_path / "run"]
    result = call(*arguments, "--mean-field", code=1)
    assert f"{' '.join(option)} must be sampled" in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("fixture", "names"),
    [
        ("softmax", ["shares", "association", "association_graph", "trace"]),
        ("topics", ["topic_graph", "topic_sizes", "correlation", "trace"]),
        ("run", ["shares", "correlation", "trace"]),
        ("process", ["paths", "trace"]),
    ],
)
def test_pictures_suit_the_model(fixture, names, request, tmp_path):
    out = tmp_path / "pictures"
    result = call("plot", request.getfixturevalue(fixture), "--out", out, "--json")
    assert json.loads(result.stdout)["pictures"] == [str(out / f"{name}.png") for name in names]
    assert all((out / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in names)
    assert "Warning" not in result.stderr


def test_two_inputs_make_maps(folder, tmp_path):
    rng = np.random.default_rng(1)
    at = pd.DataFrame(rng.uniform([30, -120], [48, -70], (12, 2)), columns=["lat", "lon"])
    pd.concat([at, pd.DataFrame(COUNTS, columns=NAMES)], axis=1).to_csv(tmp_path / "at.csv")
    options = ["--inputs", "lat,lon", "--ignore", "Unnamed: 0", "--mean-field", "--draws", 4]
    call("fit", "gp", tmp_path / "at.csv", "--out", tmp_path / "run", *options)
    drawn = call("plot", tmp_path / "run", "--out", tmp_path / "out", "--format", "svg").stdout
    expected = {tmp_path / "out" / f"map_{k}.svg" for k in range(3)}
    assert set(drawn.split()) == {str(path) for path in expected}
    assert all(path.exists() for path in expected)


def test_a_longer_run_is_the_same_run(folder, run, tmp_path):
    arguments = ["fit", "multinomial", folder / "wide.csv", "--out"]
    call(*arguments, tmp_path / "one", "--draws", 2, "--burn", 2, "--chains", 2, "--threads", 1)
    told = call(*arguments, tmp_path / "one", "--resume", "--draws", 4, "--threads", 2, "--json")
    assert json.loads(told.stdout)["sweeps"] == 6
    one, whole = (Posterior.load(f / "draws.nc") for f in (tmp_path / "one", run))
    np.testing.assert_array_equal(one["cov"], whole["cov"])


def test_sequences_are_read_from_words_tokens_and_tables(folder):
    names = np.array(["b", "a", "c"])
    np.savez(folder / "seq.npz", tokens=[0, 1, 0, 1, 0, 1], offsets=[0, 4, 5, 6], vocab=names)
    data = read_data("lds", folder / "seq.npz", {})
    assert [s.tolist() for s in data.arguments[0]] == [[0, 1, 0, 1]]
    assert data.names == ["b", "a", "c"]
    assert data.notes == ["2 sequences of fewer than 2 words are left out"]
    data = read_data("lds", folder / "texts.jsonl", {"max_words": 2}, NAMES)
    assert [len(s) for s in data.arguments[0]] == COUNTS.sum(axis=1).tolist()
    data = read_data("lds", folder / "dated.csv.gz", {"ignore": ["year"], "sequence": "site"})
    np.testing.assert_array_equal(data.arguments[0][0], COUNTS)


BAD = {
    "missing file": (["nowhere.csv"], "nowhere.csv must be a file"),
    "unknown ending": (["names.txt"], "must end in .csv"),
    "column of words": (["dated.csv.gz", "--ignore", "year"], "column 'site' of"),
    "no such column": (["wide.csv", "--ignore", "oak"], "must have the column 'oak'; its columns"),
    "no such name": (["wide.csv", "--name", "tree"], "must have the column 'tree'"),
    "negative": (["negative.csv"], "counts must be at least 0; got -1"),
    "fractions": (["halves.csv"], "use --mean-field, which takes weights"),
    "gaps": (["gaps.csv"], "column 'b' of gaps.csv must hold counts; row 1 has none"),
    "a header only": (["head.csv"], "head.csv must have a line for each row"),
    "nothing but zeros": (["zeros.csv"], "zeros.csv must have counts; it has none"),
    "dates": (["days.parquet"], "column 'day' of days.parquet must hold counts"),
    "names twice": (["twice.csv"], "names that differ; 'a' comes twice"),
    "half a file": (["half.csv.gz"], "must be a whole .gz file"),
    "not packed": (["plain.csv.xz"], "must be a whole .xz file"),
    "value by itself": (["wide.csv", "--value", "n"], "--value must come with --name"),
    "words of columns": (["wide.csv", "--max-words", 2], "--max-words is for words"),
    "field of a table": (["wide.csv", "--field", "text"], "--field is for .jsonl"),
    "vocabulary of a table": (["wide.csv", "--vocabulary", "names.txt"], "is for .npz, .mtx"),
    "burn of an ascent": (["wide.csv", "--mean-field", "--burn", 3], "--burn is for sampling"),
    "one column": (["single.csv"], "at least 2 categories"),
    "empty": (["empty.csv"], "must be a CSV file"),
    "index": (["index.csv"], "column 0 (from 0) has none"),
    "no JSON": (["broken.jsonl"], "each line of"),
    "no text": (["fields.jsonl"], "must have a field text or tokens; they have body"),
    "number for text": (["fields.jsonl", "--field", "body"], "line 1 has int"),
    "no NPZ": (["broken.npz"], "must be an NPZ file"),
    "no parquet": (["broken.parquet"], "must be a parquet file; reading it"),
    "no counts in NPZ": (["odd.npz"], "it holds a, b"),
    "no vocabulary": (["matrix.mtx", "--vocabulary", "gone.txt"], "the vocabulary"),
    "short vocabulary": (
        ["matrix.mtx", "--vocabulary", "two.txt"],
        "each of the 2 names; it has 3",
    ),
}


@pytest.fixture(scope="module")
def bad(folder):
    files = {
        "negative.csv": "a,b\n1,2\n3,-1\n",
        "halves.csv": "a,b\n1,2\n3,0.5\n",
        "gaps.csv": "a,b\n1,2\n3,\n",
        "single.csv": "a\n1\n",
        "head.csv": "a,b\n",
        "zeros.csv": "a,b\n0,0\n0,0\n",
        "twice.csv": "a,a,b\n1,2,3\n",
        "plain.csv.xz": "a,b\n1,2\n",
        "empty.csv": "",
        "index.csv": ",a,b\n0,1,2\n",
        "broken.jsonl": '{"text": "a"}\n{"text"\n',
        "fields.jsonl": '{"body": 1}\n',
        "broken.npz": "no",
        "broken.parquet": "no",
        "two.txt": "a\nb\n",
    }
    for name, content in files.items():
        (folder / name).write_text(content)
    np.savez(folder / "odd.npz", a=COUNTS, b=COUNTS)
    days = pd.date_range("2000-01-01", periods=12)
    pd.DataFrame(COUNTS, columns=NAMES).assign(day=days).to_parquet(folder / "days.parquet")
    (folder / "half.csv.gz").write_bytes(gzip.compress(b"a,b\n" + 999 * b"1,2\n")[:20])
    return folder


@pytest.mark.parametrize("case", BAD)
def test_bad_files_get_a_sentence(bad, case, tmp_path, monkeypatch):
    monkeypatch.chdir(bad)
    arguments, sentence = BAD[case]
    out = tmp_path / "run"
    short = SHORT[:2] if "--mean-field" in arguments else SHORT
    result = call("fit", "multinomial", *arguments, "--out", out, *short, code=1)
    assert result.stderr.startswith("Error: ")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert not out.exists()  # one may try again


def test_parquet_without_its_library_gets_a_sentence(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (folder / "table.parquet").write_bytes(b"no")
    result = call("fit", "multinomial", folder / "table.parquet", "--out", tmp_path / "r", code=1)
    assert "table.parquet is a parquet file, and reading it needs pyarrow" in result.stderr


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ([], "already holds a run; add --resume"),
        (["--resume", "--seed", 3], "was started with --seed 0; got 3"),
        (["--resume", "--draws", 2], "can only become longer"),
        (["--resume", "--ignore", "ash"], "was started with --ignore None; got ['ash']"),
    ],
)
def test_a_run_is_not_mixed_with_another(folder, run, more, sentence):
    result = call("fit", "multinomial", folder / "wide.csv", "--out", run, *more, code=1)
    assert sentence in result.stderr


def test_a_run_goes_on_with_its_own_data_and_model(folder, run):
    result = call("fit", "multinomial", folder / "negative2.csv", "--out", run, "--resume", code=1)
    assert "must be a file" in result.stderr
    (folder / "other.csv").write_text((folder / "wide.csv").read_text() + "1,2,3\n")
    result = call("fit", "multinomial", folder / "other.csv", "--out", run, "--resume", code=1)
    assert "belongs to another run: it differs in data" in result.stderr
    result = call("fit", "topics", folder / "wide.csv", "--out", run, "--resume", code=1)
    assert "holds a run of multinomial, not of topics" in result.stderr


def test_a_result_that_finds_no_room_tells_of_the_checkpoint(folder, tmp_path, monkeypatch):
    def full(self, path):
        raise OSError(28, "No space left on device")

    fit = ["fit", "multinomial", folder / "wide.csv", "--out", tmp_path / "run", *SHORT]
    with monkeypatch.context() as patch:
        patch.setattr(Posterior, "save", full)
        told = call(*fit, code=1).stderr
    assert "No space left on device), but its checkpoint is whole; make room, and repeat" in told
    call(*fit, "--resume")
    call("show", tmp_path / "run")


def test_folders_that_are_no_runs_are_refused(folder, run, tmp_path):
    for command in (["show", folder], ["plot", folder, "--out", tmp_path], ["score", folder, "x"]):
        assert "has no settings.json" in call(*command, code=1).stderr
    result = call("fit", "multinomial", folder / "wide.csv", "--out", folder, code=1)
    assert "must be a new or an empty folder" in result.stderr


def test_a_run_that_has_not_ended_or_is_damaged_is_refused(run, tmp_path):
    settings = json.loads((run / "settings.json").read_text())
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "model.polystick").write_bytes(b"damaged")
    (copy / "settings.json").write_text(json.dumps(settings))
    assert "its checksum does not fit" in call("show", copy, code=1).stderr
    del settings["model_sha256"]
    (copy / "settings.json").write_text(json.dumps(settings))
    assert "was edited: its checksum does not fit" in call("show", copy, code=1).stderr
    del settings["checksum"]
    settings["checksum"] = runs._checksum(settings)
    (copy / "settings.json").write_text(json.dumps(settings))
    assert "has not ended" in call("show", copy, code=1).stderr
    (copy / "settings.json").write_text(json.dumps({**settings, "format": 99}))
    assert "got 99" in call("show", copy, code=1).stderr
    (copy / "settings.json").write_text("{")
    assert "can't be read" in call("show", copy, code=1).stderr


def test_scores_ask_for_the_categories_of_the_fit(folder, run, tmp_path):
    (tmp_path / "less.csv").write_text("ash,beech\n1,2\n")
    assert "it lacks 'cedar'" in call("score", run, tmp_path / "less.csv", code=1).stderr
    (tmp_path / "more.csv").write_text("ash,beech,cedar,oak\n1,2,3,4\n")
    assert (
        "'oak' is not one: --ignore it" in call("score", run, tmp_path / "more.csv", code=1).stderr
    )
    assert "by --vocabulary" in call("score", run, folder / "matrix.mtx", code=1).stderr
    wide = folder / "wide.csv"
    assert "is for topics" in call("score", run, wide, "--method", "completion", code=1).stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "topic", "x.csv", "--out", "r"],
        ["fit", "topics"],
        ["fit", "topics", "x.csv", "--out", "r", "--topics", "1"],
        ["fit", "gp", "x.csv", "--out", "r"],
        ["fit", "gp", "x.csv", "--out", "r", "--inputs", "a,,b"],
        ["fit", "lds", "x.csv", "--out", "r", "--threads", "0"],
        ["guess"],
        ["plot", "r"],
    ],
)
def test_usage_errors_have_a_code_of_their_own(arguments):
    assert "Usage" in call(*arguments, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["fit", "gp", "x.csv", "--inputs", "x", "y", "--out", "r"], "--inputs x,y"),
        (["fit", "gp", "--inputs", "x", "y", "--out", "r", "x.csv"], "--inputs x,y"),
        (["fit", "multinomial", "x.csv", "--ignore", "a", "b", "--out", "r"], "--ignore a,b"),
        (["score", "r", "x.csv", "--ignore", "a", "b"], "--ignore a,b"),
    ],
)
def test_columns_separated_by_spaces_are_told(arguments, hint):
    assert f"separate columns by commas: {hint}" in call(*arguments, code=2).stderr
    other = ["fit", "gp", "x.csv", "y.csv", "--inputs", "x", "--out", "r"]
    assert "commas" not in call(*other, code=2).stderr


def test_a_traceback_can_be_asked_for(folder):
    result = CliRunner().invoke(main, ["--traceback", "show", str(folder)])
    assert isinstance(result.exception, FileNotFoundError)


@needs_jit
def test_demo_prints_tables_and_draws_a_picture(tmp_path):
    result = call("demo", "--quick", "--out", tmp_path / "new")
    assert "449 passages" in result.stdout
    assert "Topics that go together in passages" in result.stdout
    assert "next:" in result.stdout
    assert (tmp_path / "new" / "topics.png").read_bytes().startswith(b"\x89PNG")
    assert str(tmp_path / "new" / "page.html") in result.stdout.partition("the explorer: ")[2]
    assert "State of the Union" in (tmp_path / "new" / "page.html").read_text()
    page = " ".join((Path(__file__).parents[2] / "docs" / "index.md").read_text().split())
    title, picture = result.stdout.split(",")[0], re.search(r"picture: (.*)", result.stdout)[1]
    for what in (title, f"{N_TOPICS} topics", f"demo/{Path(picture).name}", "together or apart"):
        assert what in page, f"docs/index.md tells of another demo: it has no {what!r}"
