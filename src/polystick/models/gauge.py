"""States may be turned and stretched, with all that refers to them: what identifiability they lack.

R z, e R', R A R' and R Q R' have the law of z, e, A and Q if R is a rotation. Stretched states c z, e / c and
c^2 Q leave the counts' law as it is, but not the priors.
"""

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


def stretches(model):
    """Tell whether no prior of the dynamics has a mean that would have to stretch along with the states."""
    d, prior = model.n_dims, model.dynamics_prior
    away = (model.initial_prior.mean, prior.mean[:, d:], prior.strength[:d, d:])
    return not any(part.any() for part in away)


def stretch_shape(model):
    """Return the shape of the law of c^-2: determinants of the priors and the Jacobian of the move."""
    degrees = model.dynamics_prior.degrees + model.initial_prior.degrees
    return 0.5 * model.n_dims * (model.n_sticks + model.n_dims + degrees)
