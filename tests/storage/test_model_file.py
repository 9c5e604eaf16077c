"""Models in files: the same bits in another process, and a sentence for what is no such file."""

import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

import polystick
from every_face import ABOUT, FACES, ROWS, answers, fitted
from hostile_models import (
    CONTENT,
    MANIFEST,
    Bomb,
    forged,
    npy,
    parts_of,
    with_content,
    zipped,
)
from polystick import (
    CorrelatedMultinomial,
    CorrelatedTopicModel,
    Gibbs,
    MeanField,
    ModelFileError,
    MultinomialRegression,
    StochasticVI,
    baselines,
    load,
)
from polystick.modelling import Estimator
from toy_model import Toy

TESTS = Path(__file__).parents[1]
READ_ALL = """
import sys, pickle
from pathlib import Path
import polystick
from every_face import FACES, answers

folder = Path(sys.argv[1])
said = {name: answers(name, polystick.load(folder / f"{i}.polystick")) for i, name in enumerate(FACES)}
(folder / "said").write_bytes(pickle.dumps(said))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a file of each model, and what another process says after it has read them."""
    folder = tmp_path_factory.mktemp("models")
    for i, name in enumerate(FACES):
        fitted(name).save(folder / f"{i}.polystick")
    command = [sys.executable, "-W", "ignore", "-c", READ_ALL, folder]
    path = os.pathsep.join(entry for entry in [str(TESTS), *sys.path] if entry)
    environment = {**os.environ, "PYTHONPATH": path}
    subprocess.run(command, check=True, env=environment, timeout=300)
    return folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return fitted("rows").save(tmp_path_factory.mktemp("rows") / "rows.polystick")


@pytest.mark.parametrize("name", FACES)
def test_another_process_gets_the_same_bits(made, name):
    said = pickle.loads((made / "said").read_bytes())[name]
    expected = answers(name, fitted(name))
    assert len(said) == len(expected) >= 2
    for ours, theirs in zip(expected, said):
        np.testing.assert_array_equal(ours, theirs)


def test_the_table_has_every_public_face():
    everything = {*polystick.__all__, *baselines.__all__}
    homes = (getattr(polystick, name, None) or getattr(baselines, name) for name in everything)
    public = {home for home in homes if isinstance(home, type) and issubclass(home, BaseEstimator)}
    assert public == {type(case.model) for case in FACES.values()}


@pytest.mark.parametrize("name", FACES)
def test_all_that_a_fit_leaves_is_of_a_known_kind(name, tmp_path):
    """If this fails: name the class of the new attribute in polystick/storage/known.py."""
    model = fitted(name)
    again = load(model.save(tmp_path / "model.polystick"))
    assert {*vars(model)} == {*vars(again)}
    assert repr(again.get_params()) == repr(model.get_params())


def test_what_is_of_no_known_kind_is_told_by_its_place(tmp_path):
    model = CorrelatedTopicModel(2, inference=MeanField()).fit(np.ones((4, 5), int))
    model.model_ = object()
    with pytest.raises(ModelFileError, match=r"CorrelatedTopicModel\.model_ is a builtins\.object"):
        model.save(tmp_path / "model.polystick")
    model.model_ = {"a": [len]}
    with pytest.raises(ModelFileError, match=r"model_\['a'\]\[0\] is a builtins.builtin_function"):
        model.save(tmp_path / "model.polystick")
    model.model_ = circle = []
    circle.append(circle)
    with pytest.raises(ModelFileError, match="nested too deeply, or holds itself"):
        model.save(tmp_path / "model.polystick")
    assert not any(tmp_path.iterdir())


def test_functions_of_a_user_are_refused(tmp_path):
    texts = ["ash birch", "cedar ash", "oak ash"]
    vectorizer = CountVectorizer(tokenizer=lambda text: text.split(), token_pattern=None)
    model = CorrelatedTopicModel(2, vectorizer=vectorizer, inference=MeanField())
    with pytest.raises(
        ModelFileError, match=r"is the function '<lambda>'.*keep the model with joblib"
    ):
        model.fit(texts).save(tmp_path / "model.polystick")


def test_a_model_of_ones_own_is_refused(tmp_path):
    face = Estimator(Toy())
    face.seed_ = 1
    with pytest.raises(ModelFileError, match=r"Estimator\.model is a toy_model\.Toy"):
        face.save(tmp_path / "model.polystick")


