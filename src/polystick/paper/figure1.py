"""Figure 1: three Gaussians on psi and the densities on the simplex that they imply (section 2, appendix A).

The paper states no parameters. Ours: variances 4 with correlation 0.9 and -0.9 about the middle of the
simplex, and the diagonal Gaussian with the moments of a uniform Dirichlet.
"""

import time
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from polystick import Decomposition
from polystick.paper.parts import Line, Part, Picture, judged

STICKS = Decomposition.sticks(range(3))
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])  # of pi_1, pi_2, pi_3
REACH = 16.0  # of the grid in psi: the mass beyond is below 1e-13
N_CELLS = {False: 800, True: 1600}  # along each side, by full
NEAR = 0.1  # what we call near the axis pi_1 = pi_2
UNIFORM_NEAR = 1 - (1 - NEAR) ** 2  # the mass there of the uniform density
WELL = 0.1  # the distance up to which we call a law well approximated
CONTENTS = (0.5, 0.9)  # masses inside the ellipses
PSI_TICKS_AND_PI_TICKS = ((1e-4, 1e-3, 1e-2, 1e-1), (0.1, 0.5, 2, 10))


class Gaussian(NamedTuple):
    """A panel: psi ~ N(mean, cov)."""

    name: str
    mean: np.ndarray  # (2,)
    cov: np.ndarray  # (2, 2)

    def log_density(self, pi):
        return STICKS.log_density(pi, self.mean, self.cov)


class Facts(NamedTuple):
    """Integrals over the simplex."""

    total: float
    near_axis: float  # the mass with |pi_1 - pi_2| < NEAR
    correlation: float  # of pi_1 and pi_2
    means: np.ndarray  # (3,) of pi
    from_uniform: float  # total variation distance from the uniform Dirichlet


def tilted(name, correlation, variance=4.0):
    """Return a Gaussian about the middle of the simplex."""
    cov = variance * np.array([[1.0, correlation], [correlation, 1.0]])
    return Gaussian(name, np.array([-np.log(2), 0.0]), cov)


def matched():
    """Return the diagonal Gaussian with the moments of a uniform Dirichlet."""
    mean, variance = STICKS.dirichlet_moments(1.0)
    return Gaussian("near-spherical", mean, np.diag(variance))


