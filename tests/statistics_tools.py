"""What a statistical test may tolerate, and the scores it looks at. All tolerances live here.

Seeds are fixed, so a test passes always or never. The limits are such that a right program with
another seed would fail about once in 1e4 to 1e5 runs of a whole family of tests.
"""

import numpy as np
from scipy import stats

MAX_Z = 5.0  # standard errors; one score beyond it has probability 6e-7
SURE_Z = 10.0  # at which a test that looks early may stop; of 24 right but slow chains none was beyond 8.6
MIN_P = 1e-7  # of one K-S or chi-square test in a family of about a hundred


def standard_error(chain):
    """Return the standard error of the mean over axis 0 of a correlated chain, by batch means."""
    chain = np.asarray(chain, float)
    n_batches = max(int(np.sqrt(len(chain))), 2)
    length = len(chain) // n_batches
    batches = chain[: n_batches * length].reshape(n_batches, length, *chain.shape[1:]).mean(1)
    return batches.std(0, ddof=1) / np.sqrt(n_batches)


def z_scores(draws, expected, expected_error=0.0):
    """Return (mean over axis 0 - expected) in standard errors; the draws are independent."""
    draws = np.asarray(draws, float)
    variance = draws.var(0, ddof=1) / len(draws) + np.square(expected_error)
    return (draws.mean(0) - expected) / np.sqrt(variance)


def ks_pvalue(draws, cdf):
    """Return the p-value of a two-sided Kolmogorov-Smirnov test of independent draws."""
    return stats.kstest(np.ravel(draws), cdf, method="asymp").pvalue


def chi_square_pvalue(counts, expected):
    """Return the p-value of Pearson's test of counts whose total is fixed."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    return stats.chi2.sf(np.sum((counts - expected) ** 2 / expected), counts.size - 1)
