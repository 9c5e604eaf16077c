"""Thousands of files and arguments that nobody thought of: each is fitted, or refused in a sentence.

Cases are made from their number, so one that fails can be made again.
"""

import gzip
import io
import json
import lzma
import random
import warnings

import numba
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
from click.testing import CliRunner
from odd_files import COUNTS
from sklearn.exceptions import NotFittedError

import polystick as ps
from polystick.cli import main

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="minutes without the compiler")
SHORT = ["--draws", "1", "--burn", "0", "--chains", "1", "--threads", "1", "--out"]

# files


def seeds():
    """Return ending -> contents that can be read."""
    table = "\n".join(["a,b,c,d,e", *(",".join(map(str, row)) for row in COUNTS)]).encode()
    lines = "\n".join(json.dumps({"tokens": list("abcab")}) for _ in range(3)).encode()
    plain, packed, sparse, market, columns = (io.BytesIO() for _ in range(5))
    matrix = scipy.sparse.csr_array(COUNTS)
    np.savez(plain, counts=COUNTS)
    np.savez_compressed(packed, counts=COUNTS)
    scipy.sparse.save_npz(sparse, matrix)
    scipy.io.mmwrite(market, matrix)
    pd.DataFrame(COUNTS, columns=list("abcde")).to_parquet(columns)
    return {
        ".npz": [plain.getvalue(), packed.getvalue(), sparse.getvalue()],
        ".mtx": [market.getvalue()],
        ".parquet": [columns.getvalue()],
        ".csv": [table],
        ".jsonl": [lines],
        ".csv.gz": [gzip.compress(table)],
        ".csv.xz": [lzma.compress(table)],
    }


PIECES = [b"-1", b"NaN", b"inf", b"1e400", b"9" * 30, b"\0", b"\xff", b'"', b",", b"\n", b"{", b"["]
PIECES += [b"\t", b"\x1b[2J", b"0x", b"%", b"2147483648", b"9223372036854775808"]


def mutated(content, rng):
    """Change a few places, or none: bits, pieces put in or over, parts cut out or doubled."""
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3, 8])):
        place = rng.randrange(len(content) + 1)
        before, after = content[:place], content[place:]
        content = rng.choice(
            [
                before + bytes([rng.randrange(256)]) + after[1:],
                before + rng.choice(PIECES) + after,
                before + rng.choice([b"0", b"7", b" "]) + after[1:],
                before + rng.choice(PIECES) + after[rng.randrange(9) :],
                before + after[rng.randrange(20) :],
                before or content,
                before + content[: rng.randrange(40)] + after,
            ]
        )
    return content


def try_files(folder, numbers):
    """Return how many changed files were fitted; all others got one sentence."""
    known, fitted = seeds(), 0
    for number in numbers:
        rng = random.Random(number)
        ending = rng.choice(sorted(known))
        path = folder / f"changed{number}{ending}"
        path.write_bytes(mutated(rng.choice(known[ending]), rng))
        kind = rng.choice(["multinomial", "lds"]) if ending == ".jsonl" else "multinomial"
        more = ["--states", "1"] if kind == "lds" else []
        out = str(folder / f"run{number}")
        done = CliRunner().invoke(main, ["fit", kind, str(path), *more, *SHORT, out])
        fitted += done.exit_code == 0
        if done.exit_code:
            assert isinstance(done.exception, SystemExit), (number, done.exception)
            said = [line for line in done.stderr.splitlines() if not line.startswith("Warning: ")]
            assert len(said) == 1, (number, done.stderr)
            assert said[0].startswith("Error: "), (number, done.stderr)
        path.unlink()
    return fitted


# arguments

