"""A snapshot for other nodes: what stays by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gangplan.instances.placement import Fleet

from .state import ClusterState


def unseated(state: ClusterState, fleet: Fleet) -> tuple[str, ...]:
    """Return the running jobs that these nodes do not have where they run."""
    number, lost = {name: node for node, name in enumerate(fleet.names)}, []
    there = ClusterState(replace(fleet, usable=None), state.speeds, state.settings)
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
