"""From options of a face to a model of rows: the link, and the law of mean and covariance."""

import numpy as np

from polystick.decomposition import decompose
from polystick.inference.gibbs import Gibbs
from polystick.models.learned_trees import learn_from_counts
from polystick.models.multinomial import CorrelatedCounts
from polystick.models.softmax_counts import SoftmaxCounts
from polystick.population import LearnedScale, SparseFactors
from polystick.validation import check_prior, warn_user

LINKS = ("stick", "softmax")
LAWS = {"full": LearnedScale, "factor": SparseFactors}
DEFAULTS = {"stick": "full", "softmax": "factor"}


def build(face, inference, counts):
    """Return the model that the options of a face ask for."""
    _check_options(face, inference)
    n_categories = counts.shape[1]
    totals = np.asarray(counts.sum(axis=0)).ravel()
    if face.link == "softmax":
        _tell_of_empty(face, totals)
        law = _law(face, np.zeros(n_categories), "category")
        _tell_of_few_rows(law, counts.shape[0])
        return SoftmaxCounts(law)
    names = getattr(face, "feature_names_in_", None)
    is_learned = isinstance(face.decomposition, str) and face.decomposition == "learned"
    spec = learn_from_counts([counts]) if is_learned else face.decomposition
    splits = decompose(spec, n_categories=n_categories, weights=totals, names=names)
    law = _law(face, splits.dirichlet_moments(1.0)[0], "split")
    _tell_of_few_rows(law, counts.shape[0])
    return CorrelatedCounts(law, splits)


def default_inference(face):
    """Return the schedule that a face takes where none is given."""
    if face.link == "softmax":
        return Gibbs(min_ess=200, max_draws=4000)
    return Gibbs(min_ess=400, max_draws=2500)


def _law(face, centre, per):
    if face.prior is not None:
        return check_prior(face.prior, len(centre), per)
    return LAWS[face.covariance or DEFAULTS[face.link]](centre)


def _check_options(face, inference):
    if face.link not in LINKS:
        raise ValueError(f'link must be "stick" or "softmax"; got {face.link!r}')
    if face.covariance is not None and face.covariance not in LAWS:
        raise ValueError(f'covariance must be "full", "factor" or None; got {face.covariance!r}')
    if face.covariance is not None and face.prior is not None:
        raise ValueError(
            f"covariance and prior both say which law the covariance has; got {face.covariance!r} and "
            f"a {type(face.prior).__name__}; leave one of them out"
        )
    if face.link == "softmax" and not (
        isinstance(face.decomposition, str) and face.decomposition == "frequency"
    ):
        raise ValueError(
            f'decomposition is of no use to link="softmax", which splits nothing; got '
            f'{face.decomposition!r}; leave it out, or use link="stick"'
        )
    if not inference.needs_whole_counts:
        _need_mean_field(face)


def _need_mean_field(face):
    """Raise where only Gibbs sampling is built."""
    if face.link == "softmax":
        raise ValueError('link="softmax" has no mean field; use Gibbs(), or link="stick"')
    if face.covariance == "factor":
        raise ValueError('covariance="factor" has no mean field; use Gibbs(), or covariance="full"')


def _tell_of_empty(face, totals):
    empty = [str(name) for name, total in zip(face.categories_, totals) if total == 0]
    if empty:
        few = ", ".join(empty[:3]) + (", ..." if len(empty) > 3 else "")
        warn_user(
            f"{len(empty)} of {len(totals)} categories have no counts ({few}): all that is said of them "
            "comes from the prior"
        )


def _tell_of_few_rows(law, n_rows):
    n_factors = law.shape[1] if isinstance(law, SparseFactors) else 0
    if n_rows < n_factors:
        warn_user(
            f"{n_rows} rows are fewer than the {n_factors} factors of the covariance: most of what is "
            "said of it comes from the prior"
        )
