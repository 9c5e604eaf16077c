"""Hypothesis strategies for decompositions: nested pairs over 0..K-1, and generators of numbers."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

short = settings(deadline=None, max_examples=40, derandomize=True)
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def trees(draw, most=9):
    def grow(leaves):
        if len(leaves) == 1:
            return leaves[0]
        cut = draw(st.integers(1, len(leaves) - 1))
        return (grow(leaves[:cut]), grow(leaves[cut:]))

    return grow(draw(st.integers(2, most).flatmap(lambda K: st.permutations(range(K)))))
