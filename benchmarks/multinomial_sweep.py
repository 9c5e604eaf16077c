"""A sweep of the correlated multinomial: ours on one thread and two, and a NumPy twin with the peer's draws.

The twin is what one would write without this library: polyagamma for omega, stacked Cholesky factors for
psi. The inverse-Wishart step is the same for both and is left out.
"""

import numpy as np
import polyagamma as peer
from timing import CPU, WALL, in_turns, record

from polystick import datasets
from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import decompose
from polystick.inference.execution import Serial, Threads
from polystick.keys import Key
from polystick.models.multinomial import CorrelatedCounts, Parameters

SWEEPS = 5  # in a row, as in a run


def problem(n_names):
    counts = datasets.load_names("M", n_names=n_names).to_numpy()
    decomposition = decompose("frequency", weights=counts.sum(0))
    prior = NormalInverseWishart.weak(*decomposition.dirichlet_moments(1.0))
    return CorrelatedCounts(prior, decomposition), counts


def ours(model, shards, parameters, execution):
    held = execution.hold(model, shards)
    prior, key = model.prepare(parameters), Key(1)
    held.start("initial_rows", [prior], [key])

    def sweeps():
        for _ in range(SWEEPS):
            held.step("draw_rows", [prior], [key])

    return sweeps


def twin(splits, parameters, rng):
    kappa = splits.successes - splits.trials / 2
    precision = np.linalg.inv(parameters.cov)
    linear, diagonal = precision @ parameters.mean, np.eye(len(precision))
    psi = np.zeros(kappa.shape)
    active = splits.trials > 0

    def sweep():
        omega = np.zeros(kappa.shape)
        h = splits.trials[active].astype(float)
        omega[active] = peer.random_polyagamma(h, psi[active], random_state=rng)
        factor = np.linalg.cholesky(precision + omega[:, :, None] * diagonal)
        forward = np.linalg.solve(factor, (linear + kappa)[:, :, None])
        forward += rng.standard_normal(forward.shape)
        psi[:] = np.linalg.solve(factor.transpose(0, 2, 1), forward)[:, :, 0]

    return sweep


def compare(n_names):
    model, counts = problem(n_names)
    k = n_names - 1
    shards, parameters = model.shards(counts), Parameters(np.zeros(k), np.eye(k))
    case = f"{len(counts)} rows of names, K={n_names}"
    slow = twin(model.decomposition.split(counts), parameters, np.random.default_rng(1))
    with Threads(2) as threads:
        one = ours(model, shards, parameters, Serial())
        fast, numpy = in_turns(one, slow, clock=CPU, repeats=5)
        pair, single = in_turns(
            ours(model, shards, parameters, threads), one, clock=WALL, repeats=12
        )
    return [
        record(f"sweep vs NumPy + polyagamma, {case}", fast / SWEEPS, numpy),
        record(f"sweep, 2 threads against 1, {case}", pair / SWEEPS, single / SWEEPS),
    ]


def run():
    """Return one record per case."""
    return [line for n_names in (20, 50, 100) for line in compare(n_names)]


if __name__ == "__main__":
    for line in run():
        print(line)
