"""What Slurm says of its cluster at one time: nodes, switches, jobs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gangplan.instances import Level, TreeTopology
from gangplan.instances.placement import Fleet

from .client import names_in, numbers_in, plain, records, rows, run

HOLD = ("RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING")
"""States of a job that has nodes."""
DONE = ("COMPLETED", "TIMEOUT")
"""States of a job that ran as long as it was to, so that its seconds teach something."""
_OPEN = ("idle", "mixed", "allocated", "completing", "unknown")
"""States of a node that is up, if no flag says otherwise."""
_CLOSED = {"DRAIN", "FAIL", "NOT_RESPONDING", "RESERVED", "MAINTENANCE", "REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED"}
_CLOSED |= {"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "INVALID_REG", "BLOCKED"}
"""Flags of a node on which nobody starts, though jobs there run on."""
_GPU = re.compile(r"(?:^|[,:/])gpu(?::([^:,=()]+))?[:=](\d+)")
"""A number of GPUs in ``gpu:4``, ``gres:gpu:a100:2(S:0)``, with their type if it is said."""
NIC, LINK, MIB = 25e9, 300e9, 2.0**20
"""Bytes a second of a node's link and between its GPUs, which Slurm does not say; bytes of its unit of memory."""
MOST_TASKS = 1000
"""Maximum number of waiting tasks of an array that are looked at."""


