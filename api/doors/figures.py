"""Count what a cluster holds, who waits and who has what, requests and decisions: for the page and for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gangplan.scheduler import Scheduler
from gangplan.scheduler.queueing.request import Request
from gangplan.scheduler.settings import EVERYBODY, Limit

from .schema import KNOWN

Row = dict[str, Any]


def figures_of(scheduler: Scheduler) -> dict[str, list[Row]]:
    """Return what there is and who has it: rows of `openapi`."""
    state = scheduler._state
    fleet, accounts, sharing = state.fleet, state.accounts, state.sharing
    held = np.zeros(fleet.n_nodes, dtype=np.int64)
    queues: dict[str, list[int]] = {path: [0, 0, 0] for path in sorted(sharing.queues)}
    users: dict[str, list[int]] = {}
    for job in state.running.values():
        for node, gpus in job.nodes.items() if job.gpus else ():
            held[node] += len(gpus)
        for table, name in ((queues, job.request.terms.queue), (users, job.request.terms.user)):
            row = table.setdefault(name, [0, 0, 0])
            row[0], row[2] = row[0] + 1, row[2] + job.gpus
    for request in _waiting(scheduler):
        for table, name in ((queues, request.terms.queue), (users, request.terms.user)):
            table.setdefault(name, [0, 0, 0])[1] += 1
    up, total = np.array(state.up, dtype=bool), max(1, fleet.n_gpus)
    types: list[Row] = []
    for number, name in enumerate(fleet.gpu_types):
        mine = fleet.gpu_type == number
        has, gone = int(held[mine].sum()), int(fleet.gpus[mine & ~up].sum())
        types.append({"type": name, "held": has, "idle": int(fleet.gpus[mine].sum()) - has - gone, "down": gone})
    rows: list[Row] = []
    for path, (running, waiting, own) in queues.items():
        quota = sharing.queues.get(path)
        account = accounts._number.get(path) if quota else None
        there = own if account is None else accounts.all[account].used[0]
        share = own / total if account is None else accounts.share(account)
        rows.append({"queue": path, "running": running, "waiting": waiting, "gpus": there, "share": share,
                     "guaranteed": quota and quota.share, "most": quota and quota.most})  # fmt: skip
    limits = sharing.limits
    people = [
        {"user": user, "running": running, "waiting": waiting, "gpus": gpus,
         "most": limits.get(user, limits.get(EVERYBODY, Limit())).gpus}
        for user, (running, waiting, gpus) in sorted(users.items())
    ]  # fmt: skip
    return {"types": types, "queues": rows, "users": people}


def rows_of(scheduler: Scheduler, search: str, most: int) -> tuple[list[Row], list[Row]]:
    """Return the first jobs that run and that wait, of those in whose name, user or queue a word is found."""
    state, found = scheduler._state, search.lower()

    def has(request: Request) -> bool:
        return any(found in text.lower() for text in (request.name, request.terms.user, request.terms.queue))

    runs = [job for job in state.running.values() if has(job.request)][:most]
    waits = [request for request in _waiting(scheduler) if has(request)][:most]
    return (
        [_row(job.request, job.gpus, job.since, job.left(state.now)) for job in runs],
        [_row(x, x.gpus(x.job.workers[0]), x.submit, x.seconds[0]) for x in waits],
    )


def _waiting(scheduler: Scheduler) -> list[Request]:
    state = scheduler._state
    return [*state.waiting.values(), *(held.request for held in state.later.held.values())]


def _row(request: Request, gpus: int, since: float, left: float) -> Row:
    terms = request.terms
    return {"job": request.name, "gpus": gpus, "user": terms.user, "queue": terms.queue, "priority": terms.priority,
            "since": since, "left": left}  # fmt: skip


_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


class SecondsHistogram:
    """A histogram of seconds."""

    def __init__(self) -> None:
        self.counts, self.sum = [0] * (len(_BOUNDS) + 1), 0.0

    def note(self, seconds: float) -> None:
        """Count a time."""
        self.counts[next((i for i, bound in enumerate(_BOUNDS) if seconds <= bound), len(_BOUNDS))] += 1
        self.sum += seconds

    def lines(self, name: str) -> Iterator[str]:
        """Yield it as Prometheus has it."""
        total = 0
        yield f"# TYPE {name} histogram"
        for bound, count in zip((*_BOUNDS, "+Inf"), self.counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self.sum}"
        yield f"{name}_count {total}"


class ServiceMetrics:
    """Count what happens."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds, self.decisions = SecondsHistogram(), SecondsHistogram()
        self.events: Counter[tuple[str, bool]] = Counter()
        self.stops: Counter[tuple[str, str]] = Counter()
        self.tiers: Counter[tuple[str, str]] = Counter()
        self.running = 0

    def note(self, answers: Any, session: str = "") -> None:
        """Count the events that were answered, and the stops and tiers of what a session decided."""
        for answer in answers if isinstance(answers, list) else [answers]:
            event = answer.get("event")  # of one that is refused it may be any text, or none
            self.events[event if event in KNOWN else "", "error" in answer] += 1
            if "seconds" in answer:
                self.decisions.note(answer["seconds"])
            if session and answer.get("event") in ("decide", "apply") and "error" not in answer:
                self.stops.update((session, stop["cause"]) for stop in answer["answer"]["stops"])
                self.tiers[session, answer["answer"]["tier"]] += 1

    def text(self, gauges: Mapping[str, float], solves: Mapping[str, int], sessions: Mapping[str, Any]) -> str:
        """Return all as Prometheus has it, of each session what its cluster holds."""
        requests = (({"method": x, "route": y, "status": z}, n) for (x, y, z), n in sorted(self.requests.items()))
        events = (({"event": x, "error": f"{y}".lower()}, n) for (x, y), n in sorted(self.events.items()))
        stops = (({"session": x, "cause": y}, n) for (x, y), n in sorted(self.stops.items()))
        tiers = (({"session": x, "tier": y}, n) for (x, y), n in sorted(self.tiers.items()))
        lines = [
            *_series("requests_total", requests, "counter"), *self.seconds.lines("gangplan_request_seconds"),
            *_series("events_total", events, "counter"), *self.decisions.lines("gangplan_decision_seconds"),
            *_series("solves_total", (({"state": x}, n) for x, n in solves.items()), "counter"),
            *_series("stops_total", stops, "counter"), *_series("tiers_total", tiers, "counter"),
            *_of_sessions(sessions),
            *(line for name, value in gauges.items() for line in _series(name, [({}, value)])),
        ]  # fmt: skip
        return "\n".join(lines) + "\n"


