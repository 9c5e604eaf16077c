"""A fit on a cluster has the bits of one in this process, whoever dies meanwhile."""

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import cloudpickle
import numpy as np
import pytest
import scipy.sparse

import toy_model
from polystick import (
    Corpus,
    CorrelatedTopicModel,
    Gibbs,
    MeanField,
    MultinomialLDS,
    StochasticVI,
    cluster,
)
from polystick.clusters import rows as cluster_rows
from polystick.clusters.context import Cluster
from polystick.clusters.engine import ClusterError, Engine
from polystick.conjugate import NormalInverseWishart
from polystick.corpus import CorpusError, CorpusWriter
from polystick.decomposition import Decomposition
from polystick.inference.execution import Serial, Threads
from polystick.models import warm_start
from polystick.models.multinomial import CorrelatedCounts
from polystick.models.regression import StickRegression
from polystick.models.regression_state import RegressionPrior
from polystick.models.softmax_regression import SoftmaxRegression
from polystick.population import LearnedScale
from topic_tools import JIT, correlated_topics, small_corpus, weak_model

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.skipif(not JIT, reason="workers would interpret kernels"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:a sweep takes"),
    pytest.mark.filterwarnings("ignore:.* of a sweep of"),
]
cloudpickle.register_pickle_by_value(toy_model)
GIBBS = Gibbs(n_draws=8, n_burn=6, n_chains=2)
LONG = Gibbs(n_draws=300, n_burn=10, n_chains=2)
SHORT_START = {"N_SWEEPS": 6, "N_TRIAL": 3, "MOST_STARTS": 1}
FIELD = MeanField(tolerance=1e-9, max_sweeps=5, n_draws=2)


class Clusters:
    """Two workers, and two others where tests killed some while they were starting: Dask gives those up."""

    def __init__(self):
        self._stack, self._client = contextlib.ExitStack(), None

    def client(self):
        if self._client is not None:
            try:
                self._client.wait_for_workers(2, timeout=20)
                self._client.run(os.getpid)  # the scheduler may still count one that is dead
            except OSError:
                self.close()
        if self._client is None:
            self._client = self._stack.enter_context(cluster(workers=2))
        return self._client

    def close(self):
        self._client = None
        self._stack.close()


@pytest.fixture(scope="module")
def clusters():
    with contextlib.closing(Clusters()) as found:
        yield found


@pytest.fixture
def client(clusters):
    return clusters.client()


@pytest.fixture
def engine(client):
    return Engine(client, 60.0)


@pytest.fixture(autouse=True)
def short_start(monkeypatch):
    for name, value in SHORT_START.items():
        monkeypatch.setattr(warm_start, name, value)


def topics():
    model, counts = small_corpus(70)
    return model, model.shards(counts, 8)


def law_that_moves():
    """Topics as the face makes them, whose law moves with all documents at once."""
    tree, counts = Decomposition.balanced(4), small_corpus(70)[1]
    prior = LearnedScale(tree.dirichlet_moments(1.0)[0], scale=1.0)
    model = correlated_topics(counts.shape[1], 0.05, prior, tree)
    return model, model.shards(counts, 8)


def rows():
    model = CorrelatedCounts(
        NormalInverseWishart.weak(np.zeros(2), np.ones(2)), Decomposition.sticks([0, 1, 2])
    )
    counts = np.random.default_rng(2).multinomial(20, [0.5, 0.3, 0.2], size=150)
    return model, model.shards(counts, size=12)


def rows_that_move():
    """Rows as the face makes them: weak sticks and scales move with the law of all rows."""
    tree = Decomposition.balanced(4)
    model = CorrelatedCounts(LearnedScale(tree.dirichlet_moments(1.0)[0], scale=1.0), tree)
    counts = np.random.default_rng(2).multinomial(6, [0.5, 0.3, 0.15, 0.05], size=150)
    return model, model.shards(counts, size=12)


