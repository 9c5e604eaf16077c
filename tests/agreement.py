"""Two samplers of one posterior: do their moments agree within Monte Carlo error?"""

import numpy as np

from statistics_tools import standard_error


def summarise(draws):
    """Return mean and sd of draws (chain, draw, ...) with their Monte Carlo standard errors."""
    mean = draws.mean(axis=(0, 1))
    squares = (draws - mean) ** 2
    sd = np.sqrt(squares.mean(axis=(0, 1)))
    return {
        "mean": mean,
        "sd": sd,
        "mcse_mean": error_over_chains(draws),
        "mcse_sd": error_over_chains(squares) / (2 * sd),
    }


def error_over_chains(draws):
    errors = np.stack([standard_error(chain) for chain in draws])
    return np.sqrt(np.square(errors).sum(axis=0)) / len(errors)


def z_scores(found, reference):
    """Return name of moment -> differences in combined standard errors."""
    return {
        f"{moment} of {name}": np.subtract(found[name][moment], reference[name][moment])
        / np.hypot(found[name][f"mcse_{moment}"], reference[name][f"mcse_{moment}"])
        for name in reference
        for moment in ("mean", "sd")
    }


def largest(z):
    return max(np.abs(values).max() for values in z.values())