def _series(name: str, rows: Iterable[tuple[Mapping[str, Any], float]], kind: str = "gauge") -> Iterator[str]:
    """Yield the kind of a series, and its values with their labels, which may be any text."""
    yield f"# TYPE gangplan_{name} {kind}"
    for labels, value in rows:
        texts = (f"{x}".replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for x in labels.values())
        given = ",".join(f'{key}="{text}"' for key, text in zip(labels, texts, strict=True))
        yield f"gangplan_{name}{given and f'{{{given}}}'} {value}"


def _of_sessions(sessions: Mapping[str, Any]) -> Iterator[str]:
    """Yield what clusters hold, by type, and what queues have."""
    for name, part, label, parts in (
        ("gpus", "types", "state", {"held": "held", "idle": "idle", "down": "down"}),
        ("jobs", "queues", "state", {"running": "running", "waiting": "waiting"}),
        ("queue_share", "queues", "of", {"held": "share", "guaranteed": "guaranteed", "most": "most"}),
    ):
        whose = part.removesuffix("s")
        rows = ((session, row) for session, each in sessions.items() for row in each[part])
        yield from _series(name, (
            ({"session": session, whose: row[whose], label: x}, row[key])
            for session, row in rows for x, key in parts.items() if row[key] is not None
        ))  # fmt: skip
