"""What is so: which nodes are up, who waits, who runs where and since when. Plain, and the only truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet, GangJob

from .job import Request

RECENT = 1024
"""Jobs that are over whose names are remembered: longer ago, a name is new again."""


@dataclass(frozen=True, slots=True)
class Stint:
    """A job that runs.

    Attributes:
        request: the job.
        degree: how many workers it has.
        since: seconds of the user's clock.
        end: when it is expected to be done.
        nodes: its GPUs by node.
    """

    request: Request
    degree: int
    since: float
    end: float
    nodes: Mapping[int, tuple[int, ...]]

    @property
    def gpus(self) -> int:
        """How many GPUs it holds."""
        return sum(len(gpus) for gpus in self.nodes.values())

    def ran(self, now: float) -> float:
        """Return the seconds for which it got on; what its start cost is none of them."""
        return max(0.0, now - self.since - self.request.pays)

    def left(self, now: float) -> float:
        """Return the seconds that it is expected to run still: as long as it did, if it was expected to be done."""
        return self.end - now if self.end > now else now - self.since


@dataclass(slots=True)
class Book:
    """The state that a snapshot holds.

    Attributes:
        fleet: the nodes, m of them.
        now: the latest time that was heard of.
        up: which nodes are up, (m,).
        holders: of each node, who holds each of its GPUs that is held, (m,).
        waiting, running: jobs by name.
        finished: names of the last `RECENT` jobs that are done or were withdrawn, the oldest first.
        serial: how many jobs were submitted.
        idle: GPUs of nodes that are up which nobody holds.
        gpus: GPUs of nodes that are up.
    """

    fleet: Fleet
    now: float = 0.0
    up: list[bool] = field(default_factory=list)
    holders: list[dict[int, str]] = field(default_factory=list)
    waiting: dict[str, Request] = field(default_factory=dict)
    running: dict[str, Stint] = field(default_factory=dict)
    finished: dict[str, None] = field(default_factory=dict)
    serial: int = 0
    idle: int = 0
    gpus: int = 0

    def __post_init__(self) -> None:
        usable = self.fleet.usable
        assert usable is not None
        self.up = self.up or usable.tolist()
        self.holders = [{} for _ in self.up]
        self.idle = sum(gpus for gpus, up in zip(self.fleet.gpus.tolist(), self.up, strict=True) if up)
        self.gpus = self.idle
        self._index = {name: node for node, name in enumerate(self.fleet.names)}

    _index: dict[str, int] = field(default_factory=dict, repr=False)

    def held(self) -> Mapping[str, tuple[GangJob, Mapping[int, tuple[int, ...]]]]:
        """Return who runs where, as the verifier reads it; only what it asks for is made."""
        return _Held(self.running)

    def at(self, now: float | None) -> float:
        """Return the time of an event: `now`, or that of the last one.

        Raises:
            InstanceError: if it is no number or before the last one.
        """
        if now is None:
            return self.now
        require_number(now, "now")
        if now < self.now:
            raise InstanceError("now", f"{now!r} is before {self.now!r}, when something happened already")
        return float(now)

    def node(self, node: str | int) -> int:
        """Return the number of a node given by name or number.

        Raises:
            InstanceError: if there is no such node.
        """
        if isinstance(node, str):
            if node not in self._index:
                raise InstanceError("node", f"{node!r} is no node of the cluster")
            return self._index[node]
        if isinstance(node, bool) or not isinstance(node, int) or not 0 <= node < self.fleet.n_nodes:
            raise InstanceError("node", f"{node!r} is no node of the cluster, which has {self.fleet.n_nodes}")
        return node

    def is_new(self, name: str) -> None:
        """Raise if a job of this name was submitted before."""
        known = (name in self.waiting, name in self.running, name in self.finished)
        for words, found in zip(("waits already", "runs already", "was done already"), known, strict=True):
            if found:
                raise InstanceError("job.name", f"{name!r} {words}")

    def runs(self, name: str) -> Stint:
        """Return a running job.

        Raises:
            InstanceError: if no job of that name runs.
        """
        if name not in self.running:
            why = "waits" if name in self.waiting else "is done" if name in self.finished else "is not known"
            raise InstanceError("job", f"{name!r} does not run: it {why}")
        return self.running[name]

    def over(self, name: str) -> None:
        """Note that a job is done or was withdrawn, and forget who was so long ago."""
        self.finished[name] = None
        if len(self.finished) > RECENT:
            del self.finished[next(iter(self.finished))]

    def start(self, stint: Stint) -> None:
        """Have a waiting job run."""
        name = stint.request.name
        del self.waiting[name]
        self.running[name] = stint
        for node, gpus in stint.nodes.items():
            self.holders[node].update(dict.fromkeys(gpus, name))
        self.idle -= stint.gpus

    def stop(self, name: str) -> Stint:
        """Have a running job hold nothing any more."""
        stint = self.running.pop(name)
        for node, gpus in stint.nodes.items():
            for gpu in gpus:
                del self.holders[node][gpu]
        self.idle += stint.gpus
        return stint

    def turn(self, node: int, up: bool) -> None:
        """Have a node, on which nobody is, be up or down."""
        self.up[node] = up
        more = int(self.fleet.gpus[node]) * (1 if up else -1)
        self.idle += more
        self.gpus += more


class _Held(Mapping[str, tuple[GangJob, Mapping[int, tuple[int, ...]]]]):
    """A window on the running jobs."""

    def __init__(self, running: Mapping[str, Stint]) -> None:
        self._running = running

    def __getitem__(self, name: str) -> tuple[GangJob, Mapping[int, tuple[int, ...]]]:
        stint = self._running[name]
        return stint.request.job, stint.nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._running)

    def __len__(self) -> int:
        return len(self._running)
