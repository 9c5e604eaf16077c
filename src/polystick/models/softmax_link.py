"""The softmax as a link: shares_d = softmax(psi_d), with an entry of psi for each topic.

Gibbs draws psi site by site (Chen et al. 2013). For a bound q(psi_d) is normal with a diagonal covariance
(Blei and Lafferty 2007).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import log_softmax, softmax

from polystick.kernels import logistic
from polystick.models.multinomial import RowFactors

LOCAL_STEPS = 3  # at most, for a document in a sweep; on AP 1 to 4 climb as fast, 10 half as fast
LOCAL_CHANGE = 1e-3  # of E psi, on average over topics, below which a document is settled
LOCAL_GAIN = 1e-10  # nats


@dataclass(frozen=True)
class Softmax:
    """No topic comes first: a new order is but new labels."""

    n_topics: int
    level: float = 0.0  # of psi that is told by shares, which know it but for a constant

    axis: ClassVar = "topic"
    has_order: ClassVar = False

    @property
    def n_dims(self):
        return self.n_topics

    def shares(self, psi):
        return softmax(psi, axis=-1)

    def log_shares(self, psi):
        return log_softmax(psi, axis=-1)

    def psi(self, log_shares):
        return log_shares - (log_shares.mean(axis=-1, keepdims=True) - self.level)

    def draw(self, law, ids, counts, psi, key):
        """Omega and psi | counts, topic by topic."""
        psi, means = psi.copy(), np.array(np.broadcast_to(law.mean, psi.shape), order="C")
        logistic.draw_logistic_rows_in_place(key.at("psi"), ids, counts, law.precision, means, psi)
        return psi

    def rename(self, psi, order):
        return np.ascontiguousarray(psi[:, order])

    def places(self, log_shares, held):
        return np.arange(self.n_topics)

    def rename_law(self, mean, cov, order, key):
        return mean[order], cov[np.ix_(order, order)]

    # mean field

    def expected_log_shares(self, rows):
        return rows.mean

    def settle(self, law, shard, rows, expect):
        """Move each document until it settles, whatever the others do."""
        mean, variance = rows.mean.copy(), rows.variance.copy()
        active, given = np.arange(len(mean)), (law.normal.precision, law.normal.mean)
        for _ in range(LOCAL_STEPS):
            part = shard._replace(starts=shard.starts[active], stops=shard.stops[active])
            moved = RowFactors(mean[active], variance[active])
            counts = expect(part, moved)
            logistic.fit_logistic_rows_in_place(counts, *given, *moved, 1, LOCAL_GAIN)
            change = np.abs(moved.mean - mean[active]).mean(axis=1)
            mean[active], variance[active] = moved
            active = active[~(change < LOCAL_CHANGE)]
            if len(active) == 0:
                break
        rows = RowFactors(mean, variance)
        outer = mean.T @ mean + np.diag(variance.sum(axis=0))
        return rows, outer, self.bound_but_for_words(law, shard, rows)

    def bound_but_for_words(self, law, shard, rows):
        bound, totals = np.empty(len(rows.mean)), shard.totals.astype(np.float64)
        given = law.normal.precision, law.normal.mean
        logistic.bound_logistic_rows(totals, *given, *rows, bound)
        return bound.sum() + len(bound) * law.constant

    def draw_shares(self, law, shard, rows, points, expect):
        """Draw shares (s, n, T) from each q(psi_d), with the same points (s, T) for each document."""
        return self.shares(rows.mean + np.sqrt(rows.variance) * points[:, None])
