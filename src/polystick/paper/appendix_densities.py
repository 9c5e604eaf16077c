"""Appendix A: the laws of psi_k when pi is uniform, and the Gaussians with their moments."""

import numpy as np
import pandas as pd
from scipy import special, stats

from polystick import Decomposition, plots
from polystick.paper.parts import Line, Picture, judged

N_CATEGORIES = 9
STICKS = Decomposition.sticks(range(N_CATEGORIES))
ONE_STICK = Decomposition.sticks(range(2))
SHOWN = np.linspace(-10.0, 10.0, 401)
BESIDE = (1, 4, 8)  # the sticks whose Gaussians are drawn: all eight would hide each other
WELL = 0.1  # the distance up to which we call a law well approximated
ALL = np.linspace(-60.0, 60.0, 24001)  # for integrals: the mass beyond is below 1e-24


def log_densities(psi):
    """Return the log density (8, n) of each psi_k at psi (n,) for nine categories and alpha = 1.

    Stick k against all after it is a Dirichlet of two categories: alpha_k, and the sum of the later ones.
    """
    later = range(N_CATEGORIES - 1, 0, -1)
    return np.stack([ONE_STICK.dirichlet_log_density(psi[:, None], [1.0, rest]) for rest in later])


def gaussian_log_densities(psi):
    """Return those of the Gaussians with the same means and variances."""
    mean, variance = STICKS.dirichlet_moments(1.0)
    return stats.norm.logpdf(psi, mean[:, None], np.sqrt(variance)[:, None])


def moments(psi=ALL):
    """Return mass, mean, variance and skewness (8,) of each psi_k by quadrature on a grid."""
    mass = np.exp(log_densities(psi)) * (psi[1] - psi[0])
    mean = mass @ psi
    centred = psi - mean[:, None]
    variance = np.sum(mass * centred**2, axis=1)
    return mass.sum(axis=1), mean, variance, np.sum(mass * centred**3, axis=1) / variance**1.5


def distances(psi=ALL):
    """Return the total variation distance (8,) of each psi_k from its Gaussian."""
    gap = np.abs(np.exp(log_densities(psi)) - np.exp(gaussian_log_densities(psi)))
    return 0.5 * gap.sum(axis=1) * (psi[1] - psi[0])


def lines():
    """Return what the figure claims, beside our numbers."""
    mass, mean, variance, skewness = moments()
    exact_mean, exact_variance = STICKS.dirichlet_moments(1.0)
    gap = max(np.abs(mean - exact_mean).max(), np.abs(variance - exact_variance).max())
    apart = distances()
    joint = _joint_gap()
    tail = gaussian_log_densities(SHOWN[:1])[0, 0] - log_densities(SHOWN[:1])[0, 0]
    long = Decomposition.sticks(range(4000)).dirichlet_moments(2.0)
    return [
        Line(
            "K = 9, alpha = 1: integrals of the 8 densities of psi_k",
            "1",
            f"{mass.min():.6f} to {mass.max():.6f}",
            f"{np.abs(mass - 1).max():.0e}",
            judged(np.abs(mass - 1).max() < 1e-6),
            "Their product is the printed joint density: at 100 random points the logarithms differ by "
            f"{joint:.0e} at most.",
        ),
        Line(
            "Means and variances of psi_k",
            "computed numerically",
            f"psi_1: {exact_mean[0]:.3f}, {exact_variance[0]:.3f}; psi_8: {exact_mean[-1]:.3f}, "
            f"{exact_variance[-1]:.3f}",
            f"{gap:.0e} from quadrature",
            judged(gap < 1e-6),
            "There is a closed form by digamma and trigamma functions. A grid over [-10, 10] fails for long "
            f"sticks: with K = 4000, alpha = 2 the mean of psi_1 is {long[0][0]:.2f}, near its edge.",
        ),
        Line(
            "Skewness of psi_k grows as k falls",
            "increasingly skewed for small k",
            ", ".join(f"{value:.2f}" for value in skewness) + " (k = 1..8)",
            "below 1e-6",
            judged((np.diff(np.abs(skewness)) < 0).all()),
            "The last is a standard logistic, which is symmetric.",
        ),
        Line(
            "Total variation distance of psi_k from its Gaussian",
            "well approximated by a Gaussian",
            f"{apart.min():.3f} to {apart.max():.3f}",
            "below 1e-6",
            judged(apart.max() < WELL),
            f"A matter of degree: {np.sum(apart < WELL)} of 8 are below {WELL}, the skewed ones are not. In "
            "the left tail the true log density falls on a line, the Gaussian's on a parabola, and "
            f"at psi_1 = -10 they differ by {abs(tail):.1f} nats.",
        ),
    ]


def _joint_gap():
    psi = np.random.default_rng(0).normal(scale=3.0, size=(100, N_CATEGORIES - 1))
    marginals = sum(log_densities(column)[k] for k, column in enumerate(psi.T))
    sides = np.ones(N_CATEGORIES - 1), np.arange(N_CATEGORIES - 1, 0, -1)
    printed = sides[0] * special.log_expit(psi) + sides[1] * special.log_expit(-psi)
    constant = special.gammaln(N_CATEGORIES)  # -log B(1, ..., 1)
    return max(
        np.abs(marginals - STICKS.dirichlet_log_density(psi, 1.0)).max(),
        np.abs(marginals - printed.sum(axis=1) - constant).max(),
    )


def picture():
    """Draw the densities above their logarithms, with the Gaussians dashed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    exact, gaussian = log_densities(SHOWN), gaussian_log_densities(SHOWN)
    for k, colour in enumerate(plots.COLOURS):
        looks = {"color": colour, "linewidth": 1.6}
        dashed = {"color": colour, "linewidth": 1.4, "linestyle": (0, (4, 2))}
        upper.plot(SHOWN, np.exp(exact[k]), **looks, label=f"ψ{_subscript(k + 1)}")
        lower.plot(SHOWN, exact[k], **looks)
        if k + 1 in BESIDE:
            upper.plot(SHOWN, np.exp(gaussian[k]), **dashed)
            lower.plot(SHOWN, gaussian[k], **dashed)
    upper.plot([], [], color="0.4", linewidth=1.4, linestyle=(0, (4, 2)), label="Gaussian")
    upper.set(ylabel="density", ylim=(0, None), xlim=(-10, 10))
    lower.set(ylabel="log density (nats)", xlabel="ψₖ", ylim=(-16, 0))
    for ax in (upper, lower):
        ax.grid(alpha=0.3)
    upper.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    caption = (
        "Densities (above) and log densities (below) of ψ₁ to ψ₈ when π is uniform over nine categories; "
        "dashed, the Gaussians with the means and variances of ψ₁, ψ₄ and ψ₈."
    )
    title = "Laws of psi_k under a uniform Dirichlet, K = 9"
    return Picture("appendix_densities", title, caption, figure, _table(exact, gaussian))


def _table(exact, gaussian):
    pieces = [
        pd.DataFrame({"k": k + 1, "psi": SHOWN, "log_density": exact[k], "gaussian": gaussian[k]})
        for k in range(N_CATEGORIES - 1)
    ]
    table = pd.concat(pieces, ignore_index=True).rename(columns={"gaussian": "log_gaussian"})
    table["density"], table["gaussian"] = np.exp(table.log_density), np.exp(table.log_gaussian)
    return table


def _subscript(number):
    return chr(ord("₀") + number)
