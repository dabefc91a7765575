"""The partition problem: which device runs which op of one job, as a pipeline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import FloatArray, IntArray, frozen, require, require_text
from .cluster import Cluster
from .errors import InstanceError
from .graph import OpGraph

VARIANTS = ("contiguous", "convex", "free")


@dataclass(frozen=True, slots=True, eq=False)
class PartitionProblem:
    """Place every op of `graph` on one device of `cluster`.

    Attributes:
        graph: the job; it gives a time for every device type of the cluster.
        cluster: the devices.
        variant: ``contiguous`` (devices form a chain of stages), ``convex`` (no path leaves a device
            and comes back) or ``free``; see `precedence` for the edges that count.
    """

    graph: OpGraph
    cluster: Cluster
    variant: str = "contiguous"

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise InstanceError("variant", f"{self.variant!r} is not one of {', '.join(VARIANTS)}")
        for i, kind in enumerate(self.cluster.device_types):
            if kind.name not in self.graph.device_types:
                raise InstanceError(f"cluster.device_types[{i}].name", f"the graph has no times for {kind.name!r}")

    def time(self) -> FloatArray:
        """Return seconds, float64 (cluster's T, n): the rows of `graph.time` in the cluster's order."""
        rows = [self.graph.device_types.index(kind.name) for kind in self.cluster.device_types]
        return self.graph.time[rows]

    def transfer(self) -> FloatArray:
        """Return the seconds to move each op's output over a device's link, float64 (n,).

        One price for every pair of devices, the slowest level's: the published model moves data through
        host memory (Tarnawski et al., NeurIPS 2020), and a pipeline is not to depend on which GPUs it gets.
        """
        bandwidth, latency = self.cluster.topology.slowest_link()
        size = self.graph.output_bytes()
        return np.where(size > 0, latency + size / bandwidth, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class PartitionPlan:
    """An answer: the device of each op, and each op's place along the pipeline.

    Attributes:
        ops: the names of the graph's ops, in its order.
        device: int32 (n,), index into the cluster's devices.
        stage: int32 (n,), from 0; one stage is one device.
        instance: content hash of the problem it answers, if known.
    """

    ops: tuple[str, ...]
    device: IntArray
    stage: IntArray
    instance: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "ops", tuple(self.ops))
        for i, name in enumerate(self.ops):
            require_text(name, f"ops[{i}]")
        if self.instance is not None:
            require_text(self.instance, "instance")
        object.__setattr__(self, "device", frozen(self.device, np.int32, "device", (len(self.ops),)))
        object.__setattr__(self, "stage", frozen(self.stage, np.int32, "stage", (len(self.ops),)))
        require(self.device >= 0, self.device, "device", "is negative")
        require(self.stage >= 0, self.stage, "stage", "is negative")


def precedence(graph: OpGraph) -> tuple[IntArray, IntArray]:
    """Return the edges (earlier, later) that order the stages of a pipeline, int32 (p,) each.

    Forward edges order stages as they point. A backward op goes where its colocated forward op is, and
    so orders nothing; one that has no forward op in its class takes part with its edges reversed, as the
    mirror image of a forward op would (Tarnawski et al., NeurIPS 2020, appendix on training graphs).
    """
    n = graph.n_ops
    anchored = ~graph.backward
    classes = graph.colocation[anchored & (graph.colocation >= 0)]
    anchored |= np.isin(graph.colocation, classes) & (graph.colocation >= 0)
    back = graph.backward
    u, v = graph.source, graph.target
    forward = ~back[u] & ~back[v] if n else np.zeros(0, dtype=bool)
    mirrored = back[u] & back[v] & ~(anchored[u] & anchored[v])
    earlier = np.concatenate([u[forward], v[mirrored]]).astype(np.int32)
    later = np.concatenate([v[forward], u[mirrored]]).astype(np.int32)
    return earlier, later
