"""The face that all models of sequences share."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from polystick import scores
from polystick.arguments import Counts, RandomState
from polystick.estimators import sequence_replicates, streams
from polystick.estimators.face import Face
from polystick.estimators.seeds import seed_of
from polystick.estimators.sequence_inputs import check_n_seen, check_totals, read_inputs
from polystick.estimators.sequence_results import (
    Filtered,
    Forecast,
    Likeliest,
    Smoothed,
    forecast_of,
    likeliest,
)
from polystick.estimators.sequences import Read, parts_of, read_sequences
from polystick.estimators.tables import steps_after, tabled
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.models.sequence_filter import prediction_key
from polystick.validation import (
    all_or_nothing,
    check_integer,
    check_level,
)

__all__ = ["STATES", "Filtered", "Forecast", "Likeliest", "SequenceEstimator", "Smoothed"]

STATES = streams.STATES


class SequenceEstimator(Face):
    """What all of them offer; a subclass has `_make_model`.

    It sees `read_`, what came into the fit. A subclass whose model has inputs says `_takes_inputs`; its
    `shards` get them besides the sequences. The model has what inference wants and a `predictor`, see
    `polystick.models.sequence_filter`. Constructors have n_categories, inference, random_state, n_jobs,
    progress and checkpoint.
    """

    _explored_as: ClassVar[str | None] = "sequences"
    _axes = ("step", "category")
    _takes_inputs = False
    _has_particles = False  # in its filters
    _goes_on = True  # its filter, from a state
    _has_likelihood = True  # of counts: the posterior is given these

    def fit(self, X: Counts, inputs: ArrayLike | None = None, *, lengths: ArrayLike | None = None,
            resume: bool = False) -> Self:  # fmt: skip
        """Learn from sequences.

        Parameters
        ----------
        X : sequence or list of sequences
            A sequence is an array or a list of tokens 0..K-1, with -1, None or NaN where one is missing; or
            rows of counts: an array (steps, K), CSR or a DataFrame, whose rows without counts, or of
            NaN, are missing. Lists of lists are sequences of tokens; so is an array (steps, 1).
        inputs : array (steps, m), or a list of such for each sequence, or None
            What is known of each step from elsewhere, where the model has a place for it.
        lengths : array (n,) or None
            Steps of each sequence, where X (and inputs) are one array that has them one after another.
        resume : bool
            Go on with the run in the checkpoint folder, if there is one.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            self._check_running()
            if self.n_categories is not None:
                check_integer("n_categories", self.n_categories, at_least=2)
            read = read_sequences(X, lengths=lengths, n_categories=self.n_categories, shortest=2)
            self.n_inputs_ = 0
            if inputs is not None:
                self._refuse_inputs()
                X, inputs = (
                    each if lengths is None else parts_of(each, lengths) for each in (X, inputs)
                )
                read = read._replace(inputs=read_inputs(inputs, read.lengths, beside=X))
                self.n_inputs_ = read.inputs[0].shape[1]
            self.read_, self.categories_ = read, read.categories
            self.n_features_in_ = len(read.categories)
            self._learn(resume)
            return self

    @property
    def sequences_(self) -> Any:
        """The sequences of the fit as they were read: tokens (steps,) or CSR (steps, K)."""
        check_is_fitted(self)
        return self.read_.sequences

    def _learn(self, resume):
        fit, model = self._begin(resume), self._make_model()
        coords = self._coords(model) | self.read_.step_names
        self._run(fit, model, self._shards(model, self.read_), coords)

    def _make_model(self):
        """Return the model for the sequences in `read_`."""
        raise NotImplementedError

    def _coords(self, model):
        """Return names of the posterior's axes."""
        return {"category": [str(name) for name in self.categories_]}

    def _draws(self, n_draws):
        """Return about n_draws posterior draws of the parameters, each name -> array."""
        names = self._parameter_names()
        return [dict(zip(names, draw)) for draw in self.posterior_.spread(names, n_draws)]

    def _parameter_names(self):
        return self.model_.parameter_type._fields

    def _shards(self, model, read):
        return model.shards(read.sequences, *([] if read.inputs is None else [read.inputs]))

    predict_counts = sequence_replicates.predict_counts
    sample_prior = sequence_replicates.sample_prior
    to_arviz = sequence_replicates.to_arviz

    # given what was seen before

    filter_state = streams.filter_state
    update = streams.update
    predict_next = streams.predict_next

    def filter(self, X: Counts, inputs: ArrayLike | None = None, *, lengths: ArrayLike | None = None,
               n_draws: int = STATES, n_particles: int | None = None) -> Any:  # fmt: skip
        """Return states and probabilities of each step, given what was seen up to it.

        Parameters
        ----------
        X, inputs, lengths : as in `fit`
        n_draws : int
            Posterior draws of the parameters to average over.
        n_particles : int or None
            Of filters that have particles, and of no others; None is their default.

        Returns
        -------
        list of Filtered (states, states_sd, probabilities), one for each sequence
        """
        read = self._read(X, inputs, lengths)
        found = self._means(
            read,
            n_draws,
            n_particles,
            "current",
            lambda f: (f.states, f.spread + np.square(f.states), f.current),
        )
        return [
            Filtered(
                states,
                np.sqrt(np.maximum(squares - np.square(states), 0.0)),
                pi,
                self.categories_,
                index,
            )
            for (states, squares, pi), index in zip(found, read.indexes)
        ]

    def predict_proba(self, X: Counts, inputs: ArrayLike | None = None, *, lengths: ArrayLike | None = None,
                      n_top: int | None = None, n_draws: int = STATES,
                      n_particles: int | None = None) -> Any:  # fmt: skip
        """Return the probabilities (steps, K) of each sequence one step ahead: given what was before.

        Parameters
        ----------
        X, inputs, lengths, n_draws, n_particles : as in `filter`
        n_top : int or None
            How many categories to tell of, the likeliest of each step: then the result is a list of
            `Likeliest` (categories, probabilities), both (steps, n_top), the likeliest first.
        """
        if n_top is not None:
            check_integer("n_top", n_top, at_least=1)
        read = self._read(X, inputs, lengths)

        def finish(ahead):
            return (ahead,) if n_top is None else likeliest(ahead, n_top)

        picked = n_draws, n_particles, "predicted", lambda f: (f.predicted,)
        found = self._means(read, *picked, finish)
        if n_top is not None:
            names = self.categories_
            return [Likeliest(names[top], pi, at) for (top, pi), at in zip(found, read.indexes)]
        return [tabled(self, pi, index) for (pi,), index in zip(found, read.indexes)]

    def score_steps(self, X: Counts, inputs: ArrayLike | None = None, *, lengths: ArrayLike | None = None,
                    n_draws: int = STATES, n_particles: int | None = None) -> Any:  # fmt: skip
        """Return what each posterior draw says of each step: log p(x_t | before), a list of (n_draws, steps).

        Steps where nothing was seen have 0. `score` and `score_samples` average probabilities, not their
        logarithms: for the steps of a sequence, one step ahead, by `scores.log_mean_exp(values, axis=0)`.
        Parameters are those of `filter`.
        """
        read = self._read(X, inputs, lengths)
        return self._step_values(read, n_draws, n_particles)

    def score_samples(self, X: Counts, inputs: ArrayLike | None = None, *, lengths: ArrayLike | None = None,
                      n_seen: Any = 0, joint: bool = False, n_draws: int = STATES,
                      n_particles: int | None = None) -> np.ndarray:  # fmt: skip
        """Return the log probability (n,) of each sequence, without multinomial coefficients.

        Parameters
        ----------
        X, inputs, lengths : as in `fit`
        n_seen : int, or one for each sequence
            First steps that are given: only those after them are scored.
        joint : bool
            Whether to average the probability of all scored steps of a sequence over posterior draws,
            or else that of each step given those before it: one step ahead.
        n_draws, n_particles : as in `filter`
        """
        read = self._read(X, inputs, lengths)
        n_seen = check_n_seen(n_seen, read.lengths)
        return self._log_probabilities(read, n_seen, joint, n_draws, n_particles)

    def score(self, X: Counts, inputs: ArrayLike | None = None, *, lengths: ArrayLike | None = None,
              n_seen: Any = 0, joint: bool = False, n_draws: int = STATES,
              n_particles: int | None = None) -> float:  # fmt: skip
        """Return the log probability per count, in nats, as in `score_samples`; bigger is better."""
        read = self._read(X, inputs, lengths)
        n_seen = check_n_seen(n_seen, read.lengths)
        values = self._log_probabilities(read, n_seen, joint, n_draws, n_particles)
        held_out = [totals[seen:] for totals, seen in zip(read.totals, n_seen)]
        return scores.per_count(values, np.concatenate(held_out))

    def _log_probabilities(self, read, n_seen, joint, n_draws, n_particles):
        values = np.concatenate(self._step_values(read, n_draws, n_particles), axis=1)
        return scores.held_out_steps(values, _starts(read.lengths), n_seen, joint=joint)

    def _step_values(self, read, n_draws, n_particles):
        result: list[np.ndarray] = []
        options = {"n_particles": n_particles}
        for rows, found in self._map(read, n_draws, lambda f, *_: f.values, **options):
            cuts = _starts(read.lengths[rows])[1:-1]
            result.extend(np.split(np.stack(list(found)), cuts, axis=1))
        return result

    def _means(self, read, n_draws, n_particles, shown, pick, finish=lambda *means: means):
        """Return for each sequence the averages over draws of what is picked of its filter, finished."""
        result: list[tuple] = []
        options = {"show": (shown,), "n_particles": n_particles}
        for rows, found in self._map(read, n_draws, lambda f, *_: pick(f), **options):
            cuts = _starts(read.lengths[rows])[1:-1]
            result.extend(zip(*(np.split(part, cuts) for part in finish(*_mean(found)))))
        return result

    def _map(self, read, n_draws, work, **options):
        """Yield (rows of a block, iterator over draws of work(filter, predictor, key, rows)).

        rows are numbers of sequences. Draws are mapped over threads.
        """
        check_integer("n_draws", n_draws, at_least=1)
        options = {name: value for name, value in options.items() if value is not None}
        if "n_particles" in options:
            self._refuse_particles(options["n_particles"])
        predictors = [self.model_.predictor(draw) for draw in self._draws(n_draws)]
        with execution_for(self.n_jobs) as execution, one_blas_thread():
            for shard in self._shards(self.model_, read):
                rows = np.asarray(shard.rows).astype(np.int64)

                def at_draw(number, shard=shard, rows=rows):
                    key = prediction_key(self.seed_, number)
                    filtered = predictors[number].filter(shard, key, **options)
                    return work(filtered, predictors[number], key, rows)

                yield rows, execution.map(at_draw, range(len(predictors)))

    def _refuse_particles(self, n_particles):
        if not self._has_particles:
            raise ValueError(
                f"{type(self).__name__} has an exact filter, without particles; got n_particles="
                f"{n_particles!r}: leave it out"
            )
        check_integer("n_particles", n_particles, at_least=1)

    # what comes after, and anew

    def forecast(self, n_steps: int, X: Counts | None = None, inputs: Any = None, *,
                 lengths: ArrayLike | None = None, n_draws: int = 200, level: float = 0.9,
                 new_inputs: Any = None, n_particles: int | None = None) -> Any:  # fmt: skip
        """Return the probabilities of the steps after the last.

        Parameters
        ----------
        n_steps : int
        X, inputs, lengths : as in `fit`
            None goes on with the sequences of the fit, and a `FilterState` with the one that it has seen.
        n_draws : int
            Paths of states to draw, from at most 32 posterior draws of the parameters.
        level : float
            Probability of the central intervals.
        new_inputs : array (n_steps, m) for all sequences, or a list of such for each
            Of the new steps, where the model has inputs.
        n_particles : as in `filter`

        Returns
        -------
        list of Forecast (mean, lower, upper, draws), one for each sequence
        """
        check_integer("n_steps", n_steps, at_least=1)
        check_integer("n_draws", n_draws, at_least=1)
        check_level(level)
        if isinstance(X, streams.FilterState):
            new_inputs = self._new_inputs(new_inputs, n_steps, 1)
            draws = streams.draw_paths(self, X, n_steps, n_draws, new_inputs)
            index = steps_after(X.index, X.n_steps, n_steps)
            return [forecast_of(draws, level, self.categories_, index)]
        read = self._read_again(X, inputs, lengths)
        new_inputs = self._new_inputs(new_inputs, n_steps, len(read.sequences))
        n_laws = len(self._draws(min(n_draws, STATES)))
        draws = np.empty((n_draws, len(read.sequences), n_steps, self.n_features_in_))

        def work(filtered, predictor, key, rows):
            inputs = None if new_inputs is None else new_inputs[rows]
            n_paths = -(-n_draws // n_laws)
            return predictor.forecast(filtered.after, n_steps, key, n_paths, inputs=inputs)

        for rows, found in self._map(read, min(n_draws, STATES), work, n_particles=n_particles):
            for number, paths in enumerate(found):
                here = draws[number::n_laws]
                here[:, rows] = paths[: len(here)]
        indexes = [steps_after(*last, n_steps) for last in zip(read.indexes, read.lengths.tolist())]
        return [
            forecast_of(each, level, self.categories_, index)
            for each, index in zip(np.moveaxis(draws, 1, 0), indexes)
        ]

    def simulate(
        self, n_steps: int, inputs: Any = None, *, random_state: RandomState = None
    ) -> Any:
        """Return sequences such as the posterior expects, each from one draw of the parameters.

        Parameters
        ----------
        n_steps : int, or list of arrays (steps,)
            An integer gives one sequence of that many tokens, and arrays one sequence of counts (steps, K)
            each, with these totals.
        inputs : as in `fit`
        random_state : int, RandomState, Generator or None
            None takes the seed of the fit; the same seed gives the same sequences.
        """
        check_is_fitted(self)
        totals = check_totals(n_steps)
        inputs = self._read_inputs(inputs, np.array([len(each) for each in totals]))
        seed = seed_of(self, random_state)
        draws, result = self._draws(max(STATES, len(totals))), []
        for i, total in enumerate(totals):
            rng = prediction_key(seed, i).generator("simulate")
            predictor = self.model_.predictor(draws[rng.integers(len(draws))])
            own = None if inputs is None else [inputs[i]]
            result.extend(predictor.simulate([total], rng, inputs=own))
        return [result[0].argmax(axis=1)] if isinstance(n_steps, int | np.integer) else result

    # what came in

    def _read(self, X, inputs, lengths=None):
        check_is_fitted(self)
        self._check_running()
        known = {"n_categories": self.n_features_in_, "categories": self.categories_}
        read = read_sequences(X, lengths=lengths, **known)
        if lengths is not None and inputs is not None:
            X, inputs = (parts_of(each, lengths) for each in (X, inputs))
        return read._replace(inputs=self._read_inputs(inputs, read.lengths, beside=X))

    def _read_again(self, X, inputs, lengths=None) -> Read:
        """Return what came in, or the sequences of the fit."""
        if X is not None:
            return self._read(X, inputs, lengths)
        check_is_fitted(self)
        if inputs is not None:
            raise ValueError("inputs must come with their X; got inputs without; see new_inputs")
        return self.read_

    def _read_inputs(self, inputs, lengths, name="inputs", beside=None):
        if inputs is None:
            if self.n_inputs_:
                raise ValueError(
                    f"{name} must be given, for the fit had {self.n_inputs_} of them; got None"
                )
            return None
        self._refuse_inputs(name)
        if not self.n_inputs_:
            raise ValueError(f"{name} must not be given, for the fit had none; fit with inputs")
        return read_inputs(inputs, lengths, width=self.n_inputs_, name=name, beside=beside)

    def _refuse_inputs(self, name="inputs"):
        if not self._takes_inputs:
            raise ValueError(f"{type(self).__name__} has no inputs; got {name}: leave them out")

    def _new_inputs(self, inputs, n_steps, n):
        """Return inputs (n, n_steps, m) of new steps, or None."""
        if inputs is not None and not isinstance(inputs, list | tuple) and np.ndim(inputs) == 2:
            inputs = [inputs] * n
        tables = self._read_inputs(inputs, np.full(n, n_steps), "new_inputs")
        return None if tables is None else np.stack(tables)


def _starts(lengths):
    return np.concatenate([[0], np.cumsum(lengths)])


def _mean(found):
    """Return the mean of tuples of arrays, which need not be held all at once."""
    total, n = [np.array(part) for part in next(found)], 1
    for parts in found:
        for part, more in zip(total, parts):
            part += more
        n += 1
    for part in total:
        part /= n
    return total
