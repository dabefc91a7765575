"""Describe a job of Slurm as an event of a `Scheduler`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .client import plain
from .view import MIB, SlurmJob, View, gpus_in

NICE_MOST = 2**31
"""More than any nice value: classes are first of tiers of partitions, then of nice values."""
_MEM = re.compile(r"(?:^|,)mem=([\d.]+)([KMGTP]?)")
_UNITS = {"K": 2.0**10, "": MIB, "M": MIB, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}


class NotOurs(ValueError):
    """Say what of a job Slurm alone understands, so that it is to place the job."""


def event_of(job: SlurmJob, view: View, queues: Mapping[str, Any], memory: bool) -> dict[str, Any]:
    """Return the event by which a job that waits is submitted, but for its time.

    A job for so many nodes has a worker on each; one for so many GPUs or tasks may spread them over any.

    Args:
        job: that waits.
        view: what Slurm says.
        queues: of the scheduler; accounts among them are queues, all if there are none.
        memory: whether jobs take memory from one another.

    Raises:
        NotOurs: if Slurm alone can place it.
    """
    row = job.row
    for name in ("required_nodes", "excluded_nodes", "resv_name", "licenses", "het_job_id", "tres_per_socket"):
        if row.get(name):
            raise NotOurs(f"{name} {plain(row[name])}")
    features = [x for x in re.split("[&,]", row["features"] or "") if x]
    if strange := [x for x in features if not re.fullmatch(r"[\w.\-]+", x)]:
        raise NotOurs(f"features {plain(strange[0])}")
    partition = (row["partition"] or "").split(",")[0]
    about = view.partitions.get(partition, {})
    nodes, worker, kind = _split(row)
    workers = nodes or worker.pop("count")
    cpus = -(-(row["cpus"] or 0) // workers)
    gang: dict[str, Any] = {"name": job.id, "workers": [workers], "worker": {"gpu": worker["gpu"], "cpu": max(1, cpus)}}
    if memory and (found := _MEM.search(row["tres_req_str"] or "")):
        gang["worker"]["memory"] = float(found[1]) * _UNITS[found[2]] / workers
    if nodes:
        gang["most_per_node"] = 1
    if row["shared"] == "none" or about.get("OverSubscribe") == "EXCLUSIVE":
        gang["whole_nodes"] = True
    gang["requires"] = [f"partition {partition}", *(f"feature {x}" for x in features)]
    if kind:
        gang["gpu_types"] = [kind]
    limit = 60.0 * row["time_limit"] if row["time_limit"] else None
    tier = int(about.get("PriorityTier", 1)) - 1
    event = {"event": "submit", "job": gang, "seconds": limit, "limit": limit, "user": job.user, "within": "rack"}
    event |= {"topology": "required" if row.get("required_switches") == 1 else "preferred", "title": plain(row["name"])}
    event["priority"] = tier * NICE_MOST - (row["nice"] or 0)
    if row["account"] and (not queues or row["account"] in queues):
        event["queue"] = row["account"]
    if (begin := row["eligible_time"] or 0) > row["submit_time"]:
        event["begin"] = begin
    if nodes and worker["gpu"]:
        event["together"] = False
    return {key: value for key, value in event.items() if value not in (None, "")}


def _split(row: Mapping[str, Any]) -> tuple[int, dict[str, int], str]:
    """Return the number of nodes, 0 if any will do, what a worker has, and the type of its GPUs."""
    per = {name: gpus_in(row[f"tres_per_{name}"] or "") for name in ("node", "job", "task")}
    least, tasks = row["node_count"] or 1, row["tasks"] or 1
    kind = next((kind for _, kind in per.values() if kind), "")
    for name in ("node", "job", "task"):
        if "gres" in (row[f"tres_per_{name}"] or "") and not per[name][0]:
            raise NotOurs(f"tres_per_{name} {plain(row[f'tres_per_{name}'])}")
    if per["node"][0]:
        return least, {"gpu": per["node"][0]}, kind
    total = per["job"][0] or per["task"][0] * tasks
    if row["max_nodes"]:  # of a range the least: others may have the rest
        if total % least:
            raise NotOurs(f"{total} GPUs on {least} nodes")
        return least, {"gpu": total // least}, kind
    each = per["task"][0] or min(1, total)
    return 0, {"gpu": each, "count": total // each if each else tasks}, kind
