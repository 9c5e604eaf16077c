"""What a face shows of itself: a page, and a few lines in a notebook."""

import pathlib
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from polystick import report
from polystick.arguments import PathLike

__all__ = ["Explored"]


class Explored(BaseEstimator):
    """A model that people can look at."""

    _explored_as: ClassVar[str | None] = (
        None  # the family of its page; None: how it was run, and no more
    )

    def report(self, path: PathLike, *, title: str | None = None, **about: Any) -> pathlib.Path:
        """Write what was learned as one HTML page, which needs no network, and return its path.

        Parameters
        ----------
        path : path of the file
        title : str, optional
        **about
            What the page shows besides the fit. Topics: `documents`, as in `transform`, with their `times`
            and `covariates`, `texts` where documents are counts, `words` where these have no names, and
            `association`, what `topic_association` returned. Rows of counts: `counts`, whose rows are shown
            and checked. Processes: `held_out`, inputs and counts to be scored, `inputs`, names of the
            columns where they had none, and `places`, a table with the coordinates of places by their
            names. Sequences: `n_steps` of the forecast.

        Returns
        -------
        Path

        Notes
        -----
        The data are in the page, so that those who have it have the parts of the documents that it shows.
        """
        check_is_fitted(self)
        return report.write(self, self._explored_as, path, title, **about)

    def _html_repr(self):
        """Return what notebooks show: scikit-learn's picture of the parameters, after what was learned."""
        parameters = super()._html_repr()
        try:
            check_is_fitted(self)
        except NotFittedError:
            return parameters
        folded = f"<details><summary>parameters</summary>{parameters}</details>"
        return report.compact(self, self._explored_as) + folded
