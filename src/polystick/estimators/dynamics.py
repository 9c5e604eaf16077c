"""The face of multinomial linear dynamical systems: states behind sequences."""

import numpy as np

from polystick.conjugate import NormalInverseWishart
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.estimators.dynamics_face import DynamicsEstimator
from polystick.models import gauge
from polystick.models.dynamics import MultinomialDynamics
from polystick.validation import check_integer, check_positive

_PLACES = {None: (), "states": ("states",), "emissions": ("emissions",),
           "both": ("states", "emissions")}  # fmt: skip


class MultinomialLDS(DynamicsEstimator):
    """States that move linearly in time behind sequences of tokens or counts.

    A state of a few dimensions follows a linear-Gaussian chain; the logit of each binary split of the
    categories is a linear function of it. All is learned: the dynamics, the emission and its bias.

    Parameters
    ----------
    n_states : int
        Dimensions of the state.
    inputs_on : None, "states", "emissions" or "both"
        What the inputs given to `fit` act on: they push the states, or psi directly, or both.
    emission_bias : bool
        Whether psi has a constant for each split, about the overall frequencies. Without it, as in the paper,
        states must carry these too.
    emission_scale : float
        Prior standard deviation of the emission's entries.
    bias_scale : float
        Prior standard deviation of the biases, and of what inputs do.
    decomposition : str, array, nested tuples, linkage matrix or Decomposition, default="frequency"
        How K categories become K - 1 binary splits; see `CorrelatedMultinomial`. Sticks by frequency
        fit best; a "balanced" tree is much faster for thousands of categories.
    n_categories : int or None
        None is the largest token + 1, or the number of columns.
    inference : Gibbs, MeanField or None
        None is Gibbs sampling with four chains, until they have 400 effective draws but for 1000 draws
        each at the most. Mean field starts from a few sweeps of Gibbs sampling.
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
        Draws of `dynamics`, `dynamics_cov`, `emission`, `emission_bias` and so on, and of `states`.
        States may be turned without any change of the counts' law, so that these draws do not converge one
        by one: judge a run by `probability_draws`.
    decomposition_ : Decomposition
    sequences_ : list
        As they were read.
    categories_ : array of K names
    n_features_in_ : int
        K.
    model_, seed_, n_iter_

    Examples
    --------
    >>> import numpy as np
    >>> from polystick import Gibbs, MultinomialLDS
    >>> tokens = np.arange(60) // 10 % 3
    >>> model = MultinomialLDS(2, inference=Gibbs(20, 20, n_chains=1), random_state=0).fit(tokens)
    >>> model.forecast(5)[0].mean.shape
    (5, 3)
    """

    _listed = "lds"
    _takes_inputs = True

    def __init__(self, n_states=10, *, inputs_on=None, emission_bias=True, emission_scale=1.0,
                 bias_scale=1.0, decomposition="frequency", n_categories=None, inference=None,
                 random_state=None, n_jobs=None, progress=None, checkpoint=None,
                 checkpoint_every=60.0):  # fmt: skip
        self.n_states = n_states
        self.inputs_on = inputs_on
        self.emission_bias = emission_bias
        self.emission_scale = emission_scale
        self.bias_scale = bias_scale
        self.decomposition = decomposition
        self.n_categories = n_categories
        self.inference = inference
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def _make_model(self):
        check_integer("n_states", self.n_states, at_least=1)
        for name in ("emission_scale", "bias_scale"):
            check_positive(name, getattr(self, name))
        places = self._places()
        decomposition, d, m = self._decompose(), self.n_states, self.n_inputs_
        q, e = m * ("states" in places), m * ("emissions" in places) + bool(self.emission_bias)
        if not e and self.bias_scale != 1.0:
            raise ValueError(
                "bias_scale is of no use without emission_bias and inputs on emissions; got "
                f"{self.bias_scale!r}; leave it out"
            )
        level = np.zeros((decomposition.n_categories - 1, e))
        if self.emission_bias:
            level[:, 0] = decomposition.psi(self.read_.counts + 1.0)
        return MultinomialDynamics(
            decomposition,
            MatrixNormalInverseWishart(np.zeros((d, d + q)), np.eye(d + q), np.eye(d), d + 2.0),
            NormalInverseWishart(np.zeros(d), 1.0, np.eye(d), d + 2.0),
            level,
            np.array([float(self.emission_scale)] * d + [float(self.bias_scale)] * e),
            has_bias=bool(self.emission_bias),
            inputs=places,
        )

    def _places(self):
        """Return what inputs act on."""
        if self.inputs_on not in _PLACES:
            raise ValueError(
                f'inputs_on must be None, "states", "emissions" or "both"; got {self.inputs_on!r}; the '
                "numbers themselves go to fit(X, inputs)"
            )
        places = _PLACES[self.inputs_on]
        if bool(places) != bool(self.n_inputs_):
            raise ValueError(
                f"MultinomialLDS(inputs_on={self.inputs_on!r}) "
                + ("needs inputs in fit(X, inputs)" if places else "has no use for inputs: say "
                   'inputs_on="states", "emissions" or "both" there')
            )  # fmt: skip
        return places

    def _turned(self, draws):
        """Turn the states of all draws like those of the last, for only then they can be averaged."""
        weights = np.sqrt(self._stick_use())
        return [gauge.turn(draw, draws[-1], weights) for draw in draws]

    def _stick_use(self):
        """Return the trials of each stick in the fit."""
        return self.decomposition_.split(self.read_.counts[None]).trials[0]
