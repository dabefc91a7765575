"""A snapshot for other settings, for other nodes by their names, or for an earlier time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from math import inf, nextafter
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet

from ..queueing.request import Request
from ..settings import SchedulerSettings, Sharing
from ..state import SchedulerState
from .snapshot import readable, request_of, rules_of

RULES = ("sharing", "patient", "proximity")
"""Arguments of a scheduler that a snapshot has beside its settings."""


@readable()
def for_settings(document: Mapping[str, Any], state: SchedulerState) -> dict[str, Any]:
    """Return a snapshot with the settings and rules of a state in which nothing has happened yet.

    Jobs are due by the new settings, counted from when they might wait; whoever ran before it was due does still. The
    price of a job that is the scheduler's becomes the new one.

    Raises:
        InstanceError: if jobs are of queues that there are not.
    """
    earlier = {**asdict(state.settings), "max_wait": None, "durations": "told", "grace": 0.0, **document["settings"]}
    old, new, now = SchedulerSettings(**earlier), state.settings, document["now"]
    same = Sharing.of(document.get("sharing")) == state.sharing
    _check_queues(document, state)

    def changed(row: Mapping[str, Any], since: float | None = None) -> dict[str, Any]:
        request = request_of(row, old)
        due, price = _due(request, old, new, now, since), request.price
        if not request.priced and price == old.price:
            price = new.price
        fresh = {**row, "price": price, "due": due}
        if since is not None and price != request.price:
            fresh["paid"] = request.pays  # its last start cost what it did
        if request.work and (price is None) != (request.price is None):
            fresh["index"] = replace(request, price=price).aged(request.done).index
        return fresh

    later = document.get("later")
    waiting = [changed(row) for row in document["waiting"]]
    due = {row["job"]["name"] for row in waiting if row["due"] <= now}
    rest = {name: value for name, value in document.items() if name not in RULES}
    if later:
        rest["later"] = {**later, "held": [{**row, "request": changed(row["request"])} for row in later["held"]]}
    return {
        **rest,
        "settings": asdict(new),
        "waiting": waiting,
        "running": [row | {"request": changed(row["request"], row["since"])} for row in document["running"]],
        "promises": {name: time for name, time in document.get("promises", {}).items() if name in due},
        "shares": [row for row in document.get("shares", ()) if _kept(row[0], state.sharing)],
        "alike": document.get("alike", True) if same else state.alike,
        **{name: asdict(of) for name, of in rules_of(state).items() if of is not None},
    }


def _due(request: Request, old: SchedulerSettings, new: SchedulerSettings, now: float, since: float | None) -> float:
    """Return when a job is due by new settings; one that runs `since` then was due when it started if it was before."""
    before, after = old.due_after(request.longest), new.due_after(request.longest)
    if before == after:
        return request.due
    begin = min(max(request.due - before, request.submit), now if since is None else since)
    due = new.due(begin, request.longest)
    if since is None:
        return due
    return max(due, nextafter(since, inf)) if request.due > since else min(due, since)


def _kept(name: str, sharing: Sharing) -> bool:
    """Return whether what an account used is remembered still."""
    queue, slash, _ = name.partition("/")
    return sharing.halflife is not None and (not queue or queue in sharing.queues) and (not slash or sharing.fair_users)


def _check_queues(document: Mapping[str, Any], state: SchedulerState) -> None:
    """Refuse settings without a queue that has jobs."""
    held = (row["request"] for row in document.get("later", {}).get("held", ()))
    jobs: dict[str, list[str]] = {}
    for row in (*document["waiting"], *(row["request"] for row in document["running"]), *held):
        if queue := row.get("terms", {}).get("queue", ""):
            jobs.setdefault(queue, []).append(row["job"]["name"])
    for queue, names in jobs.items():
        try:
            state.sharing.check(queue)
        except InstanceError as error:
            some = ", ".join(names[:8]) + f" and {len(names) - 8} more" * (len(names) > 8)
            raise InstanceError("sharing.queues", f"{error.problem}; of it are {some}") from None


def unseated(state: SchedulerState, fleet: Fleet) -> tuple[str, ...]:
    """Return the running jobs that these nodes do not have where they run."""
    number, lost = {name: node for node, name in enumerate(fleet.names)}, []
    there = SchedulerState(replace(fleet, usable=None), state.speeds, state.settings)
    for job in state.running.values():
        nodes = {number.get(state.fleet.names[node], -1): gpus for node, gpus in job.nodes.items()}
        there.wait(job.request)
        if -1 in nodes or there.wrong(job.request, job.degree, nodes) or not there.put(replace(job, nodes=nodes)):
            lost.append(job.name)
    return tuple(sorted(lost))


def moved(document: Mapping[str, Any], old: Fleet, new: Fleet) -> dict[str, Any]:
    """Return a snapshot of the nodes of `old`, where nobody is on those that `new` lacks, for those of `new`."""
    number = {name: node for node, name in enumerate(new.names)}
    assert new.usable is not None
    down = {old.names[node] for node in document["down"]}
    down |= {new.names[node] for node in np.flatnonzero(~new.usable)} - {*old.names}
    running = [
        row | {"nodes": sorted([number[old.names[node]], gpus] for node, gpus in row["nodes"])}
        for row in document["running"]
    ]
    windows = [row | {"nodes": [x for x in row["nodes"] if x in number]} for row in document.get("windows", ())]
    torn = [
        [name, number[old.names[node]], degree, [[number[old.names[x]], gpus] for x, gpus in kept]]
        for name, node, degree, kept in document.get("torn", ())
        if {old.names[x] for x in (node, *(x for x, _ in kept))} <= {*number}
    ]
    learned = {} if old.names == new.names or "learned" not in document else {"learned": None}
    return {
        **document,
        "nodes": new.n_nodes,
        "gpus": new.n_gpus,
        "fleet": None,
        "down": [number[name] for name in new.names if name in down],
        "running": running,
        "windows": [row for row in windows if row["nodes"]],
        "torn": torn,
        **learned,
    }


def turned_back(document: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Return a snapshot in which nothing has happened after `now`, and what did happened then.

    Who was due when it started still was.
    """

    def request(row: Mapping[str, Any]) -> dict[str, Any]:
        late = max(0.0, row["submit"] - now)
        return {**row, "submit": row["submit"] - late, "due": row["due"] - late}

    def run(row: Mapping[str, Any]) -> dict[str, Any]:
        late, waited = max(0.0, row["since"] - now), request(row["request"])
        since = row["since"] - late
        if row["request"]["due"] <= row["since"]:
            waited["due"] = min(waited["due"], since)
        return {**row, "request": waited, "since": since, "end": row["end"] - late}

    intervals, later = document["intervals"], document.get("later")
    found = {**document, "now": now, "promises": {}, "waiting": [request(row) for row in document["waiting"]]}
    found["running"] = [run(row) for row in document["running"]]
    found["freed"] = {name: min(time, now) for name, time in document.get("freed", {}).items()}
    found["shares"] = [[name, average, min(at, now)] for name, average, at in document["shares"]]
    times, *others = intervals["arrivals"]
    still = [case for case in intervals["open"] if case[2] <= now]
    found["intervals"] = intervals | {"open": still, "arrivals": [[min(x, now) for x in times], *others]}
    if learned := document.get("learned"):
        found["learned"] = learned | {"jobs": [[name, done, min(at, now)] for name, done, at in learned["jobs"]]}
    if "stopping" in document:
        found["stopping"] = [{**x, "since": min(x["since"], now)} for x in document["stopping"]]
    if later:
        held = [{**x, "request": request(x["request"]), "ready": min(x["ready"], now)} for x in later["held"]]
        found["later"] = later | {"held": held}
    return found