def regression(kind=StickRegression, *more):
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(90), rng.normal(size=90)])
    width = 2 if more else 3
    prior = RegressionPrior(np.zeros((2, width)), np.ones(2), (4,), "full")
    counts = rng.multinomial(15, [0.5, 0.3, 0.2], size=90)
    model = kind(prior, *more)
    return model, model.shards(counts, x, rng.integers(0, 4, (90, 1)), size=20)


def stick_regression():
    return regression(StickRegression, Decomposition.sticks([0, 1, 2]))


def softmax_regression():
    return regression(SoftmaxRegression)


def toy():
    """A model of somebody's own, whose code goes to the workers with it."""
    model = toy_model.Toy()
    return model, model.shards(np.random.default_rng(5).normal(1.0, 1.4, size=53))


CASES = {
    "topics": topics,
    "moves": law_that_moves,
    "rows": rows,
    "rows that move": rows_that_move,
    "regression": stick_regression,
    "softmax regression": softmax_regression,
    "toy": toy,
}


def run(case, schedule=GIBBS, execution=None, **options):
    model, shards = CASES[case]()
    return schedule.run(model, shards, seed=4, execution=execution, **options)


def on(engine, n_shards=None, store=None):
    return Cluster(engine, 1, n_shards, store)


def same(left, right):
    for group in left.tree.children:
        for name, values in left.tree[group].data_vars.items():
            np.testing.assert_array_equal(values, right.tree[group][name], err_msg=str(name))


def write_corpus(folder, counts, first):
    """Write counts in two parts."""
    writer = CorpusWriter(folder, counts.shape[1])
    for piece in (counts[:first], counts[first:]):
        writer.add(scipy.sparse.csr_array(piece.astype(np.int32)))
    writer.close(None)


@functools.cache
def here(case="topics", schedule=GIBBS):
    return run(case, schedule, Serial())


@pytest.mark.parametrize(
    ("case", "schedule"),
    [
        ("topics", GIBBS),
        ("topics", FIELD),
        ("rows that move", GIBBS),
        ("rows that move", FIELD),
        ("moves", GIBBS),
        ("rows", GIBBS),
        ("regression", GIBBS),
        ("regression", FIELD),
        ("softmax regression", GIBBS),
        ("toy", GIBBS),
    ],
)
def test_same_bits_as_in_this_process(case, schedule, engine):
    expected = here(case, schedule)
    same(expected, run(case, schedule, Threads(2)))
    for n_shards in (2, 3, 5) if case in ("topics", "rows that move") else (3,):
        same(expected, run(case, schedule, on(engine, n_shards)))


def test_a_face_in_the_context_and_a_corpus_on_disk(client, tmp_path):
    counts = small_corpus(60)[1]
    write_corpus(tmp_path / "corpus", counts, 40)
    corpus = Corpus(tmp_path / "corpus")
    model = CorrelatedTopicModel(3, inference=GIBBS, random_state=1, progress=False)
    here = model.fit(corpus).posterior_
    with cluster(client, store=tmp_path / "store"):
        there = model.fit(corpus).posterior_
        assert model.transform(corpus).shape == (60, 3)
    same(here, there)
    assert list((tmp_path / "store").iterdir()) == []  # snapshots and probes are gone


# workers die


def kill_at(client, sweeps, which):
    """Return a callback that kills workers in these sweeps."""
    left = list(sweeps)

    def tell(progress):
        if left and progress.sweep == left[0]:
            left.pop(0)
            for pid in [*_pids(client)][:which]:
                os.kill(pid, signal.SIGKILL)

    return tell


def _pids(client):
    """Return the processes of two workers, or of one where Dask gave up one that was killed as it started."""
    with contextlib.suppress(TimeoutError):
        client.wait_for_workers(2, timeout=30)
    client.wait_for_workers(1, timeout=30)
    told = client.scheduler_info(n_workers=-1)["workers"]
    return list(client.run(os.getpid, workers=list(told)).values())


