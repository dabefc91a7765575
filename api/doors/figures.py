"""Count what a cluster holds, who waits, and what queues and users have: for the page and for Prometheus."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.scheduler import Scheduler
from gangplan.scheduler.queueing.request import Request
from gangplan.scheduler.queueing.sharing import EVERYBODY, Limit

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