def gpus_in(text: str) -> tuple[int, str]:
    """Return the number of GPUs that a list of resources has, and their type if it is said."""
    found = _GPU.findall(text)
    return sum(int(count) for _, count in found), next((kind for kind, _ in found if kind), "")


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node; `state` is ``up``, ``closed`` to new jobs, or ``down``."""

    name: str
    state: str
    cpus: int
    memory: float
    gpus: int
    kind: str
    features: tuple[str, ...]
    partitions: tuple[str, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> SlurmNode:
        """Return the node that a row of `sinfo --json` describes."""
        states = [str(x).upper() for x in (row["state"] if isinstance(row["state"], list) else [row["state"]])]
        flags = {*states[1:], *(str(x).upper() for x in row.get("state_flags", ()))}
        state = "down" if states[0].lower() not in _OPEN or "DOWN" in flags else "closed" if flags & _CLOSED else "up"
        gpus, kind = gpus_in(row.get("gres") or "")
        features = tuple(x for x in (row.get("active_features") or row.get("features") or "").split(",") if x)
        partitions = tuple(row.get("partitions", ()))
        return cls(row["name"], state, row["cpus"], MIB * row["real_memory"], gpus, kind or "gpu", features, partitions)


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job, or a task of an array.

    Attributes:
        id: what `scontrol` calls it, ``17`` or ``17_3``.
        row: what `squeue --json` says.
        state: the word of Slurm.
    """

    id: str
    row: Mapping[str, Any]
    state: str

    @property
    def holds(self) -> bool:
        """Whether it has nodes."""
        return self.state in HOLD

    @property
    def waits(self) -> bool:
        """Whether it waits, held or not."""
        return self.state == "PENDING"

    @property
    def held(self) -> bool:
        """Whether Slurm does not start it."""
        return self.row["priority"] == 0

    @property
    def by_admin(self) -> bool:
        """Whether an administrator holds it."""
        return self.held and self.row["state_reason"] == "JobHeldAdmin"

    @property
    def user(self) -> str:
        """Whose it is."""
        return plain(self.row["user_name"] or self.row["user_id"])

    def comment(self) -> str:
        """Return its comment, also as later versions have it."""
        told = self.row["comment"]
        return str(told.get("job", "") if isinstance(told, Mapping) else told or "")

    def parts(self) -> dict[str, tuple[int, int]]:
        """Return the GPUs and CPUs that it has on each node."""
        seats = (self.row.get("job_resources") or {}).get("allocated_nodes") or []
        names = [seat["nodename"] for seat in seats] or names_in(self.row["nodes"])
        gpus = [gpus_in(text)[0] for text in self.row["gres_detail"]]
        cpus = -(-(self.row["cpus"] or 0) // max(1, len(names)))
        return {name: (gpus[i] if i < len(gpus) else 0, cpus) for i, name in enumerate(names)}


def jobs_of(row: Mapping[str, Any]) -> list[SlurmJob]:
    """Return the jobs of a row: the tasks of an array that wait are one, of which so many as may run are returned."""
    state, array = row["job_state"], row["array_job_id"]
    state = str(state[0] if isinstance(state, list) else state)
    if not array:
        return [SlurmJob(f"{row['job_id']}", row, state)]
    if row["array_task_id"] is not None:
        return [SlurmJob(f"{array}_{row['array_task_id']}", row, state)]
    tasks = list(numbers_in(row["array_task_string"].partition("%")[0].strip("[]")))
    return [SlurmJob(f"{array}_{int(task)}", row, state) for task in tasks[:MOST_TASKS]]


@dataclass(frozen=True)
class View:
    """What Slurm says at one time; `racks` has the switches above each node, the closest first."""

    nodes: Sequence[SlurmNode]
    jobs: Mapping[str, SlurmJob]
    partitions: Mapping[str, Mapping[str, str]]
    racks: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def read(cls) -> View:
        """Ask Slurm; `Away` if it does not answer."""
        told = rows("squeue")
        nodes = [SlurmNode.of(row) for row in rows("sinfo") if "future" not in str(row["state"]).lower()]
        jobs = dict[str, SlurmJob]()
        throttled = dict[int, int]()  # tasks of an array that run
        for row in told:
            if row["array_job_id"] and row["job_state"] in HOLD:
                throttled[row["array_job_id"]] = throttled.get(row["array_job_id"], 0) + 1
        for row in told:
            found, most = jobs_of(row), row["array_max_tasks"] or 0
            if most and row["array_task_id"] is None:
                found = found[: max(0, most - throttled.get(row["array_job_id"], 0))]
            jobs |= {job.id: job for job in found}
        partitions = {row["PartitionName"]: row for row in records("partition") if "PartitionName" in row}
        return cls(nodes, jobs, partitions, _switches())

    @cached_property
    def fleet(self) -> Fleet:
        """The nodes as a `Scheduler` has them, all usable; labels are partitions and features."""
        nodes = self.nodes
        kinds = tuple(dict.fromkeys(node.kind for node in nodes if node.gpus)) or ("gpu",)
        of = [
            {*(f"partition {x}" for x in node.partitions), *(f"feature {x}" for x in node.features)} for node in nodes
        ]
        labels = tuple(sorted({label for each in of for label in each}))
        return Fleet(
            names=tuple(node.name for node in nodes),
            gpu_types=kinds,
            gpu_type=np.array([kinds.index(node.kind) if node.gpus else 0 for node in nodes], dtype=np.int32),
            gpus=np.array([node.gpus for node in nodes], dtype=np.int32),
            cpu=np.array([float(node.cpus) for node in nodes]),
            memory=np.array([node.memory for node in nodes]),
            link=np.full(len(nodes), LINK),
            topology=self._tree(),
            labels=labels,
            labelled=np.array([[label in each for each in of] for label in labels], dtype=bool).reshape(-1, len(nodes)),
        )

    def _tree(self) -> TreeTopology:
        """Return racks, the switches above them, and the cluster; a node under no switch is a rack of its own if others are."""
        depth = max((len(self.racks.get(node.name, ())) for node in self.nodes), default=0)
        above = (self.racks.get(x.name) or (f"node {x.name}",) for x in self.nodes)
        paths = [[*path, *[path[-1]] * depth][:depth] or ["all"] for path in above]
        groups = []
        for column in zip(*([*path, "cluster"] for path in paths), strict=True):
            number = {name: i for i, name in enumerate(dict.fromkeys(column))}
            groups.append([number[name] for name in column])
        names = ["rack", *(f"switch {i}" for i in range(2, len(groups))), "cluster"]
        levels = tuple(Level(name, NIC) for name in names)
        return TreeTopology(levels, np.array(groups, dtype=np.int32))


def _switches() -> dict[str, list[str]]:
    """Return the switches above each node, the closest first, as `scontrol show topology` has them."""
    above = dict[str, list[str]]()
    for row in sorted(records("topology"), key=lambda row: int(row.get("Level", 0))):
        for node in names_in(row.get("Nodes", "")):
            above.setdefault(node, []).append(row["SwitchName"])
    return above


def tracks_memory() -> bool:
    """Return whether jobs take memory from one another, by Slurm's configuration."""
    return (
        "MEMORY"
        in (re.search(r"SelectTypeParameters\s*=\s*(\S+)", run("scontrol", "show", "config")) or [""])[0].upper()
    )
