"""Where instances are labelled: in processes of this machine, or on a Ray cluster, by joblib either way."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number

T = TypeVar("T")
ENGINES = ("local", "ray")
_ROUND = 4
"""Tasks a process, in one call of a back end that hands results over at the end of a call only."""

_PATIENCE = 10.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A back end of joblib.

    Attributes:
        name: local or ray.
        processes: how many work at a time; 0 means as many as there are cores.
        address: of the Ray cluster, as `ray.init` takes it: ``auto``, ``host:port``, ``ray://host:port`` or ``local``;
            empty for the one that Ray finds, or a new local one.
    """

    name: str = "local"
    processes: int = 0
    address: str = ""

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise InstanceError("engine", f"{self.name!r} is not one of {', '.join(ENGINES)}")
        require_number(self.processes, "processes", whole=True)
        if self.address and self.name != "ray":
            raise InstanceError("address", f"{self.address!r} is of a Ray cluster, and the engine is {self.name}")

    def map(self, work: Callable[[int], T], tasks: Sequence[int]) -> Iterator[tuple[int, T]]:
        """Yield (task, its result), in any order.

        Args:
            work: a function that other processes can import.
            tasks: its arguments.

        Raises:
            InstanceError: if a package is missing or the cluster cannot be reached.
        """
        joblib = _joblib()
        processes, backend = self._backend()
        call = joblib.delayed(_told)
        with backend:
            if self.name == "local":
                parallel = joblib.Parallel(n_jobs=processes, return_as="generator_unordered")
                yield from parallel(call(work, task) for task in tasks)
                return
            for first in range(0, len(tasks), _ROUND * processes):
                part = tasks[first : first + _ROUND * processes]
                yield from joblib.Parallel(n_jobs=processes, batch_size=1)(call(work, task) for task in part)

    def _knock(self) -> None:
        """Raise at once if nobody listens at ``host:port``: Ray itself waits for minutes."""
        host, _, port = self.address.rpartition(":")
        if host and port.isdigit() and "//" not in host:
            try:
                socket.create_connection((host, int(port)), _PATIENCE).close()
            except (OSError, OverflowError) as error:
                raise InstanceError("address", f"{self.address!r}: nobody answers there ({error})") from None

    def _backend(self) -> tuple[int, AbstractContextManager[Any]]:
        if self.name == "local":
            return self.processes or _cores(), nullcontext()
        try:
            ray, glue = import_module("ray"), import_module("ray.util.joblib")
        except ImportError:
            raise InstanceError("engine", 'ray needs a package of that name: pip install "gangplan[ray]"') from None
        if not ray.is_initialized():
            self._knock()
            many = {"num_cpus": self.processes} if self.address == "local" and self.processes else {}
            try:
                ray.init(address=self.address or None, log_to_driver=False, logging_level="error", **many)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise InstanceError("address", f"{self.address!r}: {str(error).splitlines()[0]}") from None
        glue.register_ray()
        cores = int(ray.cluster_resources().get("CPU", 1))
        return min(self.processes or cores, cores), _joblib().parallel_backend("ray")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _told(work: Callable[[int], T], task: int) -> tuple[int, T]:
    return task, work(task)


def _joblib() -> Any:
    try:
        return import_module("joblib")
    except ImportError:
        raise InstanceError("labels", 'need joblib: pip install "gangplan[learn]"') from None
