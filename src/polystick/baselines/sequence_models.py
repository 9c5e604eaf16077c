"""The faces of the models that multinomial dynamics are compared with."""

from typing import Any

import numpy as np
import scipy.sparse

from polystick.arguments import PathLike, Progress, RandomState
from polystick.baselines import state_paths
from polystick.baselines.hidden_markov import HiddenMarkov
from polystick.baselines.logistic_normal_dynamics import LogisticNormalDynamics
from polystick.baselines.raw_dynamics import RawDynamics
from polystick.baselines.unigram import Unigram
from polystick.conjugate_dynamics import InverseGamma, MatrixNormalInverseWishart
from polystick.estimators.seeds import seed_for
from polystick.estimators.sequence_face import SequenceEstimator
from polystick.inference.gibbs import Gibbs
from polystick.inference.schedules import Schedule
from polystick.validation import check_integer, check_positive


class SequenceBaseline(SequenceEstimator):
    """What those that are drawn by Gibbs sampling share: a subclass says how long, and has `_make_model`."""

    _schedules = (Gibbs,)
    _default = Gibbs(n_draws=500, n_burn=500, n_chains=2, max_bytes=2**28)


class MultinomialHMM(SequenceBaseline):
    """A hidden Markov model of tokens or counts, by Gibbs sampling; predictions of a draw are exact.

    Parameters
    ----------
    n_states : int
    initial_concentration, transition_concentration, emission_concentration : float
        Of each entry of the Dirichlet laws of the first state, of the next state and of the categories.
    n_categories : int or None
        None is the largest token + 1, or the number of columns.
    inference : Gibbs or None
        None is two chains. Chains may find other states; labels agree as far as they can.
    random_state : int, RandomState, Generator or None
        The seed, or what to draw it from; None takes a fresh one. It is kept in `seed_`: the same seed gives
        the same bits on any number of threads.
    n_jobs : int or None
        Threads; None is every core this process may use, and -1 too.
    progress : bool, callable or None
        True shows a bar, None where a person watches: in a terminal or a notebook. A function is called
        with a `Progress` after each sweep.
    checkpoint : path or None
        A folder that the run saves itself to, so that ``fit(X, resume=True)`` can go on after a kill.
    checkpoint_every : float
        Seconds between two saves, about; the end of a run is saved in any case.

    Attributes
    ----------
    posterior_ : Posterior
        Draws of `initial`, `transition` and `emission`, running moments of `occupancy`, the states of the
        fit as indicators.
    sequences_ : list
        As they were read.
    categories_ : array of K names
    n_features_in_ : int
        K.
    model_, seed_, n_iter_

    Examples
    --------
    >>> import numpy as np
    >>> from polystick import Gibbs
    >>> from polystick.baselines.sequence_models import MultinomialHMM
    >>> tokens = np.arange(60) // 10 % 2
    >>> model = MultinomialHMM(2, inference=Gibbs(50, 50, n_chains=1), random_state=0).fit(tokens)
    >>> model.predict_proba(tokens)[0].shape
    (60, 2)
    """

    def __init__(self, n_states: int = 10, *, initial_concentration: float = 1.0,
                 transition_concentration: float = 1.0, emission_concentration: float = 0.1,
                 n_categories: int | None = None, inference: Schedule | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None,
                 progress: Progress | None = None, checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.n_states = n_states
        self.initial_concentration = initial_concentration
        self.transition_concentration = transition_concentration
        self.emission_concentration = emission_concentration
        self.n_categories = n_categories
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def _make_model(self):
        check_integer("n_states", self.n_states, at_least=1)
        names = ("initial_concentration", "transition_concentration", "emission_concentration")
        for name in names:
            check_positive(name, getattr(self, name))
        laws = (float(getattr(self, name)) for name in names)
        return HiddenMarkov(self.n_states, self.n_features_in_, *laws)

    decode = state_paths.decode
    state_probabilities = state_paths.state_probabilities
    smooth = state_paths.smooth


class LogisticNormalLDS(SequenceBaseline):
    """A linear dynamical system behind a softmax, by particle Gibbs with ancestor sampling.

    Predictions are by a bootstrap filter, whose `n_particles` are 500 unless a call says otherwise.

    Parameters
    ----------
    n_states : int
        Dimensions of the state.
    n_particles : int
        Of the sampler.
    emission_scale, bias_scale : float
        Prior standard deviations of the emission's entries, about 0, and of its bias, about the logarithms of
        the overall frequencies (with one more count of each category). bias_scale 0 fixes the bias there.
    n_categories, random_state, n_jobs, progress, checkpoint, checkpoint_every
        As in `MultinomialHMM`.
    inference : Gibbs or None
        None is two chains. They move slowly: look at ``posterior_.summary()``.

    Attributes
    ----------
    posterior_ : Posterior
        Draws of `dynamics`, `dynamics_cov`, `emission` and `emission_bias`; of `n_looks`, the points that
        slice sampling looked at, and `renewed`, the share of states that a sweep changed; running moments of
        `states`.
    sequences_, categories_, n_features_in_, model_, seed_, n_iter_
        As in `MultinomialHMM`.
    """

    _default = Gibbs(n_draws=200, n_burn=200, n_chains=2, max_bytes=2**28)
    _has_particles = True
    _goes_on = False

    def __init__(self, n_states: int = 10, *, n_particles: int = 100, emission_scale: float = 1.0,
                 bias_scale: Any = 1.0, n_categories: int | None = None, inference: Schedule | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None,
                 progress: Progress | None = None, checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.n_states = n_states
        self.n_particles = n_particles
        self.emission_scale = emission_scale
        self.bias_scale = bias_scale
        self.n_categories = n_categories
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def _make_model(self):
        check_integer("n_states", self.n_states, at_least=1)
        check_integer("n_particles", self.n_particles, at_least=2)
        check_positive("emission_scale", self.emission_scale)
        if self.bias_scale != 0:
            check_positive("bias_scale", self.bias_scale)
        counts = self.read_.counts + 1.0
        return LogisticNormalDynamics(
            _dynamics_prior(self.n_states),
            np.log(counts / counts.sum()),
            np.zeros(self.n_states),
            np.eye(self.n_states),
            float(self.emission_scale) ** 2,
            float(self.bias_scale) ** 2,
            self.n_particles,
        )


class RawLDS(SequenceBaseline):
    """A Gaussian linear dynamical system of shares, as if they were any numbers: what one would do by hand.

    The shares of categories at each step (one-hot for tokens), less their mean, are emitted by the state with
    noise of a variance for each category. What a Kalman filter expects of a step, with the mean put back,
    is made probabilities: raised to the floor where it is below, and divided by the sum. That these score
    counts is no likelihood of the model, but the same for all of its kind.

    Parameters
    ----------
    n_states : int
        Dimensions of the state.
    floor : float
        The least probability before division.
    n_categories, inference, random_state, n_jobs, progress, checkpoint, checkpoint_every
        As in `MultinomialHMM`.

    Attributes
    ----------
    posterior_ : Posterior
        Draws of `dynamics`, `dynamics_cov`, `emission` and `noise`, running moments of `states`.
    sequences_, categories_, n_features_in_, model_, seed_, n_iter_
        As in `MultinomialHMM`.
    """

    _has_likelihood = False

    def __init__(self, n_states: int = 10, *, floor: float = 0.0001, n_categories: int | None = None,
                 inference: Schedule | None = None, random_state: RandomState = None,
                 n_jobs: int | None = None, progress: Progress | None = None,
                 checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.n_states = n_states
        self.floor = floor
        self.n_categories = n_categories
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def _make_model(self):
        check_integer("n_states", self.n_states, at_least=1)
        check_positive("floor", self.floor)
        if self.floor >= 1:
            raise ValueError(f"floor must be a probability below 1; got {self.floor}")
        mean, variance = _moments_of_shares(self.read_)
        d = self.n_states
        return RawDynamics(
            _dynamics_prior(d), mean, np.zeros(d), np.eye(d), variance / d,
            InverseGamma(np.full_like(variance, 2.0), variance), float(self.floor),
        )  # fmt: skip


def _dynamics_prior(d):
    """Return the law of dynamics about 0, whose noise is expected to be I."""
    return MatrixNormalInverseWishart(np.zeros((d, d)), np.eye(d), np.eye(d), d + 2.0)


def _moments_of_shares(read):
    """Return means and variances (K,) of the shares of categories over steps that were seen."""
    total, squares, n = np.zeros(len(read.categories)), np.zeros(len(read.categories)), 0
    for sequence, totals in zip(read.sequences, read.totals):
        seen = totals > 0
        if sequence.ndim == 1:
            counts = np.bincount(sequence[seen], minlength=len(total))
            total, squares = total + counts, squares + counts
        else:
            shares = scipy.sparse.diags_array(1.0 / np.maximum(totals, 1)) @ sequence
            total, squares = total + shares.sum(axis=0), squares + (shares * shares).sum(axis=0)
        n += seen.sum()
    mean = total / n
    return mean, np.maximum(squares / n - np.square(mean), 1.0 / n**2)


class SmoothedUnigram(SequenceEstimator):
    """The same probabilities at all steps: the frequencies of the fit, with something added.

    They have a Dirichlet law, over which everything is averaged exactly: a step's counts one step ahead, all
    scored counts of a sequence where ``joint=True``. So `n_draws` of scores changes nothing.

    Parameters
    ----------
    concentration : float
        Of each category: what is added to its count.
    n_categories, random_state
        As in `MultinomialHMM`; the seed is that of forecasts and simulations.

    Attributes
    ----------
    counts_ : array (K,)
        What was counted in the fit.
    probabilities_ : array (K,)
    sequences_, categories_, n_features_in_, model_, seed_
        As in `MultinomialHMM`.
    """

    n_jobs: int | None = 1

    def __init__(self, concentration: Any = 0.1, *, n_categories: int | None = None,
                 random_state: RandomState = None) -> None:  # fmt: skip
        self.concentration = concentration
        self.n_categories = n_categories
        self.random_state = random_state

    def _learn(self, resume):
        self._refuse_resume(resume)
        check_positive("concentration", self.concentration)
        self.seed_, self.counts_ = seed_for(self, resume), self.read_.counts
        self.model_ = Unigram(self.counts_ + float(self.concentration))
        self.probabilities_ = self.model_.expected

    def _draws(self, n_draws):
        """Return the one that there is: no parameters."""
        return [{}]

    def _log_probabilities(self, read, n_seen, joint, n_draws, n_particles):
        if not joint:
            return super()._log_probabilities(read, n_seen, joint, n_draws, n_particles)
        held_out = [sequence[seen:] for sequence, seen in zip(read.sequences, n_seen)]
        counts = np.stack([read._replace(sequences=[each]).counts for each in held_out])
        rows, categories = np.nonzero(counts)
        cells = rows, categories, counts[rows, categories]
        return self.model_.log_evidence(*cells, len(counts))
