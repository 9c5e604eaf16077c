"""How parameters are told to those who read a posterior."""

import numpy as np

from polystick.inference.protocols import Array, Named


def described(model: object, parameters: Named) -> dict[str, Array]:
    """Return name -> array: what the model says of its parameters, by default their fields."""
    describe = getattr(model, "describe_parameters", None)
    named = parameters._asdict() if describe is None else describe(parameters)
    return {name: np.asarray(value) for name, value in named.items()}
