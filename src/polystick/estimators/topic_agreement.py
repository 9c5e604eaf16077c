"""What chains that may have found different topics say of them together."""

import numpy as np
import pandas as pd

from polystick.models.topic_agreement import compare

__all__ = ["agreement_of", "agreement_table", "pooled_pairs", "pooled_sizes", "with_chains"]


def agreement_of(posterior):
    """Return the `Agreement` of the chains of a run, or None where there are no chains to compare."""
    if "sample_stats" not in posterior.tree.children or len(posterior.log_likelihood) < 2:
        return None
    return compare(posterior["topics"], posterior.log_likelihood)


def shares_by_chain(posterior, agreement):
    """Return draws of the topics' sizes (chain, draw, T) under the labels of the likeliest chain."""
    return np.stack([s[:, order] for s, order in zip(posterior["share"], agreement.order)])


def agreement_table(posterior, agreement, index):
    """Return, for each topic, its chains and its share, with the spread between the chains that have it."""
    means = shares_by_chain(posterior, agreement).mean(axis=1)
    means = np.where(agreement.found, means, np.nan)
    others = np.where(agreement.found, np.nan, np.arange(len(means))[:, None]).T
    table = pd.DataFrame(
        {
            "share": np.nanmean(means, axis=0),
            "lowest": np.nanmin(means, axis=0),
            "highest": np.nanmax(means, axis=0),
            "chains": agreement.n_chains,
            "lacking": [tuple(int(c) for c in row if c == c) for row in others],
            "similarity": agreement.similarity.min(axis=0),
        },
        index=index,
    )
    return table.sort_values("share", ascending=False)


def pooled_sizes(posterior, agreement, level, index):
    """Return the sizes of topics with intervals, each over the chains that have it, largest first."""
    shares = np.where(agreement.found[:, None], shares_by_chain(posterior, agreement), np.nan)
    draws = shares.reshape(-1, shares.shape[-1])
    tail = (1 - level) / 2
    lower, upper = np.nanquantile(draws, [tail, 1 - tail], axis=0)
    columns = {"share": np.nanmean(draws, axis=0), "lower": lower, "upper": upper}
    columns |= {"chains": agreement.n_chains, "between_chains": _spread(shares.mean(axis=1))}
    return pd.DataFrame(columns, index=index).sort_values("share", ascending=False)


def pooled_pairs(by_chain, agreement):
    """Return what draws of all chains say of pairs of topics (S, T, T), under the likeliest chain's labels.

    by_chain : for each chain draws (s, T, T) under its own labels. A chain says nothing, NaN, of pairs of
        which it lacks a topic.
    """
    found = []
    for draws, order, has in zip(by_chain, agreement.order, agreement.found):
        renamed = draws[:, order][:, :, order]
        found.append(np.where(has[:, None] & has, renamed, np.nan))
    return np.concatenate(found)


def _spread(means):
    """Return the standard deviation of means of chains (C, T), NaN where fewer than two have a topic."""
    n = np.isfinite(means).sum(axis=0)
    centred = means - np.nanmean(means, axis=0)
    return np.sqrt(np.nansum(centred**2, axis=0) / np.where(n > 1, n - 1, np.nan))


def with_chains(table, agreement, index):
    """Add how many chains have each topic to a table by topic, where there are chains to compare."""
    if agreement is not None:
        table.insert(1, "chains", pd.Series(agreement.n_chains, index).loc[table.index])
    return table
