"""What a market tells its agents and asks of them: by a call here, or by messages to agents that are elsewhere."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from time import perf_counter
from typing import Any, NamedTuple, Protocol
from weakref import finalize

import numpy as np

from gangplan.instances.arrays import require_number
from gangplan.instances.errors import InstanceError, extra
from gangplan.solvers.processes import Child

from .case import InterferenceCase
from .environment import Environment
from .greedy import Greedy, Rows

Local = Callable[[InterferenceCase], Greedy]
"""Makes the bidder of an agent from the case of its racks."""
Bids = dict[int, tuple[Rows, float]]
"""Job -> where it would go, and what it costs, seconds; jobs that are not bid for are absent."""


class Message(NamedTuple):
    """One message to an agent.

    Attributes:
        jobs: to bid for, after the award.
        award: a job that it gets and what it offered for it.
    """

    jobs: Sequence[int]
    award: tuple[int, Rows] | None = None


class Bidders(Protocol):
    """Carries messages between a market and its agents.

    Attributes:
        lost: agents that are no more.
        wire: bytes sent and received.
    """

    lost: set[int]
    wire: int

    def begin(self, parts: Mapping[int, Environment]) -> None:
        """Note what agents own at the beginning of an interval: they hear it with what they are asked first."""

    def ask(self, asks: Mapping[int, Message]) -> dict[int, Bids]:
        """Return the bids of all agents that answered in time; an award holds only with an answer."""


class Here:
    """Bidders in this process, which see the whole's own arrays."""

    def __init__(self, cases: Sequence[InterferenceCase], local: Local) -> None:
        self._bidders, self._parts = [local(case) for case in cases], dict[int, Environment]()
        self.lost, self.wire = set[int](), 0

    def begin(self, parts: Mapping[int, Environment]) -> None:
        """See `Bidders`."""
        self._parts = dict(parts)

    def ask(self, asks: Mapping[int, Message]) -> dict[int, Bids]:
        """See `Bidders`."""
        return {k: bid(self._bidders[k], take(self._parts[k], ask), ask.jobs) for k, ask in asks.items()}


def take(part: Environment, ask: Message) -> Environment:
    """Place what is awarded."""
    if ask.award is not None:
        job, rows = ask.award
        part.waiting = [job]
        part.place_whole(job, rows)
    return part


def bid(bidder: Greedy, part: Environment, jobs: Iterable[int]) -> Bids:
    """Return what jobs would cost, each alone."""
    found = Bids()
    for job in jobs:
        part.waiting = [job]
        rows, more = bidder.offer(part, job)
        if rows:
            found[job] = rows, more
    return found


def sound(answer: Any, jobs: Iterable[int], servers: int) -> Bids:
    """Return those of an agent's bids that are for jobs it was asked about, on its servers, at a finite cost."""
    found, asked = Bids(), set(jobs)
    for job, offer in answer.items() if isinstance(answer, dict) else ():
        try:
            rows, more = offer
            there = all(s in range(servers) and min(tasks) >= 0 and len(tasks) == 2 for s, tasks in rows.items())
            if job in asked and rows and there and np.isfinite(more):
                found[job] = rows, float(more)
        except (AttributeError, TypeError, ValueError):
            continue
    return found


class Agent:
    """An agent that is elsewhere: it holds its racks' state itself, and learns the rest from messages."""

    def __init__(self, case: InterferenceCase, local: Local) -> None:
        self._part, self._bidder = Environment(case), local(case)
        bid(self._bidder, self._part, np.flatnonzero(case.fewest <= case.fleet.n_nodes)[:1].tolist())  # compiles

    def answer(self, message: bytes) -> bytes:
        """Return the bids that a message asks for."""
        now, done, ask = pickle.loads(message)
        part = self._part
        part.now = now
        if done is not None:  # what is not in it has ended, or its award was not confirmed in time
            for job in [job for job in part.running if job not in done]:
                part.withdraw(job)
            part.done_epochs[list(done)] = list(done.values())
        take(part, ask)
        return pickle.dumps(bid(self._bidder, part, ask.jobs))


class Remote(ABC):
    """Agents elsewhere. One that owes an answer is asked nothing more until it comes; too late, it is thrown away.

    Args:
        deadline: seconds that an answer may take.

    Attributes:
        lost, wire: see `Bidders`.
    """

    def __init__(self, agents: int, deadline: float) -> None:
        require_number(deadline, "deadline", positive=True)
        self.lost, self.wire = set[int](), 0
        self._deadline, self._owing = deadline, set[int]()
        self._now, self._done = 0.0, dict[int, dict[int, float]]()
        self._collect(self._post({k: Message(()) for k in range(agents)}), None)  # until all are there

    @abstractmethod
    def _send(self, k: int, message: bytes) -> None:
        """Send an agent a message.

        Raises:
            EOFError, OSError: if it is no more.
        """

    @abstractmethod
    def _ready(self, agents: Iterable[int], seconds: float | None) -> list[int]:
        """Wait, `None` for ever, until one of some agents has answered, or is no more; return those."""

    @abstractmethod
    def _receive(self, k: int) -> bytes:
        """Return what an agent answered; errors are those of `_send`."""

    def begin(self, parts: Mapping[int, Environment]) -> None:
        """See `Bidders`."""
        for k, part in parts.items():
            self._now = part.now
            self._done[k] = dict(zip(part.running, part.done_epochs[part.running].tolist(), strict=True))

    def ask(self, asks: Mapping[int, Message]) -> dict[int, Bids]:
        """See `Bidders`."""
        late = self._owing & asks.keys()
        for k in self._ready(late, 0.0) if late else ():
            self._take(k)
        return self._collect(self._post(asks), self._deadline)

    def _post(self, asks: Mapping[int, Message]) -> set[int]:
        asked = set(asks) - self._owing - self.lost
        for k in sorted(asked):
            message = pickle.dumps((self._now, self._done.pop(k, None), asks[k]))
            try:
                self._send(k, message)
            except (EOFError, OSError):
                self.lost.add(k)
            else:
                self._owing.add(k)
                self.wire += len(message)
        return asked & self._owing

    def _collect(self, asked: set[int], seconds: float | None) -> dict[int, Bids]:
        found, begin = dict[int, Bids](), perf_counter()
        while left := asked & self._owing:
            ready = self._ready(left, None if seconds is None else max(0.0, begin + seconds - perf_counter()))
            if not ready:
                break
            found |= {k: bids for k in ready if (bids := self._take(k)) is not None}
        return found

    def _take(self, k: int) -> Any:
        self._owing.discard(k)
        try:
            answer = self._receive(k)
        except (EOFError, OSError):
            self.lost.add(k)
            return None
        self.wire += len(answer)
        return pickle.loads(answer)


DEADLINE = 10.0
"""Seconds that an answer may take."""


class Processes(Remote):
    """Agents that are forks of this process; they end with it.

    Args:
        deadline: seconds that an answer may take.

    Attributes:
        pids: of the processes.
    """

    def __init__(self, cases: Sequence[InterferenceCase], local: Local, deadline: float = DEADLINE) -> None:
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


def _serve(case: InterferenceCase, local: Local, pipe: Connection) -> None:
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

    def __init__(self, cases: Sequence[InterferenceCase], local: Local, deadline: float = DEADLINE) -> None:
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