@pytest.mark.parametrize(
    ("case", "sweep", "which"),
    [("topics", 3, 1), ("topics", 13, 2), ("rows that move", 5, 1)],
    ids=["one", "both", "rows"],
)
def test_kill_9_between_sweeps(case, sweep, which, client, engine):
    progress = kill_at(client, [sweep], which)
    same(here(case), run(case, execution=on(engine, 4), progress=progress))


@pytest.mark.slow  # on a busy machine Dask may give up a worker that is killed as it starts
def test_kill_9_at_any_time(client, engine, tmp_path):
    pids, stop = _pids(client), threading.Event()

    def strike():
        stop.wait(0.5)
        os.kill(pids[0], signal.SIGKILL)

    killer = threading.Thread(target=strike)
    killer.start()
    options = {"checkpoint": tmp_path / "run", "every": 1e-6}
    found = run("topics", execution=on(engine, 3), **options)
    killer.join()
    same(here(), found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_kill_9_twenty_times(seed, client, engine, tmp_path):
    rng = np.random.default_rng(seed)
    pids = _pids(client)
    victims = pids if seed % 4 == 0 else [pids[seed % len(pids)]]

    def strike():
        time.sleep(rng.uniform(0.0, 4.0))
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=strike)
    killer.start()
    gibbs = Gibbs(n_draws=30, n_burn=10, n_chains=2)
    options = {"checkpoint": tmp_path / "run", "every": 0.5} if seed % 2 else {}
    found = run("topics", gibbs, execution=on(engine, 4), **options)
    killer.join()
    same(run("topics", gibbs), found)


class PulledError(RuntimeError):
    pass


def pull_at(sweep):
    def tell(progress):
        if progress.sweep == sweep:
            raise PulledError

    return tell


@pytest.mark.parametrize("first", ["cluster", "threads"])
def test_a_run_goes_on_elsewhere(first, engine, tmp_path):
    options = {"checkpoint": tmp_path / "run", "every": 1e-6}
    threads, there = Threads(2), on(engine, 3)
    before, after = (there, threads) if first == "cluster" else (threads, there)
    with pytest.raises(PulledError):
        run("topics", execution=before, progress=pull_at(9), **options)
    same(here(), run("topics", execution=after, resume=True, **options))


@pytest.mark.slow  # on a busy machine Dask may give up a worker that is killed as it starts
def test_a_shard_that_kills_its_workers_is_named(clusters, client, engine, monkeypatch):
    monkeypatch.setattr(cluster_rows, "MOST_DEATHS", 2)
    progress = kill_at(client, (2, 3, 4, 5, 6), 2)
    said = r"2 workers died while they held blocks 0 to .* \(memory limit \d+\.\d GB\).* resume"
    try:
        with pytest.raises(ClusterError, match=said):
            run("topics", execution=on(engine, 2), progress=progress)
    finally:
        clusters.close()  # some may have been killed while they were starting


@pytest.mark.slow  # on a busy machine Dask may give up a worker that is killed as it starts
def test_a_worker_that_is_paused_costs_its_rows(client, engine):
    """Dask pauses workers that are short of memory; this one is, for it may have hardly any."""
    first = sorted(engine.workers())[0]

    def tell(progress):
        if progress.sweep == 6:
            client.run(_pause_above, 1e-6, workers=[first])
            while first in engine.workers():
                time.sleep(0.05)

    try:
        same(here(), run("topics", execution=on(engine, 4), progress=tell))
        assert first not in engine.workers()
    finally:
        client.run(_pause_above, 0.8, workers=[first])


def _pause_above(share, dask_worker):
    dask_worker.memory_manager.memory_pause_fraction = share


