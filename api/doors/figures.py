"""Count what a cluster holds, who waits, and what queues and users have: for the page and for Prometheus."""

from __future__ import annotations

import numpy as np
from typing_extensions import TypedDict

from gangplan.hybrid.online import Scheduler
from gangplan.hybrid.online.request import Request
from gangplan.hybrid.online.sharing import EVERYBODY, Limit, Quota


class TypeFigures(TypedDict):
    """GPUs of a type: held, idle, and on nodes that are down."""

    type: str
    held: int
    idle: int
    down: int


class QueueFigures(TypedDict):
    """What a queue has: GPUs with those of queues below it, its share and, if it is declared, its quota."""

    queue: str
    running: int
    waiting: int
    gpus: int
    share: float
    guaranteed: float | None
    most: float | None


class UserFigures(TypedDict):
    """What a user has, and may have, `None` if there is no limit."""

    user: str
    running: int
    waiting: int
    gpus: int
    most: int | None


class JobFigures(TypedDict):
    """A job: GPUs that it holds, or needs at least; since when it runs or waits, and the seconds that it has left."""

    job: str
    gpus: int
    user: str
    queue: str
    priority: int
    since: float
    left: float


class Figures(TypedDict):
    """All of them."""

    types: list[TypeFigures]
    queues: list[QueueFigures]
    users: list[UserFigures]


def figures_of(scheduler: Scheduler) -> Figures:
    """Return what there is and who has it."""
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
    types: list[TypeFigures] = []
    for number, name in enumerate(fleet.gpu_types):
        mine = fleet.gpu_type == number
        has, gone = int(held[mine].sum()), int(fleet.gpus[mine & ~up].sum())
        types.append({"type": name, "held": has, "idle": int(fleet.gpus[mine].sum()) - has - gone, "down": gone})
    rows: list[QueueFigures] = []
    for path, (running, waiting, own) in queues.items():
        quota: Quota | None = sharing.queues.get(path)
        account = accounts._number.get(path) if quota else None
        there = own if account is None else accounts.all[account].used[0]
        share = own / total if account is None else accounts.share(account)
        bounds = (None, None) if quota is None else (quota.share, quota.most)
        rows.append({"queue": path, "running": running, "waiting": waiting, "gpus": there, "share": share,
                     "guaranteed": bounds[0], "most": bounds[1]})  # fmt: skip
    limits = sharing.limits
    people: list[UserFigures] = [
        {"user": user, "running": running, "waiting": waiting, "gpus": gpus,
         "most": limits.get(user, limits.get(EVERYBODY, Limit())).gpus}
        for user, (running, waiting, gpus) in sorted(users.items())
    ]  # fmt: skip
    return {"types": types, "queues": rows, "users": people}


def rows_of(scheduler: Scheduler, search: str, most: int) -> tuple[list[JobFigures], list[JobFigures]]:
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


def _row(request: Request, gpus: int, since: float, left: float) -> JobFigures:
    terms = request.terms
    return {"job": request.name, "gpus": gpus, "user": terms.user, "queue": terms.queue, "priority": terms.priority,
            "since": since, "left": left}  # fmt: skip