SPECIAL = [np.nan, np.inf, -np.inf, -1, -0.0, 0.5, 1e-300, 1e300, 2**31, 2**53, 2**63 - 1, 5e-324]
KINDS = ["int8", "uint8", "uint64", "float16", "float32", "longdouble", "bool", ">i8", "complex128"]
KINDS += ["object", "U3", "S3", "M8[ns]"]
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]
ODD = [None, 3, "abc", b"x", {}, {"a": [1]}, [], [[]], [[], []], (), object(), np.float64(3)]
ODD += [np.array(3), np.zeros((2, 2, 2)), np.zeros(0), [None], [["a", "b"]], range(5), {1, 2}, int]
ODD += [np.zeros((0, 3)), np.zeros((3, 0)), pd.Series([1, 2, 3]), pd.DataFrame(), "(a,b)", 2.5]
ODD += [np.zeros((2, 2), dtype=[("a", int)]), -1, 0, True, float("nan"), 10**30, 1e-300, [2, 0, 1]]
DRAWS = [ps.Gibbs(1, 1, n_chains=1), ps.Gibbs(2, 0, n_chains=2), ps.Gibbs(3, 2, n_chains=1, thin=2)]
SETTINGS = [*DRAWS, ps.Gibbs(2, 0, n_chains=2, keep=("probabilities",)), 3, "gibbs"]
SETTINGS += [ps.MeanField(max_sweeps=2, n_draws=2), ps.StochasticVI(batch_size=2, n_passes=1)]
FACES = {
    ps.CorrelatedMultinomial: ("counts", ["transform", "predict_proba", "score", "score_samples"]),
    ps.CorrelatedTopicModel: ("counts", ["transform", "score", "topics", "topic_sizes"]),
    ps.LDA: ("counts", ["transform", "score", "topics"]),
    ps.DynamicTopicModel: ("times", ["transform", "score", "topics"]),
    ps.MultinomialGP: ("inputs", ["predict_proba", "score", "sample_prior"]),
    ps.MultinomialLDS: ("sequences", ["predict_proba", "score", "smooth", "forecast"]),
    ps.DynamicMultinomial: ("sequences", ["smooth", "forecast", "score"]),
    ps.MultinomialHMM: ("sequences", ["score", "smooth", "forecast"]),
}
REFUSALS = (ValueError, TypeError, NotFittedError, ArithmeticError, MemoryError)


def table(rng, width):
    draws = np.random.default_rng(rng.randrange(2**32))
    shape = rng.choice([0, 1, 2, 3, 5, 8, 30]), rng.choice([0, 1, 2, *[width] * 12])
    counts = draws.poisson(rng.choice([0, 0.1, 1, 3, 30]), shape)
    if counts.size and rng.random() < 0.2:
        counts = counts.astype(float)
        counts.flat[rng.randrange(counts.size)] = rng.choice(SPECIAL)
    return counts


def tame(rng, width):
    """Return a table of which nothing is odd."""
    draws = np.random.default_rng(rng.randrange(2**32))
    return draws.poisson(rng.choice([1, 3, 30]), (rng.choice([5, 8, 30]), width)) + np.eye(width)[
        0
    ].astype(int)


