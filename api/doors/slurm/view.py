"""Read what Slurm says of its cluster at one time: nodes, switches, jobs, however a version writes their fields."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gangplan.instances import InstanceError, Level, TreeTopology
from gangplan.instances.placement import Fleet
from gangplan.scheduler.described import NIC, fleet_of

from .client import jobs, names_in, nodes, numbers_in, plain, records, run

HOLD = ("RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING")
"""States of a job that has nodes."""
_OPEN = {"IDLE", "MIXED", "ALLOCATED", "COMPLETING", "UNKNOWN"}
"""States of a node that is up, if no flag says otherwise; unknown is one until it answers."""
_CLOSED = {"DRAIN", "FAIL", "NOT_RESPONDING", "RESERVED", "MAINTENANCE", "REBOOT_REQUESTED", "REBOOT_ISSUED"}
_CLOSED |= {"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "INVALID_REG", "BLOCKED"}
"""Flags of a node on which nobody starts, though jobs there run on."""
_GPU = re.compile(r"(?:^|[,:/])gpu(?=[:=,(]|$)(?::((?!\d+(?:[,(]|$))[^:,=()]+))?(?:[:=](\d+))?")
"""A number of GPUs in ``gpu``, ``gpu:4``, ``gres/gpu:a100:2(S:0)``, with their type if it is said."""
MIB = 2.0**20
"""Bytes of Slurm's unit of memory."""
_SELDOM = 60.0
"""Seconds after which switches and partitions are read again."""
_TASKS = 1000
"""Maximum number of waiting tasks of an array that are looked at."""


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job, or a task of an array.

    Attributes:
        id: what `scontrol` calls it, ``17`` or ``17_3``.
        row: what Slurm says, as `job_row` reads it.
    """

    id: str
    row: Mapping[str, Any]

    @property
    def holds(self) -> bool:
        """Return whether it has nodes."""
        return any(word in HOLD for word in self.row["states"])

    @property
    def waits(self) -> bool:
        """Return whether it is to get some."""
        return "PENDING" in self.row["states"] and not self.holds and "REVOKED" not in self.row["states"]

    @property
    def held(self) -> bool:
        """Return whether Slurm is not to start it."""
        return bool(self.row["priority"] == 0)

    @property
    def reason(self) -> str:
        """Return Slurm's word for why it does not run."""
        return plain(self.row["state_reason"]) or "None"

    @property
    def user(self) -> str:
        """Return whose it is."""
        return plain(self.row["user_name"] or self.row["user_id"])

    def shares(self, other: SlurmJob) -> bool:
        """Return whether it has a user, an account or a QOS in common with another."""
        return self.user == other.user or any(self.row[x] == other.row[x] != "" for x in ("account", "qos"))

    def parts(self) -> dict[str, tuple[int, int]]:
        """Return the GPUs and CPUs that it has on each node."""
        names = self.row["seats"] or names_in(self.row["nodes"])
        gpus, total = [gpus_in(text)[0] for text in self.row["gres_detail"]], self.row["tres_alloc_str"]
        if not gpus and names and (found := re.search(r"gres/gpu=(\d+)", total)):  # without details: shared out
            gpus = [-(-int(found[1]) // len(names))] * len(names)
        cpus = -(-(self.row["cpus"] or 0) // max(1, len(names)))
        return {name: (gpus[i] if i < len(gpus) else 0, cpus) for i, name in enumerate(names)}


@dataclass(frozen=True)
class SlurmView:
    """Hold what Slurm says at one time.

    Attributes:
        states: of each node, ``up``, ``closed`` to new jobs, or ``down``.
        fleet: the nodes as a `Scheduler` has them, all usable; labels are partitions and features.
        jobs: by what `scontrol` calls them.
        partitions: what `scontrol show partition` says of each.
        rack: nodes, and GPUs, of the rack that has most of them, without those that are down or drained.
        since: when switches and partitions were read, seconds of a clock.
        switches: what `scontrol show topology` says of each.
    """

    states: Mapping[str, str]
    fleet: Fleet
    jobs: Mapping[str, SlurmJob]
    partitions: Mapping[str, Mapping[str, str]]
    rack: tuple[int, int]
    since: float
    switches: Sequence[Mapping[str, str]]

    @classmethod
    def read(cls, last: SlurmView | None = None) -> SlurmView:
        """Ask Slurm; switches and partitions, which seldom change, once a minute.

        Raises:
            AwayError: if nobody answers.
            InstanceError: if an answer is not understood.
        """
        told, there, since = jobs(), nodes(), time.monotonic()
        if last is not None and since - last.since < _SELDOM:
            since, switches, partitions = last.since, last.switches, last.partitions
        else:
            switches = records("topology")
            partitions = {row["PartitionName"]: row for row in records("partition") if "PartitionName" in row}
        try:
            rows = [row for row in map(node_row, there) if "FUTURE" not in row["states"]]
            states, fleet = {row["name"]: _state(row) for row in rows}, _fleet(rows, switches)
            usable = np.array([states[row["name"]] != "down" and "DRAIN" not in row["states"] for row in rows])
            most = (np.bincount(fleet.topology.group[0], usable * each).max() for each in (1, fleet.gpus))
            rack = int(next(most)), int(next(most))
            return cls(states, fleet, _jobs([*map(job_row, told)]), partitions, rack, since, switches)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            words = f"{type(error).__name__} {error}: not what Slurm 22.05 to 24.11 says"
            raise error if isinstance(error, InstanceError) else InstanceError("slurm", words) from None

    def depends(self, job: SlurmJob) -> bool:
        """Return whether a job waits for another still, which Slurm itself notes a minute late of a held job."""
        parts = [part for part in re.split("[,?]", job.row["dependency"]) if part]
        blocked = [self._before(job, *part.partition("(")[0].partition(":")[::2]) for part in parts]
        return all(blocked) and blocked != [] if "?" in job.row["dependency"] else any(blocked)

    def _before(self, job: SlurmJob, kind: str, parents: str) -> bool:
        """Return whether what a job depends on is yet to end, or of ``after`` to start."""
        if kind == "singleton":
            alike = self._groups[job.user, job.row["name"]]
            return any(x.holds or (x.waits and x.row["job_id"] < job.row["job_id"]) for x in alike)
        for array, told in re.findall(r"(?:^|:)(\d+)(?:_(\d+|\*))?", parents):
            task = job.id.partition("_")[2] if kind == "aftercorr" else told
            there = (x for x in self._groups[array] if task in ("", "*") or x.id == f"{array}_{task}")
            if any(x.waits or (x.holds and kind != "after") for x in there):
                return True
        return False

    @cached_property
    def _groups(self) -> Mapping[Any, Sequence[SlurmJob]]:
        """Return jobs by number, of which an array has many, and by user and name."""
        groups = defaultdict[Any, list[SlurmJob]](list)
        for job in self.jobs.values():
            groups[job.id.partition("_")[0]].append(job)
            groups[job.user, job.row["name"]].append(job)
        return groups


def gpus_in(text: str) -> tuple[int, str]:
    """Return the number of GPUs that a list of resources has, and their type if it is said, ``a+b`` if several are."""
    found = _GPU.findall(text)
    kinds = dict.fromkeys(kind for kind, _ in found if kind)
    return sum(int(count or 1) for _, count in found), "+".join(sorted(kinds))


def tracks_memory() -> bool:
    """Return whether jobs take memory from one another, by Slurm's configuration."""
    return re.search(r"SelectTypeParameters\s*=.*MEMORY", run("scontrol", "show", "config")) is not None


def _jobs(told: Sequence[Mapping[str, Any]]) -> dict[str, SlurmJob]:
    """Return all jobs; of the tasks of an array that are held together, so many as its limit lets run."""
    found, busy, most = dict[str, SlurmJob](), Counter[int](), Counter[int]()
    for row in told:
        job = SlurmJob("", row)
        busy[row["array_job_id"]] += job.holds or (job.waits and not job.held)
        most[row["array_job_id"]] = max(most[row["array_job_id"]], row["array_max_tasks"] or 0)  # told once
    for row in told:
        array, job = row["array_job_id"], SlurmJob("", row)
        left = max(0, most[array] - busy[array]) if array and most[array] else _TASKS
        if row["array_task_id"] is not None:
            names = [f"{array}_{row['array_task_id']}"] if left or not (job.waits and job.held) else []
        elif array:
            tasks = numbers_in(row["array_task_string"].partition("%")[0].strip("[]"))
            names = [f"{array}_{int(task)}" for task, _ in zip(tasks, range(min(left, _TASKS)), strict=False)]
        else:
            names = [f"{row['job_id']}"]
        found |= {x: SlurmJob(x, row) for x in names}
    return found


def _state(row: Mapping[str, Any]) -> str:
    words = {*row["states"]}
    return "down" if not words & _OPEN or "DOWN" in words else "closed" if words & _CLOSED else "up"


def _fleet(nodes: Sequence[Mapping[str, Any]], switches: Sequence[Mapping[str, str]]) -> Fleet:
    gpus = [gpus_in(row["gres"]) for row in nodes]
    usual = next((kind or "gpu" for count, kind in gpus if count), "gpu")  # a node without any counts as having these
    of = [
        {f"partition {x}" for x in row["partitions"]}
        | {f"feature {x}" for x in row["active_features"] or row["features"]}
        for row in nodes
    ]
    names = tuple(row["name"] for row in nodes)
    return fleet_of(
        [(kind or "gpu") if count else usual for count, kind in gpus],
        {label: [label in each for each in of] for label in sorted({label for each in of for label in each})},
        names=names,
        gpus=[count for count, _ in gpus],
        cpu=[float(row["cpus"]) for row in nodes],
        memory=[MIB * row["real_memory"] for row in nodes],
        topology=_tree(names, switches),
    )


def _tree(nodes: Sequence[str], switches: Sequence[Mapping[str, str]]) -> TreeTopology:
    """Return racks, which are the lowest switches, those above, and the cluster."""
    above: dict[str, list[str]] = {node: [] for node in nodes}
    inside = [(names_in(row.get("Nodes", "")), row) for row in switches]
    for members, row in sorted(inside, key=lambda x: (int(x[1].get("Level", 0)), len(x[0]))):  # blocks have no level
        for node in members:
            above.setdefault(node, []).append(next(iter(row.values())))
    depth = max([1, *(len(above[node]) for node in nodes)])
    lone = "all" if not switches else "node {}"  # a node under no switch is a rack of its own
    paths = [above[node] or [lone.format(node)] for node in nodes]
    columns = zip(*((*path, *path[-1:] * depth)[:depth] for path in paths), strict=True)
    groups = [np.unique(column, return_inverse=True)[1] for column in columns]
    names = ("rack", *(f"switch {i}" for i in range(2, depth + 1)), "cluster")
    return TreeTopology(tuple(Level(x, NIC) for x in names), np.array([*groups, 0 * groups[0]], dtype=np.int32))


_TEXTS = (
    "account", "array_task_string", "burst_buffer", "comment", "cpus_per_tres", "dependency", "excluded_nodes",
    "exclusive", "features", "licenses", "name", "nodes", "partition", "qos", "required_nodes", "resv_name", "shared",
    "state_reason", "tres_alloc_str", "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task",
    "tres_req_str", "user_name",
)  # fmt: skip
_NUMBERS = (
    "array_job_id", "array_max_tasks", "array_task_id", "batch_flag", "contiguous", "cpus", "eligible_time", "end_time",
    "het_job_id", "job_id", "max_nodes", "minimum_cpus_per_node", "minimum_tmp_disk_per_node", "nice", "node_count",
    "priority", "requeue", "restart_cnt", "tasks", "tasks_per_node", "time_limit", "user_id",
)  # fmt: skip
"""Fields of a job that are read; all but `_NEEDED` may be missing."""
_NEEDED = ("job_id", "job_state", "name", "partition", "priority")


def job_row(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job of `squeue --json`: texts, "" if there is none; numbers, `None` if unset or without limit.

    Of what it holds, `seats` names the nodes; `states` are its state and what else is so, in capitals.

    Raises:
        InstanceError: naming a field that is missing or of another kind.
    """
    if lack := next((name for name in _NEEDED if told.get(name) is None), None):
        raise InstanceError("slurm", f"squeue: a job has no {lack}")
    row: dict[str, Any] = {name: text(told.get(name), name) for name in _TEXTS}
    row |= {name: number(told.get(name), name) for name in _NUMBERS}
    held = told.get("job_resources") or {}
    inside = held.get("nodes")  # a text, or since 24.05 an object
    seats = (inside.get("allocation") if isinstance(inside, dict) else held.get("allocated_nodes")) or []
    row["seats"] = [seat.get("nodename") or seat["name"] for seat in seats]
    row["gres_detail"] = [text(x, "gres_detail") for x in told.get("gres_detail") or []]
    return row | {"states": words(told["job_state"], "job_state")}


def node_row(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node, as `job_row` does; `states` are its state and its flags."""
    row: dict[str, Any] = {name: text(told.get(name), name) for name in ("name", "gres")}
    row |= {name: number(told.get(name), name) or 0 for name in ("cpus", "real_memory")}
    row |= {name: words(told.get(name), name, str) for name in ("partitions", "features", "active_features")}
    return row | {"states": words(told["state"], "state") + words(told.get("state_flags"), "state_flags")}


def number(told: object, name: str) -> Any:
    """Return a number, which may be in an object that says whether it is set and whether it is infinite."""
    if isinstance(told, dict) and "number" in told:
        told = told["number"] if told.get("set", True) and not told.get("infinite") else None
    if told is None or isinstance(told, int | float):
        return told
    raise InstanceError("slurm", f"{name}: {told!r} is no number")


def text(told: object, name: str) -> str:
    """Return a text, a list with commas between."""
    if isinstance(told, list):
        return ",".join(text(x, name) for x in told)
    if told is None or isinstance(told, str):
        return told or ""
    raise InstanceError("slurm", f"{name}: {told!r} is no text")


def words(told: object, name: str, case: Any = str.upper) -> list[str]:
    """Return the words of a list, or of a text with commas between, in capitals unless told otherwise."""
    return [case(word) for word in text(told, name).split(",") if word]
