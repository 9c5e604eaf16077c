"""Bits on other machines: what rows and topics are drawn with rounds alike on all processors."""

import ast
import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import polystick as ps

BLAS = {info["internal_api"] for info in threadpool_info() if info["user_api"] == "blas"}
OLD = "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX"  # what NumPy can be told not to use
WITH_BLAS = {
    "gp"
}  # of which the same is promised with one kind of BLAS only, as of large regressions

# files that take part in each sweep of the others
HOME = Path(ps.__file__).parent
WITHOUT = ["conjugate", "conjugate_dynamics", "gaussians/normal", "gaussians/dynamics"]
WITHOUT += ["gaussians/filtering", "models/chain_sums", "models/composition", "models/frequencies"]
WITHOUT += ["models/memory", "models/multinomial", "models/open_cells", "models/topic_shares"]
WITHOUT += [
    "models/joint_cells",
    "models/remembered",
    "models/topics",
    "models/walking_shares",
    "models/warm_start",
    "models/weak_sticks",
]
PRODUCTS = {"dot", "vdot", "inner", "tensordot", "matmul", "cov", "corrcoef"}
ALLOWED = {"LinAlgError", "norm"}  # an error, and a sum of squares along an axis


def digest(posterior):
    found = hashlib.sha256()
    for node in posterior.tree.subtree:
        for name in sorted(node.data_vars):
            found.update(np.ascontiguousarray(node[name].values).tobytes())
    return found.hexdigest()[:12]


def models():
    rng = np.random.default_rng(5)
    settings = {"inference": ps.Gibbs(4, 4, n_chains=1), "random_state": 1, "n_jobs": 1}
    quick = {**settings, "inference": ps.MeanField(max_sweeps=5, n_draws=5)}
    batches = {**settings, "inference": ps.StochasticVI(batch_size=16, n_passes=2, n_draws=3)}
    counts = rng.multinomial(30, [0.2] * 5, size=40)
    wide = rng.multinomial(60, rng.dirichlet(np.ones(23)), size=70)
    documents = rng.poisson(0.35, (80, 60))
    steps = [rng.integers(0, 4, 40) for _ in range(3)]
    times = {"times": np.repeat(np.arange(4), 20)}
    yield "lda", ps.LDA(3, **settings).fit(documents)
    yield "multinomial", ps.CorrelatedMultinomial(**settings).fit(counts)
    yield "wide multinomial", ps.CorrelatedMultinomial(**settings).fit(wide)
    yield "multinomial, mean field", ps.CorrelatedMultinomial(**quick).fit(counts)
    yield "topics", ps.CorrelatedTopicModel(20, **settings).fit(documents)
    yield "topics, mean field", ps.CorrelatedTopicModel(3, **quick).fit(documents)
    yield "topics, batches", ps.CorrelatedTopicModel(3, **batches).fit(documents)
    yield "dynamic topics", ps.DynamicTopicModel(3, **settings).fit(documents, **times)
    yield "lds", ps.MultinomialLDS(2, **settings).fit(steps)
    yield "lds, mean field", ps.MultinomialLDS(2, **quick).fit(steps)
    yield "compositions", ps.DynamicMultinomial(**settings).fit(counts)
    yield "hmm", ps.MultinomialHMM(3, **settings).fit(steps)
    yield "regression", ps.MultinomialRegression(**settings).fit(rng.normal(size=(40, 2)), counts)
    yield "gp", ps.MultinomialGP(**settings).fit(np.arange(40.0)[:, None], counts)


def bits(**environment):
    """Return model -> digest of its draws, in a process that takes itself for another machine."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(
    platform.machine() != "x86_64" or {"openblas"} != BLAS,
    reason="kinds of processors are played by OpenBLAS on x86-64",
)
def test_kinds_of_processors_have_the_same_bits(tmp_path):
    here = bits(OPENBLAS_CORETYPE="Haswell")
    assert bits(OPENBLAS_CORETYPE="Haswell", NPY_DISABLE_CPU_FEATURES=OLD) == here
    plain = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+sse2"}
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}  # nothing compiled for this machine
    assert bits(OPENBLAS_CORETYPE="Haswell", **plain, **cache) == here
    for other in ("Prescott", "SkylakeX"):
        there = bits(OPENBLAS_CORETYPE=other)
        assert {name for name in here if here[name] != there[name]} == WITH_BLAS


def blas_in(source):
    """Yield what BLAS or LAPACK does in a file: `@`, all of linalg, and products that go by name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield ast.unparse(node)
        elif isinstance(node, ast.Attribute):
            owner, name = ast.unparse(node.value), node.attr
            if owner in ("np.linalg", "lapack") or (owner == "np" and name in PRODUCTS):
                yield f"{owner}.{name}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scipy.linalg"):
            yield node.module


@pytest.mark.parametrize("name", WITHOUT)
def test_sweeps_that_promise_bits_go_without_blas(name):
    found = set(blas_in((HOME / f"{name}.py").read_text()))
    assert {each for each in found if each.rsplit(".", 1)[-1] not in ALLOWED} == set()


def test_blas_is_seen():
    source = (
        "from scipy.linalg.blas import dtrsm\nx = a @ b\ny = np.linalg.inv(x) + np.vdot(x, y)\n"
    )
    assert list(blas_in(source)) == ["scipy.linalg.blas", "a @ b", "np.linalg.inv", "np.vdot"]


if __name__ == "__main__":
    for name, model in models():
        print(name, digest(model.posterior_))
