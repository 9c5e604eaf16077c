"""The face of multinomial linear dynamical systems: states behind sequences."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polystick.arguments import PathLike, Progress, RandomState
from polystick.conjugate import NormalInverseWishart
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.estimators.dynamics_face import DynamicsEstimator
from polystick.inference.gibbs import Gibbs
from polystick.inference.schedules import Schedule
from polystick.models import gauge
from polystick.models.dynamics import MultinomialDynamics
from polystick.models.frequencies import N_STRETCHES, smoothed
from polystick.models.memory import Memory
from polystick.models.switching import SwitchingDynamics
from polystick.validation import check_integer, check_positive

_PLACES = {None: (), "states": ("states",), "emissions": ("emissions",),
           "both": ("states", "emissions")}  # fmt: skip
_MEMORIES = {  # half-lives of caches, and how many tokens back contexts reach
    "cache": ((50.0, 200.0, 800.0), 0),
    "context": ((), 2),
    "both": ((50.0, 200.0, 800.0), 2),
}
REMEMBERED_FROM = 500  # tokens: "auto" has a memory of sequences as long as that, on average
FIXED_BIAS_SCALE = 0.3  # under mean field


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
    bias_scale : "learned" or float
        Prior standard deviation of the biases, about the logits of smoothed frequencies (counts less a
        discount, which goes to all categories alike, such that each tenth of the steps is foretold by the
        others: empirical Bayes). It is learned, or fixed; mean field has 0.3 in the place of "learned".
    input_scale : float
        Prior standard deviation of what inputs do.
    memory : "auto", "cache", "context", "both" or None
        What a token depends on besides the state, of those before it in its sequence: a fading count of all
        ("cache"), what followed the last one and the last two ("context"), or both. Their weights, and how
        fast the cache fades, are learned. "auto" is both for Gibbs sampling of tokens in sequences of 500
        or more on average, and else None; rows of counts have no memory.
    n_regimes : int
        How many laws of motion there are. With more than one, regimes follow each other in a Markov chain
        that stays about fifty steps a priori, and each has dynamics and noise of its own, behind one
        emission. By Gibbs sampling; predictions are by particles of regimes and states, in Python, so they
        take longer.
    decomposition : str, array, nested tuples, linkage matrix or Decomposition, default="auto"
        How K categories become K - 1 binary splits; see `CorrelatedMultinomial`. "auto" is sticks by
        frequency for up to 50 categories and a balanced tree for more. In a "learned" tree categories are
        near each other that are seen near each other, or whose counts rise and fall together.
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
    regimes_ : list of arrays (steps, n_regimes)
        The probabilities of regimes at each step of the fit, the calmest first: the one of least movement of
        psi in a step. Look at `posterior_` where chains disagree.
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

    def __init__(self, n_states: int = 10, *, inputs_on: str | None = None, emission_bias: bool = True,
                 emission_scale: float = 1.0, bias_scale: Any = "learned", input_scale: float = 1.0,
                 memory: str = "auto", n_regimes: int = 1, decomposition: Any = "auto",
                 n_categories: int | None = None, inference: Schedule | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None,
                 progress: Progress | None = None, checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.n_states = n_states
        self.inputs_on = inputs_on
        self.emission_bias = emission_bias
        self.emission_scale = emission_scale
        self.bias_scale = bias_scale
        self.input_scale = input_scale
        self.memory = memory
        self.n_regimes = n_regimes
        self.decomposition = decomposition
        self.n_categories = n_categories
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def _make_model(self):
        check_integer("n_states", self.n_states, at_least=1)
        check_integer("n_regimes", self.n_regimes, at_least=1)
        for name in ("emission_scale", "input_scale"):
            check_positive(name, getattr(self, name))
        places = self._places()
        decomposition, d, m = self._decompose(), self.n_states, self.n_inputs_
        q, e = m * ("states" in places), m * ("emissions" in places)
        frequencies = smoothed(self.read_.stretches(N_STRETCHES))
        level = np.zeros((decomposition.n_categories - 1, bool(self.emission_bias) + e))
        if self.emission_bias:
            level[:, 0] = decomposition.psi(frequencies)
        if not e and self.input_scale != 1.0:
            raise ValueError(
                f"input_scale is of no use without inputs of emissions; got {self.input_scale!r}; leave "
                "it out"
            )
        scales = (
            [float(self.emission_scale)] * d + self._bias_scales() + [float(self.input_scale)] * e
        )
        base = MultinomialDynamics(
            decomposition,
            MatrixNormalInverseWishart(np.zeros((d, d + q)), np.eye(d + q), np.eye(d), d + 2.0),
            NormalInverseWishart(np.zeros(d), 1.0, np.eye(d), d + 2.0),
            level,
            np.array(scales),
            has_bias=bool(self.emission_bias),
            inputs=places,
            memory=self._make_memory(decomposition, frequencies),
            learns_bias_scale=self._learns_bias_scale(),
        )
        return base if self.n_regimes == 1 else self._switching(base)

    def _switching(self, base):
        """Return the model of several regimes."""
        if not isinstance(self._schedule(), Gibbs):
            raise ValueError(
                "regimes need inference=Gibbs(...); with mean field leave n_regimes out"
            )
        return SwitchingDynamics(base, self.n_regimes)

    @property
    def regimes_(self) -> Any:
        """The probabilities of regimes at each step of the fit, a list of (steps, n_regimes)."""
        check_is_fitted(self)
        if self.n_regimes == 1:
            return [np.ones((length, 1)) for length in self.read_.lengths]
        mean = self.posterior_.running("regimes")[0]
        return np.split(mean, np.cumsum(self.read_.lengths)[:-1])

    def _learns_bias_scale(self):
        is_learned = isinstance(self.bias_scale, str) and self.bias_scale == "learned"
        return is_learned and bool(self.emission_bias) and isinstance(self._schedule(), Gibbs)

    def _bias_scales(self):
        """Return the scale of the bias, or none where there is no bias."""
        if isinstance(self.bias_scale, str) and self.bias_scale == "learned":
            scale = 1.0 if isinstance(self._schedule(), Gibbs) else FIXED_BIAS_SCALE
            return [scale] if self.emission_bias else []
        check_positive("bias_scale", self.bias_scale)
        if not self.emission_bias:
            raise ValueError(
                f"bias_scale is of no use without emission_bias; got {self.bias_scale!r}; leave it out"
            )
        return [float(self.bias_scale)]

    def _make_memory(self, decomposition, frequencies):
        """Return what the option asks for, or None."""
        if self.memory not in ("auto", None, *_MEMORIES):
            raise ValueError(
                f'memory must be "auto", "cache", "context", "both" or None; got {self.memory!r}'
            )
        read, fits = self.read_, isinstance(self._schedule(), Gibbs)
        has_tokens = all(total.max(initial=0) <= 1 for total in read.totals)
        kind: str | None = self.memory
        if kind == "auto":
            long = read.lengths.mean() >= REMEMBERED_FROM
            kind = "both" if has_tokens and fits and long else None
        if kind is None:
            return None
        if not has_tokens:
            raise ValueError(
                "a memory is of tokens; got rows of counts with more than one; leave memory out"
            )
        if not fits:
            raise ValueError(
                "a memory needs inference=Gibbs(...); with mean field leave memory out"
            )
        return Memory(decomposition, frequencies, *_MEMORIES[kind])

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
