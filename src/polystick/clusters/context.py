"""`with polystick.cluster(...)`: fits in it run on a Dask cluster."""

import contextlib
import signal
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from polystick.clusters.engine import ClusterError, Engine, Trouble
from polystick.clusters.rows import ClusterRows
from polystick.clusters.worker import host, sees
from polystick.inference.execution import ELSEWHERE, Serial, Threads, execution_for
from polystick.inference.held import HeldRows
from polystick.validation import check_integer, check_positive, warn_user

__all__ = ["cluster"]


@contextlib.contextmanager
def cluster(
    address: Any = None,
    *,
    store: Any = None,
    workers: int | None = None,
    n_shards: int | None = None,
    patience: float = 300.0,
) -> Iterator[Any]:
    """Run fits on a Dask cluster while this context lasts: Gibbs sampling and mean field, with the same bits.

    Parameters
    ----------
    address : str, distributed.Client or None
        Of a scheduler, as in ``"tcp://head:8786"``, or a client of it. None: the current client, or with
        `workers` a cluster of processes on this machine.
    store : path or None
        A folder that all hosts see. Workers keep snapshots of their rows there; without one, the process
        that fits keeps them in memory.
    workers : int or None
        Start so many workers of one thread on this machine, and stop them at the end.
    n_shards : int or None
        In how many pieces rows are dealt out; None is two for each worker. It changes no bits.
    patience : float
        Seconds to wait for a scheduler, or for workers, that have gone.

    Yields
    ------
    distributed.Client
    """
    check_positive("patience", patience)
    if n_shards is not None:
        check_integer("n_shards", n_shards, at_least=1)
    with _client_of(address, workers) as client, _large_orders():
        engine = Engine(client, float(patience))
        folder = None if store is None else Path(store)
        _check_hosts(engine)
        if folder is not None:
            _check_store(engine, folder)
        token = ELSEWHERE.set(lambda n_jobs: Cluster(engine, n_jobs, n_shards, folder))
        try:
            yield client
        finally:
            ELSEWHERE.reset(token)


class Cluster:
    """Rows at the workers of a cluster; all else in the threads of this process."""

    def __init__(
        self, engine: Engine, n_jobs: int | None, n_shards: int | None, store: Path | None
    ) -> None:
        self._engine, self._n_shards, self._store = engine, n_shards, store
        self._here: Serial | Threads = execution_for(n_jobs)
        self._held: list[ClusterRows] = []

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return self._here.map(function, items)

    def hold(
        self, model: Any, shards: Sequence[Any], n_chains: int = 1, together: bool = False
    ) -> ClusterRows | HeldRows:
        """Hold rows at the workers; or here, and lend them for each step, if they move together."""
        self._check_corpus(shards)
        given = self._engine, model, shards, n_chains, self._n_shards, self._store
        there = ClusterRows(*given)
        self._held.append(there)
        return HeldRows(self.map, model, shards, n_chains, there.lend) if together else there

    def _check_corpus(self, shards: Any) -> None:
        folder = getattr(getattr(shards, "corpus", None), "folder", None)
        if folder is not None:
            manifest = (folder / "corpus.json").resolve()
            _need_sight(self._engine, manifest, manifest.read_text(), "the corpus")

    def __enter__(self) -> Self:
        self._here.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        for held in self._held:
            with contextlib.suppress(ClusterError):
                held.close()
        self._held = []
        self._here.__exit__(*exception)


# the client


@contextlib.contextmanager
def _client_of(address: Any, workers: int | None) -> Iterator[Any]:
    distributed = _import_distributed()
    if workers is not None:
        check_integer("workers", workers, at_least=1)
        if address is not None:
            raise ValueError("workers are started on this machine, so there must be no address")
        with _local(distributed, workers) as client:
            yield client
    elif address is None:
        try:
            client = distributed.get_client()
        except ValueError as error:
            raise ClusterError(
                "there is no current Dask client; give the address of a scheduler, a client, or workers=4 "
                "for processes on this machine"
            ) from error
        yield client
    elif isinstance(address, distributed.Client):
        yield address
    else:
        with _connected(distributed, address) as client:
            yield client


def _large_orders() -> Any:
    """Let topics and rows go to workers without Dask's warning of large graphs."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})


@contextlib.contextmanager
def _connected(distributed: Any, address: Any) -> Iterator[Any]:
    try:
        client = distributed.Client(address, timeout=20, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"no scheduler answers at {address} ({error}); start one by dask scheduler"
        ) from error
    try:
        yield client
    finally:
        client.close(timeout=5)


@contextlib.contextmanager
def _local(distributed: Any, n_workers: int) -> Iterator[Any]:
    """Yield a client of workers on this machine, which don't hear the Ctrl-C of its terminal."""
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        client.register_plugin(_deaf_plugin(distributed))
        yield client


def _deaf_plugin(distributed: Any) -> Any:
    class Deaf(distributed.WorkerPlugin):  # type: ignore[misc]
        """Leave Ctrl-C to the process that fits."""

        name = "polystick-deaf"

        def setup(self, worker: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return Deaf()


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            "a cluster needs Dask: pip install 'polystick[cluster]', on all hosts"
        ) from error
    return distributed


# what hosts must have


def _check_hosts(engine: Engine) -> None:
    """Refuse workers of other versions; warn of those whose arithmetic has other bits."""
    mine = host()
    for address, theirs in _at_all(engine, host):
        wrong = [
            f"{name} {theirs.versions[name]} and here {version}"
            for name, version in mine.versions.items()
            if theirs.versions[name] != version
        ]
        if wrong:
            raise ClusterError(
                f"workers must have the versions of this process; {address} has {', '.join(wrong)}: install "
                "the same on all hosts"
            )
        if theirs.bits != mine.bits:
            warn_user(
                f"{theirs.name} computes other last bits than {mine.name}, so a fit depends on who holds "
                "which rows: use hosts with CPUs of one kind, or set OPENBLAS_CORETYPE=Haswell on all of them"
            )


def _check_store(engine: Engine, folder: Path) -> None:
    content = uuid.uuid4().hex
    probe = (folder / f"polystick-probe-{content}").resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_text(content)
    except OSError as error:
        raise ClusterError(
            f"store must be a folder that can be written to; {folder} is not ({error.strerror})"
        ) from error
    try:
        _need_sight(engine, probe, content, "store")
    finally:
        probe.unlink(missing_ok=True)


def _need_sight(engine: Engine, path: Path, content: str, what: str) -> None:
    for address, seen in _at_all(engine, sees, path, content):
        if not seen:
            raise ClusterError(
                f"{what} must be on storage that all hosts see; the worker {address} does not see "
                f"{path.parent}"
            )


def _at_all(
    engine: Engine, function: Callable[..., Any], *arguments: Any
) -> Iterator[tuple[str, Any]]:
    """Yield (worker, result) of a function at all workers that are there."""
    deadline = time.monotonic() + engine.patience
    while not (live := engine.workers()):
        if time.monotonic() > deadline:
            raise ClusterError("the cluster has no workers that take work; start some")
        time.sleep(0.2)
    for worker, result in engine.run(dict.fromkeys(live, (function, arguments))):
        if isinstance(result, Trouble):
            raise ClusterError(
                f"the worker {worker} can't run polystick ({result.error!r}); install the same version on "
                "all hosts"
            ) from result.error
        if result is not None:
            yield worker, result