def run(full, say):
    """Draw the six densities and integrate them."""
    start = time.perf_counter()
    n_cells, n_side = N_CELLS[full], 120 if full else 90
    panels = [tilted("correlated", 0.9), tilted("anti-correlated", -0.9), matched()]
    say(f"integrating three densities over {n_cells}² cells of the simplex")
    facts = [integrate(panel, n_cells) for panel in panels]
    coarse = [integrate(panel, n_cells // 2) for panel in panels]
    narrow = integrate(tilted("narrow", 0.9, variance=1.0), n_cells)
    lines = _lines(facts, coarse, narrow)
    say("drawing")
    pictures = [_picture(panels, n_side)]
    settings = {
        "correlated, anti-correlated": "mean (-log 2, 0), variances 4, correlation 0.9 and -0.9",
        "near-spherical": "mean (-1, 0), variances 2.29 and 3.29: the moments of Dirichlet(1, 1, 1)",
        "quadrature": f"{n_cells} x {n_cells} cells, exact areas; error: change from half as many",
    }
    seconds = time.perf_counter() - start
    title = "Figure 1: Gaussians on psi and what they imply on the simplex"
    return Part("figure1", title, settings, pictures, lines, _reading(facts, narrow), seconds)


# integrals


def cells(n_cells):
    """Return pi (n_cells**2, 3) inside the cells of a grid over the simplex, and the cells' areas.

    Cells are even in psi, so they get small where densities rise, and their areas in (pi_1, pi_2) are exact:
    integrals are right only if the Jacobian in the density is.
    """
    edges = np.linspace(-REACH, REACH, n_cells + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    psi = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
    rest = expit(-edges)  # of the stick, after the first break
    firsts, seconds = -np.diff(rest**2) / 2, -np.diff(rest)
    return STICKS.probabilities(psi), np.outer(firsts, seconds).ravel()


def integrate(panel, n_cells):
    """Return the facts about a density."""
    pi, area = cells(n_cells)
    density = np.exp(panel.log_density(pi))
    mass = density * area
    means = mass @ pi
    covariance = (pi * mass[:, None]).T @ pi - np.outer(means, means)
    return Facts(
        mass.sum(),
        mass[np.abs(pi[:, 0] - pi[:, 1]) < NEAR].sum(),
        covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]),
        means,
        0.5 * (np.abs(density - 2.0) @ area),
    )


def _lines(facts, coarse, narrow):
    correlated, opposite, spherical = facts
    error = {
        name: f"{max(abs(getattr(a, name) - getattr(b, name)) for a, b in zip(facts, coarse)):.1g}"
        for name in ("total", "near_axis", "correlation", "from_uniform")
    }
    off = np.abs(spherical.means - 1 / 3).max()
    return [
        Line(
            "Integral over the simplex of the three densities (closed form of appendix A)",
            "1",
            ", ".join(f"{each.total:.5f}" for each in facts),
            error["total"],
            judged(all(abs(each.total - 1) < 1e-3 for each in facts)),
            "With the product over k = 1..K-1; the printed one runs to K, where it divides by 0.",
        ),
        Line(
            f"Correlated: mass near the axis pi_1 = pi_2 (within {NEAR})",
            "most of it",
            f"{correlated.near_axis:.3f} (near-spherical {spherical.near_axis:.3f}, anti-correlated "
            f"{opposite.near_axis:.3f}, uniform {UNIFORM_NEAR:.3f})",
            error["near_axis"],
            judged(correlated.near_axis > 0.5),
            "More than the others have, but where both psi are large pi_1 takes all and pi_2 gets "
            f"nothing. A narrower Gaussian (variances 1) has {narrow.near_axis:.3f} there. The paper states "
            "no parameters.",
        ),
        Line(
            "Anti-correlated: correlation of pi_1 and pi_2",
            "one is large when the other is small",
            f"{opposite.correlation:.3f} (near-spherical {spherical.correlation:.3f}, correlated "
            f"{correlated.correlation:.3f})",
            error["correlation"],
            judged(opposite.correlation < min(spherical.correlation, -0.5)),
            "The mass runs in an arc from the corner of pi_1 to that of pi_2.",
        ),
        Line(
            "Near-spherical: total variation distance from the uniform Dirichlet",
            "approximates a symmetric Dirichlet",
            f"{spherical.from_uniform:.3f} (correlated {correlated.from_uniform:.3f}, anti-correlated "
            f"{opposite.from_uniform:.3f})",
            error["from_uniform"],
            judged(spherical.from_uniform < WELL),
            f"Mean probabilities are within {off:.3f} of 1/3, although sticks are broken in an order.",
        ),
    ]


def _reading(facts, narrow):
    return (
        "The closed form of appendix A is right once its products end at K-1: all three densities "
        "integrate to 1. Two of the three descriptions hold. The first holds in part: correlated psi put "
        f"{facts[0].near_axis:.0%} of the mass near the axis pi_1 = pi_2 ({narrow.near_axis:.0%} for a "
        f"narrower Gaussian), twice what a uniform density has there, but a ridge also runs to the corner "
        "of pi_1, for sticks are not symmetric."
    )


# the picture


def lattice(n_side):
    """Return points (n, 3) evenly inside the simplex, at the middles of small triangles."""
    i, j = np.divmod(np.arange((n_side + 1) ** 2), n_side + 1)
    i, j = i[i + j <= n_side], j[i + j <= n_side]
    return (np.stack([i, j, n_side - i - j], axis=-1) + 1 / 3) / (n_side + 1)


def _picture(panels, n_side):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.2), layout="compressed")
    axes = figure.subplots(2, 3)
    tables = [_draw_psi(ax, panel) for ax, panel in zip(axes[0], panels)]
    tables += [_draw_simplex(ax, panel, n_side) for ax, panel in zip(axes[1], panels)]
    for row, label, ticks in zip(axes, ("density of ψ", "density of π"), PSI_TICKS_AND_PI_TICKS):
        bar = figure.colorbar(row[0].collections[0], ax=list(row), label=label, pad=0.02)
        bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        bar.minorticks_off()
    caption = (
        "Top: Gaussians on ψ, with the ellipses that hold 50 % and 90 % of their mass. Bottom: the "
        "densities of π that they imply (with respect to π₁ and π₂; the uniform one is 2 everywhere); each "
        "corner is a category of probability 1, and π₁ = π₂ on the dashed line. Colours are logarithmic and "
        "the same within a row."
    )
    title = "Gaussians on psi, and their densities on the simplex"
    return Picture("figure1", title, caption, figure, pd.concat(tables, ignore_index=True))


