"""The face of compositions over time."""

from typing import Any

import numpy as np

from polystick.arguments import PathLike, Progress, RandomState
from polystick.conjugate import NormalInverseWishart
from polystick.conjugate_dynamics import MatrixNormalInverseWishart
from polystick.estimators.dynamics_face import DynamicsEstimator
from polystick.inference.gibbs import Gibbs
from polystick.inference.schedules import Schedule
from polystick.models.composition import CompositionDynamics
from polystick.validation import check_positive


class DynamicMultinomial(DynamicsEstimator):
    """Compositions over time, such as votes or species: each split's logit walks or returns to a level.

    Parameters
    ----------
    dynamics : "walk" or "return"
        A random walk, or autoregression of each split on all with a level that is learned.
    step_scale : float
        What a step's standard deviation is about, a priori; it is learned, with correlations.
    inference : Gibbs or None
        None is four chains, until they have 400 effective draws but for 2000 draws each at the most.
    decomposition, n_categories, random_state, n_jobs, progress, checkpoint, checkpoint_every
        As in `MultinomialLDS`; the cost of a step grows with the cube of the number of categories.

    Attributes
    ----------
    posterior_ : Posterior
        Draws of `dynamics_cov`, and of `states`, which are psi; `dynamics` and `dynamics_drift`, if they
        return.
    decomposition_, sequences_, categories_, n_features_in_, model_, seed_, n_iter_
        As in `MultinomialLDS`.

    Examples
    --------
    >>> import numpy as np
    >>> from polystick import DynamicMultinomial, Gibbs
    >>> votes = np.random.default_rng(0).multinomial(100, [0.5, 0.3, 0.2], size=20)
    >>> model = DynamicMultinomial(inference=Gibbs(20, 20, n_chains=1), random_state=0).fit(votes)
    >>> model.smooth()[0].probabilities.shape
    (20, 3)
    """

    _schedules = (Gibbs,)  # the factors of mean field have an emission to learn
    _listed = "dynamic"
    _default = Gibbs(250, 300, n_chains=4, max_bytes=2**28, min_ess=400, max_draws=2000)

    def __init__(self, dynamics: str = "walk", *, step_scale: float = 0.3, decomposition: Any = "frequency",
                 n_categories: int | None = None, inference: Schedule | None = None,
                 random_state: RandomState = None, n_jobs: int | None = None,
                 progress: Progress | None = None, checkpoint: PathLike | None = None,
                 checkpoint_every: float = 60.0) -> None:  # fmt: skip
        self.dynamics = dynamics
        self.step_scale = step_scale
        self.decomposition = decomposition
        self.n_categories = n_categories
        self._run_by(inference, random_state, n_jobs, progress, checkpoint, checkpoint_every)

    def _make_model(self):
        if self.dynamics not in ("walk", "return"):
            raise ValueError(f'dynamics must be "walk" or "return"; got {self.dynamics!r}')
        check_positive("step_scale", self.step_scale)
        decomposition, walks = self._decompose(), self.dynamics == "walk"
        k = decomposition.n_categories - 1
        level, pull = decomposition.psi(self.read_.counts + 1.0), 0.1
        mean = np.eye(k) if walks else np.column_stack([(1 - pull) * np.eye(k), pull * level])
        scale = float(self.step_scale) ** 2 * np.eye(k)
        return CompositionDynamics(
            decomposition,
            MatrixNormalInverseWishart(mean, 10.0 * np.eye(mean.shape[1]), scale, k + 2.0),
            NormalInverseWishart(level, 1.0, np.eye(k), k + 2.0),
            np.zeros((k, 0)),
            np.ones(k),
            has_bias=False,
            has_drift=not walks,
            walks=walks,
        )
