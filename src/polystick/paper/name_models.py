"""The names experiment of figure 3: data, the four models, and what is asked of them."""

import time
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from polystick import Gibbs, MultinomialGP, datasets, scores
from polystick.baselines.process_models import LogisticNormalGP, RawGP, Static
from polystick.covariances import OnColumns, Separable

MODELS = ("Static", "Raw GP", "LNM-GP", "SBM-GP")
LAST_YEAR, TEST = 2011, (2012, 2013)
LEFT_OUT = ("AK", "HI", "DC")
N_HITS = 10
COLUMNS = ("top_2012", "bottom_2012", "top_2013", "bottom_2013")
MOST_DRAWS = 32  # kept of a run of the curves
N_STATES = 64  # posterior draws that a prediction averages over
# The 100 most frequent boys' names of 1910-2013, in order: the paper's, and the order of its sticks.
NAMES = (
    "James John Robert Michael William David Richard Joseph Charles Thomas Christopher Daniel "
    "Matthew Donald Anthony Paul Mark George Steven Kenneth Andrew Edward Joshua Brian Kevin "
    "Ronald Timothy Jason Jeffrey Gary Ryan Nicholas Eric Jacob Stephen Frank Jonathan Larry "
    "Scott Justin Raymond Brandon Gregory Samuel Benjamin Patrick Jack Dennis Jerry Alexander "
    "Henry Tyler Walter Peter Douglas Aaron Jose Harold Adam Zachary Nathan Carl Arthur Kyle "
    "Gerald Albert Lawrence Roger Keith Jeremy Joe Terry Willie Sean Jesse Ralph Austin "
    "Christian Billy Bruce Roy Bryan Eugene Louis Harry Ethan Wayne Jordan Russell Alan Philip "
    "Juan Randy Howard Dylan Vincent Bobby Johnny Phillip Victor"
)


class Births(NamedTuple):
    """Counts of names, year by year and state by state."""

    years: np.ndarray  # (n,) the last two are for the test
    states: list[str]
    places: np.ndarray  # (states, 2) longitude and latitude
    counts: np.ndarray  # (n, states, names)
    names: list[str]

    @property
    def train(self):
        return self.counts[: -len(TEST)]

    @property
    def test(self):
        """Counts of the test years, (rows, names)."""
        return self.counts[-len(TEST) :].reshape(-1, len(self.names))

    def inputs(self, years=None):
        """Return (year, longitude, latitude) of each state in each year; None: the years of training."""
        years = self.years[: -len(TEST)] if years is None else years
        return np.array([[year, *place] for year in years for place in self.places])


class Trial(NamedTuple):
    """A fitted model, and what it took."""

    name: str
    model: object
    seconds: float  # of CPU time
    sweeps: int


def load(first_year):
    """Load the births of the 48 contiguous states from a year on."""
    table = datasets.load_names("M", n_names=300, years=range(first_year, TEST[-1] + 1))
    names = NAMES.split()
    years, states = (table.index.levels[i].to_numpy() for i in (0, 1))
    kept = [state for state in states if state not in LEFT_OUT]
    table = table.loc[(slice(None), kept), names]
    places = datasets.load_state_centres().loc[kept, ["longitude", "latitude"]].to_numpy()
    counts = table.to_numpy().reshape(len(years), len(kept), len(names))
    return Births(years, kept, places, counts, names)


def thinned(counts, n_births, seed):
    """Draw so many births of each state and year without replacement, (rows, names)."""
    rng = np.random.default_rng(seed)
    rows = counts.reshape(-1, counts.shape[-1])
    return np.array([rng.multivariate_hypergeometric(r, min(n_births, r.sum())) for r in rows])


def start_kernel():
    """Return Matern 5/2 over years times a squared exponential over places, as the climb starts."""
    years = OnColumns(ConstantKernel(1.0) * Matern(30.0, nu=2.5), [0])
    return Separable(years, OnColumns(RBF(5.0), [1, 2]))


def fixed(kernel):
    """Return the kernel with parameters that are not learned."""
    return kernel.set_params(**{p.name + "_bounds": "fixed" for p in kernel.hyperparameters})


class Bench:
    """A sample of births, and the models that learn from it with one kernel."""

    def __init__(self, births, counts, seed):
        self.births, self.counts, self.seed = births, counts, seed
        self.inputs = births.inputs()
        self.raw = self._timed("Raw GP", RawGP(start_kernel(), decomposition="given"))
        self.kernel = fixed(self.raw.model.kernel_)

    def static(self):
        return self._timed("Static", Static())

    def sticks(self, inference):
        """Fit the multinomial GP by sticks, in the order of the names."""
        options = {"decomposition": "given", "random_state": self.seed}
        model = MultinomialGP(self.kernel, inference=inference, **options)
        return self._timed("SBM-GP", model, inference)

    def softmax(self, inference):
        """Fit the multinomial GP behind a softmax."""
        model = LogisticNormalGP(self.kernel, inference=inference, random_state=self.seed)
        return self._timed("LNM-GP", model, inference)

    def _timed(self, name, model, inference=None):
        start = time.process_time()
        model.fit(self.inputs, self.counts)
        seconds = time.process_time() - start
        n_sweeps = inference.n_burn + inference.n_draws * inference.thin if inference else 0
        return Trial(name, model, seconds, n_sweeps)


def later_half(n_sweeps):
    """Return a run of one chain that forgets its first half and keeps some draws of the other."""
    n_later = max(1, n_sweeps // 2)
    thin = -(-n_later // MOST_DRAWS)
    n_draws = n_later // thin
    return Gibbs(n_draws=n_draws, n_burn=n_sweeps - n_draws * thin, thin=thin, n_chains=1)


def predict(model, inputs, **options):
    """Return expected probabilities (rows, names) at inputs, averaged over many posterior draws.

    Of sticks the values at the inputs of the fit are taken as drawn: to integrate them out (appendix B)
    needs far fewer draws, but each costs as much as a sweep, and there are enough of them here.
    """
    if isinstance(model, MultinomialGP):
        options = {"collapsed": False, "n_draws": N_STATES, **options}
    return model.predict_proba(inputs, **options)


def score(expected, births):
    """Return the log of the expected probability of a birth of the test years, in nats on average."""
    return scores.expected_log_score(expected, births.test)


def hits(expected, truth, rng=None):
    """Return how many of the 10 likeliest (least likely) names are among the 10 most (least) frequent.

    Ties go by the order of the names, or at random if there is a generator.

    Returns
    -------
    (2, rows) : top, bottom
    """
    names = np.arange(truth.shape[1])
    found = []
    for sign in (-1, 1):
        order = names if rng is None else rng.permutation(names)
        guess = _first(sign * expected, order)
        order = names if rng is None else rng.permutation(names)
        right = _first(sign * truth, order)
        found.append([len({*a} & {*b}) for a, b in zip(guess.tolist(), right.tolist())])
    return np.array(found)


def _first(values, order):
    """Return the names (rows, 10) of the smallest values; of equal ones those that come first in order."""
    return order[np.argsort(values[:, order], axis=1, kind="stable")[:, :N_HITS]]


def mean_hits(expected, births, rng=None):
    """Return hits averaged over states, in the order of COLUMNS."""
    found = hits(expected, births.test, rng)
    return found.reshape(2, len(TEST), -1).mean(axis=2).T.ravel()
