"""What the faces of multinomial dynamics share: smoothing, and draws to judge a run by."""

import itertools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from polystick.arguments import Counts
from polystick.decomposition import Decomposition, decompose
from polystick.estimators.intervals import interval
from polystick.estimators.sequence_face import STATES, SequenceEstimator
from polystick.estimators.sequence_results import Smoothed
from polystick.estimators.stick_names import stick_names
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.inference.gibbs import Gibbs
from polystick.inference.posterior import Posterior
from polystick.models.learned_trees import learn_from_counts, learn_from_tokens
from polystick.models.sequence_filter import prediction_key
from polystick.validation import check_integer, check_level

MOST_STICKS = 50  # for more categories "auto" is a balanced tree
_SMOOTHING_SWEEPS = 30  # of a sequence that the fit has not seen, for each draw of the parameters


class DynamicsEstimator(SequenceEstimator):
    """What the two share; a subclass has `_make_model`, decomposition and `_default`."""

    _default = Gibbs(250, 300, n_chains=4, max_bytes=2**28, min_ess=400, max_draws=1000)
    _kept = ("states",)
    _has_particles = True

    def _decompose(self):
        return decompose(
            self._tree(),
            n_categories=self.n_features_in_,
            weights=self.read_.counts,
            names=[str(name) for name in self.categories_],
        )

    def _tree(self):
        """Return what describes the tree, where it depends on the data the tree itself."""
        spec, sequences = self.decomposition, self.read_.sequences
        if not isinstance(spec, str) or spec not in ("auto", "learned"):
            return spec
        if spec == "auto":
            return "frequency" if self.n_features_in_ <= MOST_STICKS else "balanced"
        if sequences[0].ndim == 1:
            return learn_from_tokens(sequences, self.n_features_in_)
        return learn_from_counts(sequences)

    @property
    def decomposition_(self) -> Decomposition:
        """The binary splits that psi refers to."""
        return self.model_.decomposition

    def _coords(self, model):
        names = [str(name) for name in self.categories_]
        memory = {} if model.memory is None else {"memory": model.memory.names}
        return {"category": names, "stick": stick_names(model.decomposition, names)} | memory

    def _parameter_names(self):
        return tuple(
            name
            for name in self.posterior_.names()
            if name in self.model_.dims and name not in ("states", "regimes")
        )

    def smooth(self, X: Counts | None = None, inputs: ArrayLike | None = None, *,
               lengths: ArrayLike | None = None, level: float = 0.9,
               n_draws: int = STATES) -> Any:  # fmt: skip
        """Return states and probabilities of each step given the whole sequence.

        Parameters
        ----------
        X, inputs, lengths : as in `fit`
            None is the sequences of the fit.
        level : float
            Probability of the central intervals.
        n_draws : int
            Posterior draws to average over.

        Returns
        -------
        list of Smoothed (states, states_sd, probabilities, lower, upper), one for each sequence
        """
        check_level(level)
        check_integer("n_draws", n_draws, at_least=1)
        read = self._read_again(X, inputs, lengths)
        found = self._smoothed_states(read, n_draws, again=X is None)
        edges = np.concatenate([[0], np.cumsum(read.lengths)])
        known = self.model_.known(self._joined_inputs(read))[0]
        parts = zip(
            itertools.starmap(slice, itertools.pairwise(edges)), read.indexes, read.sequences
        )
        return [
            self._smoothed(found, known, here, level, index, sequence)
            for here, index, sequence in parts
        ]

    def probability_draws(self, n_steps: int = 20, n_top: int = 5) -> Posterior:
        """Return draws of probabilities at some steps of the fit as a `Posterior`, to judge a run by.

        States may be turned and stretched, so draws of them need not agree between chains that have
        converged; probabilities must. See the `summary` and `diagnostics` of what is returned.

        Parameters
        ----------
        n_steps : int
            Steps, evenly spaced over those of the fit.
        n_top : int
            The most frequent categories.
        """
        check_is_fitted(self)
        if not isinstance(self.inference_, Gibbs):
            raise ValueError("draws of states need inference=Gibbs(...); mean field has a bound")
        names, read = (*self._parameter_names(), "states"), self.read_
        top = np.argsort(-read.counts, kind="stable")[:n_top]
        steps = np.unique(np.linspace(0, read.lengths.sum() - 1, n_steps).astype(int))
        known = self.model_.known(self._joined_inputs(read))[0][steps]
        memory = self.model_.memory
        recalled = memory and memory.at_steps(self._shards(self.model_, read), steps)

        def of_chain(chain):
            for values in zip(*self.posterior_.together(names, chain)):
                draw = dict(zip(names, values))
                states = draw["states"][steps]
                level = 0.0 if recalled is None else recalled @ draw["memory_weights"]
                yield self.model_.predictor(draw).probabilities(states, known, level)[:, top]

        n_chains = self.posterior_["states"].shape[0]
        pi = np.stack([np.stack(list(of_chain(chain))) for chain in range(n_chains)])
        value = self.posterior_.log_likelihood[:, : pi.shape[1]]
        groups = {
            "posterior": {"probabilities": pi},
            "sample_stats": {"total_log_likelihood": value},
        }
        coords = {"step": steps, "category": [str(name) for name in self.categories_[top]]}
        dims = {"probabilities": ("step", "category")}
        attrs = {**self.posterior_.tree.attrs, "identified": "*"}
        return Posterior.build(groups, dims, coords, attrs)

    def _joined_inputs(self, read):
        if read.inputs is None:
            return np.zeros((int(read.lengths.sum()), 0))
        return np.concatenate(read.inputs)

    def _smoothed_states(self, read, n_draws, again):
        """Return pairs of a predictor and states (S, D) of all steps."""
        if again and isinstance(self.inference_, Gibbs):
            return self._kept_states(n_draws)
        predictors = [self.model_.predictor(draw) for draw in self._draws(n_draws)]
        shards = self._shards(self.model_, read)

        def work(number):
            key = prediction_key(self.seed_, number)
            parts = [predictors[number].smooth(shard, key, _SMOOTHING_SWEEPS) for shard in shards]
            return predictors[number], np.concatenate(parts)

        with execution_for(self.n_jobs) as execution, one_blas_thread():
            return list(execution.map(work, range(len(predictors))))

    def _kept_states(self, n_draws):
        names = (*self._parameter_names(), "states")
        draws = [dict(zip(names, values)) for values in self.posterior_.spread(names, n_draws)]
        draws = self._turned(draws)
        return [(self.model_.predictor(draw), draw["states"]) for draw in draws]

    def _draws(self, n_draws):
        return self._turned(super()._draws(n_draws))

    def _turned(self, draws):
        return draws

    def _smoothed(self, found, known, here, level, index, sequence):
        """Return one sequence's part, the steps that `here` slices."""
        ends = np.array([0, sequence.shape[0]])

        def probabilities(predictor, states):
            return np.concatenate([
                predictor.probabilities(states[here][steps], known[here][steps], level)
                for steps, level in predictor.levels(sequence, ends)
            ])  # fmt: skip

        pi = np.stack([probabilities(*each) for each in found])
        states = np.stack([z[here] for _, z in found])
        mean, lower, upper = interval(pi, level, np.asarray)
        moments = states.mean(axis=0), states.std(axis=0)
        return Smoothed(*moments, mean, lower, upper, self.categories_, index)