def test_a_stream_goes_on_from_a_file(tmp_path):
    counts = np.random.default_rng(0).poisson(0.7, (24, 10))
    model = CorrelatedTopicModel(3, inference=StochasticVI(8), random_state=1, n_jobs=1)
    model.partial_fit(counts[:8], corpus_size=24)
    again = load(model.save(tmp_path / "stream.polystick"))
    for each in (model, again):
        each.partial_fit(counts[8:16])
    np.testing.assert_array_equal(model.transform(counts), again.transform(counts))


def test_progress_and_checkpoint_stay_behind(tmp_path):
    model = clone(FACES["rows"].model)
    model.set_params(progress=print, checkpoint=tmp_path / "run").fit(*FACES["rows"].data)
    again = load(model.save(tmp_path / "rows.polystick"))
    assert again.progress is None
    assert again.checkpoint is None
    assert model.progress is print
    assert model.checkpoint == tmp_path / "run"


def test_a_file_does_not_say_where_a_later_run_writes(rows, tmp_path):
    path = with_content(tmp_path / "wrong", rows, at_top(checkpoint="/etc", progress="x"))
    assert load(path).checkpoint is None
    assert load(path).progress is None


@pytest.mark.parametrize("seed", [np.random.RandomState(3), np.random.default_rng(3), 2**70])
def test_seeds_of_all_kinds_survive(tmp_path, seed):
    model = baselines.DirichletMultinomial(random_state=seed).fit(*FACES["rows"].data)
    again = load(model.save(tmp_path / "rows.polystick"))
    assert again.seed_ == model.seed_
    expected, found = (clone(each).fit(*FACES["rows"].data).seed_ for each in (model, again))
    assert expected == found


def test_tables_of_all_kinds_survive(tmp_path):
    model = baselines.DirichletMultinomial(random_state=1).fit(*FACES["rows"].data)
    index = pd.MultiIndex.from_arrays([["a", "b"], [1, 2]], names=["x", None])
    days = pd.to_datetime(["2020-01-31", "2021-03-01"])
    kept = pd.DataFrame(
        {
            "factor": pd.Categorical(["b", "a"], ["b", "a"], ordered=True),
            "day": days,
            "there": days.tz_localize("Europe/Berlin"),
            "month": days.to_period("M"),
            "whole": pd.array([1, None], dtype="Int64"),
            "text": ["ä", None],
            "odd": pd.Series(["\ud800", "\0"], index, dtype=object),
            "mixed": np.array([1.5, ("a", None)], dtype=object),
            3: [np.nan, -0.0],
        },
        index=index,
    )
    model.kept_ = (kept, kept["text"], days, days[0], pd.Period("2020Q1"), pd.RangeIndex(3), pd.NaT)
    frame, series, *others = load(model.save(tmp_path / "m.polystick")).kept_
    pd.testing.assert_frame_equal(frame, kept, check_exact=True)
    pd.testing.assert_series_equal(series, kept["text"])
    assert others[0].equals(days)
    assert others[0].dtype == days.dtype
    assert others[1:3] == [days[0], pd.Period("2020Q1")]
    assert isinstance(others[3], pd.RangeIndex)
    assert others[4] is pd.NaT


# fewer draws


def test_draws_thins_what_is_large_and_keeps_the_rest(tmp_path):
    counts = np.random.default_rng(1).multinomial(30, np.full(12, 1 / 12), size=30)
    short = Gibbs(n_draws=200, n_burn=2, n_chains=2)
    model = CorrelatedMultinomial(inference=short, random_state=0, n_jobs=1).fit(counts)
    whole = model.save(tmp_path / "whole.polystick")
    few = load(model.save(tmp_path / "few.polystick", draws=20))
    assert (
        tmp_path / "few.polystick"
    ).stat().st_size < whole.stat().st_size - 340_000  # of 387,200
    assert few.posterior_["cov"].shape[:2] == (2, 10)
    kept = few.posterior_.numbers("cov")
    np.testing.assert_array_equal(few.posterior_["cov"], model.posterior_["cov"][:, kept])
    np.testing.assert_array_equal(few.posterior_["mean"], model.posterior_["mean"])
    assert few.posterior_.summary() != ""
    assert np.isfinite(few.predict_proba(counts)).all()
    for more in ({}, {"posterior": True}):
        again = load(model.save(tmp_path / "again.polystick", **more))
        np.testing.assert_array_equal(again.predict_proba(counts), model.predict_proba(counts))


