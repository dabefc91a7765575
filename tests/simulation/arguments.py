"""What the scheduler is told, from plain data: clusters, jobs, estimates, terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan import Level, TreeTopology
from gangplan.instances.placement import Demand, Fleet, GangJob, Proximity, SpeedModel

TOLD = {
    "together": None, "price": None, "begin": 0.0, "after": [], "queue": "", "user": "", "priority": 0,
    "within": "", "topology": "required", "group": 1, "mixed": False, "grace": None, "await_nodes": False,
}  # fmt: skip
"""What `submit` is told of a job beside its gang and its seconds, as it usually is."""


def fleet_of(cluster: dict[str, Any]) -> Fleet:
    """Return the cluster as the scheduler takes it."""
    nodes, labels = cluster["nodes"], tuple(cluster["labels"])
    racks = np.array([node.get("rack", i % cluster["racks"]) for i, node in enumerate(nodes)], dtype=np.int64)
    labelled = np.array([[x in node["labels"] for node in nodes] for x in labels], dtype=bool)
    labelled = labelled.reshape(len(labels), len(nodes))
    tainted = np.array([[x in node["taints"] for node in nodes] for x in cluster.get("taints", ())], dtype=bool)
    tainted = tainted.reshape(len(cluster.get("taints", ())), len(nodes))
    return Fleet(
        names=tuple(node["name"] for node in nodes),
        gpu_types=tuple(cluster["types"]),
        gpu_type=np.array([cluster["types"].index(node["type"]) for node in nodes], dtype=np.int32),
        gpus=np.array([node["gpus"] for node in nodes], dtype=np.int32),
        cpu=np.array([node["cpu"] for node in nodes]),
        memory=np.array([node["memory"] for node in nodes]),
        link=np.full(len(nodes), 3e11),
        topology=TreeTopology((Level("rack", cluster["nic"]), Level("cluster", 1e11)), np.stack([racks, 0 * racks])),
        **({"labels": labels, "labelled": labelled} if labels else {}),
        **({"taints": taints, "tainted": tainted} if (taints := tuple(cluster.get("taints", ()))) else {}),
        usable=np.array([node["usable"] for node in nodes], dtype=bool),
    )


def speeds_of(cluster: dict[str, Any]) -> SpeedModel | Proximity | None:
    """Return which models run where, or what places cost, `None` if all run everywhere alike."""
    if near := cluster["near"]:
        return Proximity(*near["links"], intensity={"m": near["m"]})
    if (runs := cluster["runs"]) is None:
        return None
    compute = np.array([[1.0 if t in runs[m] else np.inf for m in runs] for t in cluster["types"]])
    n = len(runs)
    return SpeedModel(
        tuple(runs), tuple(cluster["types"]), compute, np.ones(n), np.ones(n), np.zeros((n, n)), np.zeros((n, n))
    )


def job_of(spec: dict[str, Any]) -> GangJob:
    """Return a job as the scheduler takes it."""
    rest = {key: tuple(value) if isinstance(value, list) else value for key, value in spec.items()}
    for key in ("seconds", "on", *TOLD):
        rest.pop(key, None)
    if spec.get("servers"):
        rest |= {"collective": "ps", "server": Demand(*spec["server"])}
    return GangJob(**rest | {"worker": Demand(*spec["worker"])})


def seconds_of(spec: dict[str, Any]) -> Any:
    """Return the estimate of a job, by type if it has one for each."""
    if not (on := spec.get("on")):
        return spec["seconds"]
    seconds = spec["seconds"]
    return {kind: [x * s for s in seconds] if isinstance(seconds, list) else x * seconds for kind, x in on.items()}


def told_of(spec: dict[str, Any]) -> dict[str, Any]:
    """Return what else is said of a job."""
    return {key: spec[key] for key, usual in TOLD.items() if spec.get(key, usual) != usual}


def told(x: Any) -> Any:
    """Return an argument as the scheduler takes it: a gang or a fleet of what an event says."""
    if isinstance(x, dict) and "workers" in x:
        return job_of(x)
    return fleet_of(x) if isinstance(x, dict) and "racks" in x else x
