"""The seed of a fit."""

from polystick.inference.checkpoint import stored_seed
from polystick.validation import check_seed


def seed_for(estimator, resume):
    """Return the seed asked for; where none was, that of the run that is resumed, or a fresh one."""
    seed = estimator.random_state
    if resume and seed is None and estimator.checkpoint is not None:
        seed = stored_seed(estimator.checkpoint)
    return check_seed(seed)