def test_tables_of_topics_stay_when_draws_are_thinned(tmp_path):
    counts = np.random.default_rng(0).poisson(0.3, (40, 400))
    thin = Gibbs(40, 2, n_chains=2, max_bytes=2**20)
    model = CorrelatedTopicModel(12, inference=thin, random_state=0, n_jobs=1).fit(counts)
    assert model.posterior_["topics"].shape[:2] == (2, 20)  # already every other one
    few = load(model.save(tmp_path / "few.polystick", draws=8))
    kept = few.posterior_.numbers("topics")
    assert len(kept) == 4
    taken = np.isin(model.posterior_.numbers("topics"), kept)
    np.testing.assert_array_equal(few.posterior_["topics"], model.posterior_["topics"][:, taken])
    np.testing.assert_array_equal(few.topics_, model.topics_)
    np.testing.assert_array_equal(few.transform(counts), model.transform(counts))
    assert few.posterior_.summary() == model.posterior_.summary()
    assert np.isfinite(few.score(counts[:4]))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"draws": 2.5}, TypeError, "draws must be an integer"),
        ({"draws": 5, "posterior": True}, ValueError, "give one of the two"),
    ],
)
def test_bad_arguments(tmp_path, arguments, error, message):
    with pytest.raises(error, match=message):
        fitted("rows").save(tmp_path / "rows.polystick", **arguments)


def test_what_is_not_there(tmp_path):
    with pytest.raises(NotFittedError):
        CorrelatedMultinomial().save(tmp_path / "rows.polystick")
    with pytest.raises(FileNotFoundError, match="must exist before a model is saved"):
        fitted("rows").save(tmp_path / "nowhere" / "rows.polystick")
    with pytest.raises(FileNotFoundError, match="there is none"):
        load(tmp_path / "rows.polystick")


def test_a_write_that_fails_leaves_the_file_as_it_was(rows, tmp_path, monkeypatch):
    path = shutil.copy(rows, tmp_path / "rows.polystick")
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(OSError, match="No space left"):
        fitted("rows").save(path)
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


# files that are damaged, foreign or hostile: a sentence each


def test_other_files(rows, tmp_path):
    path = tmp_path / "other"
    for content in (
        b"",
        b"PK",
        b"\x80\x04.",
        b"text",
        rows.read_bytes()[:-30],
        b"PK\x05\x06" + bytes(18),
    ):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="must be a file that a model's save wrote"):
            load(path)
    np.savez(path, a=np.arange(3))
    with pytest.raises(ModelFileError, match="another archive"):
        load(path.with_suffix(".npz"))


def test_a_newer_format_says_so(rows, tmp_path):
    path = forged(tmp_path / "new", parts_of(rows), format=99)
    with pytest.raises(ModelFileError, match=r"has format 99, by polystick .*this version reads 1"):
        load(path)
    path = forged(tmp_path / "new", parts_of(rows), kind="something")
    with pytest.raises(ModelFileError, match="checksum of its manifest does not fit"):
        load(path)


def test_a_file_larger_than_allowed(rows):
    with pytest.raises(
        ModelFileError, match="more than the 1000 that are allowed; pass max_bytes="
    ):
        load(rows, max_bytes=1000)


def test_parts_that_are_damaged_or_swapped_or_missing(rows, tmp_path):
    parts, path = parts_of(rows), tmp_path / "damaged"
    first, second = sorted(name for name in parts if name.startswith("array"))[:2]
    swapped = {**parts, first: parts[second], second: parts[first]}
    for wrong in (swapped, {**parts, CONTENT: parts[CONTENT].replace(b"ash", b"oak")}):
        with pytest.raises(ModelFileError, match=r"the checksum of .* does not fit"):
            load(zipped(path, wrong))
    for wrong in ({**parts, "more.npy": b""}, {k: v for k, v in parts.items() if k != first}):
        with pytest.raises(ModelFileError, match="not those that its manifest lists"):
            load(zipped(path, wrong))
    wrong = parts[MANIFEST].replace(b'"format":1', b'"format":2')
    with pytest.raises(ModelFileError, match="checksum of its manifest does not fit"):
        load(zipped(path, {**parts, MANIFEST: wrong}))


