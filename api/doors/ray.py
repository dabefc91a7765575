"""Ray: nodes of a running cluster as a `Fleet`, and placement groups and Ray Train workers where gangplan says.

Bundles are tied to nodes by the label ``ray.io/node-id``, which Ray sets on each node (Ray 2.49 and later).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from gangplan.hybrid.online import Decision, Scheduler
from gangplan.hybrid.online.starts import Start
from gangplan.instances import InstanceError
from gangplan.instances.cluster import Level, TreeTopology
from gangplan.instances.errors import extra
from gangplan.instances.placement import Demand, Fleet, GangJob

NODE = "ray.io/node-id"
"""Label by which Ray knows a node."""
_LINK, _NIC = 300e9, 25e9
"""Bytes/s within a node and of its link, which Ray does not know."""


def _ray() -> Any:
    try:
        import ray
        import ray.util
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise InstanceError("ray", f"is not installed: {extra('ray')}") from None
    return ray


def fleet(resource: str = "GPU", rack: str = "") -> Fleet:
    """Return the nodes of the cluster that `ray.init` joined, named by their ids.

    Args:
        resource: that counts as GPUs.
        rack: label of nodes that says their rack; by default all are in one.

    Raises:
        InstanceError: if Ray is absent, or no node is alive.
    """
    rows = sorted((row for row in _ray().nodes() if row["Alive"]), key=lambda row: str(row["NodeID"]))
    racks = [row.get("Labels", {}).get(rack, "") for row in rows]
    types = [row.get("Labels", {}).get("ray.io/accelerator-type") or "gpu" for row in rows]
    known, kinds, m = list(dict.fromkeys(racks)), list(dict.fromkeys(types)), len(rows)
    groups: Any = [[known.index(x) for x in racks], [0] * m]
    columns: dict[str, Any] = {
        "gpu_type": [kinds.index(x) for x in types],
        "gpus": [int(row["Resources"].get(resource, 0)) for row in rows],
        "cpu": [row["Resources"].get("CPU", 0.0) for row in rows],
        "memory": [row["Resources"].get("memory", 0.0) for row in rows],
        "link": [_LINK] * m,
    }
    topology = TreeTopology((Level("rack", _NIC), Level("cluster", _NIC * max(1, m) / 2)), groups)
    return Fleet(names=tuple(row["NodeID"] for row in rows), gpu_types=tuple(kinds), topology=topology, **columns)


class RayScheduler:
    """Keep a `Scheduler` of a Ray cluster: where jobs go, and which nodes have died.

    Args:
        resource, rack: as of `fleet`.
        given: arguments of `Scheduler`.

    Attributes:
        scheduler: to be asked and told whatever else, such as `explain`.
    """

    def __init__(self, resource: str = "GPU", rack: str = "", **given: Any) -> None:
        self._resource, self._rack = resource, rack
        self.scheduler = Scheduler(fleet(resource, rack), **given)
        self._needs: dict[str, Demand] = {}

    def submit(
        self, job: str, workers: int, seconds: float | None = None, *, gpus: int = 1, cpus: float = 1.0, **terms: Any
    ) -> None:
        """Let a job wait: so many workers of so many GPUs and cores each; `terms` as of `Scheduler.submit`."""
        gang = GangJob(job, "any", (workers,), Demand(gpus, cpus))
        self.scheduler.submit(gang, seconds, now=self._now(), **terms)
        self._needs[job] = gang.worker

    def finish(self, job: str) -> None:
        """Say that a job has ended; remove its placement group first."""
        self.scheduler.finish(job, now=self._now())
        self._needs.pop(job, None)

    def decide(self, deadline: float = 0.5) -> Decision:
        """Look which nodes are alive, and decide: jobs that ran on dead ones wait again, and may start elsewhere."""
        self.refresh()
        return self.scheduler.decide(deadline, now=self._now())

    def refresh(self) -> tuple[str, ...]:
        """Take in which nodes have come and died; return the jobs that ran on dead ones.

        A dead node stays known, as one that is down, until nobody may need it any more: Ray gives a new one a new id.
        """
        lost, here, state = list[str](), fleet(self._resource, self._rack), self.scheduler._state
        for i, name in enumerate(state.fleet.names):
            if name not in here.names and state.up[i]:
                lost += self.scheduler.fail_node(name, now=self._now())
        if {*here.names} - {*state.fleet.names}:
            self.scheduler.resize(here, now=self._now())
        return tuple(lost)

    def bundles(self, start: Start) -> tuple[list[dict[str, float]], list[dict[str, str]]]:
        """Return of a start what each worker reserves, and the label that ties it to its node."""
        need = self._needs[start.job]
        each = {self._resource: float(need.gpu), "CPU": float(need.cpu)}
        resources = {name: amount for name, amount in each.items() if amount}
        per = int(need.gpu) or 1
        nodes = [name for name, ids in start.nodes.items() for _ in range(len(ids) // per)][: start.degree]
        return [dict(resources) for _ in nodes], [{NODE: name} for name in nodes]

    def placement_group(self, start: Start, **given: Any) -> Any:
        """Return a placement group of Ray with a bundle for each worker on the node that it was given.

        Args:
            start: of a decision.
            given: more arguments of `ray.util.placement_group`, such as ``lifetime``.
        """
        resources, labels = self.bundles(start)
        group = _ray().util.placement_group
        return group(resources, bundle_label_selector=labels, **{"name": start.job, "strategy": "PACK"} | given)

    def scaling_config(self, start: Start, **given: Any) -> Any:
        """Return a `ray.train.ScalingConfig` whose workers are on the nodes that they were given."""
        from ray.train import ScalingConfig

        resources, labels = self.bundles(start)
        return ScalingConfig(
            num_workers=len(labels), resources_per_worker=resources[0], label_selector=labels,
            use_gpu=bool(resources[0].get("GPU")), **given,
        )  # fmt: skip

    def _now(self) -> float:
        return max(self.scheduler.now, time.time())


def where(group: Any) -> Mapping[int, str]:
    """Return the id of the node of each bundle of a placement group that is ready."""
    table: Mapping[str, Any] = _ray().util.placement_group_table(group)
    return dict(table["bundles_to_node_id"])
