"""The faces of the models that multinomial Gaussian processes are compared with."""

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from polystick import scores
from polystick.arguments import PathLike, Progress, RandomState
from polystick.baselines import process_regression
from polystick.baselines.logistic_normal_process import LogisticNormalProcess
from polystick.baselines.process_face import ProcessBaseline
from polystick.baselines.process_regression import Grid, Regression
from polystick.covariances.families import choose_family
from polystick.decomposition import decompose
from polystick.estimators.process_face import TOLERANCE, given_level, kernel_for, refuse_tolerance
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.inference.gibbs import Gibbs
from polystick.inference.schedules import Schedule
from polystick.keys import Key
from polystick.models import predictive
from polystick.models.normal_points import standard_normal_points
from polystick.validation import check_integer, check_positive, warn_user

_POINTS = 8  # at new inputs, for each posterior state
_NUMBERS_AT_ONCE = 2**22  # held by each thread, several times: new inputs come in blocks
_FEW = 5.0  # effective draws below which an importance estimate is not to be trusted


class LogisticNormalGP(ProcessBaseline):
    """Gaussian processes behind a softmax, one for each category, by elliptical slice sampling.

    Parameters
    ----------
    kernel : scikit-learn kernel or None
        The covariance over inputs, which is fixed; None as in `MultinomialGP`, without its noise. `RawGP`
        learns one.
    mean : "empirical", "zero" or array of shape (K,)
        What the logits are far from all data: log overall frequencies (with one more count of each
        category), 0, or given for each category.
    solver, tolerance, random_state, n_jobs, progress, checkpoint, checkpoint_every
        As in `MultinomialGP`. Categories are visited one after another, so threads serve chains.
    inference : Gibbs or None
        None is two chains. They move slowly: look at ``posterior_.summary()``.

    Attributes
    ----------
    kernel_, posterior_, categories_, inputs_, counts_, solver_, seed_, n_iter_
        As in `MultinomialGP`; the draws are `white` functions, and `n_looks`, the likelihoods that an
        update took.
    """

    _schedules = (Gibbs,)
    _default = Gibbs(n_draws=1000, n_burn=500, n_chains=2, max_bytes=2**28)
    _kept = ("white",)

    def __init__(self, kernel: Kernel | None = None, *, mean: Any = "empirical", solver: str = "auto",
                 tolerance: float = TOLERANCE, inference: Schedule | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None,
                 progress: Progress | None = None, checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.kernel = kernel
        self.mean = mean
        self.solver = solver
        self.tolerance = tolerance
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def _needs_whole_counts(self):
        return True

    def _learn(self, resume):
        fit = self._begin(resume)
        refuse_tolerance(self)
        model = self._make_model()
        coords = {"category": [str(name) for name in self.categories_]}
        self._run(fit, model, model.shards(self.counts_), coords)
        self.kernel_, self.solver_ = model.family.kernel, model.family.solver_name

    def _make_model(self):
        kernel = kernel_for(self.kernel, self.inputs_)
        family = choose_family(kernel, self.inputs_, solver=self.solver, tolerance=self.tolerance)
        return LogisticNormalProcess(family, _level(self.mean, self.counts_.sum(axis=0)))

    def _predict(self, inputs, return_std, return_draws, n_draws):
        shape = (len(inputs), len(self.categories_))
        mean, squares = np.zeros(shape), np.zeros(shape)
        draws = np.empty((n_draws if return_draws else 0, *shape))

        def work(white, predictor, rows, number, n_states):
            points = self._points(number, n_states)[:, None]
            pi = self.model_.predict(white, predictor, points)
            ids = np.arange(rows.start, rows.stop, dtype=np.uint64)
            drawn = {}
            for i in range(number, len(draws), n_states):
                key = Key(self.seed_, i).chain("new inputs")
                drawn[i] = self.model_.predict(white, predictor, key.normals("psi", ids, shape[1]))
            return pi.mean(axis=0), np.square(pi).mean(axis=0), drawn

        for rows, number, found in self._map_states(inputs, n_draws, work):
            mean[rows] += (found[0] - mean[rows]) / (number + 1)
            squares[rows] += (found[1] - squares[rows]) / (number + 1)
            for i, drawn in found[2].items():
                draws[i, rows] = drawn
        return mean, np.sqrt(np.maximum(squares - mean**2, 0.0)), draws

    def _log_evidence(self, inputs, counts, n_draws):
        def work(white, predictor, rows, number, n_states):
            points = self._points(number, n_states)
            return self.model_.log_weights(white, predictor, counts[rows], points)

        blocks: dict[int, list] = {}
        for rows, _, found in self._map_states(inputs, n_draws, work):
            blocks.setdefault(rows.start, []).append(found)
        log_weights = np.concatenate([np.concatenate(parts) for parts in blocks.values()], axis=1)
        few = int((scores.effective_draws(log_weights, axis=0) < _FEW).sum())
        if few:
            warn_user(
                f"the scores of {few} of {len(inputs)} rows rest on fewer than {_FEW:.0f} effective "
                "draws and are too low on average; raise n_draws"
            )
        return scores.log_mean_exp(log_weights, axis=0)

    def _points(self, number, n_states):
        points = standard_normal_points(n_states * _POINTS, len(self.categories_))
        return points[number * _POINTS : (number + 1) * _POINTS]

    def _map_states(self, inputs, n_draws, work):
        """Yield rows, the number of a state and work(white, predictor, rows, number, n_states) of it."""
        states = list(enumerate(self.posterior_.spread(("white",), n_draws)))
        family, theta = self.model_.family, self.model_.theta
        size = max(1, _NUMBERS_AT_ONCE // max(_POINTS * len(self.categories_), family.n_crossed))
        with execution_for(self.n_jobs) as execution:
            for start in range(0, len(inputs), size):
                rows = slice(start, min(start + size, len(inputs)))
                predictor = family.predictor(theta, inputs[rows])

                def at_state(numbered, rows=rows, predictor=predictor):
                    number, (white,) = numbered
                    return rows, number, work(white, predictor, rows, number, len(states))

                yield from execution.map(at_state, states)


def _level(mean, weights):
    """Return the level of each category, (K,)."""
    if isinstance(mean, str) and mean == "empirical":
        return np.log((weights + 1.0) / (weights + 1.0).sum())
    return given_level(mean, len(weights), "category")


class RawGP(ProcessBaseline):
    """Gaussian process regression on the logits of smoothed frequencies: what one would do by hand.

    (counts + smoothing), normalised, are broken into sticks; what is left of each without its mean is
    regressed on the inputs, with a kernel and a noise variance that all splits share. Inputs without counts
    are left out. Counts enter by their frequencies alone, so few are trusted as much as many.

    Parameters
    ----------
    kernel : scikit-learn kernel or None
        Where the climb to most evidence starts; None as in `MultinomialGP`, without its noise.
    smoothing : float
        Added to each count.
    noise : float
        The noise variance to start from.
    learn : bool
        Whether to fit the kernel and the noise, or to take them as they are.
    decomposition : as in `MultinomialGP`

    Attributes
    ----------
    kernel_ : kernel
        As fitted, for others to use.
    noise_ : float
    log_evidence_ : float
    decomposition_, categories_, inputs_, counts_
        As in `MultinomialGP`.
    """

    def __init__(self, kernel: Kernel | None = None, *, smoothing: float = 0.1, noise: Any = 1.0,
                 learn: Any = True, decomposition: Any = "frequency") -> None:  # fmt: skip
        self.kernel = kernel
        self.smoothing = smoothing
        self.noise = noise
        self.learn = learn
        self.decomposition = decomposition

    def _learn(self, resume):
        self._refuse_resume(resume)
        check_positive("smoothing", self.smoothing)
        check_positive("noise", self.noise)
        weights = self.counts_.sum(axis=0)
        self.decomposition_ = decompose(
            self.decomposition,
            n_categories=len(weights),
            weights=weights,
            names=getattr(self._categories, "feature_names_in_", None),
        )
        seen = self.counts_.sum(axis=1) > 0
        if not seen.any():
            raise ValueError("X must have counts to learn from; got none; look at how it was made")
        psi = self.decomposition_.psi_from_log(np.log(self.counts_[seen] + self.smoothing))
        self.level_ = psi.mean(axis=0)
        grid = Grid.of(kernel_for(self.kernel, self.inputs_), self.inputs_[seen])
        with one_blas_thread():
            self._regress(Regression(grid, float(self.noise), psi - self.level_))

    def _regress(self, regression):
        if self.learn:
            regression, settled = process_regression.fit(regression)
            if not settled:
                warn_user("the climb to the kernel of most evidence did not settle; try another "
                          "start", ConvergenceWarning)  # fmt: skip
        self.regression_ = regression
        self.kernel_, self.noise_ = regression.grid.kernel, regression.noise
        self.log_evidence_ = regression.log_evidence()

    def _latent(self, inputs):
        mean, variance = self.regression_.predict(inputs)
        psi = (self.level_ + mean).T
        return predictive.Latent(psi, np.broadcast_to(variance, psi.shape))

    def _predict(self, inputs, return_std, return_draws, n_draws):
        latent, tree = self._latent(inputs), self.decomposition_
        mean, squares = predictive.expected_moments(tree, latent)
        std, draws = np.sqrt(np.maximum(squares - mean**2, 0.0)), None
        if return_draws:
            ids = np.arange(len(inputs), dtype=np.uint64)
            drawn = (predictive.draw_probabilities(tree, latent, ids, 0, i) for i in range(n_draws))
            draws = np.stack(list(drawn))
        return mean, std, draws

    def _log_evidence(self, inputs, counts, n_draws):
        return predictive.log_evidence(self.decomposition_, self._latent(inputs), counts)


class Static(ProcessBaseline):
    """The smoothed frequencies of each place at its last times, for ever.

    They are taken as the truth: their standard deviation is 0, and all draws are the same.

    Parameters
    ----------
    window : int
        How many of the last times to count. Times without counts are passed over.
    smoothing : float
        Added to each count.
    time_column : int
        The column of the inputs that is the time; a place is what the others say. A place that was not in
        the fit gets the frequencies of all places, with a warning.

    Attributes
    ----------
    places_ : dict of bytes -> array (K,)
        What was counted at each place at its last times.
    categories_, inputs_, counts_
        As in `MultinomialGP`.
    """

    def __init__(self, window: int = 1, *, smoothing: float = 1.0, time_column: int = 0) -> None:
        self.window = window
        self.smoothing = smoothing
        self.time_column = time_column

    def _learn(self, resume):
        self._refuse_resume(resume)
        check_integer("window", self.window, at_least=1)
        check_positive("smoothing", self.smoothing)
        check_integer("time_column", self.time_column, at_least=0)
        if self.time_column >= self.n_features_in_:
            raise ValueError(
                f"time_column must be one of the {self.n_features_in_} columns of the inputs, counted "
                f"from 0; got {self.time_column}"
            )
        latest = np.argsort(-self.inputs_[:, self.time_column], kind="stable")
        rows: dict[bytes, list[int]] = {}
        for row, place in zip(latest, self._places(self.inputs_[latest])):
            rows.setdefault(place, [])
            if len(rows[place]) < self.window and self.counts_[row].any():
                rows[place].append(row)
        self.places_ = {place: self.counts_[rows[place]].sum(axis=0) for place in rows}

    def _places(self, inputs):
        return [row.tobytes() for row in np.delete(inputs, self.time_column, axis=1)]

    def _predict(self, inputs, return_std, return_draws, n_draws):
        places = self._places(inputs)
        unknown = [row for row, place in enumerate(places) if place not in self.places_]
        if unknown:
            warn_user(
                f"{len(unknown)} of {len(inputs)} inputs are at places that were not in the fit, such as "
                f"{inputs[unknown[0]].tolist()}; they get the frequencies of all places"
            )
        everywhere = np.sum(list(self.places_.values()), axis=0)
        counts = np.stack([self.places_.get(place, everywhere) for place in places])
        smooth = counts + self.smoothing
        pi = smooth / smooth.sum(axis=1, keepdims=True)
        return pi, np.zeros_like(pi), np.tile(pi, (n_draws, 1, 1)) if return_draws else None

    def _log_evidence(self, inputs, counts, n_draws):
        return (counts * np.log(self._predict(inputs, False, False, 1)[0])).sum(axis=1)
