"""Multinomial Gaussian processes: counts at inputs, each stick a function of them (paper, section 4)::

theta   ~ N(theta0, prior_sd^2) within bounds   parameters of the covariance, on a logarithmic scale;
                                                perhaps with a correlation of their own
level_j ~ N(level0_j, level_sd^2)               j = 1..K-1, the sticks
scale_j ~ N(1, scale_sd^2)
f_j     ~ GP(0, C_theta)
psi_mj  = level_j + scale_j f_j(input_m)        m = 1..M
x_m     ~ Multinomial(N_m, pi(psi_m))           pi: the decomposition's map

Of theta, level and scale those named in `learn` are learned; the others stay at theta0, level0 and 1. Rows
are sticks here: given the parameters, and omega, they are independent of each other, while inputs are not.
So arrays are (sticks, inputs). The state is white: f = root(theta) white, with white ~ N(0, I) a priori.
Where counts are lopsided, f is drawn about sites instead of given omega (`models.process_sites`).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.stats import truncnorm

from polystick import augmentation
from polystick.augmentation import Potential
from polystick.decomposition import Decomposition, Splits
from polystick.kernels import splits as splits_kernels
from polystick.models import watched
from polystick.models.blocks import evenly
from polystick.models.process_axes import Axes
from polystick.models.process_factors import (
    KNOWN,
    MOST_STEPS,
    ExpectedStatistics,
    KernelFactor,
    RowFactors,
    moments,
)
from polystick.models.process_kernel import as_psi, centred, draw_theta, solver_at
from polystick.models.process_sites import Sites, draw_white, turn
from polystick.models.process_state import Parameters, Prior, Rows, Shard, Statistics
from polystick.scores import log_coefficients

FEWEST_TRIALS = 20  # of a split that has a site: about fewer, ellipses gain nothing
STICKS_PER_BLOCK = {"unstructured": 50}  # solved together; part of the result
FEW_STICKS = 13  # of other solvers: they fill the cache
UNSEEN = ("anchor", "spread")  # fields of rows that are no draws
WORDS = {"level": "mean"}  # what a draw of it is called outside
PRIOR_TRIES = 1000
PRIOR_TURNS = 100
START_SD = 0.7  # of theta among chains, in standard deviations of its prior, or 1 if that is less
START_WEIGHT = (
    0.25  # of the counts where chains start: twice as far apart as counts would have them
)


@dataclass(frozen=True)
class ProcessCounts:
    """The model: its covariances, its decomposition and what is to be learned."""

    family: Any  # covariances at the inputs: at(theta) is a solver
    decomposition: Decomposition
    level: np.ndarray  # (k,)
    learn: tuple = ()
    prior_sd: float = 1.0
    level_sd: float = 1.0
    scale_sd: float = 0.5
    prior_correlation: Any = None  # (p, p) of theta; None: there is none

    parameter_type: ClassVar = Parameters
    dims: ClassVar = {
        "theta": ("kernel_parameter",),
        "iterations": (),
        "psi": ("stick", "input"),
        "white": ("stick", "direction"),
        "linear": ("stick", "input"),
        "weights": ("stick", "input"),
        "mean": ("stick",),
        "scale": ("stick",),
    }
    identified: ClassVar = ("theta", "psi")
    rhat_limit: ClassVar = 1.05

    @property
    def n_sticks(self):
        return self.decomposition.n_categories - 1

    @property
    def learns_kernel(self):
        return "kernel" in self.learn and len(self.family.theta0) > 0

    def shards(self, counts, size=None):
        """Cut the splits of counts (M, K) into blocks of sticks."""
        size = size or STICKS_PER_BLOCK.get(self.family.solver_name, FEW_STICKS)
        successes, trials = splits = self.decomposition.split(counts)
        coefficient = log_coefficients(counts).sum()
        lopsided = augmentation.lopsided(splits) & (splits.trials >= FEWEST_TRIALS)
        return [
            Shard(
                np.arange(part.start, part.stop, dtype=np.uint64),
                np.ascontiguousarray(successes[:, part].T),
                np.ascontiguousarray(trials[:, part].T),
                coefficient if part.start == 0 else 0.0,
                np.ascontiguousarray(lopsided[:, part].T),
            )
            for part in evenly(np.ones(self.n_sticks), size)
        ]

    # simulate

    def simulate(self, n_trials, rng):
        """Draw (parameters, rows, counts) from the joint law, for totals (M,)."""
        theta = self._simulate_theta(rng)
        solver, k = self.family.at(theta), self.n_sticks
        level = self.level + self.level_sd * rng.standard_normal(k) * ("level" in self.learn)
        scale = 1.0 + self.scale_sd * rng.standard_normal(k) * ("scale" in self.learn)
        white = rng.standard_normal((k, solver.n_white))
        psi = _psi(solver, white, level, scale)
        counts = self.simulate_counts(psi, n_trials, rng)
        (shard,) = self.shards(counts, k)
        return self._standing(theta), _first(shard, psi, white, level, scale), counts

    def simulate_counts(self, psi, n_trials, rng):
        """Draw counts (M, K) given psi (k, M)."""
        return rng.multinomial(n_trials, self.decomposition.probabilities(psi.T))

    def _simulate_theta(self, rng, sd=None):
        centre, sd = self.family.theta0, self.prior_sd if sd is None else sd
        if not self.learns_kernel:
            return centre
        if self.prior_correlation is not None:
            return self._simulate_together(rng, sd)
        low, high = (self.family.bounds - centre[:, None]).T / sd
        return centre + sd * truncnorm.rvs(low, high, random_state=rng)

    def _simulate_together(self, rng, sd):
        root = sd * np.linalg.cholesky(self.prior_correlation)
        for _ in range(PRIOR_TRIES):  # bounds are wide where a correlation is believed in
            theta = self.family.theta0 + root @ rng.standard_normal(len(root))
            if self._within_bounds(theta):
                return theta
        return self._simulate_in_turns(rng, sd)

    def _simulate_in_turns(self, rng, sd):
        """Draw each entry given the others, again and again: narrow bounds are seldom hit at once."""
        centre, inverse = self.family.theta0, np.linalg.inv(self.prior_correlation)
        away, bounds = np.zeros(len(centre)), (self.family.bounds - centre[:, None]) / sd
        for _ in range(PRIOR_TURNS):
            for j, (low, high) in enumerate(bounds):
                width = inverse[j, j] ** -0.5
                middle = away[j] - width**2 * np.sum(inverse[j] * away)
                ends = (low - middle) / width, (high - middle) / width
                away[j] = middle + width * truncnorm.rvs(*ends, random_state=rng)
        return np.clip(centre + sd * away, *self.family.bounds.T)

    def _within_bounds(self, theta):
        low, high = self.family.bounds.T
        return ((theta >= low) & (theta <= high)).all()

    def log_prior(self, theta):
        """Return the log density of theta, up to a constant; -inf out of bounds."""
        if not self._within_bounds(theta):
            return -np.inf
        away = (theta - self.family.theta0) / self.prior_sd
        if self.prior_correlation is None:
            return -0.5 * np.square(away).sum()
        return -0.5 * away @ np.linalg.solve(self.prior_correlation, away)

    # Gibbs

    def initial_parameters(self, shards, key):
        """Start theta at a place of the chain's own, not as far from theta0 as its prior may let it."""
        sd = START_SD * min(self.prior_sd, 1.0)
        return self._standing(self._simulate_theta(key.generator("start"), sd))

    def _standing(self, theta):
        """Return parameters of a chain whose sticks are where they are."""
        theta = np.array(theta, dtype=np.float64)
        nothing = np.zeros((0, self.family.at(theta).n_white))
        return Parameters(theta, np.zeros(()), theta, nothing, *Axes.first(theta, self.prior_sd))

    def prepare(self, parameters):
        solver = solver_at(self.family, parameters.next_theta)
        return Prior(solver, parameters.next_white, parameters.axes.weight)

    def initial_rows(self, prior, shard, key):
        """Start from a draw given omega as it would be at the level, of a part of the counts."""
        level, scale = self.level[shard.rows.astype(int)], np.ones(len(shard.rows))
        tilt = np.broadcast_to(level[:, None], shard.trials.shape)
        expected = augmentation.expected_potential(shard.splits, np.abs(tilt))
        potential = centred(Potential(*(START_WEIGHT * part for part in expected)), level, scale)
        noise = key.normals("start", shard.rows, prior.solver.noise_size)
        white, _ = prior.solver.draw(potential, noise)
        psi = _psi(prior.solver, white, level, scale)
        return _first(shard, psi, white, level, scale)

    def draw_rows(self, prior, shard, rows, key):
        """Omega | psi, x, then f | omega, x, then level and scale | f, omega, x; slow x have sites."""
        sites = Sites.at(shard, rows.anchor, rows.spread)
        rows = self._where(prior, shard, rows)
        white, potential, iterations = draw_white(prior.solver, shard, rows, sites, key)
        f = prior.solver.unwhiten(white)
        level, scale = self._draw_levels(shard, sites, potential, f, rows, key)
        psi = level[:, None] + scale[:, None] * f
        rows = rows._replace(psi=psi, white=white, level=level, scale=scale)
        rows = rows.learn(prior.weight) if prior.weight else rows
        value = shard.log_coefficient + splits_kernels.log_likelihood(*shard.splits, psi)
        return rows, Statistics(((shard, rows),), np.asarray(float(iterations)), value)

    def _where(self, prior, shard, rows):
        """Return the rows where the chain goes on."""
        if not len(prior.white):
            return rows
        rows = rows._replace(white=prior.white[shard.rows.astype(int)])
        return rows._replace(psi=as_psi(prior.solver.unwhiten(rows.white), rows))

    def psi_of(self, prior, shard, rows):
        """Return psi (r, M) where the chain goes on."""
        return self._where(prior, shard, rows).psi

    def _draw_levels(self, shard, sites, potential, f, rows, key):
        """Draw those of (level, scale) that are learned: a regression on (1, f), weighted by omega."""
        names = [name for name in ("level", "scale") if name in self.learn]
        level, scale = rows.level, rows.scale
        if not names:
            return level, scale
        precision, linear = self.level_regression(potential, f, np.square(f), shard, level, scale)
        up = np.swapaxes(np.linalg.cholesky(precision), 1, 2)
        mean = np.linalg.solve(precision, linear[..., None])[..., 0]
        away = np.linalg.solve(up, key.normals("level", shard.rows, len(names))[..., None])[..., 0]
        now = np.stack([getattr(rows, name) for name in names], axis=1)
        of = np.stack([np.ones_like(f) if name == "level" else f for name in names], axis=1)
        psi = level[:, None] + scale[:, None] * f
        middle, deviation = (np.einsum("rq,rqm->rm", part, of) for part in (mean - now, away))
        angles = sites.angles(shard.rows, psi, psi + middle, deviation, key.at("turn level"))
        found = dict(zip(names, turn(now, mean, away, angles).T))
        return found.get("level", level), found.get("scale", scale)

    def level_regression(self, potential, f, f_squared, shard, level, scale):
        """Return precision (r, q, q) and linear term (r, q) of the q learned ones of (level, scale)."""
        kappa, omega = potential
        learned = np.array(["level" in self.learn, "scale" in self.learn])
        cross = np.sum(omega * f, axis=1)
        precision = np.moveaxis(
            np.array(
                [
                    [omega.sum(axis=1) + self.level_sd**-2, cross],
                    [cross, np.sum(omega * f_squared, axis=1) + self.scale_sd**-2],
                ]
            ),
            2,
            0,
        )
        centre = self.level[shard.rows.astype(int)] * self.level_sd**-2
        linear = np.stack(
            [kappa.sum(axis=1) + centre, np.sum(kappa * f, axis=1) + self.scale_sd**-2], axis=1
        )
        fixed = np.stack([level, scale], axis=1)[:, ~learned]
        linear = linear[:, learned] - np.einsum(
            "rab,rb->ra", precision[:, learned][:, :, ~learned], fixed
        )
        return precision[:, learned][:, :, learned], linear

    def draw_parameters(self, parameters, statistics, key, ordered_map=map):
        """Theta | what does not depend on it, x."""
        theta, iterations = parameters.next_theta, statistics.iterations / len(statistics.blocks)
        if not self.learns_kernel:
            return parameters._replace(iterations=iterations)
        moved = draw_theta(self, theta, parameters.axes, statistics.blocks, key, ordered_map)
        found = dict(zip(("next_theta", "next_white"), moved))
        return parameters._replace(theta=theta, iterations=iterations, **found)

    def settle(self, parameters, statistics, key, n_burn, ordered_map=map):
        """Draw the same, and learn the axes of theta; anchors are fixed with the last such sweep."""
        moved = self.draw_parameters(parameters, statistics, key, ordered_map)
        return moved._replace(**moved.axes.learn(moved.next_theta, key.sweep, n_burn)._asdict())

    def log_likelihood(self, statistics):
        return statistics.value

    # mean field

    def initial_factor(self, shards, key):
        return KernelFactor(np.array(self.family.theta0, dtype=np.float64))

    def expect(self, factor):
        return self.family.at(factor.theta)

    def initial_row_factors(self, prior, shard):
        """Start from the prior at the level, with the weights that omega has there."""
        level, scale = self.level[shard.rows.astype(int)], np.ones(len(shard.rows))
        tilt = np.abs(np.broadcast_to(level[:, None], shard.trials.shape))
        omega = augmentation.expected_potential(shard.splits, tilt).omega
        return RowFactors(np.zeros(omega.shape), prior.weights(omega), omega, level, scale)

    def update_rows(self, prior, shard, rows, key):
        """q(f), then level and scale, then q(omega)."""
        rows = self._follow(prior, shard, rows)
        rows, dual = self._best_weights(prior, shard, rows)
        rows = self._best_levels(shard, rows, dual)
        rows = rows._replace(omega=self._expected_potential(shard, rows, dual).omega)
        value = self._bounds(shard, rows, dual).sum() + shard.log_coefficient
        return rows, ExpectedStatistics(((shard, rows),), value)

    def _follow(self, prior, shard, rows):
        """Take the best mean of f under a prior, given q(omega)."""
        level, scale = rows.level[:, None], rows.scale[:, None]
        kappa = scale * (augmentation.kappa(shard.splits) - rows.omega * level)
        omega = scale**2 * rows.omega
        mean = prior.mean(augmentation.Potential(kappa, omega))
        return rows._replace(linear=kappa - omega * mean)

    def _expected_potential(self, shard, rows, dual):
        return augmentation.expected_potential(shard.splits, np.sqrt(moments(rows, dual)[1]))

    def _best_weights(self, prior, shard, rows):
        """Take the weights nearest to omega, that of f, for the sticks whose bound they raise."""
        omega = np.square(rows.scale[:, None]) * rows.omega
        new = rows._replace(weights=prior.weights(omega))
        dual = prior.dual(new.linear, new.weights)
        if new.weights is omega:
            return new, dual
        old = prior.dual(rows.linear, rows.weights)
        better = self._bounds(shard, new, dual) >= self._bounds(shard, rows, old)
        chosen = np.where(better[:, None], new.weights, rows.weights)
        both = ((a, b) for a, b in zip(dual, old))
        dual = type(dual)(
            *(np.where(better if a.ndim == 1 else better[:, None], a, b) for a, b in both)
        )
        return rows._replace(weights=chosen), dual

    def _best_levels(self, shard, rows, dual):
        """Maximise the bound over those of level and scale that are learned, given q(omega)."""
        names = [name for name in ("level", "scale") if name in self.learn]
        if not names:
            return rows
        potential = self._expected_potential(shard, rows, dual)
        squares = np.square(dual.mean) + dual.variance
        precision, linear = self.level_regression(
            potential, dual.mean, squares, shard, rows.level, rows.scale
        )
        found = np.linalg.solve(precision, linear[..., None])[..., 0]
        return rows._replace(**dict(zip(names, found.T)))

    def _bounds(self, shard, rows, dual):
        """Return the bound of each stick (r,), without multinomial coefficients."""
        mean, second = moments(rows, dual)
        log_cosh = augmentation.log_two_cosh(np.sqrt(second))
        likelihood = augmentation.kappa(shard.splits) * mean - shard.trials * log_cosh
        quadratic = rows.linear * dual.mean - rows.weights * dual.variance
        gaussian = -0.5 * (quadratic.sum(axis=1) + dual.log_det)
        return likelihood.sum(axis=1) + gaussian + self._log_prior_of_levels(shard, rows)

    def _log_prior_of_levels(self, shard, rows):
        """Return the log density of level and scale, up to a constant; 0 where they are not learned."""
        away = (rows.level - self.level[shard.rows.astype(int)]) / self.level_sd
        return -0.5 * (np.square(away) + np.square((rows.scale - 1.0) / self.scale_sd))

    def update_factor(self, factor, statistics):
        """Move theta to where the bound is higher, q(omega) and the weights of the sticks held fixed."""
        if not self.learns_kernel:
            return factor

        def loss(theta):
            solver = self.family.at(theta)
            found = [self._bound_at(solver, *block) for block in statistics.blocks]
            return -sum(found) - self.log_prior(theta)

        found = minimize(
            loss,
            factor.theta,
            method="L-BFGS-B",
            bounds=self.family.bounds,
            options={"maxiter": MOST_STEPS},
        )
        return KernelFactor(found.x) if found.fun < loss(factor.theta) else factor

    def _bound_at(self, solver, shard, rows):
        rows = self._follow(solver, shard, rows)
        return self._bounds(shard, rows, solver.dual(rows.linear, rows.weights)).sum()

    def elbo(self, factor, statistics):
        return statistics.value + (self.log_prior(factor.theta) if self.learns_kernel else 0.0)

    def draw_from_factor(self, factor, key):
        return self._standing(factor.theta)

    def draw_described_rows(self, prior, shard, rows):
        """Return two values of psi with the moments of q, and what is known for sure."""
        rows = self._follow(prior, shard, rows)
        dual = prior.dual(rows.linear, rows.weights)
        mean = rows.level[:, None] + rows.scale[:, None] * dual.mean
        sd = np.abs(rows.scale[:, None]) * np.sqrt(dual.variance)
        known = {name: getattr(rows, name)[None] for name in KNOWN} | {"mean": rows.level[None]}
        return {"psi": np.stack([mean - sd, mean + sd]), **known}

    # what to record

    def describe_parameters(self, parameters):
        return {"theta": parameters.theta, "iterations": parameters.iterations}

    def describe_rows(self, shard, rows):
        seen = {name: value for name, value in rows._asdict().items() if name not in UNSEEN}
        return {WORDS.get(name, name): value for name, value in seen.items()}

    def watch(self, shards):
        """Judge a run by the probabilities at some inputs, those of slow splits among them."""

        def cells(shard):  # rows are sticks: turn them
            inputs = np.arange(shard.trials.shape[1])
            found = watched.dense_cells(inputs, Splits(*(part.T for part in shard.splits)))
            return found._replace(nodes=shard.rows.astype(int)[found.nodes])

        return watched.LatentWatch(
            watched.choose_cells(map(cells, shards)),
            self.decomposition,
            "input",
            lambda shard, rows, picked: {"psi": rows.psi[:, picked.wanted]},
            lambda parameters, taken: taken["psi"].T,
        )

    # new inputs

    def latent(self, draw, predictor, shards=None, key=None):
        """Return mean and variance (k, M*) of psi at new inputs, given a recorded draw.

        shards : given, the values at the training inputs are integrated out given omega, which is drawn
                 anew (paper, appendix B); None: they are taken as they were drawn
        """
        level, scale = draw["mean"][:, None], draw["scale"][:, None]
        if shards is None:
            mean, variance = predictor.given(draw["white"])
            return level + scale * mean, scale**2 * variance
        solver = self.family.at(draw["theta"])
        found = [self.collapse(draw, solver, predictor, shard, key)[1] for shard in shards]
        mean, variance = map(np.concatenate, zip(*found))
        return mean, variance

    def collapse(self, draw, solver, predictor, shard, key):
        """Return a potential of some sticks, omega drawn anew; mean and variance (r, M*) of psi given it."""
        ids = shard.rows.astype(int)
        white, level, scale = (draw[name][ids] for name in ("white", "mean", "scale"))
        psi = _psi(solver, white, level, scale)
        potential = augmentation.draw_potential(shard.splits, psi, key.at("omega"), shard.rows)
        mean, variance = predictor.collapsed(centred(potential, level, scale))
        level, scale = level[:, None], scale[:, None]
        return potential, (level + scale * mean, scale**2 * variance)

    def latent_of_factor(self, factor, predictor):
        """Return mean and variance (k, M*) of psi at new inputs under q.

        factor : name -> array: linear, weights, mean, scale of all sticks
        """
        mean, variance = predictor.dual(factor["linear"], factor["weights"])
        level, scale = factor["mean"][:, None], factor["scale"][:, None]
        return level + scale * mean, scale**2 * variance

    def probabilities_of(self, draw):
        """Return the probabilities (M, K) at the inputs of the fit in a recorded draw."""
        solver = self.family.at(draw["theta"])
        psi = _psi(solver, *(draw[name] for name in ("white", "mean", "scale")))
        return self.decomposition.probabilities(psi.T)


def _first(shard, psi, white, level, scale):
    """Return rows whose sites go by the counts alone."""
    splits = shard.splits
    anchor, spread = augmentation.empirical_logit(splits), augmentation.predicted_variance(splits)
    return Rows(psi, white, level, scale, anchor, spread)


def _psi(solver, white, level, scale):
    return level[:, None] + scale[:, None] * solver.unwhiten(white)
