"""The face of regressions of counts."""

from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from polystick import scores
from polystick.arguments import Counts, PathLike, Progress, RandomState
from polystick.design import as_frame
from polystick.estimators import covariates as rows_of_both
from polystick.estimators import regression_parts as parts
from polystick.estimators.arviz_groups import Asked, Groups, assembled, need_fit
from polystick.estimators.effects import Effects
from polystick.estimators.face import Face
from polystick.estimators.groupings import grouping
from polystick.estimators.row_names import named
from polystick.estimators.seeds import seed_of
from polystick.estimators.stick_names import stick_names
from polystick.estimators.tables import as_asked
from polystick.inference.execution import execution_for, one_blas_thread
from polystick.inference.gibbs import Gibbs
from polystick.inference.mean_field import MeanField
from polystick.inference.schedules import Schedule
from polystick.models.regression_prediction import average_shares, log_evidence, spread_of_shares
from polystick.validation import all_or_nothing, check_integer, check_level

_DRAWS = 400  # posterior draws that predictions are averaged over
_FOR_TABLES = 200  # posterior draws that tables are made from, each of all rows
_ROWS_AT_ONCE = 256


class MultinomialRegression(Face):
    """Counts over categories, or single labels, explained by covariates and groups.

    Effects are told as changes in probabilities of categories, averaged over the rows, and never as
    coefficients of sticks. What covariates and groups leave unexplained of rows of counts is a Gaussian of
    its own, so that intervals are honest where counts vary more than a multinomial does (overdispersion).

    Parameters
    ----------
    formula : str or None
        The right side of a formula, such as ``"cr(year, df=5) + party"`` (needs polystick[formula]). None:
        all columns of the covariates that are no groups, as they are, and an intercept.
    groups : column, list of columns, or None
        Groups whose effects are drawn from a common law with a learned covariance: "state"; crossed,
        ["state", "year"]; nested, "state/county".
    overdispersion : "auto", "full", "diagonal" or None
        Whether rows vary beyond covariates and groups, with or without correlations. "auto" is "full" for
        rows of several counts and None for single labels, which cannot tell.
    link : "stick" or "softmax"
        How lines become probabilities. "stick": by binary splits, whose order matters to the law.
        "softmax": in no order, as other software has it; slower.
    decomposition : str, array, nested tuples, linkage matrix, Decomposition or None
        How K categories become K - 1 binary splits, as in `CorrelatedMultinomial`; None is "frequency".
    prior_scale : float or dict
        Prior standard deviation of the intercept and of coefficients, from the low to the high end of a
        covariate (its two values, or two standard deviations), in log odds. A dict says it for some terms;
        others have 2.5.
    group_scale : float
        Scale of the half-t laws (2 degrees) of standard deviations of groups and of overdispersion.
    inference : Gibbs, MeanField or None
        The schedule with its settings; None is ``Gibbs(min_ess=200, max_draws=4000)``, which goes on from
        1000 draws where chains do not agree yet. Mean field, for sticks alone, is a quick look.
    random_state : int, RandomState, Generator or None
        The seed, or what to draw it from. The same seed gives the same bits on any number of threads.
    n_jobs : int or None
        Threads; None is every core this process may use, and -1 too.
    progress : bool, callable or None
        True shows a bar, None where a person watches. A function is called after each sweep.
    checkpoint : path or None
        A folder that the run saves itself to, so that ``fit(X, y, resume=True)`` can go on after a kill.
    checkpoint_every : float
        Seconds between two saves, about; the end of a run is saved in any case.

    Attributes
    ----------
    posterior_ : Posterior
        Draws of `coefficients`, `group_effects`, `group_cov` and `noise_cov`, diagnostics, `save`.
    design_ : Design
        How covariates become columns.
    categories_ : array of K names
    overdispersion_ : "full", "diagonal" or None
    decomposition_ : Decomposition or None
    seed_ : int
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from polystick import Gibbs, MultinomialRegression
    >>> frame = pd.DataFrame({"dose": [0.0, 1.0, 2.0, 3.0]})
    >>> counts = np.array([[20, 5, 1], [18, 8, 3], [9, 10, 12], [2, 8, 15]])
    >>> short = Gibbs(n_draws=100, n_burn=50, n_chains=1, min_ess=1, max_draws=100)
    >>> model = MultinomialRegression(inference=short, random_state=0).fit(frame, counts)
    >>> model.effects("dose").shape
    (3, 4)
    """

    _explored_as = "regressions"
    _schedules: ClassVar[tuple[type, ...]] = (Gibbs, MeanField)
    _model_of = staticmethod(parts.build)
    _listed = "regression"
    _default = Gibbs(min_ess=200, max_draws=4000)

    def __init__(self, formula: str | None = None, *, groups: Any = None, overdispersion: Any = "auto",
                 link: str = "stick", decomposition: Any = None, prior_scale: Any = 2.5,
                 group_scale: float = 1.0, inference: Schedule | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None,
                 progress: Progress | None = None, checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.formula = formula
        self.groups = groups
        self.overdispersion = overdispersion
        self.link = link
        self.decomposition = decomposition
        self.prior_scale = prior_scale
        self.group_scale = group_scale
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def fit(self, X: Any, y: Counts, *, resume: bool = False) -> Self:
        """Learn from covariates and what was counted with them.

        Parameters
        ----------
        X : DataFrame, or array-like of shape (n, d) without formula and groups
            Covariates. They are kept, for effects are averages over these rows.
        y : array-like of shape (n, K) or (n,)
            Counts, or a single label for each row.
        resume : bool
            Go on with the run in the checkpoint folder, if there is one.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            return self._fit(X, y, resume)

    def _fit(self, X, y, resume):
        fit = self._begin(resume)
        parts.check_schedule(fit.inference, getattr(self, "link", None))
        rows_of_both.check_rows(X, y, "y")
        counts, self.categories_ = parts.read_counts(y)
        if parts.as_labels(y) is not None:
            self.classes_ = self.categories_
        self._grouping = grouping(self.groups, X)
        self.design_, x, _ = rows_of_both.read(self._covariates(X), self.formula, y, "y")
        self._frame = as_frame(X).reset_index(drop=True)
        places = self._grouping.places(X)
        model = self._model_of(self, self.design_, self._grouping, counts)
        parts.tell_of_lonely_groups(self._grouping, places, model.prior.overdispersion)
        self._run(
            fit, model, model.shards(counts, x, places), self._coords(model) | named("row", X)
        )
        parts.tell_of_separation(self.posterior_)
        self.overdispersion_ = model.prior.overdispersion
        self.decomposition_ = getattr(model, "decomposition", None)
        self._seen = counts
        return self

    @property
    def frame_(self) -> Any:
        """The covariates of the fit, over whose rows effects are averages."""
        return self._frame

    @property
    def group_names_(self) -> Any:
        """The factors of groups, as `group_effects` calls them."""
        return list(self._grouping.names)

    # predictions

    def predict_proba(self, X: Counts, groups: Any = "known", *, return_std: bool = False,
                      return_draws: bool = False, n_draws: int = _DRAWS) -> Any:  # fmt: skip
        """Return probabilities (n, K) of rows, averaged over overdispersion and the posterior.

        Parameters
        ----------
        X : DataFrame or array-like
            Covariates, and groups where they are known.
        groups : "known", "new" or "none"
            "known": rows are in groups of the fit. "new": in others of their kind, over which is averaged.
            "none": in a typical one, whose effect is 0.
        return_std : bool
            Also return posterior standard deviations (n, K).
        return_draws : bool
            Also return draws (draws, n, K).
        n_draws : int
            Posterior draws to average over.
        """
        drawn = self._draws(X, groups, n_draws)
        found = [drawn.mean(axis=0)] + ([drawn.std(axis=0)] if return_std else [])
        return as_asked(self, found, X, drawn if return_draws else None)

    def predict(self, X: Counts, groups: Any = "known") -> Any:
        """Return the likeliest category of each row (n,)."""
        return self.categories_[np.asarray(self.predict_proba(X, groups)).argmax(axis=1)]

    def sample_prior(self, X: Counts, n_draws: int = 1, *, random_state: RandomState = None) -> Any:
        """Return draws (n_draws, n, K) of probabilities of rows, as if nothing had been counted.

        Each draw has coefficients, groups and overdispersion of its own from the prior.
        """
        check_is_fitted(self)
        check_integer("n_draws", n_draws, at_least=1)
        x, places = self._rows(X, "known")
        seed, prior = seed_of(self, random_state), self.model_.prior
        drawn = []
        for i in range(n_draws):
            rng = np.random.default_rng([seed, i])
            parameters = prior.draw(rng)
            psi = prior.line(parameters, prior.data(x, self._own(places)))
            cov = prior.noise_cov(parameters)
            if cov is not None:
                psi = psi + rng.standard_normal(psi.shape) @ np.linalg.cholesky(cov).T
            drawn.append(self.model_.probabilities(psi))
        return np.stack(drawn)

    def score_samples(self, X: Counts, y: ArrayLike, groups: Any = "known", *, coefficient: bool = False,
                      n_draws: int = _DRAWS) -> np.ndarray:  # fmt: skip
        """Return the log probability of each row's counts under the posterior predictive law.

        Overdispersion is integrated out row by row (importance sampling about Laplace's approximation), and
        parameters are averaged over posterior draws.

        Parameters
        ----------
        X, y : as in fit
        groups : as in `predict_proba`
        coefficient : bool
            Whether to count the multinomial coefficient in.
        n_draws : int
            Posterior draws to average over.
        """
        x, places, counts = self._with_counts(X, y, groups)
        kind = parts.check_kind(groups, bool(self._grouping.names))
        values = scores.log_mean_exp(self._evidence(x, places, counts, kind, n_draws), axis=0)
        return values + scores.log_coefficients(counts) if coefficient else values

    def score(self, X: Any, y: Counts, groups: Any = "known", *, coefficient: bool = False,
              n_draws: int = _DRAWS) -> float:  # fmt: skip
        """Return the held-out log likelihood per count, in nats; bigger is better."""
        values = self.score_samples(X, y, groups, coefficient=coefficient, n_draws=n_draws)
        return scores.per_count(values, parts.read_counts(y, self.categories_)[0])

    def to_arviz(self, X: Counts | None = None, y: ArrayLike | None = None, *, log_likelihood: bool = False,
                 n_draws: int | None = None) -> Any:  # fmt: skip
        """Return the posterior as what the installed ArviZ works on.

        Parameters
        ----------
        X, y : the rows of the fit, or None, for they are kept
        log_likelihood : bool
            Log probability of each row's counts given the parameters of each draw, with overdispersion
            integrated out: for ``az.loo`` and ``az.compare``.
        n_draws : int or None
            Draws of all chains together, at most; None is all, or 1000 with log_likelihood.
        """
        check_is_fitted(self)
        asked = Asked.of(self, log_likelihood, False, False, n_draws, None)
        names = tuple(n for n in parts.State._fields if n in self.posterior_.names())
        if X is None and log_likelihood:
            X, y = self._frame, self._seen
        if X is None:
            return assembled(
                self.posterior_,
                Groups(names, 1000, None, "row", {}, None, "row", None, None),
                asked,
            )
        x, places, counts = self._with_counts(X, y, "known")
        need_fit(np.array_equal(counts, self._seen), "the rows")
        coords = {"row": np.arange(len(counts)), "category": [str(c) for c in self.categories_]}

        def log_likelihoods(states):
            drawn = list(map(parts.as_state, states))
            return self._over(drawn, x, places, counts, "known") + scores.log_coefficients(counts)

        groups = Groups(names, 1000, counts, "row", coords, log_likelihoods, "row", None, None)
        return assembled(self.posterior_, groups, asked)

    # what covariates do

    def effects(self, column: str, change: Any = None, *, level: float = 0.9, groups: Any = "known",
                n_draws: int = _FOR_TABLES) -> pd.DataFrame:  # fmt: skip
        """Return how probabilities change with a covariate, on average over the rows of the fit.

        Parameters
        ----------
        column : name of a covariate
        change : number, pair of values, "slope" or None
            What is added to the column; or from the first value to the second; or per unit. None: from the
            lower to the higher of two values, from the first level of a factor to each other one, and else 1.
        level : float
            Probability of the central intervals.
        groups : "known", "new" or "none"
            Whose rows; see `predict_proba`.
        n_draws : int
            Posterior draws to use.

        Returns
        -------
        DataFrame : estimate, lower, upper and p_positive, the probability that the change is one up.
        """
        return self._effects(groups, n_draws).effects(column, change, level)

    def contrasts(self, levels: Any, by: str | None = None, *, level: float = 0.9, groups: Any = "known",
                  n_draws: int = _FOR_TABLES) -> pd.DataFrame:  # fmt: skip
        """Return what goes with a change from one level to another, for the rows of each of others.

        Parameters
        ----------
        levels : dict
            ``{"party": ("D", "R")}``; of two columns, their interaction: by how much the second change moves
            what the first does.
        by : column or None
            There is one average for each of its values.
        level, groups, n_draws : as in `effects`
        """
        return self._effects(groups, n_draws).contrasts(levels, by, level)

    def effect_curves(self, column: str, at: Any = None, *, level: float = 0.9, groups: Any = "known",
                      n_draws: int = _FOR_TABLES) -> pd.DataFrame:  # fmt: skip
        """Return average probabilities along a covariate: rows (value, category); estimate, lower, upper.

        `plots.effect_curves` draws them.
        """
        return self._effects(groups, n_draws).curves(column, at, level)

    def summary(
        self, *, level: float = 0.9, groups: Any = "known", n_draws: int = _FOR_TABLES
    ) -> Any:
        """Return the effects of all covariates under each other, by their names."""
        made = self._effects(groups, n_draws)
        tables = {}
        for name in self.design_.variables:
            table = made.effects(name, None, level)
            many = isinstance(table.index, pd.MultiIndex)
            for what, part in table.groupby(level=0, sort=False) if many else [("", table)]:
                tables[name, what] = part.droplevel(0) if many else part
        return pd.concat(tables, names=["covariate", "change"]) if tables else pd.DataFrame()

    def variance_components(
        self, *, level: float = 0.9, n_draws: int = _FOR_TABLES
    ) -> pd.DataFrame:
        """Return by how much groups and overdispersion move probabilities at the average row.

        Each number is the standard deviation of a category's probability from group to group of a factor, or
        from row to row, with everything else as it is on average.
        """
        check_is_fitted(self)
        check_level(level)
        x = self.design_.matrix(self._covariates(self._frame)).mean(axis=0)
        drawn: dict = {name: [] for name in self._grouping.names}
        for state in parts.states_of(self.posterior_, n_draws):
            laws = dict(
                zip(self._grouping.names, () if state.group_cov is None else state.group_cov)
            )
            if state.noise_cov is not None:
                laws["overdispersion"] = state.noise_cov
            for name, cov in laws.items():
                spread = spread_of_shares(self.model_, x @ state.coefficients, cov)
                drawn.setdefault(name, []).append(spread)
        tables = {name: self._intervals(np.stack(each), level) for name, each in drawn.items()}
        return pd.concat(tables, names=["component"]) if tables else pd.DataFrame()

    def group_effects(
        self, factor: str | None = None, *, level: float = 0.9, n_draws: int = _FOR_TABLES
    ) -> pd.DataFrame:
        """Return by how much each group's probabilities differ from a typical one's, at the average row.

        Parameters
        ----------
        factor : name of a factor of groups, or None where there is one
        level, n_draws : as in `effects`
        """
        check_is_fitted(self)
        check_level(level)
        names = self._grouping.names
        if not names or (factor is None and len(names) > 1) or factor not in (None, *names):
            there = ", ".join(names) or "none"
            raise ValueError(f"factor must be one of the groups ({there}); got {factor!r}")
        which = 0 if factor is None else names.index(factor)
        mine = self.model_.prior.groups_of(which)
        x = self.design_.matrix(self._covariates(self._frame)).mean(axis=0)

        def differences(state):
            line = x @ state.coefficients
            lines = np.concatenate([line[None], line + state.group_effects[mine]])
            pi = average_shares(self.model_, lines, state.cov("known"))
            return pi[1:] - pi[0]

        drawn = np.stack(list(map(differences, parts.states_of(self.posterior_, n_draws))))
        tables = {
            name: self._intervals(drawn[:, i], level)
            for i, name in enumerate(self._grouping.level_names(which))
        }
        return pd.concat(tables, names=[names[which]])

    def _intervals(self, draws, level):
        tail = (1 - level) / 2
        lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
        table = {"estimate": draws.mean(axis=0), "lower": lower, "upper": upper}
        return pd.DataFrame(table, index=pd.Index(self.categories_, name="category"))

    def _effects(self, groups, n_draws):
        check_is_fitted(self)
        return Effects(
            lambda frame: self._draws(frame, groups, n_draws),
            self._frame,
            pd.Index(self.categories_, name="category"),
            self.design_.variables,
            self.design_.levels,
        )

    # inside

    def _covariates(self, X):
        """Return covariates without groups, where all columns are taken as they are."""
        if self.formula is not None or not isinstance(X, pd.DataFrame):
            return X
        mine = self._grouping.needed
        return X[[name for name in X.columns if name not in mine]] if mine else X

    def _rows(self, X, kind):
        """Return the matrix of rows (n, p), and where their groups are among all (n, F), if known."""
        if isinstance(X, pd.DataFrame) and not len(X):
            raise ValueError(
                "covariates must have at least one row; look at how rows were selected"
            )
        x = self.design_.matrix(self._covariates(X))
        if kind != "known" or not self._grouping.names:
            return x, None
        return x, self._grouping.places(X) + self.model_.prior.edges[:-1]

    def _own(self, places):
        """Return groups counted from 0 in each factor."""
        if places is None:
            return np.zeros((0, 0), dtype=int)
        return places - self.model_.prior.edges[:-1]

    def _with_counts(self, X, y, groups):
        check_is_fitted(self)
        self._check_running()
        kind = parts.check_kind(groups, bool(self._grouping.names))
        rows_of_both.check_rows(X, y, "y")
        counts, _ = parts.read_counts(y, self.categories_)
        return *self._rows(X, kind), counts

    def _draws(self, X, groups, n_draws):
        """Return draws of probabilities (draws, n, K)."""
        check_is_fitted(self)
        self._check_running()
        check_integer("n_draws", n_draws, at_least=1)
        kind = parts.check_kind(groups, bool(self._grouping.names))
        x, places = self._rows(X, kind)

        def shares(state):
            return average_shares(self.model_, parts.line_of(state, x, places), state.cov(kind))

        with execution_for(self.n_jobs) as execution, one_blas_thread():
            return np.stack(list(execution.map(shares, parts.states_of(self.posterior_, n_draws))))

    def _evidence(self, x, places, counts, kind, n_draws):
        check_integer("n_draws", n_draws, at_least=1)
        return self._over(parts.states_of(self.posterior_, n_draws), x, places, counts, kind)

    def _over(self, states, x, places, counts, kind):
        """Return log p(y_i | parameters) of all states and rows (S, n), without coefficients."""
        shards = self.model_.shards(counts, x, self._no_groups(len(x)), size=_ROWS_AT_ONCE)

        def evidence(task):
            state, shard = task
            rows = shard.rows.astype(int)
            line = parts.line_of(state, x[rows], None if places is None else places[rows])
            return log_evidence(self.model_, shard, line, state.cov(kind))

        with execution_for(self.n_jobs) as execution, one_blas_thread():
            tasks = [(state, shard) for state in states for shard in shards]
            found = list(execution.map(evidence, tasks))
        return np.concatenate(found).reshape(len(states), len(x))

    def _no_groups(self, n):
        return np.zeros((n, len(self._grouping.names)), dtype=int)

    def _coords(self, model):
        coords = parts.coords_of(self, self._grouping, self.design_)
        if hasattr(model, "decomposition"):
            sticks = stick_names(model.decomposition, coords["category"])
            coords |= {"stick": sticks, "stick_too": sticks}
        return coords

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
