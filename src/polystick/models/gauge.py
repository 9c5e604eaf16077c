"""States may be turned: R z, e R', R A R' and R Q R' have the law of z, e, A and Q if R is a rotation."""

import numpy as np


def turn(described, reference, weights):
    """Return a draw, name -> array, whose emission is turned to that of another as nearly as can be.

    weights : (k,) of the sticks
    """
    u, _, vt = np.linalg.svd(
        (described["emission"] * weights[:, None]).T @ (reference["emission"] * weights[:, None])
    )
    back = u @ vt  # R', from the right: e R' is near the reference
    turned = dict(described)
    for name in ("emission", "states"):
        if name in turned:
            turned[name] = turned[name] @ back
    for name in ("dynamics", "dynamics_cov", "initial_cov"):
        turned[name] = back.T @ turned[name] @ back
    for name in ("initial_mean", "dynamics_drift", "dynamics_input"):
        if name in turned:
            turned[name] = back.T @ turned[name]
    return turned
