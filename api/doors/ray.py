"""Ray: nodes of a running cluster as a `Fleet`, and placement groups and Ray Train workers where gangplan says.

Bundles are tied to nodes by the label ``ray.io/node-id``, which Ray sets on each node (Ray 2.49 and later).
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.errors import extra
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.scheduler import Decision, Scheduler
from gangplan.scheduler.decision import Start, whole
from gangplan.scheduler.described import fleet_of, has_begun, racks_of, reopened

NODE = "ray.io/node-id"
"""Label by which Ray knows a node."""
_TYPE = "accelerator_type:"


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
        InstanceError: if Ray is absent.
    """
    rows = sorted((row for row in _ray().nodes() if row["Alive"]), key=lambda row: str(row["NodeID"]))
    has = [row["Resources"] for row in rows]
    return fleet_of(
        [_type(row) for row in rows],
        {},
        names=tuple(row["NodeID"] for row in rows),
        gpus=[int(x.get(resource, 0)) for x in has],
        cpu=[x.get("CPU", 0.0) for x in has],
        memory=[x.get("memory", 0.0) for x in has],
        topology=racks_of([row.get("Labels", {}).get(rack, "") for row in rows]),
    )


def _type(row: Mapping[str, Any]) -> str:
    """Return the GPU type of a node: its label, or the resource by which earlier versions of Ray say it."""
    said = (name.removeprefix(_TYPE) for name in row["Resources"] if name.startswith(_TYPE))
    return row.get("Labels", {}).get("ray.io/accelerator-type") or next(said, "gpu")


def groups(resource: str = "GPU") -> dict[str, tuple[Demand, Counter[str]]]:
    """Return by its name, or else its id, what a worker of each placement group that is ready has, and how many where.

    Bundles without GPUs are no workers. Where Ray was not joined there are none.
    """
    if (ray := sys.modules.get("ray")) is None or not ray.is_initialized():
        return {}
    found: dict[str, tuple[Demand, Counter[str]]] = {}
    for name, row in ray.util.placement_group_table().items():
        bundles = {i: needs for i, needs in row["bundles"].items() if needs.get(resource)}
        if row["state"] == "CREATED" and bundles:
            need = Demand(*(max(x.get(each, 0.0) for x in bundles.values()) for each in (resource, "CPU")))
            found[row["name"] or name] = need, Counter(row["bundles_to_node_id"][i] for i in bundles)
    return found


class RayScheduler:
    """Keep a `Scheduler` of a Ray cluster: where jobs go, and which nodes have died.

    A driver that begins anew goes on with the log, if it is there, and takes over the placement groups of others.

    Args:
        resource, rack: as of `fleet`.
        log: as of `Scheduler`.
        given: other arguments of `Scheduler`.

    Attributes:
        scheduler: to be asked and told whatever else, such as `explain`.
    """

    def __init__(self, resource: str = "GPU", rack: str = "", log: str | Path | None = None, **given: Any) -> None:
        self._resource, self._rack, self._adopted = resource, rack, set[str]()
        if log is not None and has_begun(Path(log)):
            self.scheduler = reopened(Path(log), given, sync=given.pop("sync", False))
            self.refresh()
        else:
            self.scheduler = Scheduler(fleet(resource, rack), log=log, **given)
        for name, (need, nodes) in groups(resource).items():
            if name not in self.scheduler.running:
                self._adopt(name, need, nodes)

    def _adopt(self, name: str, need: Demand, nodes: Mapping[str, int]) -> None:
        """Have a placement group that nobody here knows run as a job, until it is removed."""
        gang = GangJob(name, "any", (sum(nodes.values()),), need)
        try:
            if name not in self.scheduler.waiting:  # it was not let go of before it was decided anew
                self.scheduler.submit(gang, now=self._now(), together=False, price=None)
            self.scheduler.adopt(name, nodes, now=self._now())
            self._adopted.add(name)
        except InstanceError as error:
            words = f"gangplan: placement group {name!r} is not taken over: {error}"
            warnings.warn(words, RuntimeWarning, stacklevel=3)
            if name in self.scheduler.waiting:
                self.scheduler.withdraw(name, now=self._now())

    def submit(
        self, job: str, workers: int, seconds: Any = None, *, gpus: int = 1, cpus: float = 1.0,
        gpu_types: Sequence[str] = (), **terms: Any,
    ) -> None:  # fmt: skip
        """Let a job wait: so many workers of so many GPUs, of these types, and cores each; see `Scheduler`."""
        gang = GangJob(job, "any", (workers,), Demand(gpus, cpus), gpu_types=tuple(gpu_types))
        self.scheduler.submit(gang, seconds, now=self._now(), **terms)

    def finish(self, job: str) -> None:
        """Say that a job has ended; remove its placement group first."""
        self.scheduler.finish(job, now=self._now())

    def decide(self, deadline: float = 0.5) -> Decision:
        """Look which nodes are alive, and decide: jobs that ran on dead ones wait again, and may start elsewhere.

        What the deadline cuts short is gone on with, so that all that can start does.
        """
        self.refresh()
        return whole(lambda: self.scheduler.decide(deadline, now=self._now()))

    def refresh(self) -> tuple[str, ...]:
        """Take in which nodes have come and died, and which groups are gone; return the jobs that ran on dead nodes.

        A dead node is down until others come: Ray gives a new one a new id. A job for which the nodes are too few then
        waits for more.
        """
        lost, here, state = list[str](), fleet(self._resource, self._rack), self.scheduler._state
        for name, up in [*zip(state.fleet.names, state.up, strict=True)]:
            if name not in here.names and up:
                lost += self.scheduler.fail_node(name, now=self._now())
        if {*here.names} - {*state.fleet.names}:
            self.scheduler.resize(here, now=self._now())
        there = groups(self._resource) if self._adopted else ()
        for name in [name for name in self._adopted if name not in there]:
            self._adopted.discard(name)
            if name in self.scheduler.running:
                self.scheduler.finish(name, now=self._now())
            elif name in self.scheduler.waiting:  # it lost its node
                self.scheduler.withdraw(name, now=self._now())
        return tuple(lost)

    def bundles(self, start: Start) -> tuple[list[dict[str, float]], list[dict[str, str]]]:
        """Return of a start what each worker reserves, and the label that ties it to its node."""
        self.scheduler._state.find(start.job, "runs")
        need = self.scheduler._state.running[start.job].request.job.worker
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