def test_a_bomb_of_zeros_is_not_unpacked(rows, tmp_path):
    parts = {**parts_of(rows), "array-0.npy": bytes(2**24)}
    path = zipped(tmp_path / "bomb", parts, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 2**17
    with pytest.raises(ModelFileError, match="its parts are packed, which save never does"):
        load(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (npy(shape=(2**37,)), "would have 1099511627776 bytes, and has 0"),
        (npy(np.zeros(4), shape=(-2, -2)), "shape"),
        (npy(shape=(0, 2**62)), "shape"),
        (npy(np.zeros(4), shape=(4,), descr="|O"), "holds more than numbers"),
        (npy(np.zeros(4), shape=(4,), descr="|V8"), "holds more than numbers"),
        (npy(np.zeros(4), shape=(4,), descr=[("a", "<f8")]), "holds more than numbers"),
        (npy(np.zeros(0), shape=(2**39,), descr="<U0"), "holds more than numbers"),
        (npy(np.zeros(3), shape=(4,)), "would have 32 bytes, and has 24"),
        (b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16, "makes no sense"),
        (b"\x93NUMPY\x09\x00", "version 1.0"),
        (b"", "makes no sense"),
    ],
)
def test_headers_of_arrays_are_not_believed(rows, tmp_path, array, message):
    path = forged(tmp_path / "wrong", {**parts_of(rows), "array-0.npy": array})
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_a_pickle_inside_is_not_opened(rows, tmp_path):
    sign = tmp_path / "sign"
    bomb = npy(np.array([Bomb(sign)], dtype=object))
    assert np.load(
        forged(tmp_path / "a.npz", {**parts_of(rows), "a.npy": bomb}), allow_pickle=True
    )["a.npy"].shape == (1,)
    assert sign.exists()  # so it would work
    sign.rmdir()
    with pytest.raises(ModelFileError, match="holds more than numbers and texts"):
        load(forged(tmp_path / "wrong", {**parts_of(rows), "array-0.npy": bomb}))
    assert not sign.exists()


def at_top(**state):
    def change(content):
        content["state"].update(state)
        return content

    return change


def made_of(name, **state):
    return {"kind": "object", "class": name, "state": state}


NESTED: list = []
for _ in range(400):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: made_of("os.system"), "is no class that this version knows"),
        (at_top(x=made_of("subprocess.Popen", args="true")), "is no class that this version knows"),
        (at_top(x=made_of("estimators.face.Face")), "is no class that this version knows"),
        (at_top(x=made_of("decomposition.Decomposition")), "missing 1 required"),
        (at_top(x=made_of("inference.gibbs.Gibbs", n_draws=1)), "a Gibbs has no n_burn"),
        (at_top(x=made_of("estimators.sequences.Read")), "a Read has no sequences"),
        (at_top(__class__=3), "attribute '__class__'"),
        (at_top(**{"a b": 3}), "attribute 'a b'"),
        (at_top(x={"kind": "function", "name": "system"}), "no function that this version knows"),
        (at_top(x={"kind": "pickle"}), "makes no sense"),
        (at_top(x={"kind": "ndarray", "part": 999}), "makes no sense"),
        (at_top(x={"kind": "ndarray", "items": [], "shape": [2**40]}), "has 0 entries"),
        (at_top(x=[{"kind": "ndarray", "part": 0}] * 200_000), "asks for more memory"),
        (at_top(x={"kind": "RangeIndex", "ends": [0, 2**62, 1], "name": None}), "an index has"),
        (at_top(x={"kind": "column", "dtype": "Sparse[int]", "items": []}), "unknown type"),
        (at_top(x={"kind": "Generator", "of": "os", "state": None}), "unknown generator"),
        (at_top(x={"kind": "dtype", "name": "O8{", "of": "type"}), "makes no sense"),
        (at_top(x=NESTED), "nested too deeply"),
        (lambda content: [], "it holds no estimator"),
        (lambda content: made_of("inference.gibbs.Gibbs"), "a Gibbs has no"),
    ],
)
def test_contents_that_make_no_sense(rows, tmp_path, change, message):
    with pytest.raises(ModelFileError, match=message):
        load(with_content(tmp_path / "wrong", rows, change))


def test_json_that_is_too_deep_or_none(rows, tmp_path):
    for content in (b"[" * 200_000, b"{", b"\xff", b"NaN"):
        path = forged(tmp_path / "wrong", {**parts_of(rows), CONTENT: content})
        with pytest.raises(ModelFileError, match=r"makes no sense|no estimator"):
            load(path)


