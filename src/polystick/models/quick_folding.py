"""New documents under fixed topics without draws: where a document's shares are most probable.

A document climbs from equal shares of topics, so that its words decide which mode it ends in (EM, one step
for the topics of its tokens, one for its shares). Topics and the law of the shares are at their means.

Where the law is normal, a document of n words has

    (n mode + mean) / (n + 1)

with the mean of the shares under the Gaussian that touches the posterior of psi at its mode (Laplace).
Without words that is what the law expects. Under a Dirichlet law shares are (expected tokens + alpha),
normalised. On AP (50 topics, one split) hidden words are as likely as under exact draws with a quarter of
the words shown or more; with a tenth shown, about 20 words, they are 0.02 nats each less likely.
"""

import numpy as np

from polystick import augmentation
from polystick.kernels import quick_folds
from polystick.models.normal_points import standard_normal_points

N_STEPS = 60  # at most
TOLERANCE = 2e-3  # of shares, in sum
N_POINTS = 64  # of the Gaussian at the mode


def settle_sticks(decomposition, law, shard, cells, topics, sizes):
    """Return shares (n, T) under a law `Normal` or `Shifted` of psi, given topics (rows, padded T)."""
    shape = len(shard.rows), decomposition.n_categories - 1
    counts, psi = np.empty((shape[0], shape[1] + 1)), np.empty(shape)
    means = np.array(np.broadcast_to(law.mean, shape), order="C")
    start = decomposition.psi_from_log(np.zeros(decomposition.n_categories))
    quick_folds.settle_sticks(
        quick_folds.Words(shard.starts, shard.stops, cells, shard.counts, topics, sizes),
        decomposition.children, law.precision, means, start, N_STEPS, TOLERANCE, counts, psi,
    )  # fmt: skip
    mode, mean = decomposition.probabilities(psi), _mean(decomposition, law, means, counts, psi)
    few = 1.0 / (1.0 + counts.sum(axis=1, keepdims=True))
    return mode + few * (mean - mode)


def _mean(decomposition, law, means, counts, psi):
    """Return the mean of the shares under the Gaussian that touches the posterior at psi."""
    kappa, omega = augmentation.quadratic_potential(decomposition.split(counts), psi)
    points = standard_normal_points(N_POINTS, psi.shape[1])
    noise = np.broadcast_to(points, (len(psi), *points.shape))
    gaps, _ = law.about_mean.draws(augmentation.Potential(kappa - omega * means, omega), noise)
    return decomposition.probabilities(means[:, None] + gaps).mean(axis=1)


def settle_dirichlet(alpha, shard, cells, topics, sizes):
    """Return shares (n, T) under a Dirichlet law, given topics (rows, padded T)."""
    counts = np.empty((len(shard.rows), len(alpha)))
    words = quick_folds.Words(shard.starts, shard.stops, cells, shard.counts, topics, sizes)
    quick_folds.settle_dirichlet(words, alpha, N_STEPS, TOLERANCE, counts)
    shares = counts + alpha
    return shares / shares.sum(axis=1, keepdims=True)
