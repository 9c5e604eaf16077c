"""Cells drawn with mean and covariance integrated out: against the Student law, and however rows are cut."""

import numba
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition, Splits
from polystick.kernels import open_cells as kernel
from polystick.keys import Key
from polystick.models import open_cells
from polystick.models.multinomial import CorrelatedCounts, Rows
from statistics_tools import MAX_Z, MIN_P, ks_pvalue, standard_error

K, N = 3, 7
PRIOR = NormalInverseWishart(
    np.array([0.5, -1.0, 0.2]), 1.5, 3 * np.eye(K) + np.outer([1, 2, 0], [1, 2, 0]), 5.0
)
needs_jit = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="thousands of draws")


@pytest.fixture
def rng():
    return np.random.default_rng(20150618)


def problem(rng):
    trials = rng.integers(0, 30, (N, K))
    return rng.binomial(trials, 0.2), trials, rng.normal(size=(N, K))


def posterior(psi):
    return PRIOR.posterior(len(psi), psi.sum(axis=0), psi.T @ psi)


def redrawn(counts, psi, n_passes=1, key=1):
    """Return new psi with what the kernel holds of the law: mean and inverse scale."""
    law, psi = posterior(psi), psi.copy()
    mean, inverse = law.mean.copy(), np.linalg.inv(law.scale)
    rows = np.arange(len(psi), dtype=np.uint64)
    kernel.redraw_in_place(
        np.uint64(key), rows, counts, n_passes, (mean, law.strength, law.degrees), inverse, psi
    )
    return psi, mean, inverse


def test_the_law_is_kept_up_to_date(rng):
    successes, trials, psi = problem(rng)
    chosen = rng.random((N, K)) < 0.6
    new, mean, inverse = redrawn((successes, trials, chosen), psi, n_passes=3)
    assert (new[chosen] != psi[chosen]).all()
    assert (new[~chosen] == psi[~chosen]).all()
    expected = posterior(new)
    np.testing.assert_allclose(mean, expected.mean, rtol=1e-10)
    np.testing.assert_allclose(inverse, np.linalg.inv(expected.scale), rtol=1e-8)


def log_density(x, i, j, successes, trials, psi):
    """Return that of one cell at x but for a constant: the rows' Student law times the counts' binomial."""
    others = posterior(np.delete(psi, i, axis=0))
    row = np.array(psi[i])
    row[j] = x
    degrees = others.degrees - K + 1
    spread = others.scale * (1 + 1 / others.strength) / degrees
    of_rows = stats.multivariate_t(others.mean, spread, degrees).logpdf(row)
    return of_rows + stats.binom.logpmf(successes[i, j], trials[i, j], expit(x))


@needs_jit
@pytest.mark.parametrize("cell", [(0, 0), (2, 1), (5, 2)])
def test_a_cell_has_the_students_law(cell, rng):
    """Slices from a draw of the law leave it as it is; starts at one place must come to it."""
    successes, trials, psi = problem(rng)
    successes[2, 1], trials[2, 1] = 0, 25  # an open end
    psi[5, 2], trials[5, 2], successes[5, 2] = 8.0, 0, 0  # far out, and no counts at all
    chosen = np.zeros((N, K), bool)
    chosen[cell] = True
    density = lambda x: np.exp(log_density(x, *cell, successes, trials, psi))
    grid = np.linspace(-40, 40, 4001)
    cdf = integrate.cumulative_simpson([density(x) for x in grid], x=grid, initial=0)
    ends = [
        redrawn((successes, trials, chosen), psi, n_passes=12, key=key)[0][cell]
        for key in range(3000)
    ]
    assert ks_pvalue(ends, lambda x: np.interp(x, grid, cdf / cdf[-1])) > MIN_P


@needs_jit
@pytest.mark.parametrize(("y", "t", "sd"), [(0, 50, 2.0), (0, 10**6, 3.0), (1, 10**5, 3.0)])
def test_long_chains_of_slices_have_the_law(y, t, sd):
    """A width that depends on where the cell stands would lean to the side where counts bend most."""
    shape, bend, centre = 5.0, 0.1 / sd**2, -4.0
    grid = np.linspace(-200, 20, 400_001)
    height = y * grid - t * np.logaddexp(0, grid) - shape * np.log1p(bend * (grid - centre) ** 2)
    cdf = np.cumsum(np.exp(height - height.max()))
    x, s0, s1 = grid[height.argmax()], np.uint64(1), np.uint64(2)
    chain = np.empty(100_000)
    for i in range(len(chain)):
        gap = x - centre
        form = bend * gap * gap, bend * gap, bend
        step, s0, s1 = kernel.draw(x, float(y), float(t), shape, form, np.uint64(s0), np.uint64(s1))
        x += step
        chain[i] = x
    place = np.interp(chain, grid, cdf / cdf[-1])
    assert abs(place.mean() - 0.5) / standard_error(place) < MAX_Z


def test_a_slice_ends_whatever_comes():
    """Densities that are no numbers leave the cell where it is."""
    form = np.nan, 0.0, 1.0
    step, *_ = kernel.draw(0.5, 1.0, 3.0, 4.0, form, np.uint64(1), np.uint64(2))
    assert step == 0.0


def test_a_row_that_is_all_of_the_scale_stays(rng):
    """Without it the scale would be singular."""
    successes, trials, psi = problem(rng)
    psi[0] = [3e4, 0.0, 0.0]
    chosen = np.zeros((N, K), bool)
    chosen[0] = True
    new, _, inverse = redrawn((successes, trials, chosen), psi)
    assert (new[0] == psi[0]).all()
    assert np.isfinite(inverse).all()


def test_open_are_cells_with_few_counts_on_a_side():
    successes, trials = np.array([[0, 3, 1000, 5]]), np.array([[10**6, 6, 2000, 10**6]])
    assert open_cells.find(Splits(successes, trials)).tolist() == [[True, True, False, False]]


@pytest.mark.parametrize("n", [open_cells.FEW, open_cells.FEW + 1])
def test_blocks_make_no_difference_and_many_rows_have_none(n, rng):
    model = CorrelatedCounts(PRIOR, Decomposition.sticks(range(K + 1)))
    parameters, (psi,), counts = model.simulate(rng.integers(0, 6, n), rng)
    moved = []
    for size in (512, 13):
        shards = model.shards(counts, size)
        rows = [Rows(psi[start : start + size]) for start in range(0, n, size)]
        law, rows = model._redraw_open_cells(parameters, shards, rows, Key(3))
        moved.append((law.mean, law.cov, np.concatenate([part.psi for part in rows])))
        assert (moved[-1][2] != psi).any() == (n == open_cells.FEW)
    for one, other in zip(*moved):
        np.testing.assert_array_equal(one, other)
