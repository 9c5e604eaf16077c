"""Appendix B, the figure: the posterior of psi for one row of counts, and its conditionals given omega."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from polystick import Decomposition, plots, polyagamma
from polystick.paper.parts import Line, Picture, judged

STICKS = Decomposition.sticks(range(3))
COUNTS, LOPSIDED = np.array([4, 3, 2]), np.array([0, 9, 0])
PRIOR_MEAN, PRIOR_COV = np.zeros(2), np.array([[3.0, 1.5], [1.5, 3.0]])
GRID = np.linspace(-10.0, 10.0, 401)
N_CHAINS = {False: 400, True: 4000}  # by full
N_SHOWN = 4  # steps of the sampler
SHOWN = np.abs(GRID) < 2.85
BLUE = plots.COLOURS[0]
INSIDE = 0.9  # the mass in an ellipse


class Conditionals(NamedTuple):
    """The laws psi ~ N(mean, cov) given omega, of n chains."""

    mean: np.ndarray  # (n, 2)
    cov: np.ndarray  # (n, 2, 2)


class Exact(NamedTuple):
    """The posterior on the grid."""

    mass: np.ndarray  # (n * n,) of the cells
    psi: np.ndarray  # (n * n, 2) their middles
    mean: np.ndarray  # (2,)
    cov: np.ndarray  # (2, 2)


def posterior(counts=COUNTS):
    """Return the posterior of psi by quadrature."""
    psi = np.stack(np.meshgrid(GRID, GRID, indexing="xy"), axis=-1).reshape(-1, 2)
    prior = stats.multivariate_normal(PRIOR_MEAN, PRIOR_COV).logpdf(psi)
    log_density = STICKS.log_probabilities(psi) @ counts + prior
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    mean = mass @ psi
    return Exact(mass, psi, mean, (psi * mass[:, None]).T @ psi - np.outer(mean, mean))


def conditionals(psi, seed, counts=COUNTS):
    """Draw omega given psi (n, 2) and return the laws of psi given omega."""
    splits = STICKS.split(counts)
    omega = polyagamma.draw(splits.trials, psi, seed=seed)
    precision = np.linalg.inv(PRIOR_COV)
    cov = np.linalg.inv(precision + omega[:, :, None] * np.eye(2))
    linear = precision @ PRIOR_MEAN + splits.successes - splits.trials / 2
    return Conditionals(cov @ linear, cov)


def gibbs(n_chains, n_steps, seed, counts=COUNTS):
    """Yield the conditionals of each step of independent chains that start at the prior mean."""
    rng = np.random.default_rng(seed)
    psi = np.tile(PRIOR_MEAN, (n_chains, 1))
    for _ in range(n_steps):
        law = conditionals(psi, int(rng.integers(2**63)), counts)
        noise = rng.normal(size=psi.shape)
        psi = law.mean + np.einsum("nij,nj->ni", np.linalg.cholesky(law.cov), noise)
        yield law


def overlap(exact, mean, cov):
    """Return the mass that the posterior and a Gaussian have in common: 1 if they are the same."""
    gaussian = np.exp(-distances(exact.psi, mean, cov) / 2)
    gaussian *= (GRID[1] - GRID[0]) ** 2 / (2 * np.pi * np.sqrt(np.linalg.det(cov)))
    return np.minimum(exact.mass, gaussian).sum()


def covered(exact, mean, cov):
    """Return the posterior mass in the ellipse that holds INSIDE of a Gaussian."""
    return exact.mass[distances(exact.psi, mean, cov) < stats.chi2.ppf(INSIDE, 2)].sum()


def distances(psi, mean, cov):
    """Return the squared Mahalanobis distances (n,) of psi (n, 2)."""
    x, y = (psi - mean).T
    (a, b), (_, c) = np.linalg.inv(cov)
    return a * x * x + 2 * b * x * y + c * y * y


def run(full):
    """Return the picture and its lines."""
    n_chains, n_steps = N_CHAINS[full], 100 if full else 30
    exact = posterior()
    *_, last = gibbs(n_chains, n_steps, seed=2)
    *_, hard = gibbs(n_chains, n_steps, seed=4, counts=LOPSIDED)
    shown = [(law.mean[0], law.cov[0]) for law in gibbs(1, 4 + N_SHOWN, seed=8)][4:]
    return _picture(exact, shown), _lines(exact, shown, last, shares(hard, posterior(LOPSIDED)))


def shares(law, exact):
    """Return the variances (n, 2) of conditionals as shares of the posterior's."""
    return law.cov[:, [0, 1], [0, 1]] / np.diag(exact.cov)