def _draw_psi(ax, panel):
    grid = np.linspace(-6.5, 6.5, 101)
    psi = np.stack(np.meshgrid(grid, grid, indexing="xy"), axis=-1)
    pi = STICKS.probabilities(psi)
    density = np.exp(panel.log_density(pi) + STICKS.log_jacobian(psi))
    _shade(ax.contourf, (grid, grid, density), (1e-4, 0.2))
    peak = 1 / (2 * np.pi * np.sqrt(np.linalg.det(panel.cov)))
    levels = peak * (
        1 - np.array(CONTENTS)[::-1]
    )  # outside, a Gaussian in two dimensions has level / peak
    ax.contour(grid, grid, density, levels=levels, colors="white", linewidths=1)
    ticks = [-5, 0, 5]
    ax.set(xlabel="ψ₁", title=panel.name, aspect="equal", xticks=ticks, yticks=ticks)
    if panel.name == "correlated":  # the first of three
        ax.set_ylabel("ψ₂", rotation=0, labelpad=0)
    return _table(panel.name, "psi", psi.reshape(-1, 2), pi.reshape(-1, 3), density.ravel())


def _draw_simplex(ax, panel, n_side):
    pi = lattice(n_side)
    density = np.exp(panel.log_density(pi))
    _shade(ax.tricontourf, (*(pi @ CORNERS).T, density), (0.1, 25.0))
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color="0.2", linewidth=1)
    ax.plot(*np.array([CORNERS[:2].mean(axis=0), CORNERS[2]]).T, "--", color="white", linewidth=1)
    looks = {"ha": "center", "textcoords": "offset points"}
    for corner, text, beside in zip(CORNERS, ("π₁ = 1", "π₂ = 1", "π₃ = 1"), (-14, -14, 4)):
        ax.annotate(text, corner, (0, beside), **looks)
    ax.set(aspect="equal", xlim=(-0.14, 1.14), ylim=(-0.13, 1.02))
    ax.axis("off")
    return _table(panel.name, "simplex", STICKS.psi(pi), pi, density)


def _shade(fill, numbers, limits):
    from matplotlib.colors import LogNorm

    levels = np.geomspace(limits[0], limits[1], 33)
    looks = {"norm": LogNorm(*limits), "cmap": "viridis", "extend": "both"}
    fill(*numbers, levels=levels, **looks).set_rasterized(True)  # small SVG files


def _table(panel, space, psi, pi, density):
    numbers = np.column_stack([psi, pi, density])
    names = ["psi_1", "psi_2", "pi_1", "pi_2", "pi_3", "density"]
    table = pd.DataFrame(numbers, columns=names)
    table.insert(0, "panel", panel)
    table.insert(1, "space", space)
    return table
