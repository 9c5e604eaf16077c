"""Tables of regression.py: counts with covariates and groups, drawn from one law or another.

Lines, groups and noise are normal on K - 1 entries; a tree in the given order, or a softmax whose first
category has a line of zeros, makes them probabilities.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from polystick import decompose

CHANGES = {"x1": 1.0, "x2": 1.0, "treated": (0, 1)}  # whose average effects are looked at
N_POINTS = 200  # of noise, with their opposites, that a true effect is averaged over


class Design(NamedTuple):
    """How a table is drawn; standard deviations are on the scale of log odds."""

    n: int
    n_categories: int
    n_columns: int  # with the intercept; the last is 0 or 1
    mean_total: float
    n_groups: int = 0
    sd_group: float = 0.6
    sd_noise: float = 0.0
    sd_coefficient: float = 0.5
    link: str = "stick"


class Table(NamedTuple):
    """What was drawn, and from what."""

    frame: pd.DataFrame
    counts: np.ndarray
    design: Design
    x: np.ndarray  # (n, p) with the intercept
    coefficients: np.ndarray  # (p, k)
    of_groups: Any  # (n, k) effects of each row's group
    cov: np.ndarray  # (k, k) of noise

    @property
    def groups(self):
        return "group" if self.design.n_groups else None


def draw_table(design, seed):
    rng = np.random.default_rng(seed)
    n, p, k = design.n, design.n_columns, design.n_categories - 1
    x = np.column_stack(
        [np.ones(n), rng.standard_normal((n, p - 2)), rng.integers(0, 2, n).astype(float)]
    )
    names = [*(f"x{i + 1}" for i in range(p - 2)), "treated"]
    frame = pd.DataFrame(x[:, 1:], columns=names)
    coefficients = rng.normal(0.0, design.sd_coefficient, (p, k))
    of_groups = np.zeros((n, k))
    if design.n_groups:
        group = np.concatenate(
            [np.arange(design.n_groups), rng.integers(0, design.n_groups, n - design.n_groups)]
        )
        of_groups = rng.normal(0.0, design.sd_group, (design.n_groups, k))[group]
        frame["group"] = group
    cov = design.sd_noise**2 * (0.5 * np.eye(k) + 0.5)
    noise = rng.standard_normal((n, k)) @ np.linalg.cholesky(cov + 1e-12 * np.eye(k)).T
    pi = probabilities(x @ coefficients + of_groups + noise, design.link)
    counts = rng.multinomial(np.maximum(1, rng.poisson(design.mean_total, n)), pi)
    return Table(frame, counts, design, x, coefficients, of_groups, cov)


def draw_lopsided(seed=4, n=70, n_categories=10, sd=0.8):
    """Return covariates and counts whose shares fall to 1e-4 and whose totals go from 50 to 20,000."""
    rng = np.random.default_rng(seed)
    treated, x1 = rng.integers(0, 2, n), rng.standard_normal(n)
    line = np.log(np.geomspace(0.4, 1e-4, n_categories))
    line = line + np.outer(x1, rng.normal(0.0, 0.5, n_categories))
    line += np.outer(treated, rng.normal(0.0, 0.5, n_categories))
    line += rng.normal(0.0, sd, (n, n_categories))
    totals = np.exp(rng.uniform(np.log(50), np.log(20_000), n)).astype(int)
    pi = np.exp(line)
    counts = rng.multinomial(totals, pi / pi.sum(axis=1, keepdims=True))
    return pd.DataFrame({"x1": x1, "treated": treated}), counts


def probabilities(psi, link):
    if link == "stick":
        k = psi.shape[-1]
        rows = decompose("given", n_categories=k + 1).probabilities(psi.reshape(-1, k))
        return rows.reshape(*psi.shape[:-1], k + 1)
    psi = np.concatenate([np.zeros((*psi.shape[:-1], 1)), psi], axis=-1)
    weights = np.exp(psi - psi.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def true_effects(table, column):
    """Return the average change of each probability (K,) over the rows of a table and over noise."""
    change = CHANGES[column]
    ends = (
        change if isinstance(change, tuple) else (table.frame[column], table.frame[column] + change)
    )
    low, high = (_average(table, column, value) for value in ends)
    return high - low


def _average(table, column, value):
    x = table.x.copy()
    x[:, 1 + list(table.frame.columns).index(column)] = value
    line = x @ table.coefficients + table.of_groups
    root = np.linalg.cholesky(table.cov + 1e-12 * np.eye(len(table.cov)))
    points = np.random.default_rng(0).standard_normal((N_POINTS, len(root))) @ root.T
    both = np.concatenate([points, -points])
    pi = [probabilities(line + point, table.design.link).mean(axis=0) for point in both]
    return np.mean(pi, axis=0)
