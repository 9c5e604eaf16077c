"""Bits on other machines: with the BLAS of one kind of processor, runs have the same bits on all kinds."""

import hashlib
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import polystick as ps

BLAS = {info["internal_api"] for info in threadpool_info() if info["user_api"] == "blas"}
pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or {"openblas"} != BLAS,
    reason="kinds of processors are played by OpenBLAS on x86-64",
)
OLD = "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX"  # what NumPy can be told not to use


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
    counts = rng.multinomial(30, [0.2] * 5, size=40)
    documents = rng.poisson(0.35, (80, 60))
    steps = [rng.integers(0, 4, 40) for _ in range(3)]
    yield "lda", ps.LDA(3, **settings).fit(documents)
    yield "multinomial", ps.CorrelatedMultinomial(**settings).fit(counts)
    yield "mean field", ps.CorrelatedMultinomial(**quick).fit(counts)
    yield "topics", ps.CorrelatedTopicModel(3, **settings).fit(documents)
    yield "gp", ps.MultinomialGP(**settings).fit(np.arange(40.0)[:, None], counts)
    yield "lds", ps.MultinomialLDS(2, **settings).fit(steps)


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
def test_kinds_of_processors_have_the_same_bits_with_one_blas(tmp_path):
    here = bits(OPENBLAS_CORETYPE="Haswell")
    assert bits(OPENBLAS_CORETYPE="Haswell", NPY_DISABLE_CPU_FEATURES=OLD) == here
    plain = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+sse2"}
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}  # nothing compiled for this machine
    assert bits(OPENBLAS_CORETYPE="Haswell", **plain, **cache) == here
    other = bits(OPENBLAS_CORETYPE="Prescott")
    assert {name for name in here if here[name] == other[name]} == {"lda"}  # no matrices


if __name__ == "__main__":
    for name, model in models():
        print(name, digest(model.posterior_))
