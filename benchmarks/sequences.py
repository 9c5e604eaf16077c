"""Sequences for the benchmarks, sweeps over them as a run makes them, and peers that may not be there."""

import importlib.util
import os
from pathlib import Path

import numpy as np
from corpora import VARIABLE, MissingDataError

from polystick.inference.execution import Serial
from polystick.keys import Key

FILES = {"DNA": ("dna_lds_682.npz", 22, 682), "Alice": ("alice_lds_v1000.npz", 1000, 4000)}


def load(name):
    """Return tokens and the number of categories."""
    file, n_categories, length = FILES[name]
    path = Path(os.environ.get(VARIABLE, "")) / file
    if not path.is_file():
        raise MissingDataError(
            f"the sequence benchmarks need {file} in the folder {VARIABLE} names"
        )
    with np.load(path) as stored:
        return stored["tokens"][:length].astype(np.int64), n_categories


def zipf(n_steps, n_categories, seed=0):
    """Return tokens that are independent, of which number k has a frequency like 1 / k."""
    weights = 1.0 / np.arange(1, n_categories + 1)
    rng = np.random.default_rng(seed)
    return rng.choice(n_categories, n_steps, p=weights / weights.sum())


def is_installed(peer):
    return importlib.util.find_spec(peer) is not None


def left_out(peer):
    """Return what the report says where a peer is missing."""
    return f"Without {peer}, which is not installed here; `make bench` would do it."


class Chain:
    """Gibbs sweeps of a model as the schedule makes them, but without records."""

    def __init__(self, model, sequences, seed=1):
        self.model, self.seed, self.n_sweeps = model, seed, 0
        shards, key = model.shards(sequences), Key(seed)
        self.shards, self.held = shards, Serial().hold(model, shards)
        self.parameters = model.initial_parameters(shards, key)
        self.held.start("initial_rows", [model.prepare(self.parameters)], [key])

    def sweep(self, n_sweeps=1):
        for _ in range(n_sweeps):
            statistics, key = self.draw_rows()
            self.parameters = self.model.draw_parameters(self.parameters, statistics, key)

    def draw_rows(self):
        self.n_sweeps += 1
        key, prior = Key(self.seed, self.n_sweeps), self.model.prepare(self.parameters)
        (statistics,) = self.held.step("draw_rows", [prior], [key]).statistics
        return statistics, key

    def rows(self):
        """Return where the rows stand, block by block."""
        return list(self.held.describe(lambda model, shard, rows: rows))
