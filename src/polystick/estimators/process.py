"""The face of multinomial Gaussian processes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from polystick import scores
from polystick.arguments import Counts, PathLike, Progress, RandomState
from polystick.covariances.families import check_start, choose_family
from polystick.decomposition import decompose
from polystick.estimators import process_replicates
from polystick.estimators.inputs import counts_of, merge_inputs
from polystick.estimators.process_default import default_correlation, default_kernel
from polystick.estimators.process_face import (
    TOLERANCE,
    ProcessEstimator,
    check_kernel,
    given_level,
    refuse_tolerance,
)
from polystick.estimators.seeds import seed_of
from polystick.estimators.stick_names import stick_names
from polystick.estimators.tables import as_asked
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.inference.gibbs import Gibbs
from polystick.inference.schedules import Schedule
from polystick.models import predictive
from polystick.models.process import ProcessCounts
from polystick.validation import check_integer, check_positive

_STATE = ("white", "mean", "scale")  # of each stick, besides theta
_FACTOR = ("linear", "weights", "mean", "scale")
_LEARNED = {"kernel": "kernel", "mean": "level", "scale": "scale"}  # what the model calls them
_NUMBERS_AT_ONCE = 2**22  # held by each thread, several times: new inputs come in blocks
_STATES = 16  # posterior states that new inputs meet
UNTIL_DONE = Gibbs(250, 250, n_chains=4, max_bytes=2**28, min_ess=400, max_draws=1000)


class MultinomialGP(ProcessEstimator):
    """Counts over categories whose probabilities are smooth functions of inputs, such as time and place.

    The logit of each binary split of the categories is a Gaussian process over the inputs; all share one
    kernel. Inputs close to each other have similar probabilities, and what was counted at some inputs tells
    of others.

    Parameters
    ----------
    kernel : scikit-learn kernel or None
        The covariance over inputs. `OnColumns` and `Separable` of `polystick.covariances` give kernels of
        some columns, and products of such. None: a constant times a Matern kernel of smoothness 3/2, plus
        noise of each input's own (`OwnNoise`). Length scales start at the standard deviations of the
        columns; columns whose standard deviations are within a factor of 4 pass for columns in one unit, and
        their length scales start, and are believed to move, together.
    mean : "empirical", "zero" or array of shape (K - 1,)
        What psi is far from all data: the overall frequencies (with one more count of each category),
        one half for each split, or given for each split of the decomposition.
    learn : tuple with any of "kernel", "mean" and "scale"
        What is learned beside the functions: the free hyperparameters of the kernel, whose prior is
        log-normal about those given, within their bounds; a mean of each split, about `mean` with standard
        deviation 1; a factor of each split, about 1 with 0.5.
    prior_sd : float
        Standard deviation of the logarithms of the kernel's hyperparameters in their prior, where they are
        learned.
    decomposition : str, array, nested tuples, linkage matrix or Decomposition, default="frequency"
        How K categories become K - 1 binary splits; see `CorrelatedMultinomial`.
    solver : "auto", "dense", "separable", "unstructured" or "markov"
        How Gaussians are solved: exact matrices, a grid of a product kernel, the eigenbasis of any kernel,
        or a state space over time. "auto" chooses by kernel and inputs; `solver_` says which. Mean field with
        "separable" takes variances whose weights are a product over the factors: poor where single cells of
        the grid have a thousand times the counts of others.
    tolerance : float
        Relative residual of solvers that iterate; of no use to "dense" and "markov", which refuse another.
    inference : Gibbs, MeanField or None
        The schedule with its settings; None is Gibbs sampling with four chains, until they have 400 effective
        draws but for 1000 draws each at the most. Gibbs needs whole counts, mean field takes any non-negative
        weights.
    random_state : int, RandomState, Generator or None
        The seed, or what to draw it from; None takes a fresh one. It is kept in `seed_`: the same seed gives
        the same bits on any number of threads.
    n_jobs : int or None
        Threads; None is every core this process may use, and -1 too.
    progress : bool, callable or None
        True shows a bar, None where a person watches: in a terminal or a notebook. A function is called
        with a `Progress` after each sweep.
    checkpoint : path or None
        A folder that the run saves itself to, so that ``fit(Z, X, resume=True)`` can go on after a kill.
    checkpoint_every : float
        Seconds between two saves, about; the end of a run is saved in any case.

    Attributes
    ----------
    kernel_ : kernel
        The kernel at the posterior mean of its (logarithmic) hyperparameters.
    posterior_ : Posterior
        Draws of `theta` and of the functions, running moments of `psi` at `inputs_`.
    decomposition_ : Decomposition
        The binary splits that psi refers to.
    categories_ : array of K names
    inputs_ : array (M, d)
        The inputs of the fit, each once, in lexicographic order.
    counts_ : array (M, K)
        What was counted at each.
    solver_ : str
    seed_ : int
    n_iter_ : int
        Sweeps made.

    Examples
    --------
    >>> import numpy as np
    >>> from polystick import MeanField, MultinomialGP
    >>> years = np.arange(1990, 2010).reshape(-1, 1)
    >>> counts = np.random.default_rng(0).multinomial(30, [0.5, 0.3, 0.2], size=20)
    >>> model = MultinomialGP(inference=MeanField(), random_state=0).fit(years, counts)
    >>> model.predict_proba([[2010], [2011]]).shape
    (2, 3)
    """

    _listed = "gp"
    _default = UNTIL_DONE
    _kept = _STATE

    def __init__(self, kernel: Kernel | None = None, *, mean: Any = "empirical", learn: Any = ("kernel",),
                 prior_sd: float = 1.0, decomposition: Any = "frequency", solver: str = "auto",
                 tolerance: float = TOLERANCE, inference: Schedule | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None,
                 progress: Progress | None = None, checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.kernel = kernel
        self.mean = mean
        self.learn = learn
        self.prior_sd = prior_sd
        self.decomposition = decomposition
        self.solver = solver
        self.tolerance = tolerance
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def _learn(self, resume):
        fit, model = self._begin(resume), self._make_model()
        self._run(fit, model, model.shards(self.counts_), self._coords(model))
        self.decomposition_, self.solver_ = model.decomposition, model.family.solver_name
        theta = self.posterior_.flat("theta").mean(axis=0)
        self.kernel_ = model.family.kernel.clone_with_theta(theta)

    # new inputs

    def predict_proba(self, Z: ArrayLike, *, return_std: bool = False, return_draws: bool = False,
                      n_draws: int = _STATES, collapsed: bool = True) -> Any:  # fmt: skip
        """Return the posterior mean (n, K) of the probabilities at inputs.

        Parameters
        ----------
        Z : array-like of shape (n, d)
        return_std : bool
            Also return posterior standard deviations (n, K).
        return_draws : bool
            Also return draws (n_draws, n, K). Given a posterior state, different inputs are drawn
            independently of each other.
        n_draws : int
            Posterior states to average over; each is integrated exactly.
        collapsed : bool
            Whether to integrate out the values at the inputs of the fit, given omega (paper, appendix B).
            Else they are taken as drawn, which is right too, but varies more from state to state.
        """
        inputs, index = merge_inputs(self._check_inputs(Z))
        states = self._states(n_draws, collapsed)
        shape = (len(inputs), len(self.categories_))
        mean, squares = np.zeros(shape), np.zeros(shape)
        draws = np.empty((n_draws if return_draws else 0, *shape))

        def work(latent, rows, number):
            ids = np.arange(rows.start, rows.stop, dtype=np.uint64)
            drawn = {i: self._draw(latent, ids, i) for i in range(number, len(draws), len(states))}
            if return_std:
                return *predictive.expected_moments(self.decomposition_, latent), drawn
            return predictive.expected_probabilities(self.decomposition_, latent), 0.0, drawn

        for rows, (expected, squared, drawn) in self._map_states(states, inputs, collapsed, work):
            mean[rows] += expected / len(states)
            squares[rows] += squared / len(states)
            for i, pi in drawn.items():
                draws[i, rows] = pi
        found = [mean, np.sqrt(np.maximum(squares - mean**2, 0.0))] if return_std else [mean]
        found = [values[index] for values in found]
        return as_asked(self, found, Z, draws[:, index] if return_draws else None)

    predict_counts = process_replicates.predict_counts
    to_arviz = process_replicates.to_arviz

    def score_samples(self, Z: ArrayLike, X: Counts | None = None, *, y: ArrayLike | None = None,
                      coefficient: bool = False, n_draws: int = _STATES,
                      collapsed: bool = True) -> np.ndarray:  # fmt: skip
        """Return the log probability (n,) of each row's counts, by itself, under the posterior.

        Parameters
        ----------
        Z : array-like of shape (n, d)
        X, y : array-like or CSR of shape (n, K)
            The counts, as one of the two.
        coefficient : bool
            Whether to count the multinomial coefficient in.
        n_draws, collapsed : as in `predict_proba`
        """
        inputs, counts = self._check_table(Z, counts_of(X, y))
        inputs, index = merge_inputs(inputs)
        states = self._states(n_draws, collapsed)

        def work(latent, rows, number):
            mine = np.flatnonzero((index >= rows.start) & (index < rows.stop))
            each = (part[:, index[mine] - rows.start] for part in latent)
            return mine, predictive.log_evidence(self.decomposition_, each, counts[mine])

        values = np.full(len(counts), -np.inf)
        for _, (mine, found) in self._map_states(states, inputs, collapsed, work):
            values[mine] = np.logaddexp(values[mine], found - np.log(len(states)))
        return values + scores.log_coefficients(counts) if coefficient else values

    def score(self, Z: ArrayLike, X: Counts | None = None, *, y: Any = None, coefficient: bool = False,
              n_draws: int = _STATES, collapsed: bool = True) -> float:  # fmt: skip
        """Return the log probability per count, in nats, as in `score_samples`; bigger is better."""
        options: dict[str, Any] = {"n_draws": n_draws, "collapsed": collapsed}
        values = self.score_samples(Z, X, y=y, coefficient=coefficient, **options)
        return scores.per_count(values, self._check_table(Z, counts_of(X, y))[1])

    def sample_prior(
        self, Z: ArrayLike, n_draws: int = 1, *, random_state: RandomState = None
    ) -> Any:
        """Return draws (n_draws, n, K) of the probabilities at inputs, as if nothing had been counted.

        Hyperparameters that are learned have draws of their own. The same at each call, unless random_state
        is given; it is the seed of the fit by default.
        """
        inputs, index = merge_inputs(self._check_inputs(Z))
        check_integer("n_draws", n_draws, at_least=1)
        seed = seed_of(self, random_state)
        with execution_for(self.n_jobs) as execution, one_blas_thread():
            drawn = execution.map(
                lambda i: predictive.draw_prior(self.model_, inputs, seed, i), range(n_draws)
            )
            return np.stack(list(drawn))[:, index]

    def _map_states(self, states, inputs, collapsed, work):
        """Yield (rows, work(latent, rows, number of the state)) for all states and blocks of inputs.

        States are mapped over threads, for one block of inputs (slice of rows) after another.
        """
        shards = self.model_.shards(self.counts_) if collapsed else None
        widest = max(self.counts_.shape[1], self.model_.family.n_crossed)
        size = max(1, _NUMBERS_AT_ONCE // widest)
        with execution_for(self.n_jobs) as execution, one_blas_thread():
            for start in range(0, len(inputs), size):
                rows = slice(start, min(start + size, len(inputs)))

                def at_state(number, rows=rows):
                    place = (inputs[rows], shards, self.seed_, number)
                    latent = predictive.latent_at(self.model_, states[number], *place)
                    return rows, work(latent, rows, number)

                yield from execution.map(at_state, range(len(states)))

    def _states(self, n_draws, collapsed):
        """Return posterior states: draws of Gibbs sampling, or the one factor of mean field."""
        check_integer("n_draws", n_draws, at_least=1)
        if isinstance(self.inference_, Gibbs):
            names = ("theta", *_STATE)
            return [dict(zip(names, state)) for state in self.posterior_.spread(names, n_draws)]
        if not collapsed:
            raise ValueError(
                "collapsed=False needs draws of the functions: inference=Gibbs(...); mean field has none"
            )
        factor = {name: self.posterior_.running(name)[0] for name in _FACTOR}
        return [{"theta": self.posterior_.flat("theta")[0], **factor}]

    def _draw(self, latent, ids, number):
        return predictive.draw_probabilities(self.decomposition_, latent, ids, self.seed_, number)

    # what came in

    def _needs_whole_counts(self):
        return self._schedule().needs_whole_counts

    def _make_model(self):
        check_positive("prior_sd", self.prior_sd)
        refuse_tolerance(self)
        learn = _check_learn(self.learn)
        if "kernel" not in learn and self.prior_sd != 1.0:
            raise ValueError(
                "prior_sd is of no use where the kernel is not learned; got "
                f'{self.prior_sd!r}; leave it out, or learn=("kernel",)'
            )
        decomposition = decompose(
            self.decomposition,
            n_categories=self.counts_.shape[1],
            weights=self.counts_.sum(axis=0),
            names=getattr(self._categories, "feature_names_in_", None),
        )
        given = self.kernel is not None
        kernel = check_kernel(self.kernel) if given else default_kernel(self.inputs_)
        correlation = None if given else default_correlation(self.inputs_)
        family = choose_family(kernel, self.inputs_, solver=self.solver, tolerance=self.tolerance)
        if "kernel" in learn:
            check_start(family)
        level = _level(self.mean, decomposition, self.counts_.sum(axis=0))
        return ProcessCounts(
            family,
            decomposition,
            level,
            learn,
            float(self.prior_sd),
            prior_correlation=correlation,
        )

    def _coords(self, model):
        names = [str(name) for name in self.categories_]
        sticks = stick_names(model.decomposition, names)
        inputs = {} if self._input_names is None else {"input": self._input_names}
        parameters = list(model.family.names)
        return {"category": names, "stick": sticks, "kernel_parameter": parameters} | inputs


def _check_learn(learn):
    if not isinstance(learn, tuple | list | set | frozenset) or not set(learn) <= set(_LEARNED):
        raise ValueError(
            'learn must be a tuple with any of "kernel", "mean" and "scale", as ("kernel",); got '
            f"{learn!r}"
        )
    return tuple(sorted(_LEARNED[word] for word in learn))


def _level(mean, decomposition, weights):
    if isinstance(mean, str) and mean == "empirical":
        return decomposition.psi(weights + 1.0)
    n = decomposition.n_categories
    return given_level(mean, n - 1, f"split of the {n} categories")
