"""A fit from one host on workers at two others, each a network namespace: what crosses, and what a cut costs.

    python two_hosts.py SCHEDULER FOLDER SWEEP COMMAND...

In sweep SWEEP the command is run, which may cut a host off. Prints JSON.
"""

import hashlib
import json
import subprocess
import sys
import time
import warnings

import numpy as np
from distributed import Client

from polystick import Gibbs
from polystick.clusters.context import Cluster
from polystick.clusters.engine import Engine
from polystick.conjugate import NormalInverseWishart
from polystick.decomposition import Decomposition
from polystick.inference.execution import Serial
from polystick.models import warm_start
from polystick.models.topic_factors import assemble
from polystick.models.topic_shares import NormalShares, Sticks
from polystick.models.topic_words import DirichletWords

N_DOCUMENTS, N_WORDS, N_TOPICS = 1200, 20_000, 50
GIBBS = Gibbs(n_draws=6, n_burn=3, n_chains=1)
FIRST, LAST = 2, 7  # sweeps between which bytes are counted: after the data, before a snapshot


def main(address, store, cut_at, command):
    warnings.simplefilter("ignore")
    for name, value in {"N_SWEEPS": 3, "N_TRIAL": 1, "MOST_STARTS": 1}.items():
        setattr(warm_start, name, value)
    model, shards, n_tokens = corpus()
    expected = digest(GIBBS.run(model, shards, seed=1, execution=Serial()))
    ends, received = [], {}

    def tell(progress):
        ends.append(time.monotonic())
        received[progress.sweep] = received_by_hosts()
        if progress.sweep == cut_at:
            subprocess.run(command, check=True)

    with Client(address) as client:
        client.wait_for_workers(2, timeout=60)
        there = Cluster(Engine(client, 120.0), 1, None, store)
        found = digest(GIBBS.run(model, shards, seed=1, execution=there, progress=tell))
    prior = model.prepare(model.initial_parameters(shards, key()))
    told = {
        "same": found == expected,
        "slowest": max(np.diff(ends)),
        "prior": prior.topics.nbytes,
        "tables": min(4 * n_tokens // 2, prior.topics.nbytes),
        "crossed": [
            [(after - before) / (LAST - FIRST) for before, after in zip(*pair)]
            for pair in zip(received[FIRST], received[LAST])
        ],
    }
    print(json.dumps(told))


def corpus():
    """Return a model, blocks of documents and the number of tokens."""
    rng, tree = np.random.default_rng(0), Decomposition.balanced(N_TOPICS)
    prior = NormalInverseWishart.weak(*tree.dirichlet_moments(1.0))
    model = assemble(DirichletWords(N_WORDS, 0.05), NormalShares(prior), Sticks(tree))
    counts = rng.multinomial(100, rng.dirichlet(np.full(N_WORDS, 0.02)), size=N_DOCUMENTS)
    return model, model.shards(counts.astype(np.int32), 60), int(counts.sum())


def key():
    from polystick.keys import Key

    return Key(1)


def digest(posterior):
    """Return a hash of all arrays."""
    found = hashlib.sha256()
    for group in sorted(posterior.tree.children):
        for name in sorted(posterior.tree[group].data_vars):
            found.update(np.ascontiguousarray(posterior.tree[group][name].values).tobytes())
    return found.hexdigest()


def received_by_hosts():
    """Return the bytes that came in and went out so far, of each host of a worker."""
    return [
        counters(["ip", "netns", "exec", host, "cat", "/proc/net/dev"]) for host in sys.argv[4:6]
    ]


def counters(command):
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    fields = next(line.split() for line in lines if line.strip().startswith("eth0:"))
    return int(fields[1]), int(fields[9])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[6:])
