"""Counts of words, pairs and triples: probabilities, against formulas written out."""

import itertools

import numpy as np
import pytest

from polystick.baselines.ngrams import KINDS, NGrams, Seen, count

TOKENS = np.random.default_rng(3).choice(5, 80, p=[0.4, 0.3, 0.15, 0.1, 0.05])
SETTINGS = {"unigram": (0.4,), "cache": (0.4, 1, 0.3), "bigram": (0.4, 0.7)}


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_add_up_to_1(kind):
    model = NGrams(kind, 6)  # one of them is never seen
    settings = SETTINGS.get(kind, (0.4, 0.6, 0.8)[: int(kind[-1])] if kind[-1].isdigit() else ())
    for length in (0, 1, 2, 30, 80):
        last = []
        for word in range(6):
            seen = count(np.append(TOKENS[:length], word))
            last.append(model.probabilities(Seen(*(each[-1:] for each in seen)), *settings)[0])
        assert np.isclose(sum(last), 1.0), (length, sum(last))


def test_a_bigram_is_what_one_would_write():
    seen = count(TOKENS)
    t, added, discount = 70, 0.3, 0.75
    v, w = TOKENS[t - 1 : t + 1]
    past = list(itertools.pairwise(TOKENS[:t]))
    followers = [b for a, b in past if a == v]
    kinds = set(past)
    base = (sum(b == w for _, b in kinds) + added) / (len(kinds) + 5 * added)
    kept = max(followers.count(w) - discount, 0.0) + discount * len(set(followers)) * base
    here = Seen(*(each[t : t + 1] for each in seen))
    found = NGrams("Kneser-Ney, order 2", 5).probabilities(here, added, discount)
    np.testing.assert_allclose(found, kept / len(followers))


def test_tuning_sees_nothing_of_what_is_scored():
    model, other = NGrams("bigram", 5), TOKENS.copy()
    other[60:] = 4
    values, settings = model.score_steps(TOKENS, 60)
    assert len(values) == 20
    assert model.score_steps(other, 60)[1] == settings