def test_a_part_that_changes_under_a_run_is_named(engine, tmp_path):
    counts, folder = small_corpus(70)[1], tmp_path / "corpus"
    write_corpus(folder, counts, 40)
    model, corpus = weak_model(4, counts.shape[1]), Corpus(folder)

    def tell(progress):
        if progress.sweep == 5:
            path = folder / "part-00001.npz"
            path.write_bytes(path.read_bytes()[:-30] + bytes(30))

    options = {"seed": 4, "execution": on(engine, 3), "progress": tell}
    with pytest.raises(CorpusError, match=r"part-00001\.npz has changed since"):
        GIBBS.run(model, model.shards(corpus, 8), **options)


KILLED = """
import sys, warnings
sys.path[:0] = sys.argv[2:]
import test_clusters as tests
from polystick import cluster
from polystick.clusters.engine import Engine
from polystick.models import warm_start

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, value in tests.SHORT_START.items():
        setattr(warm_start, name, value)
    with cluster(workers=2) as client:
        options = {"checkpoint": sys.argv[1], "every": 0.2}
        there = tests.on(Engine(client, 60.0), 3)
        tests.run("topics", tests.LONG, there, progress=lambda p: print(p.sweep, flush=True), **options)
"""


@pytest.mark.slow
def test_all_are_killed_and_a_run_goes_on_elsewhere(client, engine, tmp_path):
    """Driver, scheduler and workers at once, as when the power fails."""
    (tmp_path / "script.py").write_text(KILLED)
    places = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    process = subprocess.Popen(
        [sys.executable, tmp_path / "script.py", tmp_path / "run", *places],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process.stdout as told:
        next(line for line in told if int(line) > 40)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    shutil.copytree(tmp_path / "run", tmp_path / "again")
    expected = here("topics", LONG)
    for folder, execution in {"run": on(engine, 5), "again": Threads(2)}.items():
        options = {"checkpoint": tmp_path / folder, "resume": True}
        same(expected, run("topics", LONG, execution, **options))


@pytest.fixture
def own_scheduler(tmp_path):
    """A client, and a scheduler that may be killed, with two workers."""
    with contextlib.ExitStack() as stack:

        def start(what, *more):
            command = [
                sys.executable,
                "-m",
                f"distributed.cli.dask_{what}",
                "--no-dashboard",
                *more,
            ]
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(process.wait, 30)
            stack.callback(process.kill)
            return process

        file = tmp_path / "scheduler.json"
        where = ["--scheduler-file", str(file), "--host", "127.0.0.1"]
        scheduler = start("scheduler", *where, "--port", "0")
        for number in range(2):
            place = ["--local-directory", str(tmp_path / f"worker{number}")]
            start("worker", *where, "--no-nanny", "--nthreads", "1", *place)
        while not file.exists():
            time.sleep(0.1)
        client = distributed.Client(scheduler_file=str(file), set_as_default=False)
        stack.callback(client.close, 1)
        client.wait_for_workers(2, timeout=60)
        yield client, scheduler


@pytest.mark.slow
def test_a_scheduler_that_goes_away(own_scheduler, tmp_path):
    client, scheduler = own_scheduler

    def tell(progress):
        if progress.sweep == 8:
            scheduler.kill()

    options = {"checkpoint": tmp_path / "run", "every": 1e-6}
    begun = time.monotonic()
    with pytest.raises(ClusterError, match="the scheduler of the cluster has gone"):
        run("topics", GIBBS, on(Engine(client, 5.0), 3), progress=tell, **options)
    assert time.monotonic() - begun < 90
    same(here(), run("topics", GIBBS, Threads(2), resume=True, **options))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="a certificate needs openssl")
