"""What may be known of documents besides their words, for all faces of topics."""

from typing import NamedTuple

from polystick.estimators.document_kinds import count_documents
from polystick.estimators.prevalence import Prevalence
from polystick.inference.gibbs import Gibbs
from polystick.population import LearnedScale

__all__ = ["NOTHING", "About", "TopicCovariates", "need_learned_scale"]


class About(NamedTuple):
    """What came beside the words of documents."""

    times: object = None
    covariates: object = None
    X: object = None  # the documents as they came, for the names of their rows


NOTHING = About()


class TopicCovariates:
    """Shares may depend on covariates of documents, by the formula `prevalence` of a face that has one."""

    prevalence: str | None = None
    groups: object = None
    prevalence_: Prevalence | None = None

    def _read_prevalence(self, about, inference):
        """Learn what the formula means from the covariates of the fit."""
        self.prevalence_ = None
        if self.prevalence is None:
            if self.groups is not None:
                raise ValueError(
                    f'groups need a prevalence; got groups={self.groups!r} alone; give prevalence="1" where '
                    "shares depend on nothing else"
                )
            self._refuse_covariates(about)
            return
        if not isinstance(inference, Gibbs):
            raise TypeError(f"a prevalence needs inference=Gibbs(...) or None; got {inference!r}")
        self._need_covariates(about)
        count_documents(about.X)
        self.prevalence_ = Prevalence.of(self.prevalence, about.covariates, about.X, self.groups)

    def _given(self, n, about):
        """Return name -> (n, ...), what the model must know of n documents besides their words."""
        if about.times is not None:
            raise TypeError(
                f"{type(self).__name__} takes no times: its topics do not move with them"
            )
        if self.prevalence_ is None:
            self._refuse_covariates(about)
            return {}
        self._need_covariates(about)
        rows = range(n) if about.X is None else about.X
        return {"covariates": self.prevalence_.columns(about.covariates, rows)}

    def _need_covariates(self, about):
        if about.covariates is None:
            raise TypeError(
                f'covariates must hold what prevalence="{self.prevalence}" speaks of, a row for each '
                "document; got none; give a DataFrame"
            )

    def _refuse_covariates(self, about):
        if about.covariates is not None:
            raise TypeError(
                f"{type(self).__name__} takes no covariates here: its shares depend on none; leave them out, "
                "or fit with prevalence=..."
            )


def need_learned_scale(prior):
    """Raise where a prior is given that a regression of shares cannot have."""
    if not (prior is None or isinstance(prior, LearnedScale)):
        raise TypeError(
            f"a prevalence needs a prior that learns its scale; got {type(prior).__name__}; give "
            "LearnedScale(...) or None"
        )
