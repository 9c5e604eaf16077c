"""Sweeps of the baselines for sequences: ours against hmmlearn and particles, CPU time of one thread.

DNA (682 tokens, 22 symbols) and the first 4000 tokens of Alice (1000 words), ten states or dimensions each.

hmmlearn: one EM iteration of CategoricalHMM, the difference of twelve and two over ten, so that its start is
left out. Ours is a whole Gibbs sweep as the schedule makes it: states, counts and parameters.

particles: conditional SMC with 100 particles and one backward draw of a path, under a bootstrap model whose
likelihood is written in NumPy, as its users would. Ours is the draw of the path alone, in a chain of the same
parameters; the whole sweep, with emission and dynamics, stands beside it. On Alice `particles` takes long:
ask for it (python benchmarks/sequence_baselines.py all).
"""

import logging
import sys
import warnings
from functools import partial

import numpy as np
from scipy.special import logsumexp
from sequences import FILES, Chain, is_installed, left_out, load
from timing import in_turns, record

from polystick.baselines.hidden_markov import HiddenMarkov
from polystick.baselines.logistic_normal_dynamics import LogisticNormalDynamics, Parameters
from polystick.conjugate_dynamics import MatrixNormalInverseWishart

SIZE = 10  # states, or dimensions
N_PARTICLES = 100
HMM_TARGET, PARTICLES_TARGET = 15.0, 7.0
HMM_SWEEPS, EM_LONG, EM_SHORT = 20, 12, 2


# hidden Markov models


def compare_hmm(name):
    tokens, n_categories = load(name)
    chain = Chain(HiddenMarkov(SIZE, n_categories), [tokens])
    chain.sweep(50)
    em = partial(run_em, tokens, n_categories)
    sweep, long, short = in_turns(
        partial(chain.sweep, HMM_SWEEPS), partial(em, EM_LONG), partial(em, EM_SHORT), repeats=15
    )
    iteration = (long - short) / (EM_LONG - EM_SHORT)
    case = f"HMM Gibbs sweep vs hmmlearn EM iteration, {name}"
    return record(case, sweep / HMM_SWEEPS, iteration, HMM_TARGET)


def run_em(tokens, n_categories, n_iterations):
    from hmmlearn.hmm import CategoricalHMM

    logging.getLogger("hmmlearn").setLevel(logging.ERROR)  # more parameters than tokens
    model = CategoricalHMM(
        SIZE, n_iter=n_iterations, tol=-np.inf, random_state=0, n_features=n_categories
    )
    model.fit(tokens[:, None])


# particle Gibbs


def dynamics(n_categories, rng):
    """Return parameters that keep states at work: slow rotations, and a softmax that listens."""
    turn = 0.9 * np.linalg.qr(rng.standard_normal((SIZE, SIZE)))[0]
    emission = 0.5 * rng.standard_normal((n_categories, SIZE))
    nothing = np.zeros(n_categories)
    return Parameters(turn, 0.1 * np.eye(SIZE), emission, nothing, np.ones(()), np.ones(()))


def compare_particles(name, repeats):
    tokens, n_categories = load(name)
    eye = np.eye(SIZE)
    model = LogisticNormalDynamics(
        MatrixNormalInverseWishart(np.zeros((SIZE, SIZE)), eye, eye, SIZE + 1.0),
        np.zeros(n_categories), np.zeros(SIZE), eye, n_particles=N_PARTICLES,
    )  # fmt: skip
    paths, whole = Chain(model, [tokens]), Chain(model, [tokens])
    paths.parameters = whole.parameters = dynamics(n_categories, np.random.default_rng(0))
    peer = ConditionalSMC(tokens, paths.parameters)
    ours, sweep, theirs = in_turns(
        paths.draw_rows, whole.sweep, peer.run, repeats=(7, 7, repeats), rehearsals=(1, 1, 0)
    )
    target = PARTICLES_TARGET if name == "DNA" else None
    return [
        record(f"PGAS vs particles' CSMC + backward, {name}", ours, theirs, target),
        record(f"whole PGAS sweep vs particles' CSMC + backward, {name}", sweep, theirs),
    ]


class ConditionalSMC:
    """`particles` behind the one call that is timed."""

    def __init__(self, tokens, parameters):
        from particles import distributions
        from particles.state_space_models import Bootstrap, StateSpaceModel

        A, Q, E, d, *_ = parameters

        class Softmax(distributions.ProbDist):
            dim, dtype = 1, "int64"

            def __init__(self, psi):
                self.psi = psi

            def logpdf(self, x):
                return self.psi[:, int(np.asarray(x).ravel()[0])] - logsumexp(self.psi, axis=1)

        class Dynamics(StateSpaceModel):
            def PX0(self):  # noqa: N802
                return distributions.MvNormal(loc=np.zeros(SIZE), cov=np.eye(SIZE))

            def PX(self, t, xp):  # noqa: N802
                return distributions.MvNormal(loc=xp @ A.T, cov=Q)

            def PY(self, t, xp, x):  # noqa: N802
                return Softmax(x @ E.T + d)

        self.problem = Bootstrap(ssm=Dynamics(), data=[np.array([token]) for token in tokens])
        self.path = np.zeros((len(tokens), SIZE))

    def run(self):
        from particles.mcmc import CSMC

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            filtered = CSMC(fk=self.problem, N=N_PARTICLES, xstar=self.path)
            filtered.run()
            self.path = np.array(filtered.hist.backward_sampling_ON2(1))[:, 0]


def run(names=("DNA",)):
    """Return one record per case; raises MissingDataError without the data."""
    if is_installed("hmmlearn"):
        lines = [compare_hmm(name) for name in FILES]
    else:
        lines = [left_out("hmmlearn")]
    if not is_installed("particles"):
        return [*lines, left_out("particles")]
    for name in names:
        lines += compare_particles(name, 3 if name == "DNA" else 1)
    return lines


if __name__ == "__main__":
    for line in run(tuple(FILES) if "all" in sys.argv[1:] else ("DNA",)):
        print(line, flush=True)
