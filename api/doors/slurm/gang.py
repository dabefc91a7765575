"""Describe a job of Slurm as an event of a `Scheduler`."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

from .client import plain
from .view import MIB, SlurmJob, SlurmView, gpus_in

TIER = 2**32
"""Priority of a tier of partitions in nice values, of which there are fewer."""
_ONLY_SLURM = ("required_nodes", "excluded_nodes", "resv_name", "licenses", "het_job_id", "tres_per_socket",
               "contiguous", "burst_buffer", "minimum_tmp_disk_per_node")  # fmt: skip
_COUNTED = re.compile(r"^(?:gres[:/])?(?:gpu|cpu|mem|node|billing)(?![\w-])")
"""Resources that jobs may ask for by node, task or job."""
_DEGREES = 8
"""Maximum number of numbers of nodes that are tried of a range."""
_MEMORY = re.compile(r"(?:^|,)mem=([\d.]+)([KMGTP]?)")
_UNITS = {"K": 2.0**10, "": MIB, "M": MIB, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}


class NotOursError(ValueError):
    """Say what of a job Slurm alone understands, so that it is to place the job."""


def events_of(
    job: SlurmJob, view: SlurmView, queues: Container[str], memory: bool, spread: bool
) -> Iterator[dict[str, Any]]:
    """Yield the event by which a job that waits is submitted, but for its time, for each of its partitions that is up.

    Those of a higher tier come first, as Slurm has it.

    A job for so many nodes has a worker on each; one for so many GPUs or tasks may have them anywhere. All of a job are
    in one partition.

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
    if row["shared"] in ("user", "mcs", "topo"):
        strange.append(f"exclusive={row['shared']}")
    if strange := [f"{name} {plain(row[name])}" for name in _ONLY_SLURM if row[name]] + strange:
        raise NotOursError(strange[0])
    counted, degrees, gpus, kind = _split(row, view.fleet.n_nodes)
    workers = degrees[0]
    worker = {"gpu": gpus, "cpu": _cpus(row, workers, gpus, counted)}
    if memory and (found := _MEMORY.search(row["tres_req_str"])):
        worker["memory"] = int(float(found[1]) * _UNITS[found[2]] / workers)
    gang: dict[str, Any] = {"name": job.id, "workers": degrees, "worker": worker, "gpu_types": [kind] if kind else []}
    gang["most_per_node"] = 1 if counted else None
    limit = 60.0 * row["time_limit"] if row["time_limit"] else None
    event = {"event": "submit", "seconds": limit, "limit": limit, "user": job.user}
    if limit and len(degrees) > 1:  # more nodes, which Slurm would give it too, are done sooner
        event["seconds"] = [limit * degrees[0] / degree for degree in degrees]
    event |= {"title": plain(row["name"]), "within": "rack"}
    fits = degrees[-1] <= view.rack[0] if counted else 0 < workers * gpus <= view.rack[1]
    event["topology"] = "required" if fits and not spread else "preferred"
    event["queue"] = row["account"] if not queues or row["account"] in queues else ""
    event["begin"] = max(0, row["eligible_time"] or 0)
    event["together"] = False if counted and gpus else None
    names = row["partition"].split(",")
    names = [name for name in names if view.partitions.get(name, {}).get("State", "UP") in ("UP", "DRAIN")]
    tiers = {name: int(view.partitions.get(name, {}).get("PriorityTier", 1)) for name in names}
    for name in sorted(names, key=lambda name: -tiers[name]):
        whole = "none" in row["shared"] or "true" in row["exclusive"]
        whole |= view.partitions.get(name, {}).get("OverSubscribe") == "EXCLUSIVE"
        requires = [f"partition {name}", *(f"feature {x}" for x in features)]
        told = event | {"job": gang | {"whole_nodes": whole, "requires": requires}}
        told["priority"] = (tiers[name] - 1) * TIER - (row["nice"] or 0)
        told["grace"] = float(view.partitions.get(name, {}).get("GraceTime", 0)) or None
        never = {} if row["requeue"] and row["batch_flag"] else {"price": None}
        yield {key: value for key, value in told.items() if value not in (None, "")} | never


def _cpus(row: Mapping[str, Any], workers: int, gpus: int, counted: bool) -> int:
    """Return the cores of a worker."""
    each = max(1, -(-(row["cpus"] or 0) // workers), (row["minimum_cpus_per_node"] or 0) if counted else 0)
    return max(each, gpus * (gpus_in(row["cpus_per_tres"])[0] if row["cpus_per_tres"] else 0))


def _split(row: Mapping[str, Any], nodes: int) -> tuple[bool, list[int], int, str]:
    """Return whether nodes are counted, the numbers of workers that will do, GPUs of each, and their type."""
    per = [row[f"tres_per_{name}"] for name in ("node", "job", "task")]
    if strange := [x for text in per for x in text.split(",") if x and not _COUNTED.match(x)]:
        raise NotOursError(plain(strange[0]))
    each, total, task = (gpus_in(text)[0] for text in per)
    kinds = {kind for text in per if (kind := gpus_in(text)[1])}
    if len(kinds) > 1 or "+" in (kind := next(iter(kinds), "")):
        raise NotOursError(f"types of GPU {', '.join(sorted(kinds))}")
    least, most, tasks = row["node_count"] or 1, row["max_nodes"] or 0, row["tasks"] or 1
    if task and total not in (0, task * tasks):
        raise NotOursError(f"{task} GPUs for each of {tasks} tasks, and {total} in all")
    total = total or task * tasks
    if each or most or row["tasks_per_node"]:
        if total and each and total != each * least:
            raise NotOursError(f"{each} GPUs for each of {least} nodes, and {total} in all")
        if not each and total % least:
            raise NotOursError(f"{total} GPUs on {least} nodes")
        if total and not each:
            return True, [least], total // least, kind
        most = max(least, min(most, nodes))
        step = max(1, -(-(most - least) // (_DEGREES - 1)))
        return True, sorted({*range(least, most, step), most}), each, kind
    each = task or min(1, total)
    return False, [total // each if each else tasks], each, kind
