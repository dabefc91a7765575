"""Limit what `gangplan serve` takes on, and refuse the rest by JSON that names field and value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from gangplan.solvers.processes import cores


@dataclass(frozen=True, slots=True)
class Limits:
    """Limit sizes, times and how many things happen at once.

    Attributes:
        requests: that are answered at a time.
        workers: threads of a solve.
        memory: bytes of each process of a solve.
        sessions: schedulers.
        events: in a request.
        deadline: seconds of a decision, and of a search for moves.
        body: seconds in which a request has to arrive.
        kept: solves whose answers are kept.
    """

    solves: Annotated[int, "at a time", (1, 1000)] = 1
    queue: Annotated[int, "solves that wait; more are refused", (0, 10**6)] = 16
    seconds: Annotated[float, "maximum time limit of a solve", "--solve-seconds", "SECONDS"] = 600.0
    bytes: Annotated[int, "of a request", "--max-bytes", (1024, 2**31)] = 2**25
    grace: Annotated[float, "after SIGTERM, for what has begun", "SECONDS"] = 20.0
    requests: int = 256
    workers: int = field(default_factory=cores)
    memory: int = 2**32
    sessions: int = 64
    events: int = 1000
    deadline: float = 5.0
    body: float = 30.0
    kept: int = 1000


class Refusal(Exception):  # noqa: N818
    """Say why a request is not answered.

    Args:
        status: of HTTP.
        name: the field that is wrong, as of an `InstanceError`.
        problem: what is wrong with it.
        headers: to be sent too, such as Retry-After.
    """

    def __init__(self, status: int, name: str, problem: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{name}: {problem}")
        self.status, self.headers = status, dict(headers or {})
        self.error = {"field": name, "problem": problem}


def busy(name: str, problem: str, seconds: float) -> Refusal:
    """Return that there is too much to do now, and when to ask again."""
    return Refusal(429, name, problem, {"retry-after": f"{max(1, round(seconds))}"})


def closing() -> Refusal:
    """Return that nothing new is begun any more."""
    return Refusal(503, "service", "ends: it takes nothing new", {"retry-after": "5"})
