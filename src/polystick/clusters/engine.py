"""All that is asked of Dask: who is there, and tasks pinned to workers; each wait has a deadline.

Nothing is broadcast or replicated: Dask's own way to do so never returns if a worker dies meanwhile.
"""

import asyncio
import itertools
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["ClusterError", "Engine", "Worker"]

ASK = 15.0  # seconds for an answer of the scheduler
SILENT = 45.0  # seconds without a heartbeat, after which a worker counts as gone
POLL = 0.5


class ClusterError(RuntimeError):
    """A cluster that can't go on with a run."""


class Worker(NamedTuple):
    """A worker as the scheduler knows it."""

    address: str
    name: str
    n_threads: int
    memory_limit: int


class Engine:
    """A client of a cluster."""

    def __init__(self, client: Any, patience: float) -> None:
        self.client, self.patience = client, patience
        self._numbers, self._prefix = itertools.count(), uuid.uuid4().hex[:8]
        self._heartbeats: dict[str, tuple[float | None, float]] = {}

    def workers(self) -> dict[str, Worker]:
        """Return the workers that can be given work, by address; wait for the scheduler if need be."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                told = self.client.sync(self.client.scheduler.identity, callback_timeout=ASK)
                break
            except (OSError, TimeoutError, RuntimeError, ValueError, AttributeError) as error:
                if time.monotonic() > deadline or self.client.status == "closed":
                    raise ClusterError(
                        f"the scheduler of the cluster has gone ({type(error).__name__}); go on from the "
                        "checkpoint with resume=True, on any cluster or without one"
                    ) from error
                time.sleep(POLL)
        return {
            address: Worker(address, str(w["name"]), w["nthreads"], w["memory_limit"])
            for address, w in told["workers"].items()
            if w["status"] == "running" and not self._is_silent(address, w["last_seen"])
        }

    def _is_silent(self, address: str, last_seen: float) -> bool:
        """Tell whether a worker's heartbeat has stood still; clocks of hosts may differ."""
        now = time.monotonic()
        before, since = self._heartbeats.get(address, (None, now))
        if before != last_seen:
            since = now
        self._heartbeats[address] = (last_seen, since)
        return now - since > SILENT

    def run(
        self, calls: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]]
    ) -> Iterator[tuple[str, Any]]:
        """Run function(*arguments) at each worker; yield (worker, result), None for one that is gone.

        What is raised there by Dask or by the function is a `Trouble`.
        """
        futures = {
            worker: self._submit(worker, function, arguments)
            for worker, (function, arguments) in calls.items()
        }
        for worker, future in futures.items():
            yield worker, self._result(worker, future)

    def _submit(self, worker: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        key = f"polystick-{function.__name__}-{self._prefix}-{next(self._numbers)}"
        return self.client.submit(
            function,
            *arguments,
            key=key,
            pure=False,
            retries=0,
            workers=[worker],
            allow_other_workers=False,
        )

    def _result(self, worker: str, future: Any) -> Any:
        """Wait for a result as long as its worker lives."""
        while True:
            try:
                return future.result(timeout=POLL)
            except TimeoutError:
                if worker not in self.workers():
                    future.release()
                    return None
            except (Exception, asyncio.CancelledError) as error:
                future.release()
                return Trouble(error)


class Trouble(NamedTuple):
    """What went wrong with a task."""

    error: BaseException
