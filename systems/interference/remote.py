"""Agents in processes of their own, by pipes, or on the nodes of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any
from weakref import finalize

from gangplan.instances.errors import InstanceError, extra
from gangplan.solvers.processes import Child

from .bidders import Agent, Local, Remote
from .case import Case

DEADLINE = 10.0
"""Seconds that an answer may take."""


class Processes(Remote):
    """Agents that are forks of this process; they end with it.

    Args:
        cases: of each agent's racks.
        local: see `Local`.
        deadline: seconds that an answer may take.

    Attributes:
        pids: of the processes.
    """

    def __init__(self, cases: Sequence[Case], local: Local, deadline: float = DEADLINE) -> None:
        self._pipes, children = list[Connection](), list[Child]()
        for case in cases:
            here, there = Pipe()
            children.append(Child(partial(_serve, case, local, there)))
            there.close()
            self._pipes.append(here)
        self.pids = [child.pid for child in children]
        finalize(self, _end, children, self._pipes)
        super().__init__(len(cases), deadline)

    def _send(self, k: int, message: bytes) -> None:
        self._pipes[k].send_bytes(message)

    def _ready(self, agents: Iterable[int], seconds: float | None) -> list[int]:
        pipes = {self._pipes[k]: k for k in agents}
        return [pipes[pipe] for pipe in wait(list(pipes), seconds) if isinstance(pipe, Connection)]

    def _receive(self, k: int) -> bytes:
        return self._pipes[k].recv_bytes()


def _serve(case: Case, local: Local, pipe: Connection) -> None:
    agent = Agent(case, local)
    while True:
        pipe.send_bytes(agent.answer(pipe.recv_bytes()))


def _end(children: Sequence[Child], pipes: Sequence[Connection]) -> None:
    for child, pipe in zip(children, pipes, strict=True):
        child.kill()
        pipe.close()
        child.join(1.0)


class Actors(Remote):
    """Agents that are actors of a Ray cluster, spread over its nodes; one is begun here if there is none.

    Args:
        cases, local, deadline: as of `Processes`; what `local` makes must be importable on the nodes.

    Raises:
        InstanceError: if Ray is not installed.
    """

    def __init__(self, cases: Sequence[Case], local: Local, deadline: float = DEADLINE) -> None:
        try:
            import ray
        except ImportError:
            raise InstanceError("policy", f"agents on Ray need it; {extra('ray')}") from None
        self._ray: Any = ray
        if not ray.is_initialized():
            ray.init(num_cpus=len(cases), include_dashboard=False, log_to_driver=False)
        made = ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(Agent)
        self._agents = [made.remote(case, local) for case in cases]
        self._answers = dict[int, Any]()
        super().__init__(len(cases), deadline)

    def _send(self, k: int, message: bytes) -> None:
        self._answers[k] = self._agents[k].answer.remote(message)

    def _ready(self, agents: Iterable[int], seconds: float | None) -> list[int]:
        answers = {self._answers[k]: k for k in agents}
        done, _ = self._ray.wait(list(answers), num_returns=1, timeout=seconds)
        return [answers[answer] for answer in done]

    def _receive(self, k: int) -> bytes:
        try:
            return bytes(self._ray.get(self._answers.pop(k)))
        except self._ray.exceptions.RayActorError as error:
            raise EOFError from error
