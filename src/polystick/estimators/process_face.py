"""The face that all models of counts at inputs share."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from polystick.arguments import Counts
from polystick.estimators.face import Face
from polystick.estimators.inputs import Categories, check_inputs, check_table, counts_of, merge
from polystick.estimators.process_default import smooth_kernel
from polystick.estimators.row_names import labels_of
from polystick.validation import all_or_nothing, check_integer, check_positive

EXACT = ("dense", "markov")  # solvers that do not iterate
TOLERANCE = 1e-8  # of those that do


class ProcessEstimator(Face):
    """What all of them offer; a subclass says how to learn from `inputs_` and `counts_`.

    It has `_learn`, `predict_proba`, `score_samples`, `score` and, where the counts of its fit need not be
    whole, `_needs_whole_counts`.
    """

    _explored_as: ClassVar[str | None] = "processes"
    _axes = ("input", "category")

    def fit(
        self, Z: ArrayLike, X: Counts | None = None, *, y: Any = None, resume: bool = False
    ) -> Self:
        """Learn from counts X at inputs Z.

        Parameters
        ----------
        Z : array-like of shape (n, d)
            Numbers, such as years or coordinates. Rows may share their inputs: their counts are added.
        X : array-like or CSR of shape (n, K)
            A row without counts tells nothing.
        y : array-like or CSR of shape (n, K)
            The counts, in the place of X, for those who call the inputs X: ``fit(Z, y=counts)``.
        resume : bool
            Go on with the run in the checkpoint folder, if there is one.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            self._check_running()
            self._categories = Categories()
            X = counts_of(X, y)
            inputs, counts = self._read(Z, X, reset=True)
            self.inputs_, self.counts_, place_of = merge(inputs, counts)
            self._input_names = _names_of_inputs(Z, X, place_of)
            self.categories_ = self._categories.names
            self._learn(resume)
            return self

    def _learn(self, resume):
        raise NotImplementedError

    def _needs_whole_counts(self):
        return True

    def predict_proba(self, Z):
        raise NotImplementedError

    def predict(self, Z: ArrayLike, n_top: int = 1) -> Any:
        """Return the names (n, n_top) of the likeliest categories at inputs, the likeliest first."""
        check_is_fitted(self)
        check_integer("n_top", n_top, at_least=1)
        if n_top > len(self.categories_):
            raise ValueError(
                f"n_top must not exceed the {len(self.categories_)} categories; got {n_top}"
            )
        order = np.argsort(-np.asarray(self.predict_proba(Z)), axis=1, kind="stable")
        return self.categories_[order[:, :n_top]]

    def _read(self, Z, X, *, reset):
        whole = self._needs_whole_counts()
        return check_table(self, self._categories, Z, X, reset=reset, whole=whole)

    def _check_table(self, Z, X):
        check_is_fitted(self)
        self._check_running()
        return self._read(Z, X, reset=False)

    def _check_inputs(self, Z):
        check_is_fitted(self)
        self._check_running()
        return check_inputs(self, Z, reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = True
        return tags


def _names_of_inputs(Z, X, place_of):
    """Return labels of the merged inputs, where rows have names and none share their inputs; or None."""
    labels = labels_of(X)
    labels = labels_of(Z) if labels is None else labels
    if labels is None or place_of.max() + 1 < len(place_of):
        return None
    return labels[np.argsort(place_of)]


def refuse_tolerance(face):
    """Raise where a tolerance is given to a solver that does not iterate."""
    check_positive("tolerance", face.tolerance)
    if face.solver in EXACT and face.tolerance != TOLERANCE:
        raise ValueError(
            f'tolerance is of no use to solver="{face.solver}", which does not iterate; got '
            f"{face.tolerance!r}; leave it out"
        )


def given_level(mean, n, each):
    """Return the level (n,) that a user gives, a number for `each` of what there is, or zeros."""
    if isinstance(mean, str) and mean == "zero":
        return np.zeros(n)
    level = None if isinstance(mean, str) or mean is None else np.asarray(mean)
    if level is None or level.dtype.kind not in "iuf" or level.shape != (n,):
        raise ValueError(
            f'mean must be "empirical", "zero" or {n} numbers, one for each {each}; got {mean!r}'
        )
    if not np.isfinite(level).all():
        raise ValueError(f"mean must be finite; got {mean!r}")
    return level.astype(np.float64)


def check_kernel(kernel):
    """Return the kernel, if it is one."""
    if isinstance(kernel, type) or not hasattr(kernel, "clone_with_theta"):
        raise TypeError(
            "kernel must be a kernel of sklearn.gaussian_process.kernels, OnColumns(...), "
            f"Separable(...) or None; got {kernel!r}"
        )
    return kernel


def kernel_for(kernel, inputs):
    """Return the kernel that came, or a smooth one with the length scales that the inputs suggest."""
    return smooth_kernel(inputs) if kernel is None else check_kernel(kernel)
