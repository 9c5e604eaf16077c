"""States may be turned and stretched, with all that refers to them: what identifiability they lack.

R z, e R', R A R' and R Q R' have the law of z, e, A and Q if R is a rotation. Stretched states c z, e / c and
c^2 Q leave the counts' law as it is, but not the priors.
"""

import numpy as np

from polystick.kernels import algebra


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


def stretch_shape(model, n_laws=1):
    """Return the shape of the law of c^-2: determinants of the priors and the Jacobian of the move.

    n_laws : of the dynamics, each with the same prior
    """
    degrees, d = model.initial_prior.degrees, model.n_dims
    return 0.5 * d * (model.n_sticks + degrees + n_laws * (d + model.dynamics_prior.degrees))


def draw_stretch(model, parameters, rng):
    """Draw the stretch c given all but the scale of the states: c^-2 has a gamma law.

    Of the priors' exponents it multiplies those of e, Q, A given Q and cov; the determinants, and
    the Jacobian of the move, add up to the shape. Means other than 0 would not stretch along.
    """
    laws = [(parameters.coefficients, parameters.dynamics_cov)]
    return draw_stretch_of(model, parameters, laws, rng)


def draw_stretch_of(model, parameters, laws, rng):
    """Draw the stretch where the dynamics have several laws ([A B], Q)."""
    if not stretches(model):
        return 1.0
    d, prior, initial = model.n_dims, model.dynamics_prior, model.initial_prior
    rate = ((parameters.emission[:, :d] / model.scales[:d]) ** 2).sum()
    for coefficients, cov in laws:
        gap, precision = coefficients[:, :d] - prior.mean[:, :d], algebra.inverted(cov)
        rate += np.sum(precision * (prior.scale + _spread(gap, prior.strength[:d, :d])))
    rate += np.sum(algebra.inverted(parameters.initial_cov) * initial.scale)
    return np.sqrt(0.5 * rate / rng.standard_gamma(stretch_shape(model, len(laws))))


def best_scale(model, factor):
    """Return the c that makes c times the states best; 1 where the priors do not stretch along."""
    if not stretches(model):
        return 1.0
    d, prior, first = model.n_dims, model.dynamics_prior, model.initial_prior
    dynamics, initial, emission = factor.dynamics, factor.initial, factor.emission
    squares = emission.mean**2 + emission.variance
    K0, gap = prior.strength[:d, :d], dynamics.mean[:, :d] - prior.mean[:, :d]
    rate = np.sum(squares[:, :d] / model.scales[:d] ** 2)
    rate += np.sum(dynamics.expected_precision * (prior.scale + _spread(gap, K0)))
    rate += np.sum(dynamics.expected_excess[:d, :d] * K0)
    rate += np.sum(initial.expected_precision * first.scale)
    return np.sqrt(0.5 * rate / stretch_shape(model))


def _spread(gap, strength):
    """Return gap strength gap'."""
    return algebra.multiply(algebra.multiply(gap, strength), gap.T)
