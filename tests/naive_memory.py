"""What a memory says of the step after a history, from the history itself."""

import numpy as np


def after(memory, history):
    """Return f (k, P) of the step after a history (T,) of one sequence, in which -1 is missing."""
    law, k = memory._law, memory.decomposition.n_categories - 1
    found, seen = np.zeros((k, memory.size)), history >= 0
    ages = np.arange(len(history), 0.0, -1.0)[seen]
    for h, growth in enumerate(law.growth):
        first, second = sides(memory, history[seen], growth**-ages) + law.pull[h] * law.masses.T
        found[:, h] = np.log(first / second) - law.log_odds
    masses, odds = law.masses.T, law.log_odds
    for back in range(memory.order):
        following = followers(history, back + 1)
        if not len(following):
            break
        kinds = np.unique(following)
        rest = law.discounts[back] * len(kinds)
        kept = sides(memory, following) - law.discounts[back] * sides(memory, kinds)
        masses = (kept + rest * masses) / len(following)
        now = np.log(masses[0] / masses[1])
        found[:, len(memory.half_lives) + back] = now - odds
        odds = now
    return found


def sides(memory, tokens, weights=None):
    """Return weighted counts (2, k) of both sides of all splits."""
    counts = np.bincount(tokens, weights, minlength=memory.decomposition.n_categories)
    return np.stack(memory.decomposition.sides(counts.astype(np.float64)))


def followers(history, width):
    """Return the tokens that followed the last `width` ones before; none if one of these is missing."""
    context = history[len(history) - width :]
    if len(history) < width + 1 or (context < 0).any():
        return np.zeros(0, dtype=np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(history[:-1], width)
    at = np.flatnonzero((windows == context).all(axis=1)) + width
    return history[at][history[at] >= 0]