def dressed(array, rng):
    """Return a table as one of the many things that a table may be."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return rng.choice(
                [
                    lambda: array,
                    lambda: array.astype(rng.choice(KINDS)),
                    lambda: array.tolist(),
                    lambda: array[::-1, ::-1],
                    lambda: np.ma.masked_array(array, mask=array == 1),
                    lambda: array.ravel(),
                    lambda: array[None],
                    lambda: scipy.sparse.coo_array(array).asformat(rng.choice(FORMATS)),
                    lambda: broken(scipy.sparse.csr_array(array), rng),
                    lambda: pd.DataFrame(array).astype(rng.choice(["Int64", "str", "category"])),
                    lambda: pd.DataFrame(array, columns=["a"] * array.shape[1]),
                    lambda: pd.DataFrame(array).astype(pd.SparseDtype("float", 0)),
                ]
            )()
    except (TypeError, ValueError, OverflowError, IndexError):
        return array


def broken(matrix, rng):
    part = getattr(matrix, rng.choice(["indices", "indptr"]))
    if len(part):
        part[rng.randrange(len(part))] = rng.choice([-1, 3, 99, 10**6, 2**31 - 1])
    return matrix


def sequences(rng, width):
    def one():
        tokens = [rng.randrange(-1, 4) for _ in range(rng.choice([0, 1, 2, 3, 10]))]
        odd = [rng.choice([0, 1, 1.5, float("nan"), "a", None, 10**12, True]) for _ in tokens]
        return rng.choice([tokens, tokens, np.array(tokens), odd, dressed(table(rng, width), rng)])

    return rng.choice([[one() for _ in range(rng.choice([1, 2]))], one(), rng.choice(ODD)])


def odd_data(kind, rng, width):
    """Return the arguments of a fit, and of what comes after it."""
    if kind == "sequences":
        return (sequences(rng, width),), {}
    counts = table(rng, width)
    X = rng.choice(ODD) if rng.random() < 0.06 else dressed(counts, rng)
    n = len(counts)
    if kind == "inputs":
        places = np.linspace(0.0, rng.choice([1.0, 1e-300, 1e100, 1e200, 0.0]), n)[:, None]
        return (dressed(places, rng), X), {}
    if kind == "times":
        times = [[i // 2 for i in range(n)], [0] * n, [10**18] * n, [float("nan")] * n, None]
        return (X,), {"times": rng.choice([*times, ["2001"] * n, rng.choice(ODD)])}
    return (X,), {}


def tame_data(kind, rng, width):
    counts = tame(rng, width)
    if kind == "sequences":
        return (rng.choice([counts, [[i % width for i in range(12)], [1, 0, 1]]]),), {}
    if kind == "inputs":
        return (np.linspace(0.0, 1.0, len(counts))[:, None], counts), {}
    return (counts,), {"times": [i // 3 for i in range(len(counts))]} if kind == "times" else {}


def what_follows(kind, method, given, rng, width):
    """Return the arguments of a method of a fitted model."""
    if method in ("topics", "topic_sizes", "forecast"):
        return tuple(rng.choice([1, 3, 0, -1, 2.5]) for _ in range(rng.random() < 0.5)), {}
    arguments, about = given(kind, rng, width)
    if kind == "inputs" and method != "score":  # which takes counts too
        return arguments[:1], about
    return arguments, about


def try_case(number):
    """Make a model, fit it and ask it something; return what was said against it, or None.

    Half of the models are fitted to what nothing is wrong with, so that they can be asked something odd.
    """
    rng = random.Random(number)
    kind = rng.choice(list(FACES))
    wanted, methods = FACES[kind]
    is_tame, width = rng.random() < 0.5, rng.choice([2, 3, 3, 6])
    given = tame_data if is_tame else odd_data
    settings = {
        "random_state": 1,
        "n_jobs": 1,
        "inference": rng.choice(DRAWS if is_tame else SETTINGS),
    }
    names = sorted(set(kind().get_params(deep=False)) - {*settings, "progress", "checkpoint"})
    if rng.random() < (0.1 if is_tame else 0.2):
        settings[rng.choice(names)] = rng.choice(ODD)
    arguments, about = given(wanted, rng, width)

    def ask():
        model = kind(**settings).fit(*arguments, **about)
        method = rng.choice(methods)
        later, more = what_follows(wanted, method, rng.choice([tame_data, odd_data]), rng, width)
        return getattr(model, method)(*later, **more)

    try:
        ask()
    except REFUSALS as error:
        return f"{type(error).__name__}: {error}"
    return None


def try_cases(numbers):
    """Return how many cases were accepted; all others were refused."""
    accepted = 0
    with warnings.catch_warnings(action="ignore"):
        for number in numbers:
            try:
                said = try_case(number)
            except Exception as error:
                raise AssertionError(f"case {number}") from error
            accepted += said is None
            assert said is None or "Unable to allocate" not in said, (number, said)
    return accepted


def test_some_changed_files(tmp_path):
    assert 0 < try_files(tmp_path, range(60)) < 60


def test_some_odd_arguments():
    assert 0 < try_cases(range(150)) < 150


@pytest.mark.slow
def test_a_thousand_changed_files(tmp_path):
    assert 100 < try_files(tmp_path, range(1000)) < 900


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_ten_thousand_odd_arguments():
    assert 50 < try_cases(range(10_000)) < 9000