def test_a_cluster_that_speaks_tls(tmp_path):
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    made = ["-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "1"]
    names = ["-subj", "/CN=polystick", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", "req", "-x509", *made, *names], check=True, capture_output=True)
    roles = {
        f"tls_{role}_{what}": path
        for role in ("client", "scheduler", "worker")
        for what, path in {"key": key, "cert": certificate}.items()
    }
    security = distributed.Security(tls_ca_file=certificate, require_encryption=True, **roles)
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            protocol="tls://",
            security=security,
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        assert all(address.startswith("tls://") for address in Engine(client, 60.0).workers())
        with cluster(client):
            same(here(), run("topics", GIBBS, on(Engine(client, 60.0), 3)))


def test_rows_are_told_by_the_parts_of_a_corpus(tmp_path):
    write_corpus(tmp_path / "corpus", small_corpus(70)[1], 40)
    blocks = weak_model(4, 30).shards(Corpus(tmp_path / "corpus"), 8)
    first = blocks.parts[0].stop
    assert (
        cluster_rows.told_of(range(first), blocks)
        == f"blocks 0 to {first - 1} of parts 0 to 0 of the corpus"
    )
    assert cluster_rows.told_of(range(2, first + 1), blocks).endswith(
        "of parts 0 to 1 of the corpus"
    )
    assert cluster_rows.told_of(range(2, 5), [None] * 9) == "blocks 2 to 4 of the rows"


INTERRUPTED = """
import numpy as np, os, signal, threading, warnings
from polystick import CorrelatedTopicModel, Gibbs, cluster

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    counts = np.random.default_rng(0).poisson(0.5, (300, 60))

    def tell(progress):
        if progress.sweep == 12:
            os.killpg(os.getpgrp(), signal.SIGINT)

    with cluster(workers=2) as client:
        before = client.run(os.getpid)
        gibbs = Gibbs(500, 10, n_chains=1)
        model = CorrelatedTopicModel(3, inference=gibbs, random_state=0, progress=tell).fit(counts)
        print("draws", model.posterior_["cov"].shape[1], before == client.run(os.getpid))
"""


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_keeps_draws_and_workers(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=300,
        start_new_session=True,
    )
    assert "draws 2 True" in done.stdout, done.stderr


# what is refused, without workers


def test_a_failure_in_a_block_is_that_of_this_process(engine):
    def failing(execution):
        model = toy_model.Toy(poison=17)
        with pytest.raises(FloatingPointError) as caught:
            GIBBS.run(model, model.shards(np.arange(40.0)), seed=4, execution=execution)
        return str(caught.value)

    assert failing(on(engine, 3)) == failing(Threads(2))
    assert "z of row 17 is not finite" in failing(on(engine, 5))


def test_what_does_not_pay_is_refused(client):
    counts = small_corpus(60)[1]
    with cluster(client):
        batches = CorrelatedTopicModel(3, inference=StochasticVI(16, n_passes=1), random_state=1)
        with pytest.raises(ClusterError, match="batches are too small to pay on a cluster"):
            batches.fit(counts)


def test_moves_that_take_most_of_a_sweep_are_told(engine, monkeypatch):
    monkeypatch.setattr(cluster_rows, "MOST_HERE", 0.01)
    with pytest.warns(
        RuntimeWarning, match=r"\d+ % of a sweep of StickRegression are moves of all rows"
    ):
        run("regression", execution=on(engine, 2))


def test_where_there_is_no_cluster():
    with pytest.raises(ClusterError, match="there is no current Dask client"), cluster():
        pass
    with pytest.raises(ValueError, match="there must be no address"), cluster("x", workers=1):
        pass


def test_an_address_where_nobody_answers(monkeypatch):
    def refuse(*_, **__):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises((ClusterError, TypeError)), cluster("tcp://127.0.0.1:1"):
        pass


def test_a_store_that_workers_do_not_see(client, tmp_path, monkeypatch):
    from polystick.clusters import context

    monkeypatch.setattr(context, "sees", _sees_nothing)
    with (
        pytest.raises(ClusterError, match="store must be on storage that all hosts see"),
        cluster(client, store=tmp_path / "here"),
    ):
        pass
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ClusterError, match="store must be a folder that can be written to"),
        cluster(client, store=tmp_path / "file" / "x"),
    ):
        pass


def _sees_nothing(path, content):
    return False


