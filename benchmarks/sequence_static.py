"""The static limit: MultinomialLDS without dynamics against the unigram that smooths best.

The unigram adds to each count the number that is best for what comes after: an oracle, which no fit has.
Against it, in nats per token of the 5000 tokens after those of the fit: the levels that biases have a priori
(`models.frequencies`); the model, states and memory off; and biases about the same levels whose scale is
each split's own (half-Cauchy about a common one), or falls with what is known of a split (in proportion to
the posterior standard deviation of its log odds under a Dirichlet). Seen and new words apart: what each part
contributes to the mean over all tokens, so that the two add up, and the mean over new words alone.

    python benchmarks/sequence_static.py
"""

import numpy as np
from scipy.special import polygamma
from sequence_text import commonest, load, read_addresses, read_articles

from polystick import Gibbs, MultinomialLDS, polyagamma
from polystick.decomposition import Decomposition, decompose
from polystick.models.dynamics_steps import draw_half_cauchy
from polystick.models.frequencies import N_STRETCHES, smoothed

K, N_LATER, SIZES = 1000, 5000, (1000, 4000, 40_000)
N_SWEEPS, N_BURN = 160, 80


def sources():
    """Yield titles and tokens."""
    rng = np.random.default_rng(1)
    yield "Associated Press", commonest(read_articles())[200_000:]
    yield "State of the Union", commonest(read_addresses())[600_000:]
    yield "Alice", load("Alice")[0]
    zipf = 1.0 / np.arange(1, K + 1) ** 1.1
    yield "independent, Zipf's law", rng.choice(K, 50_000, p=zipf / zipf.sum())
    yield "independent, Dirichlet(0.3)", rng.choice(K, 50_000, p=rng.dirichlet(np.full(K, 0.3)))


def best_unigram(counts, later):
    added = np.geomspace(1e-4, 20, 400)[:, None]
    laws = (counts + added) / (counts.sum() + added * K)
    return laws[np.argmax(np.log(laws) @ later)]


def levels(tokens):
    stretches = np.array_split(tokens, N_STRETCHES)
    return smoothed(np.stack([np.bincount(part, minlength=K) for part in stretches]))


def without_dynamics(tokens):
    """Return what the model says of categories where states and memory do nothing."""
    run = {"inference": Gibbs(60, 60, n_chains=1), "random_state": 0, "n_jobs": 1}
    face = MultinomialLDS(1, emission_scale=1e-6, memory=None, n_categories=K, **run).fit(tokens)
    biases = face.posterior_.flat("emission_bias")
    return face.decomposition_.probabilities(biases).mean(axis=0)


def with_scales(tokens, kind):
    """Return the same by a Gibbs sampler of the biases alone, with scales that differ between splits."""
    rng, counts, u = np.random.default_rng(0), np.bincount(tokens, minlength=K), levels(tokens)
    names = [str(i) for i in range(K)]
    tree: Decomposition = decompose("balanced", n_categories=K, weights=counts, names=names)
    yes, no = tree.sides(counts.astype(float))
    level, trials, total = tree.psi(u), yes + no, counts.sum()
    known = sum(polygamma(1, total * side) for side in tree.sides(u))  # variance of log odds
    own, scale, biases, found = np.ones(K - 1), 0.1, level.copy(), []
    for sweep in range(N_SWEEPS):
        omega = np.zeros(K - 1)
        seen = trials > 0
        omega[seen] = polyagamma.draw(trials[seen], biases[seen], seed=int(rng.integers(2**31)))
        shape = known if kind == "known" else own
        J = 1.0 / (scale**2 * shape) + omega
        mean = (level / (scale**2 * shape) + 0.5 * (yes - no)) / J
        biases = mean + rng.standard_normal(K - 1) / np.sqrt(J)
        scale = draw_half_cauchy((biases - level) / np.sqrt(shape), scale, rng)
        if kind == "own":
            inverse = rng.standard_gamma(1.0, K - 1) / (1.0 + 1.0 / own)
            half = 0.5 * np.square((biases - level) / scale)
            own = np.clip((inverse + half) / rng.standard_gamma(1.0, K - 1), 1e-12, 1e12)
        if sweep >= N_BURN:
            found.append(tree.probabilities(biases))
    return np.mean(found, axis=0)


def gains(law, best, counts, later):
    """Return gains over the best unigram: all, seen words' share, new words' share, mean of new words."""
    gap, is_new = later * np.log(law / best), counts == 0
    parts = gap.sum(), gap[~is_new].sum(), gap[is_new].sum()
    n_new = max(1, later[is_new].sum())
    return *(part / later.sum() for part in parts), gap[is_new].sum() / n_new


def report():
    print("| tokens | new words | | all | seen words | new words | a new word |")
    print("|---|---|---|---|---|---|---|")
    for title, tokens in sources():
        for n in SIZES:
            if len(tokens) < n + 1000:
                continue
            counts, later = (
                np.bincount(part, minlength=K) for part in (tokens[:n], tokens[n : n + N_LATER])
            )
            best, share = best_unigram(counts, later), later[counts == 0].sum() / later.sum()
            laws = {
                "levels": levels(tokens[:n]),
                "model": without_dynamics(tokens[:n]),
                "own scales": with_scales(tokens[:n], "own"),
                "scale falls": with_scales(tokens[:n], "known"),
            }
            for name, law in laws.items():
                cells = " | ".join(f"{value:+.4f}" for value in gains(law, best, counts, later))
                print(f"| {title}, {n:,} | {share:.2%} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    report()
