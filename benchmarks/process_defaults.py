"""Processes by default beside nearest neighbours, a plain Gaussian process on log-ratios and the mean.

    python benchmarks/process_defaults.py [--seeds N] [--cases NAME ...] [--kernels NAME ...]

Maps (94 places, 16 categories) and series (60 steps, 6 categories) are simulated behind a softmax, so that
none of the models is the truth; each category has a function of its own and, where a case says so, each
place its own noise. Names are girls' names of one year in 51 states, and of one state in 54 years. A
quarter of the rows is left out, or the last ones where a case looks ahead. The score is nats per count
that a prediction loses to the true shares (simulated) or to the shares counted (names): smaller is better.
`--kernels` adds ours with one thing changed at a time.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.neighbors import NearestNeighbors

from polystick import Gibbs, MultinomialGP, datasets

BRIEF = Gibbs(n_draws=60, n_burn=60, n_chains=2)
STATES = ("CA", "NM", "OH", "FL", "WA", "TX", "NY", "MN")

# ---- cases: inputs, counts, shares to be met, which rows are left out


def _softmax(eta):
    e = np.exp(eta - eta.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _simulated(z, kernel, noise, n_categories, total, rng, out):
    cov = kernel(z) + 1e-9 * np.eye(len(z))
    base = rng.normal(0, 1, n_categories)
    f = np.linalg.cholesky(cov) @ rng.normal(size=(len(z), n_categories))
    share = _softmax(base + f + noise * rng.normal(size=f.shape))
    totals = np.maximum(rng.lognormal(np.log(total), 0.5, len(z)).astype(int), 5)
    return z, rng.multinomial(totals, share), share, out


def _left_out(n, rng, part=0.25):
    out = np.zeros(n, bool)
    out[rng.permutation(n)[: round(part * n)]] = True
    return out


def _map(kernel, noise, total=3000, stretch=1.0):
    def make(seed):
        rng = np.random.default_rng([1, seed])
        z = rng.uniform(0, [10.0, 7.0], (94, 2))
        parts = _simulated(z / [1.0, stretch], kernel, noise, 16, total, rng, _left_out(94, rng))
        return z, *parts[1:]

    return make


def _series(kernel, noise, total=300, ahead=False):
    def make(seed):
        rng = np.random.default_rng([2, seed])
        z = np.arange(60.0)[:, None]
        out = np.arange(60) >= 55 if ahead else _left_out(60, rng)
        return _simulated(z, kernel, noise, 6, total, rng, out)

    return make


def _names_map(seed):
    rng = np.random.default_rng([3, seed])
    year = (1965, 1975, 1985, 1995, 2005, 2010)[seed % 6]
    table = datasets.load_names("F").loc[year]
    table = table[table.sum().nlargest(16).index]
    centres = datasets.load_state_centres()
    z = centres.loc[table.index, ["latitude", "longitude"]].to_numpy()
    return _counted(z, table.to_numpy(), _left_out(len(z), rng))


def _names_series(ahead):
    def make(seed):
        rng = np.random.default_rng([4, seed])
        table = datasets.load_names("F").xs(STATES[seed % len(STATES)], level="state")
        table = table[table.sum().nlargest(10).index]
        years = table.index.to_numpy(float)
        out = years > years[-1] - 5 if ahead else _left_out(len(years), rng)
        return _counted(years[:, None], table.to_numpy(), out)

    return make


def _counted(z, x, out):
    return z, x, x / x.sum(axis=1, keepdims=True), out


CASES = {
    "map rough noise": _map(0.5 * Matern(2.0, nu=1.5), 0.3),
    "map rough": _map(0.5 * Matern(2.0, nu=1.5), 0.0),
    "map smooth noise": _map(0.5 * RBF(2.5), 0.3),
    "map smooth": _map(0.5 * RBF(2.5), 0.0),
    "map tens": _map(0.5 * Matern(2.0, nu=1.5), 0.2, total=40),
    "map stretched": _map(0.5 * Matern(2.0, nu=1.5), 0.2, stretch=6.0),
    "series noise": _series(1.0 * Matern(15.0, nu=1.5), 0.2),
    "series": _series(1.0 * RBF(8.0), 0.0),
    "series ahead": _series(1.0 * Matern(15.0, nu=1.5), 0.2, ahead=True),
    "names map": _names_map,
    "names series": _names_series(False),
    "names ahead": _names_series(True),
}

# ---- predictors: fit(z, x) and predict at new inputs


def mean(z, x, new, seed):
    total = x.sum(axis=0) + 0.5
    return np.tile(total / total.sum(), (len(new), 1))


def neighbours(z, x, new, seed, n=3):
    near = NearestNeighbors(n_neighbors=n).fit(z).kneighbors(new, return_distance=False)
    total = x.sum(axis=0) / x.sum()
    pooled = x[near].sum(axis=1) + total * x.shape[1] * 0.5
    return pooled / pooled.sum(axis=1, keepdims=True)


def plain(z, x, new, seed, each=False):
    """Regress centred log-ratios of smoothed counts: one kernel for all, or one for each."""
    logs = np.log(x + 0.5)
    ratios = logs - logs.mean(axis=1, keepdims=True)
    scale = z.std(axis=0).mean()

    def fit(y):
        kernel = 1.0 * Matern(scale, (1e-2 * scale, 1e2 * scale), nu=1.5) + WhiteKernel(0.1)
        model = GaussianProcessRegressor(
            kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0
        )
        return model.fit(z, y).predict(new)

    if not each:
        return _softmax(fit(ratios))
    return _softmax(np.column_stack([fit(y) for y in ratios.T]))


def plain_each(z, x, new, seed):
    return plain(z, x, new, seed, each=True)


def ours(kernel=None, learn=("kernel",)):
    def predict(z, x, new, seed):
        settings = {"inference": BRIEF, "random_state": seed, "n_jobs": 1}
        model = MultinomialGP(kernel and kernel(z), learn=learn, **settings)
        model.fit(z, x)
        _log(model)
        return model.predict_proba(new)

    return predict


LEARNED = []


def _log(model):
    theta = model.posterior_["theta"]
    LEARNED.append(
        (
            np.exp(theta.mean(axis=(0, 1))).round(3),
            np.exp(np.ptp(theta.mean(axis=1), axis=0)).round(2),
        )
    )


PEERS = {"mean": mean, "3 neighbours": neighbours, "plain GP": plain, "plain GPs": plain_each}

# ---- ours, one thing changed at a time


def _scales(z, shared):
    spread = np.where(z.std(axis=0) > 0, z.std(axis=0), 1.0)
    scales = float(np.exp(np.log(spread).mean())) if shared or len(spread) == 1 else spread
    return scales, np.multiply.outer(scales, [1e-2, 1e2])


def kernel_of(nu=2.5, shared=False, noise=False, start=0.1):
    def make(z):
        scales, bounds = _scales(z, shared)
        base = ConstantKernel(1.0, (1e-3, 1e3))
        base = base * (RBF(scales, bounds) if nu is None else Matern(scales, bounds, nu=nu))
        return base + WhiteKernel(start, (1e-4, 1e1)) if noise else base

    return make


KERNELS = {
    "5/2": kernel_of(),
    "5/2 shared": kernel_of(shared=True),
    "5/2 noise": kernel_of(noise=True),
    "5/2 shared noise": kernel_of(shared=True, noise=True),
    "3/2": kernel_of(1.5),
    "3/2 noise": kernel_of(1.5, noise=True),
    "3/2 shared": kernel_of(1.5, shared=True),
    "3/2 shared noise": kernel_of(1.5, shared=True, noise=True),
    "RBF shared noise": kernel_of(None, shared=True, noise=True),
}

# ---- running


def lost(share, predicted):
    """Return the nats per count (n,) that a prediction loses to the shares."""
    return np.where(
        share > 0, share * np.log(np.where(share > 0, share, 1.0) / predicted), 0.0
    ).sum(axis=1)


def run(cases, predictors, n_seeds):
    lines = []
    for seed in range(n_seeds):
        for case in cases:
            z, x, share, out = CASES[case](seed)
            for name, predict in predictors.items():
                start = time.process_time()
                LEARNED.clear()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    predicted = predict(z[~out], x[~out], z[out], seed)
                value = lost(share[out], predicted).mean()
                took = time.process_time() - start
                lines.append((case, seed, name, value, took))
                print(f"{case:18} {seed} {name:18} {value:.4f} {took:6.1f} s", *LEARNED, flush=True)
    return pd.DataFrame(lines, columns=["case", "seed", "model", "lost", "cpu"])


def report(table, first):
    """Return the losses in Markdown: means over seeds, and in brackets ours less theirs +- its error."""
    wide = table.pivot_table(index=["case", "seed"], columns="model", values="lost")
    models = list(dict.fromkeys(table.model))
    rows = ["| case | " + " | ".join(models) + " |", "|---" * (len(models) + 1) + "|"]
    for case in dict.fromkeys(table.case):
        part = wide.loc[case]
        cells = [f"{part[first].mean():.4f}"]
        for name in models[1:]:
            gap = part[first] - part[name]
            cells.append(f"{part[name].mean():.4f} ({gap.mean():+.4f} +- {gap.sem():.4f})")
        rows.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--kernels", nargs="*", default=[])
    given = parser.parse_args()
    kernels = given.kernels if given.kernels != ["all"] else list(KERNELS)
    predictors = {"default": ours(), **PEERS, **{n: ours(KERNELS[n]) for n in kernels}}
    if kernels:
        predictors["scale"] = ours(KERNELS["3/2 shared noise"], ("kernel", "scale"))
    table = run(given.cases, predictors, given.seeds)
    print(report(table, "default"))


if __name__ == "__main__":
    main()