def test_workers_of_other_versions_or_other_bits(client, monkeypatch):
    from polystick.clusters import context

    mine = context.host()
    other = mine._replace(versions={**mine.versions, "numba": "0.1"})
    monkeypatch.setattr(context, "_at_all", lambda *_: [("tcp://there:1", other)])
    with (
        pytest.raises(ClusterError, match=r"tcp://there:1 has numba 0\.1 and here"),
        cluster(client),
    ):
        pass
    other = mine._replace(name="old", bits="0")
    monkeypatch.setattr(context, "_at_all", lambda *_: [("tcp://there:1", other)])
    with pytest.warns(RuntimeWarning, match="old computes other last bits"), cluster(client):
        pass


class Nobody:
    """A client whose scheduler answers, and has no workers; or does not answer."""

    status = "running"

    def __init__(self, answers):
        self.answers, self.scheduler = answers, SimpleNamespace(identity=None)

    def sync(self, function, callback_timeout):
        if not self.answers:
            raise TimeoutError
        return {"workers": {}}


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (True, "no workers that take work for 1 seconds"),
        (False, "the scheduler of the cluster has gone"),
    ],
)
def test_waits_have_a_deadline(answers, said):
    model, shards = topics()
    begun = time.monotonic()
    with pytest.raises(ClusterError, match=said):
        GIBBS.run(model, shards, seed=1, execution=on(Engine(Nobody(answers), 1.0), 2))
    assert time.monotonic() - begun < 20


def test_a_paused_or_silent_worker_gets_no_rows(monkeypatch):
    told = {"name": 1, "nthreads": 1, "memory_limit": 1, "last_seen": 5.0}
    client = Nobody(True)
    workers = {"a": {**told, "status": "running"}, "b": {**told, "status": "paused"}}
    client.sync = lambda *_, **__: {"workers": workers}
    engine, now = Engine(client, 1.0), time.monotonic()
    assert set(engine.workers()) == {"a"}
    monkeypatch.setattr(time, "monotonic", lambda: now + 60)
    assert engine.workers() == {}
    workers["a"]["last_seen"] = 6.0
    assert set(engine.workers()) == {"a"}


def test_sweeps_that_are_short_are_told(engine):
    with pytest.warns(RuntimeWarning, match=r"a sweep takes 0\.\d\d seconds on this cluster"):
        run("toy", execution=on(engine, 2))


@pytest.mark.slow
def test_sequences_of_many_steps(client):
    rng = np.random.default_rng(1)
    sequences = [rng.integers(0, 3, 12) for _ in range(9)]
    model = MultinomialLDS(1, n_categories=3, inference=Gibbs(3, 2, n_chains=2), random_state=1)
    expected = model.fit(sequences).posterior_
    with cluster(client):
        same(expected, model.fit(sequences).posterior_)


def test_nothing_is_broadcast_or_replicated():
    sources = [p.read_text() for p in Path(cluster_rows.__file__).parent.glob("*.py")]
    assert not any("broadcast=True" in source or ".replicate(" in source for source in sources)


def test_a_table_crosses_without_the_tokens_that_are_in_it():
    from polystick.models.topic_words import Pairs

    def some(n):
        drawn = np.random.default_rng(n).integers(0, 500, n).astype(np.int32)
        return Pairs([drawn], np.zeros(1), 500)

    pairs = some(600) + some(400) + some(300)
    assert pairs.blocks
    content = cloudpickle.dumps(pairs)
    assert len(content) < 1.1 * 4 * 500 + 500
    np.testing.assert_array_equal(cloudpickle.loads(content).table(50, 10), pairs.table(50, 10))


def test_an_order_is_small():
    from polystick.clusters.worker import Order
    from polystick.inference.looks import RowLook
    from polystick.keys import Key

    model = weak_model(4, 30)
    _, shards = topics()
    look = RowLook((), model.watch(shards))
    prior = model.prepare(model.initial_parameters(shards, Key(1)))
    order = Order("step", "draw_rows", [prior], [Key(1)], look)
    assert len(cloudpickle.dumps(order)) < 64_000 + prior.topics.nbytes
