"""The face that all models of counts at inputs share."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from polystick import scores
from polystick.estimators.inputs import Categories, check_inputs, check_table, merge
from polystick.estimators.process_default import smooth_kernel
from polystick.estimators.row_names import labels_of
from polystick.inference.execution import execution_for
from polystick.validation import all_or_nothing, check_integer, check_running


class ProcessEstimator(BaseEstimator):
    """What all of them offer; a subclass says how to learn from `inputs_` and `counts_`.

    It has n_jobs, progress and checkpoint, `_learn`, `predict_proba`, `score_samples` and, where the counts
    of its fit need not be whole, `_needs_whole_counts`.
    """

    def fit(self, Z, X, *, resume=False):
        """Learn from counts X at inputs Z.

        Parameters
        ----------
        Z : array-like of shape (n, d)
            Numbers, such as years or coordinates. Rows may share their inputs: their counts are added.
        X : array-like or CSR of shape (n, K)
            A row without counts tells nothing.
        resume : bool
            Go on with the run in the checkpoint folder, if there is one.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            check_running(self.n_jobs, self.progress, self.checkpoint)
            self._categories = Categories()
            inputs, counts = self._read(Z, X, reset=True)
            self.inputs_, self.counts_, place_of = merge(inputs, counts)
            self._input_names = _names_of_inputs(Z, X, place_of)
            self.categories_ = self._categories.names
            self._learn(resume)
            return self

    def _learn(self, resume):
        raise NotImplementedError

    def _run(self, inference, model, seed, resume, coords):
        """Run a model on the counts of the fit."""
        self.posterior_ = inference.run(
            model,
            model.shards(self.counts_),
            seed=seed,
            execution=execution_for(self.n_jobs),
            progress=self.progress,
            checkpoint=self.checkpoint,
            resume=resume,
            coords=coords,
        )
        self.model_, self.seed_, self.solver_ = model, seed, model.family.solver_name
        self.n_iter_ = self.posterior_.tree.attrs["n_sweeps"]

    def _needs_whole_counts(self):
        return True

    def predict_proba(self, Z):
        raise NotImplementedError

    def score_samples(self, Z, X, *, coefficient=True):
        raise NotImplementedError

    def predict(self, Z, n_top=1):
        """Return the names (n, n_top) of the likeliest categories at inputs, the likeliest first."""
        check_is_fitted(self)
        check_integer("n_top", n_top, at_least=1)
        if n_top > len(self.categories_):
            raise ValueError(
                f"n_top must not exceed the {len(self.categories_)} categories; got {n_top}"
            )
        order = np.argsort(-self.predict_proba(Z), axis=1, kind="stable")
        return self.categories_[order[:, :n_top]]

    def score(self, Z, X, *, coefficient=False, **options):
        """Return the log probability per count, in nats, as in `score_samples`; bigger is better."""
        _, counts = self._check_table(Z, X)
        values = self.score_samples(Z, X, coefficient=coefficient, **options)
        return scores.per_count(values, counts)

    def _read(self, Z, X, *, reset):
        whole = self._needs_whole_counts()
        return check_table(self, self._categories, Z, X, reset=reset, whole=whole)

    def _check_table(self, Z, X):
        check_is_fitted(self)
        check_running(self.n_jobs, self.progress, self.checkpoint)
        return self._read(Z, X, reset=False)

    def _check_inputs(self, Z):
        check_is_fitted(self)
        check_running(self.n_jobs, self.progress, self.checkpoint)
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
