"""The seed of a fit, and of what is drawn after it."""

import numbers
from typing import Any

from polystick.inference.checkpoint import stored_seed
from polystick.validation import check_seed

__all__ = ["seed_for", "seed_of"]


def seed_for(estimator, resume):
    """Return the seed asked for; where no number was, that of the run that is resumed, or a fresh one."""
    seed = estimator.random_state
    if resume and estimator.checkpoint is not None and not isinstance(seed, numbers.Integral):
        stored = stored_seed(estimator.checkpoint)
        seed = seed if stored is None else stored
    return check_seed(seed)


def seed_of(estimator: Any, random_state: object) -> int:
    """Return the seed of draws from a fitted estimator: that of the fit where none is given."""
    return estimator.seed_ if random_state is None else check_seed(random_state)