def test_trees_and_sparse_matrices_that_would_lead_kernels_astray(rows, tmp_path):
    """An index beyond an array is caught when a file is read: compiled loops do not look."""
    parts = parts_of(rows)
    content = json.loads(parts[CONTENT])
    place = content["state"]["decomposition_"]["state"]["children"]["part"]
    wrong = npy(np.array([[0, -2], [1, -999], [2, 3]]))
    with pytest.raises(ModelFileError, match="makes no sense"):
        load(forged(tmp_path / "wrong", {**parts, f"array-{place}.npy": wrong}))

    parts = parts_of(fitted("states").save(tmp_path / "states"))
    content = json.loads(parts[CONTENT])
    matrix = content["state"]["read_"]["state"]["sequences"][0]
    assert matrix["kind"] == "sparse"
    wrong = np.load(io.BytesIO(parts[f"array-{matrix['indices']}.npy"]))
    wrong[-1] = 2**30
    parts[f"array-{matrix['indices']}.npy"] = npy(wrong)
    with pytest.raises(ModelFileError, match="makes no sense"):
        load(forged(tmp_path / "wrong", parts))


HOSTILE = [
    "__import__('os').system('touch {sign}')",
    "I(open('{sign}', 'w'))",
    "np.save('{sign}', year)",
    "np.log.__class__(year)",
    "year.map(open)",
    "C(party, contr.__init__)",
    "[x for x in year]",
    "(lambda: 1)()",
    "I('a' * 10 ** 10)",
    "I(9 ** 9 ** 9)",
    "I([1] * 10)",
    "f(year)",
    "f(year) ~ year",
    "year | f(year)",
]


@pytest.mark.parametrize("formula", HOSTILE)
def test_formulas_that_call_are_refused(tmp_path, formula):
    sign = tmp_path / "sign"
    path = fitted("regression, formula").save(tmp_path / "model")
    formula = formula.replace("{sign}", str(sign))
    formula = formula if "year)" in formula else "{" + formula + "}"

    def as_parameter(content):
        content["state"]["formula"] = formula
        return content

    def as_spec(content):
        content["state"]["design_"]["state"]["spec"]["formula"] = formula
        return content

    for change in (as_parameter, as_spec):
        with pytest.raises(ModelFileError, match="only have columns, numbers, arithmetic"):
            load(with_content(tmp_path / "wrong", path, change))
    assert not sign.exists()


@pytest.mark.parametrize("formula", ["year +* 2", "year ~ party", "a" * 20_000, "(", "{", "\0"])
def test_specs_that_make_no_sense(tmp_path, formula):
    path = fitted("regression, formula").save(tmp_path / "model")

    def change(content):
        content["state"]["design_"]["state"]["spec"]["formula"] = formula
        return content

    with pytest.raises(ModelFileError, match=r"formula|makes no sense"):
        load(with_content(tmp_path / "wrong", path, change))


def test_formulas_that_call_are_not_saved(tmp_path):
    model = clone(FACES["regression, formula"].model)
    model.set_params(formula="I(year.clip(0, 3))").fit(*FACES["regression, formula"].data)
    with pytest.raises(ModelFileError, match="only have columns, numbers, arithmetic"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize(
    "formula",
    [
        "0 + party",
        "cr(year, df=3) * C(party, contr.sum)",
        "bs(year, df=4) + C(party, contr.treatment(base='right'))",
        "np.log(year + 1) + I(year ** 2) + `year`:party",
        "center(year) + I(scale(year) ** 2)",
        "I(year > 3) + np.sqrt(year) - 1",
    ],
)
@pytest.mark.filterwarnings("ignore:.* columns of covariates are more")
def test_formulas_come_back_with_what_they_have_learned(tmp_path, formula):
    short = Gibbs(2, 1, n_chains=1)
    model = MultinomialRegression(formula, inference=short, random_state=0).fit(ABOUT, ROWS)
    again = load(model.save(tmp_path / "model.polystick"))
    few = ABOUT.iloc[[5, 2]].assign(year=[3.25, 14.0])
    np.testing.assert_array_equal(model.design_.matrix(few), again.design_.matrix(few))
    np.testing.assert_array_equal(model.predict_proba(few), again.predict_proba(few))
    if "party" in formula:
        with pytest.raises(ValueError, match="must have levels seen in fit"):
            again.predict_proba(few.assign(party="unseen"))
