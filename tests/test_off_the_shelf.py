"""Counts behind Gaussian software of others: its posteriors are those of our own models."""

from functools import partial

import numba
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from dynamics_tools import make_model
from own_models import example
from polystick.covariances.families import choose_family
from polystick.inference.execution import one_blas_thread
from polystick.keys import Key
from polystick.modelling import Chain, Decomposition, Gibbs, Potential, as_observations, pull_back
from polystick.models.process import ProcessCounts
from statistics_tools import MAX_Z, standard_error

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="thousands of sweeps")
BURN = 100


def moments(psi):
    """Return first and second moments of a chain of psi (draw, ...), draw by draw."""
    psi = np.asarray(psi).reshape(len(psi), -1)
    return np.concatenate([psi, psi**2, psi[:, :-1] * psi[:, 1:]], axis=1)


def gap(one, other):
    """Return the differences of the means of two chains in standard errors."""
    one, other = moments(one), moments(other)
    error = np.hypot(standard_error(one), standard_error(other))
    return np.abs((one.mean(axis=0) - other.mean(axis=0)) / error).max()


def halved(draw):
    """Return a draw of psi given half of what the counts say: a wrong program."""
    return lambda potential, sweep: draw(Potential(*(0.5 * part for part in potential)), sweep)


# ---- a process of scikit-learn


INPUTS = np.linspace(0, 5, 9)[:, None]
KERNEL = Matern(1.5, nu=1.5)
TREE = Decomposition.sticks([0, 1, 2])
COUNTS = np.random.default_rng(4).multinomial([3, 0, 8, 20, 1, 0, 5, 9, 2], [0.5, 0.3, 0.2])


def our_process():
    family = choose_family(KERNEL, INPUTS, solver="dense")
    model = ProcessCounts(family, TREE, np.zeros(2))
    run = Gibbs(4000, BURN, n_chains=1, keep=("psi",))
    return np.swapaxes(run.run(model, model.shards(COUNTS), seed=1)["psi"][0], 1, 2)


def test_scikit_learn_has_the_posterior_of_our_process():
    page = example("def sweeps", "def draw_functions")
    draw, ours = partial(page["draw_functions"], KERNEL, INPUTS), our_process()
    with one_blas_thread():  # of tiny matrices
        theirs = list(page["sweeps"](TREE.split(COUNTS), draw, 900))[BURN:]
        wrong = list(page["sweeps"](TREE.split(COUNTS), halved(draw), 500))[BURN:]
    assert gap(theirs, ours) < MAX_Z
    assert gap(wrong, ours) > MAX_Z


# ---- a linear dynamical system of dynamax, and our own block


DYNAMICS = make_model(2, 3)
STEPS = np.array([4, 0, 9, 1, 0, 6, 15, 3, 2, 5])


def make_sequence():
    """Return parameters, and counts of ten steps."""
    rng = np.random.default_rng(12)
    parameters = DYNAMICS.simulate([STEPS], rng)[0]._replace(stretch=np.ones(()))
    rows = DYNAMICS.simulate_rows(parameters, [STEPS], rng)
    (counts,) = DYNAMICS.simulate_counts(parameters, rows, [STEPS], rng)
    return parameters, counts


PARAMETERS, SEQUENCE = make_sequence()
EMISSION, BIAS = PARAMETERS.emission[:, :2], PARAMETERS.emission[:, 2]


def our_dynamics(n_sweeps=4000):
    """Return psi of each sweep of our model, whose parameters are known."""
    prior, (shard,) = DYNAMICS.prepare(PARAMETERS), DYNAMICS.shards([SEQUENCE])
    rows, drawn = DYNAMICS.initial_rows(prior, shard, Key(0)), []
    for sweep in range(n_sweeps):
        rows, _ = DYNAMICS.draw_rows(prior, shard, rows, Key(2, sweep))
        drawn.append(rows.states @ EMISSION.T + BIAS)
    return drawn[BURN:]


def splits():
    return DYNAMICS.decomposition.split(SEQUENCE)


def draw_by_chain(potential, sweep):
    """Draw psi with the block of the house, as a stranger would."""
    start = PARAMETERS.initial_mean, PARAMETERS.initial_cov
    chain = Chain(*start, PARAMETERS.coefficients, PARAMETERS.dynamics_cov)
    noise = np.random.default_rng(sweep).standard_normal((len(STEPS), 2))
    return chain.draw(*pull_back(potential, EMISSION, BIAS), noise) @ EMISSION.T + BIAS


def test_a_strangers_chain_has_the_posterior_of_our_dynamics():
    sweeps, ours = example("def sweeps")["sweeps"], our_dynamics()
    assert gap(list(sweeps(splits(), draw_by_chain, 4000))[BURN:], ours) < MAX_Z
    assert gap(list(sweeps(splits(), halved(draw_by_chain), 4000))[BURN:], ours) > MAX_Z


@pytest.fixture
def wide_jax():
    jax = pytest.importorskip("jax", reason="of the bench environment")
    pytest.importorskip("dynamax", reason="of the bench environment")
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.filterwarnings("ignore")  # of what dynamax imports
@pytest.mark.usefixtures("wide_jax")
def test_dynamax_has_the_posterior_of_our_dynamics():
    page, ours = example("def sweeps", "def draw_by_dynamax"), our_dynamics()
    law = {
        "initial_mean": PARAMETERS.initial_mean,
        "initial_cov": PARAMETERS.initial_cov,
        "dynamics_weights": PARAMETERS.coefficients,
        "dynamics_cov": PARAMETERS.dynamics_cov,
        "emissions_weights": EMISSION,
        "emissions_bias": BIAS,
    }
    draw = partial(page["draw_by_dynamax"], law)
    assert gap(list(page["sweeps"](splits(), draw, 3000))[BURN:], ours) < MAX_Z
    assert gap(list(page["sweeps"](splits(), halved(draw), 3000))[BURN:], ours) > MAX_Z


# ---- what is handed over


def test_observations_say_what_the_potential_says():
    potential = Potential(np.array([[1.5, 0.0]]), np.array([[0.5, 0.0]]))
    values, variances = as_observations(potential, largest=1e6)
    np.testing.assert_allclose(values, [[3.0, 0.0]])
    np.testing.assert_allclose(variances, [[2.0, 1e6]])


def test_a_potential_of_psi_is_one_of_the_states():
    rng = np.random.default_rng(0)
    kappa, omega, z = rng.normal(size=(5, 3)), rng.gamma(1.0, size=(5, 3)), rng.normal(size=(5, 2))
    emission, bias = rng.normal(size=(3, 2)), rng.normal(size=3)
    linear, precision = pull_back(Potential(kappa, omega), emission, bias)

    def of_states(z):
        return (linear * z).sum(1) - 0.5 * np.einsum("ni,nij,nj->n", z, precision, z)

    def of_psi(z):
        psi = z @ emission.T + bias
        return (kappa * psi - 0.5 * omega * psi**2).sum(axis=1)

    np.testing.assert_allclose(of_states(z) - of_states(0 * z), of_psi(z) - of_psi(0 * z))
