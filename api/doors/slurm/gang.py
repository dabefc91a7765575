"""Describe a job of Slurm as an event of a `Scheduler`."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any

from .client import plain
from .view import MIB, SlurmJob, View, gpus_in

TIER = 2**32
"""Priority of a tier of partitions in nice values, of which there are fewer."""
_ONLY_SLURM = ("required_nodes", "excluded_nodes", "resv_name", "licenses", "het_job_id", "tres_per_socket")
_MEMORY = re.compile(r"(?:^|,)mem=([\d.]+)([KMGTP]?)")
_UNITS = {"K": 2.0**10, "": MIB, "M": MIB, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}


class NotOursError(ValueError):
    """Say what of a job Slurm alone understands, so that it is to place the job."""


def event_of(job: SlurmJob, view: View, queues: Container[str], memory: bool, spread: bool) -> dict[str, Any]:
    """Return the event by which a job that waits is submitted, but for its time.

    A job for so many nodes has a worker on each; one for so many GPUs or tasks may have them anywhere.

    Args:
        job: that waits.
        view: what Slurm says of partitions and racks.
        queues: of the scheduler; accounts among them are queues, all if there are none.
        memory: whether jobs take memory from one another.
        spread: whether jobs that a rack could hold may be in several.

    Raises:
        NotOursError: if Slurm alone can place it.
    """
    row = job.row
    features = [x for x in re.split("[&,]", row["features"]) if x]
    strange = [f"feature {plain(x)}" for x in features if not re.fullmatch(r"[\w.-]+", x)]
    if strange := [f"{name} {plain(row[name])}" for name in _ONLY_SLURM if row.get(name)] + strange:
        raise NotOursError(strange[0])
    partition = row["partition"].split(",")[0]
    about = view.partitions.get(partition, {})
    nodes, workers, gpus, kind = _split(row)
    worker = {"gpu": gpus, "cpu": max(1, -(-(row["cpus"] or 0) // workers))}
    if memory and (found := _MEMORY.search(row["tres_req_str"])):
        worker["memory"] = int(float(found[1]) * _UNITS[found[2]] / workers)
    gang: dict[str, Any] = {"name": job.id, "workers": [workers], "worker": worker, "gpu_types": [kind] if kind else []}
    gang["most_per_node"] = 1 if nodes else None
    gang["whole_nodes"] = row["shared"] == "none" or about.get("OverSubscribe") == "EXCLUSIVE"
    gang["requires"] = [f"partition {partition}", *(f"feature {x}" for x in features)]
    limit = 60.0 * row["time_limit"] if row["time_limit"] else None
    event = {"event": "submit", "job": gang, "seconds": limit, "limit": limit, "user": job.user}
    event |= {"title": plain(row["name"]), "within": "rack"}
    fits = workers <= view.rack[0] if nodes else 0 < workers * gpus <= view.rack[1]
    event["topology"] = "required" if fits and not spread else "preferred"
    event["priority"] = (int(about.get("PriorityTier", 1)) - 1) * TIER - (row["nice"] or 0)
    event["queue"] = row["account"] if not queues or row["account"] in queues else ""
    event["begin"] = max(0, row["eligible_time"] or 0)
    event["together"] = False if nodes and gpus else None
    return {key: value for key, value in event.items() if value not in (None, "")}


def _split(row: Mapping[str, Any]) -> tuple[bool, int, int, str]:
    """Return whether nodes are counted, the number of workers, GPUs of each, and their type."""
    per = {name: row[f"tres_per_{name}"] for name in ("node", "job", "task")}
    (each, *_), (total, *_), (task, *_) = (gpus_in(text) for text in per.values())
    if strange := next((text for text in per.values() if text and not gpus_in(text)[0]), ""):
        raise NotOursError(plain(strange))
    kind = next((kind for _, kind in map(gpus_in, per.values()) if kind), "")
    least, tasks = row["node_count"] or 1, row["tasks"] or 1
    total = total or task * tasks
    if each or row["max_nodes"]:  # of a range the least number of nodes: others may have the rest
        if total % least:
            raise NotOursError(f"{total} GPUs on {least} nodes")
        return True, least, each or total // least, kind
    each = task or min(1, total)
    return False, total // each if each else tasks, each, kind