def _lines(exact, shown, last, hard):
    few = range(min(len(last.mean), 200))
    common = np.array([overlap(exact, last.mean[i], last.cov[i]) for i in few])
    inside = np.array([covered(exact, *law) for law in shown])
    z = _z(last.mean, exact.mean)
    easy = shares(last, exact)
    return [
        Line(
            f"Posterior mass inside each of the {N_SHOWN} ellipses (of {INSIDE:.0%} of the conditional)",
            "a significant amount",
            ", ".join(f"{value:.2f}" for value in inside),
            "quadrature, below 0.01",
            judged(inside.min() > 0.5),
            "One draw of omega stands for much of the posterior of psi.",
        ),
        Line(
            "Mass that conditional and posterior have in common, mean over omega",
            "overlap substantially",
            f"{common.mean():.3f}",
            f"{_standard_error(common):.3f}",
            judged(common.mean() > 0.5),
            f"Counts {_text(COUNTS)}, prior N(0, [[3, 1.5], [1.5, 3]]): ours, the paper states none.",
        ),
        _share_line(
            COUNTS, easy, "The rest, the spread of the conditional means, is left to Monte Carlo."
        ),
        _share_line(LOPSIDED, hard, "A harder case of our own, with a skewed posterior."),
        Line(
            "Mean of the conditionals against the exact posterior mean (largest z-score)",
            "the same law",
            f"{np.abs(z).max():.2f}",
            f"{len(last.mean)} independent chains",
            judged(np.abs(z).max() < 4),
            "A check of the sampler: four lines of NumPy and polyagamma.draw.",
        ),
    ]


def _share_line(counts, values, why):
    mean = values.mean(axis=0)
    return Line(
        f"Share of the posterior variance of psi_1, psi_2 within a conditional, counts {_text(counts)}",
        "much of the volume",
        f"{mean[0]:.3f}, {mean[1]:.3f}",
        ", ".join(f"{_standard_error(column):.3f}" for column in values.T),
        judged(mean.min() > 0.5),
        why,
    )


def _text(counts):
    return f"({', '.join(map(str, counts))})"


def _z(draws, mean):
    return (draws.mean(axis=0) - mean) / _standard_error(draws)


def _standard_error(values):
    return values.std(axis=0, ddof=1) / np.sqrt(len(values))


def _picture(exact, shown):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.6), layout="constrained")
    ax = figure.subplots()
    density = exact.mass.reshape(len(GRID), -1)[np.ix_(SHOWN, SHOWN)] / (GRID[1] - GRID[0]) ** 2
    levels = np.linspace(0, 1.0001 * density.max(), 11)[1:]
    filled = ax.contourf(GRID[SHOWN], GRID[SHOWN], density, levels=levels, cmap="Reds")
    figure.colorbar(filled, ax=ax, label="posterior density of ψ", format="%.2f")
    for step, (law, line) in enumerate(zip(shown, ("-", "--", "-.", ":")), start=1):
        ax.plot(*ellipse(*law).T, linestyle=line, color=BLUE, linewidth=2, label=f"step {step}")
        ax.plot(*law[0], "+", color=BLUE, markersize=9, markeredgewidth=2)
    ax.legend(title="given ω of", loc="upper left")
    ax.set(xlabel="ψ₁", ylabel="ψ₂", xlim=(-2.8, 2.2), ylim=(-2.1, 2.8))
    caption = (
        f"Shaded: the posterior of ψ given the counts {_text(COUNTS)}. Blue: the ellipses (with their "
        f"centres) that hold {INSIDE:.0%} of the Gaussian conditionals given ω, for {N_SHOWN} successive "
        "steps of the Gibbs sampler."
    )
    title = "Posterior of psi and its conditionals given omega, K = 3"
    return Picture("appendix_ellipses", title, caption, figure, _table(density, shown))


def _table(density, shown):
    """Return what is drawn: the posterior on its grid, the ellipses and their centres."""
    psi_1, psi_2 = np.meshgrid(GRID[SHOWN], GRID[SHOWN], indexing="xy")
    pieces = [_points("posterior", psi_1.ravel(), psi_2.ravel()).assign(density=density.ravel())]
    for step, law in enumerate(shown, start=1):
        pieces.append(_points(f"ellipse of step {step}", *ellipse(*law).T))
        pieces.append(_points(f"centre of step {step}", *law[0][:, None]))
    return pd.concat(pieces, ignore_index=True)


def _points(what, psi_1, psi_2):
    return pd.DataFrame({"what": what, "psi_1": psi_1, "psi_2": psi_2})


def ellipse(mean, cov, n_points=200):
    """Return the points (n, 2) of the ellipse that holds INSIDE of a Gaussian."""
    angle = np.linspace(0, 2 * np.pi, n_points)
    circle = np.sqrt(stats.chi2.ppf(INSIDE, 2)) * np.stack([np.cos(angle), np.sin(angle)])
    return mean + (np.linalg.cholesky(cov) @ circle).T
