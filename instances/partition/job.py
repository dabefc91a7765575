"""What all partition problems share, one job's graph on one cluster, and what all their plans do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import FloatArray, frozen, require, require_text
from ..cluster import Cluster
from ..errors import InstanceError
from ..graph import OpGraph


@dataclass(frozen=True, slots=True, eq=False)
class GraphProblem:
    """Place every op of `graph` on a device of `cluster`; the subclasses say what is minimised.

    Attributes:
        graph: the job; it gives a time for every device type of the cluster.
        cluster: the devices.
    """

    graph: OpGraph
    cluster: Cluster

    objective: ClassVar[str]
    """What is minimised, by the name that `solve` and the command line know."""
    variant: ClassVar[str] = ""
    """What else tells problems of one objective apart."""

    def __post_init__(self) -> None:
        known = set(self.graph.device_types)
        for i, kind in enumerate(self.cluster.device_types):
            if kind.name not in known:
                raise InstanceError(f"cluster.device_types[{i}].name", f"the graph has no times for {kind.name!r}")

    def __repr__(self) -> str:
        graph = f"{self.graph.n_ops} ops, {self.graph.n_edges} edges"
        contention = ", with contention" if getattr(self, "contention", False) else ""
        own = f"{self.objective}{', ' if self.variant else ''}{self.variant}{contention}"
        return f"{type(self).__name__}({graph} on {self.cluster.words()}: {own})"

    def time(self) -> FloatArray:
        """Return seconds, float64 (cluster's T, n): the rows of `graph.time` in the cluster's order."""
        row = {name: i for i, name in enumerate(self.graph.device_types)}
        return self.graph.time[[row[kind.name] for kind in self.cluster.device_types]]

    def transfer(self) -> FloatArray:
        """Return the seconds to move each op's output over a device's link, float64 (n,).

        One price for every pair of devices, the slowest level's: the published model moves data through
        host memory (Tarnawski et al., NeurIPS 2020), and a pipeline is not to depend on which GPUs it gets.
        """
        bandwidth, latency = self.cluster.topology.slowest_link()
        size = self.graph.output_bytes()
        return np.where(size > 0, latency + size / bandwidth, 0.0)

    def capacity(self) -> FloatArray:
        """Return the memory of each device in bytes, infinite where unlimited, float64 (n_devices,)."""
        memory = [np.inf if kind.memory is None else kind.memory for kind in self.cluster.device_types]
        return np.array(memory)[self.cluster.type_of]

    def hosts(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Return which devices are hosts, bool (n_devices,)."""
        return np.array([kind.host for kind in self.cluster.device_types])[self.cluster.type_of]


def check_assignment(plan: Any, *whole: str) -> None:
    """Check and freeze `plan.ops`, `plan.instance` and the int32 (n,) fields named in `whole`, none of it negative.

    Raises:
        InstanceError: naming the field and the value found.
    """
    object.__setattr__(plan, "ops", tuple(plan.ops))
    if set(map(type, plan.ops)) != {str} or not all(plan.ops):
        for i, name in enumerate(plan.ops):
            require_text(name, f"ops[{i}]")
    if plan.instance is not None:
        require_text(plan.instance, "instance")
    for field in whole:
        object.__setattr__(plan, field, frozen(getattr(plan, field), np.int32, field, (len(plan.ops),)))
        values = getattr(plan, field)
        require(values >= 0, values, field, "is negative")
