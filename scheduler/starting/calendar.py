"""Windows in which nodes are closed: drains, and reservations for some jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, nextafter
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_flag, require_number, require_text
from gangplan.instances.quantities import moment

from ..queueing.request import Request, names_of

_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Window:
    """Keep nodes, by name, for some jobs only during a time.

    Attributes:
        begin, end: seconds of the user's clock; the end is infinite if none is known.
        users, queues, jobs: whose jobs may be there, a queue with all below it; nobody's if all are empty.
        drain: whether `Scheduler.drain` made it.
    """

    name: str
    nodes: tuple[str, ...]
    begin: float
    end: float = inf
    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    drain: bool = False

    def __post_init__(self) -> None:
        require_text(self.name, "name")
        for name in ("nodes", "users", "queues", "jobs"):
            object.__setattr__(self, name, names_of(getattr(self, name), name))
        require_number(self.begin, "begin")
        if self.end != inf:
            require_number(self.end, "end")
        if self.end <= self.begin:
            raise InstanceError("end", f"{self.end!r} is not after the begin, {self.begin!r}")
        require_flag(self.drain, "drain")

    def lets(self, request: Request) -> bool:
        """Return whether a job may be there."""
        terms = request.terms
        within = any(f"{terms.queue}.".startswith(f"{queue}.") for queue in self.queues)
        return within or terms.user in self.users or request.name in self.jobs or terms.array in self.jobs

    def __str__(self) -> str:
        """Return which nodes are closed when."""
        until = "" if self.end == inf else f" to {moment(self.end)}"
        return f"{self.name} ({len(self.nodes)} node{'s'[: len(self.nodes) - 1]} from {moment(self.begin)}{until})"


class Calendar:
    """Keep the windows that are not over, by name, for nodes of these names."""

    def __init__(self, names: Sequence[str]) -> None:
        self.windows: dict[str, Window] = {}
        self._number = {name: node for node, name in enumerate(names)}
        self._at: dict[str, np.ndarray] = {}

    def add(self, window: Window) -> None:
        """Enter a window, unless its name is taken or a node is unknown."""
        if window.name in self.windows:
            raise InstanceError("name", f"{window.name!r} is a window already")
        for node in window.nodes:
            if node not in self._number:
                raise InstanceError("nodes", f"{node!r} is no node of the cluster")
        self.windows[window.name] = window
        self._at[window.name] = np.array([self._number[node] for node in window.nodes], dtype=np.int64)

    def remove(self, name: str) -> None:
        """Take a window out."""
        del self._at[name], self.windows[name]

    def tick(self, now: float) -> bool:
        """Forget the windows that are over; return whether there were any."""
        over = [name for name, window in self.windows.items() if window.end <= now]
        for name in over:
            self.remove(name)
        return bool(over)

    def wake(self, now: float) -> float | None:
        """Return when the next window begins or ends, `None` if none does."""
        times = [time for x in self.windows.values() for time in (x.begin, x.end) if now < time < inf]
        return min(times, default=None)

    def bars(self, request: Request, begin: float, end: float) -> list[Window]:
        """Return the windows that close nodes to a job which runs from `begin` to `end`."""
        last = max(end, nextafter(begin, inf))  # it is there at the begin, however short it is
        return [x for x in self.windows.values() if x.begin < last and begin < x.end and not x.lets(request)]

    def shut(self, windows: Iterable[Window]) -> np.ndarray:
        """Return the nodes of some windows, int64 (nodes,)."""
        nodes = [self._at[x.name] for x in windows]
        return np.unique(np.concatenate(nodes)) if nodes else _NONE

    def closed(self, request: Request, begin: float, end: float) -> np.ndarray:
        """Return the nodes on which a job may not run from `begin` to `end`, int64 (nodes,)."""
        bars = self.bars(request, begin, end) if self.windows else None
        return self.shut(bars) if bars else _NONE

    def now(self, now: float) -> list[tuple[Window, np.ndarray]]:
        """Return the windows that have begun, and their nodes."""
        return [(x, self._at[x.name]) for x in self.windows.values() if x.begin <= now < x.end]

    def whom(self, request: Request) -> frozenset[str]:
        """Return the windows that let a job in."""
        return frozenset(name for name, x in self.windows.items() if x.lets(request))

    def save(self) -> dict[str, Any]:
        """Return the windows for JSON, nothing if there are none."""
        rows = [asdict(x) | {"end": None if x.end == inf else x.end} for x in self.windows.values()]
        return {"windows": rows} if rows else {}

    def load(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take over what `save` returned."""
        for row in rows:
            self.add(Window(**{**row, "end": inf if row["end"] is None else row["end"]}))
