"""Write src/polystick/warmup/kernels.txt: which kernels the first fit of each model calls.

    python tools/list_kernels.py        under a minute, once kernels are compiled

Each model is fitted to a few counts in a process of its own, then asked for predictions; the kernels that
Python called are listed with the types of their arguments, those with the most machine code first.
"""

import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pandas as pd

from polystick import (
    CorrelatedMultinomial,
    CorrelatedTopicModel,
    DynamicMultinomial,
    Gibbs,
    MultinomialGP,
    MultinomialLDS,
    MultinomialRegression,
)
from polystick.warmup.listed import Root, spelled

TARGET = Path(__file__).parents[1] / "src" / "polystick" / "warmup" / "kernels.txt"
ROOM = "polystick.kernels."
SHORT = Gibbs(2, 2, n_chains=1)


def topics(rng):
    counts = rng.poisson(0.5, (30, 12))
    model = CorrelatedTopicModel(20, inference=SHORT).fit(counts)
    yield
    model.topic_association(counts)
    model.transform(counts)
    model.score(counts)


def multinomial(rng):
    counts = rng.poisson(2.0, (20, 20))
    model = CorrelatedMultinomial(inference=SHORT).fit(counts)
    yield
    model.predict_proba(counts)
    model.score(counts)


def softmax_multinomial(rng):
    counts = rng.poisson(2.0, (20, 20))
    model = CorrelatedMultinomial(link="softmax", inference=SHORT).fit(counts)
    yield
    model.category_association()
    model.score(counts)


def regression(rng, link="stick"):
    counts = rng.poisson(2.0, (20, 4))
    frame = pd.DataFrame({"x": rng.normal(size=20), "place": list("abcde" * 4)})
    model = MultinomialRegression("x", groups="place", link=link, inference=SHORT)
    model.fit(frame, counts)
    yield
    model.effects("x")
    model.predict_proba(frame)


def softmax_regression(rng):
    return regression(rng, link="softmax")


def gp(rng):
    counts, years = rng.poisson(2.0, (20, 4)), np.arange(20.0)[:, None]
    model = MultinomialGP(inference=SHORT).fit(years, counts)
    yield
    model.predict_proba(years + 0.5)
    model.score(years, counts)


def lds(rng):
    tokens = [rng.integers(0, 4, 12) for _ in range(2)]
    model = MultinomialLDS(5, inference=SHORT).fit(tokens)
    yield
    model.predict_proba(tokens)
    model.score(tokens)


def dynamic(rng):
    counts = rng.multinomial(5, np.full(4, 0.25), 12)
    model = DynamicMultinomial(inference=SHORT).fit(counts)
    yield
    model.forecast(2)
    model.score(counts)


CASES = {
    "topics": topics,
    "multinomial": multinomial,
    "softmax-multinomial": softmax_multinomial,
    "regression": regression,
    "softmax-regression": softmax_regression,
    "gp": gp,
    "lds": lds,
    "dynamic": dynamic,
}


def called():
    """Return the kernels that were called, with the size of their code on disk."""
    return {
        Root(name, " ".join(map(spelled, signature))): size(kernel, signature)
        for kernel, name in named().items()
        for signature in kernel.overloads
        if not any(
            isinstance(kind, numba.types.Literal) for kind in signature
        )  # no call from Python
    }


def named():
    """Return kernel -> its name; of two names, which twins have, the shorter."""
    from numba.core.dispatcher import Dispatcher

    found = {}
    for module in [name for name in sys.modules if name.startswith(ROOM)]:
        for name, kernel in sorted(
            vars(sys.modules[module]).items(), key=lambda item: -len(item[0])
        ):
            if isinstance(kernel, Dispatcher) and kernel.py_func.__module__ == module:
                found[kernel] = f"{module.removeprefix(ROOM)}.{name}"
    return found


def size(kernel, signature):
    """Return the bytes of a kernel's code, which go with the time that it took to compile."""
    files = kernel._cache._cache_file
    key = kernel._cache._index_key(signature, kernel.targetctx.codegen())
    return Path(files._data_path(files._load_index()[key])).stat().st_size


def section(name):
    """Return the lines of a model: what its fit calls, and what its predictions call after that."""
    warnings.simplefilter("ignore")
    steps = CASES[name](np.random.default_rng(0))
    next(steps)
    of_the_fit = called()
    next(steps, None)
    after = {root: size for root, size in called().items() if root not in of_the_fit}
    parts = [lines(name, of_the_fit)]
    if after:
        parts.append(lines(f"{name} predictions", after))
    return "\n\n".join(parts)


def lines(head, sizes):
    largest_first = sorted(sorted(sizes), key=lambda root: sizes[root] // 10_000, reverse=True)
    return "\n".join([head, *(f"{root.name} {root.types}" for root in largest_first)])


def main():
    command, parts = [sys.executable, __file__], []
    for name in CASES:
        subprocess.check_output(
            [*command, name]
        )  # where kernels compile, their parts are listed too
        parts.append(subprocess.check_output([*command, name], text=True).strip())
    TARGET.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    print(section(sys.argv[1])) if len(sys.argv) > 1 else main()
