"""The latency problem: the time of one sample, calls to accelerators included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arrays import IntArray
from ..errors import InstanceError
from .job import GraphProblem, check_assignment


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LatencyProblem(GraphProblem):
    """Place every op so that one sample is through as soon as possible (Tarnawski et al., NeurIPS 2020, section 4).

    An op on a host starts when its inputs are there; a host has as many cores as are asked for. An accelerator runs its
    ops as one call: that starts when all results it needs are on the host, takes the transfers of these, the compute of
    its ops and the transfers of what others need, and then has all its results on the host.

    Attributes:
        graph: the job, a forward pass.
        cluster: the devices.
    """

    objective: ClassVar[str] = "latency"

    def __post_init__(self) -> None:
        GraphProblem.__post_init__(self)
        if self.graph.backward.any():
            words = f"{self.graph.backward.sum()} ops belong to a backward pass; latency is of a forward pass alone"
            raise InstanceError("graph.backward", words)


@dataclass(frozen=True, slots=True, eq=False)
class LatencyPlan:
    """An answer: the device of each op; when everything runs follows from it.

    Attributes:
        ops: the names of the graph's ops, in its order.
        device: int32 (n,), index into the cluster's devices.
        instance: content hash of the problem it answers, if known.
    """

    ops: tuple[str, ...]
    device: IntArray
    instance: str | None = None

    def __post_init__(self) -> None:
        check_assignment(self, "device")

    def __repr__(self) -> str:
        return f"LatencyPlan({len(self.ops)} ops on {len(set(self.device.tolist()))} devices)"
