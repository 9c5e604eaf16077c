"""Files whose checksums fit and whose parts do not: they are told apart before anything is predicted."""

import io
import json
import random

import numpy as np
import pytest

from every_face import answers, fitted
from hostile_models import CONTENT, encode, forged, parts_of
from polystick import ModelFileError, load

MODELS = ["rows", "topics", "states", "process", "rows, Dirichlet"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {name: fitted(name).save(folder / f"{i}.polystick") for i, name in enumerate(MODELS)}


def arrays_of(parts):
    """Return name -> array of the parts of a file."""
    return {
        name: np.load(io.BytesIO(part)) for name, part in parts.items() if name.endswith(".npy")
    }


def npy(array):
    stream = io.BytesIO()
    np.save(stream, np.asarray(array))
    return stream.getvalue()


def draws_of(content, variable):
    """Return the name of the part that holds the draws of a variable."""
    state = content["state"]
    posterior = state.get("posterior_") or state["_posterior"]
    (data,) = [
        group[1]["data"]
        for group in posterior["state"]["tree"]["groups"]
        if group[0] == "posterior"
    ]
    (node,) = [value for name, _, value, *_ in data if name == variable]
    return f"array-{node['part']}.npy"


def with_draws(path, made, variable, change):
    parts = parts_of(made)
    name = draws_of(json.loads(parts[CONTENT]), variable)
    return forged(path, {**parts, name: npy(change(np.load(io.BytesIO(parts[name]))))})


def spoiled(values, spot, value):
    values = values.copy()
    values[spot] = value
    return values


@pytest.mark.parametrize(
    ("model", "variable", "change", "message"),
    [
        ("rows", "mean", lambda x: x[..., :-1], "stick"),
        ("rows", "mean", lambda x: np.concatenate([x, x], -1), "stick"),
        ("rows", "mean", lambda x: spoiled(x, (0, 0, 0), np.nan), "mean are no finite numbers"),
        ("rows", "cov", lambda x: spoiled(x, (0, 0, 0, 0), np.inf), "cov are no finite numbers"),
        ("rows", "cov", lambda x: x[..., :-1], "stick"),
        ("rows", "cov", lambda x: x[:1], "chain"),
        ("rows", "cov", lambda x: x.astype("S8"), "cov are no finite numbers"),
        ("rows", "cov", lambda x: x.astype(complex), "cov are no finite numbers"),
        ("topics", "topics", lambda x: x[..., :-1], "word"),
        ("topics", "topics", lambda x: x[:, :, :2], "topic"),
        ("topics", "topics", lambda x: x[:0], "makes no sense|chain"),
        ("states", "emission", lambda x: x[:, :, :2], "stick"),
        ("states", "dynamics", lambda x: np.concatenate([x, x], -1), "dim"),
        ("process", "white", lambda x: x[:, :, :2], "stick"),
    ],
)
def test_draws_of_another_shape(files, tmp_path, model, variable, change, message):
    with pytest.raises(ModelFileError, match=message):
        load(with_draws(tmp_path / "wrong", files[model], variable, change))


def at(*path, value):
    """Return a change that puts a value there, or takes away what is there."""

    def change(content):
        held = content["state"]
        for name in path[:-1]:
            held = held[name]["state"]
        if value is ...:
            del held[path[-1]]
        else:
            held[path[-1]] = value
        return content

    return change


def swapped(first, second):
    def change(content):
        state = content["state"]
        state[first], state[second] = state[second], state[first]
        return content

    return change


NAN = {"kind": "float", "value": "nan"}
LIST = {"kind": "tuple", "items": []}


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        ("rows", at("posterior_", value=...), "has no posterior"),
        ("rows", at("posterior_", value=3), "its posterior_ can't be"),
        ("rows", at("seed_", value=-1), "its seed_ can't be"),
        ("rows", at("seed_", value="x"), "its seed_ can't be"),
        ("rows", at("n_features_in_", value=7), "column"),
        ("rows", at("n_features_in_", value=NAN), "its n_features_in_ can't be"),
        ("rows", at("categories_", value="ash"), "its categories_ can't be"),
        ("rows", at("inference_", value=LIST), "its inference_ can't be"),
        ("rows", at("decomposition_", value=LIST), "its decomposition_ can't be"),
        ("rows", swapped("categories_", "_seen_rows"), "can't be"),
        ("rows", at("model_", "prior", value="flat"), "the prior of a CorrelatedCounts is a str"),
        ("rows", at("model_", "prior", "centre", value=2), "the centre of a LearnedScale is a int"),
        ("rows", at("model_", "prior", "scale", value="x"), "the scale of a LearnedScale is a str"),
        ("rows", at("model_", "decomposition", value=None), "the decomposition of a Corr"),
        ("rows", at("inference", "n_draws", value="many"), "the n_draws of a Gibbs is a str"),
        ("topics", at("words_", value=3), "its words_ can't be"),
        ("topics", at("seen_", value=NAN), "its seen_ can't be"),
        ("topics", at("n_topics", value=9), "topic"),
        ("topics", at("n_topics", value=-3), "its n_topics can't be"),
        ("topics", at("_topics", value="x"), "its _topics can't be"),
        ("topics", at("_labels", value="x"), "its _labels can't be"),
        ("topics", at("model_", "shares", value=[]), "the shares of a VariationalTopicModel"),
        ("topics", at("model_", "link", "decomposition", value=1), "of a Sticks is a int"),
        ("states", at("read_", value=7), "its read_ can't be"),
        ("states", at("model_", "memory", value="x"), "the memory of a MultinomialDynamics"),
        ("process", at("inputs_", value=NAN), "its inputs_ can't be"),
        ("rows, Dirichlet", at("concentration_", value=5), "its concentration_ can't be"),
    ],
)
def test_parts_of_other_kinds(files, tmp_path, model, change, message):
    parts = parts_of(files[model])
    content = encode(change(json.loads(parts[CONTENT])))
    with pytest.raises(ModelFileError, match=message):
        load(forged(tmp_path / "wrong", {**parts, CONTENT: content}))


@pytest.mark.parametrize("model", MODELS)
def test_arrays_that_were_cut_or_doubled_lead_no_kernel_astray(files, tmp_path, model):
    """They are told at the door, or a prediction says what is wrong; none goes beyond its arrays."""
    parts, rng, told = parts_of(files[model]), random.Random(model), 0
    for name, array in arrays_of(parts).items():
        if not array.ndim or not array.size:
            continue
        axis = rng.randrange(array.ndim)
        changed = rng.choice(
            [np.delete(array, -1, axis), np.concatenate([array, array], axis), array.ravel()[:0]]
        )
        path = forged(tmp_path / "wrong", {**parts, name: npy(changed)})
        try:
            answers(model, load(path))
        except ModelFileError:
            told += 1
        except (
            ValueError,
            IndexError,
            KeyError,
        ):  # of NumPy or pandas, in names or sizes of tables
            pass
    assert told > 0
