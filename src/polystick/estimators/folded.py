"""Shares of documents over posterior states, summed up as they come."""

from typing import NamedTuple

import numpy as np


class Folded(NamedTuple):
    """Shares of topics of documents."""

    mean: np.ndarray  # (n, T)
    std: np.ndarray  # (n, T), of draws
    draws: np.ndarray | None  # (states, n, T), if they were kept

    def told(self, has_draws, has_std):
        """Return the mean and what else was asked for."""
        draws, std = (self.draws,) if has_draws else (), (self.std,) if has_std else ()
        return self.mean, *draws, *std


def refuse_draws(n_draws, usual):
    """Raise where somebody asked for states that nobody looks at."""
    if n_draws != usual:
        raise ValueError(
            f'n_draws is of no use to method="fast", which draws nothing; got {n_draws}; leave it out, '
            'or take method="exact"'
        )


def summed(states, keep_draws):
    """Sum up (means, draw), both (n, T), of each state; two arrays are held, not one for each state."""
    total, kept, n_states = np.zeros(()), [], 0
    about, squares = 0.0, 0.0  # the mean of draws, and squared gaps from it (Welford 1962)
    for mean, draw in states:
        n_states += 1
        total = total + mean
        gap = draw - about
        about = about + gap / n_states
        squares = squares + gap * (draw - about)
        if keep_draws:
            kept.append(draw)
    return Folded(total / n_states, np.sqrt(squares / n_states), np.stack(kept) if kept else None)


def joined(blocks):
    """Put blocks of documents together."""
    mean, std = (np.concatenate([getattr(b, name) for b in blocks]) for name in ("mean", "std"))
    kept = [block.draws for block in blocks if block.draws is not None]
    return Folded(mean, std, np.concatenate(kept, axis=1) if kept else None)
