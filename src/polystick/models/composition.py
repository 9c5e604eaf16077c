"""Compositions over time: the states are psi itself, which walk or return to a level::

psi_1 ~ N(mean, cov),   mean, cov ~ NIW(initial_prior)
psi_t = psi_{t-1} + N(0, Q)               a walk: Q ~ InverseWishart(that of dynamics_prior)
psi_t = A psi_{t-1} + b + N(0, Q)         or autoregression: [A b], Q ~ MNIW(dynamics_prior)

The rest is `StateDynamics`, with the identity for the emission. Lopsided splits have sites
(`composition_sites`). If all steps of a walk are in one block, each stick is drawn again given the others,
together with what ties it to them (`kernels.walk_sticks`); Q, and the law of first states, are drawn anew
afterwards, so that the local step may move them.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polystick import augmentation
from polystick.augmentation import Potential
from polystick.conjugate import InverseWishart
from polystick.gaussians.dynamics import Chain
from polystick.kernels import algebra, walk_sticks
from polystick.kernels.splits import log_likelihood
from polystick.models import composition_sites as sites_of
from polystick.models.chain_sums import FirstSums, PairSums, first_sums, pair_sums
from polystick.models.dynamics import START_SPREAD, StateDynamics
from polystick.models.dynamics_steps import packed_products, pull_back, raise_unless_finite

TURN_EVERY = 4  # sweeps: sticks are drawn together
TIGHT = (
    0.8  # share of a stick's noise that others explain: from there sticks are drawn together always
)


class Parameters(NamedTuple):
    """What all sequences share; there is no emission to learn and no scale to stretch."""

    coefficients: np.ndarray  # (k, k + q) A and b
    dynamics_cov: np.ndarray  # (k, k)
    initial_mean: np.ndarray  # (k,)
    initial_cov: np.ndarray  # (k, k)
    rate: np.ndarray  # () how far sites are to go towards matched ones

    @property
    def emission(self):
        """Psi is the state."""
        return np.eye(len(self.initial_mean))


class Rows(NamedTuple):
    """Where the sequences of a block stand, and the sites of their lopsided splits."""

    states: np.ndarray  # (S, k)
    kappa: np.ndarray  # (m,) the sites, matched and not softened
    omega: np.ndarray  # (m,)
    centre: np.ndarray  # (m,) E psi when they were matched


class Statistics(NamedTuple):
    """Sums over steps."""

    pairs: PairSums
    first: FirstSums
    value: float  # log likelihood given the states


class Given(NamedTuple):
    """What states are drawn given."""

    potential: Potential  # of all active splits
    lopsided: sites_of.Lopsided  # those that have a site
    sites: Potential


class Prior(NamedTuple):
    """What the local steps of a sweep share."""

    chain: Chain
    push: np.ndarray
    emission: np.ndarray
    white: np.ndarray
    products: np.ndarray
    rate: float  # how far sites go towards matched ones
    is_given: bool = False  # Q must stay


@dataclass(frozen=True)
class CompositionDynamics(StateDynamics):
    """The model; it has a state for each stick, `level` is (k, 0), and scales are not used."""

    walks: bool = True

    parameter_type: ClassVar[Any] = Parameters
    identified: ClassVar[tuple[str, ...]] = ("dynamics", "dynamics_drift", "dynamics_cov", "states")

    def shards(self, sequences, inputs=None, size=None):
        blocks = super().shards(sequences, inputs, size)
        return [sites_of.with_cells(block, self.n_sticks, len(blocks) == 1) for block in blocks]

    def draw_from_prior(self, rng):
        nothing = np.zeros(self.dynamics_prior.strength.shape)
        pairs = PairSums(0, nothing, nothing[: self.n_dims], nothing[: self.n_dims, : self.n_dims])
        coefficients, dynamics_cov = self.draw_dynamics(pairs, rng)
        mean, cov, _ = self.initial_prior.draw(rng)
        return self._named(coefficients, dynamics_cov, mean, cov)

    @staticmethod
    def _named(coefficients, dynamics_cov, mean, cov, rate=0.0):
        return Parameters(coefficients, dynamics_cov, mean, cov, np.asarray(rate))

    # Gibbs

    def initial_parameters(self, shards, key):
        """Start at rest, with steps of sizes that differ between chains."""
        prior, initial, d = self.dynamics_prior, self.initial_prior, self.n_dims
        size = np.exp(START_SPREAD * key.generator("start").standard_normal(d))
        cov = np.outer(size, size) * prior.scale / max(1.0, prior.degrees - d - 1.0)
        initial_cov = initial.scale / max(1.0, initial.degrees - d - 1.0)
        return self._named(prior.mean.copy(), cov, initial.mean, initial_cov)

    def prepare(self, parameters):
        chain, push = self._chain(parameters)
        return _prior(chain, push, float(parameters.rate))

    def initial_rows(self, prior, shard, key):
        """Start from a draw given what counts alone tell of psi, with sites there."""
        logit = augmentation.empirical_logit(shard.splits)
        states = self.draw_states(
            prior, shard, augmentation.site_potential(shard.splits, logit), key
        )
        return Rows(states, *sites_of.first_sites(shard.lopsided))

    def draw_rows(self, prior, shard, rows, key):
        """Omega | psi, x where splits are not lopsided, then the states | omega, x."""
        omega = self.draw_omega(shard, rows.states, key)
        if prior.rate > 0.0:
            rows = self.match_sites(prior, shard, rows, omega)
        given = self._given(shard, rows, omega)
        moves = self.walks and shard.is_all and not prior.is_given
        states = rows.states
        if not moves or key.sweep % TURN_EVERY == 0 or _largest_share(prior.chain) > TIGHT:
            states = self.turn(prior, shard, states, given, key)
        if moves:
            states = self.move_sticks(prior, shard, states, given, key)
        return rows._replace(states=states), self._sum_up(shard, states)

    def draw_omega(self, shard, states, key):
        psi = states[shard.step_of, shard.splits.nodes]
        return augmentation.draw_potential(shard.splits, psi, key.at("omega"), shard.steps)

    def match_sites(self, prior, shard, rows, omega):
        """Move the sites towards those that match the likelihoods."""
        if not len(rows.omega):
            return rows
        lopsided, sites = shard.lopsided, Potential(rows.kappa, rows.omega)
        linear, precision, _ = self._pull_back(
            prior, shard, sites_of.filled(lopsided, omega, sites)
        )
        found = prior.chain.white.moments_in_place(
            linear,
            precision,
            shifts=algebra.multiply(shard.pushes, prior.push.T),
            starts=shard.starts,
        )
        variance = np.diagonal(found.cov, axis1=1, axis2=2)
        sites = sites_of.match(lopsided, sites, found.mean, variance, prior.rate)
        gap = found.mean[lopsided.steps, lopsided.nodes] - rows.centre
        return rows._replace(
            kappa=sites.kappa, omega=sites.omega, centre=rows.centre + prior.rate * gap
        )

    def _given(self, shard, rows, omega):
        """Return what states are drawn given: omega, or the sites of lopsided splits."""
        sites = Potential(rows.kappa, rows.omega)
        if not len(rows.omega):
            return Given(omega, shard.lopsided, sites)
        sites = sites_of.softened(shard.lopsided, sites, rows.centre)
        lopsided, sites = sites_of.usable(shard.lopsided, sites)
        return Given(sites_of.filled(lopsided, omega, sites), lopsided, sites)

    def turn(self, prior, shard, states, given, key):
        """Draw the states of each sequence on an ellipse about their Gaussian: afresh without sites."""
        if not len(given.sites.omega):
            return self.draw_states(prior, shard, given.potential, key)
        linear, precision, _ = self._pull_back(prior, shard, given.potential)
        noise = key.normals("states", shard.steps, self.n_dims)
        mean, drawn = prior.chain.white.draws_in_place(
            linear, precision, [np.zeros_like(noise), noise],
            shifts=algebra.multiply(shard.pushes, prior.push.T), starts=shard.starts,
        )  # fmt: skip
        far = drawn - mean
        angle = sites_of.angles(
            key.at("angle"), shard.rows, given.lopsided, given.sites, states, mean, far
        )
        is_stuck = np.repeat(angle == 0.0, np.diff(shard.starts))
        angle = np.repeat(angle, np.diff(shard.starts))[:, None]
        turned = mean + (states - mean) * np.cos(angle) + far * np.sin(angle)
        if is_stuck.any():
            plain = self.draw_plainly(prior, shard, states, key)
            turned = np.where(is_stuck[:, None], plain, turned)
        raise_unless_finite(turned, prior, key)
        return turned

    def draw_plainly(self, prior, shard, states, key):
        """Omega of all splits | psi, x, then the states | omega, x."""
        key = key.chain("plainly")
        return self.draw_states(prior, shard, self.draw_omega(shard, states, key), key)

    def _pull_back(self, prior, shard, potential):
        return pull_back(shard, potential, prior.white, prior.products, self.n_dims)

    def move_sticks(self, prior, shard, states, given, key):
        """Each stick of a walk | the others, x, with its part of Q."""
        law, k, states = self.dynamics_prior, self.n_sticks, states.copy()
        ids, rng, lengths = (
            np.arange(k, dtype=np.uint64), key.generator("gammas"), np.diff(shard.starts)
        )  # fmt: skip
        n_pairs = np.maximum(lengths - 1, 0).sum()
        shapes = 0.5 * (law.degrees + k - 1 + n_pairs), 0.5 * (self.initial_prior.degrees + 1)
        gammas = np.stack([rng.standard_gamma(shape, k) for shape in shapes])
        noise = walk_sticks.Noise(
            key.normals("ties", ids, k - 1), key.normals("walks", ids, len(states)), *gammas
        )
        precision = algebra.inverted(prior.chain.dynamics_cov)
        n_stuck = walk_sticks.draw_sticks(
            key.at("sticks"), shard.starts, sites_of.dense(shard, given.lopsided, given.potential),
            walk_sticks.LawOfCov(law.scale, law.degrees), self.first_law(prior, lengths), noise,
            states, precision,
        )  # fmt: skip
        if n_stuck:
            chain = replace(prior.chain, dynamics_cov=algebra.inverted(precision))
            return self.draw_plainly(_prior(chain, prior.push), shard, states, key)
        return states

    def first_law(self, prior, lengths):
        """Return what sticks need to know of first states: of one sequence, their prior."""
        if len(lengths) == 1 and lengths[0] > 0:
            law = self.initial_prior
            inverse = algebra.inverted(law.scale)
            return walk_sticks.LawOfFirst(law.mean, inverse, 1.0 + 1.0 / law.strength)
        chain = prior.chain
        return walk_sticks.LawOfFirst(chain.initial_mean, algebra.inverted(chain.initial_cov), 0.0)

    def _sum_up(self, shard, states):
        splits = shard.splits
        psi = states[shard.step_of, splits.nodes]
        value = log_likelihood(splits.successes[None], splits.trials[None], psi[None])
        pairs = pair_sums(shard.starts, states, shard.pushes)
        first = first_sums(shard.starts, states)
        return Statistics(pairs, first, value + shard.log_coefficient)

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """A, b, Q | states; mean, cov | first states."""
        rng = key.generator("dynamics")
        coefficients, dynamics_cov = self.draw_dynamics(statistics.pairs, rng)
        mean, cov, _ = self.initial_prior.posterior(*statistics.first).draw(rng)
        return self._named(coefficients, dynamics_cov, mean, cov)

    def settle(self, parameters, statistics, key, n_burn, ordered_map=map):
        """Do as in `draw_parameters`, and let the next sweep match sites every now and then."""
        drawn = self.draw_parameters(parameters, statistics, key, ordered_map)
        return drawn._replace(rate=np.asarray(sites_of.rate_of(key.sweep, n_burn)))

    def draw_dynamics(self, pairs, rng):
        """Q | states of a walk; A, b, Q | states of an autoregression."""
        if not self.walks:
            return super().draw_dynamics(pairs, rng)
        n, xx, yx, yy = pairs
        d, prior = self.n_dims, self.dynamics_prior
        scale = prior.scale + yy + xx - yx - yx.T
        cov = InverseWishart(0.5 * (scale + scale.T), prior.degrees + n).draw(rng)
        rng.standard_normal(d)  # of a mean that there was once: seeds keep their bits
        return np.eye(d), cov

    # what to record

    def watched_psi(self, parameters, states, known):
        return states

    def describe_parameters(self, parameters):
        said = super().describe_parameters(parameters)
        del said["emission"]
        return said

    def recall(self, described):
        found = super().recall({**described, "emission": np.eye(self.n_sticks)})
        return self._named(
            found.coefficients, found.dynamics_cov, found.initial_mean, found.initial_cov
        )

    def predictor(self, described):
        found = super().predictor(described)
        return replace(found, prior=found.prior._replace(is_given=True))

    def smoothing_prior(self, prior, sweep, n_sweeps):
        """Match the sites of new sequences first."""
        return prior._replace(rate=sites_of.rate_of(sweep, n_sweeps))


def _prior(chain, push, rate=0.0):
    """Return what the local steps need of a chain."""
    white = np.ascontiguousarray(chain.root)
    return Prior(chain, push, np.eye(len(white)), white, packed_products(white), rate)


def _largest_share(chain):
    """Return how much of a stick's noise the others explain, of the stick where that is most."""
    own = np.diag(chain.dynamics_cov) * np.diag(algebra.inverted(chain.dynamics_cov))
    return 1.0 - 1.0 / own.max()
