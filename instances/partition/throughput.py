"""The throughput problem: the busiest device of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import IntArray
from ..errors import InstanceError, unknown
from ..graph import OpGraph
from .job import GraphProblem, check_assignment

VARIANTS = ("contiguous", "convex", "free")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartitionProblem(GraphProblem):
    """Place every op of `graph` on one device of `cluster`, so that the busiest device has least to do a sample.

    Attributes:
        graph: the job; it gives a time for every device type of the cluster.
        cluster: the devices.
        variant: ``contiguous`` (devices form a chain of stages), ``convex`` (no path leaves a device
            and comes back) or ``free``; see `precedence` for the edges that count.
    """

    variant: str = "contiguous"  # type: ignore[misc]  # a field here, a constant of the other objectives

    objective: ClassVar[str] = "throughput"

    def __post_init__(self) -> None:
        GraphProblem.__post_init__(self)
        if self.variant not in VARIANTS:
            raise InstanceError("variant", unknown(self.variant, VARIANTS))


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
        check_assignment(self, "device", "stage")

    def __repr__(self) -> str:
        return f"PartitionPlan({len(self.ops)} ops on {len(np.unique(self.device))} devices)"


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
