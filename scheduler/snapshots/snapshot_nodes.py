"""A snapshot for other nodes: what stays by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gangplan.instances.placement import Fleet

from ..state import SchedulerState


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
