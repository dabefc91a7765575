"""The step-time problem: the makespan of one pass over the graph, one op at a time on each device."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import FloatArray, IntArray, frozen, require
from ..errors import InstanceError
from .job import GraphProblem, check_assignment


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StepProblem(GraphProblem):
    """Place every op and say when it starts, so that the last one is done as soon as possible.

    A device runs one op at a time. An output is sent once to each other device that needs it, and takes the latency of
    the lowest level that joins the two devices plus its bytes over that level's bandwidth; an empty one takes no time.
    Without contention a transfer starts when its op ends, whatever else is on the links. With contention it occupies,
    while it lasts, every link on its way, and a link carries one transfer at a time; see `route`.

    Attributes:
        graph: the job; a training step if it has backward ops.
        cluster: the devices. A host is a device as any other.
        contention: whether transfers wait for one another.
    """

    contention: bool = False

    objective: ClassVar[str] = "step"

    def __post_init__(self) -> None:
        GraphProblem.__post_init__(self)
        if not isinstance(self.contention, bool):
            raise InstanceError("contention", f"{self.contention!r} is not true or false")

    def delay(self, op: IntArray, a: IntArray, b: IntArray) -> FloatArray:
        """Return the seconds to send the output of `op` from device `a` to `b`, elementwise; 0 on one device."""
        size = self.graph.output_bytes()[op]
        return np.where(size > 0, self.cluster.topology.transfer_seconds(a, b, size), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class StepPlan:
    """An answer: where and when each op runs, and with contention when each output is sent.

    Attributes:
        ops: the names of the graph's ops, in its order.
        device: int32 (n,), index into the cluster's devices.
        start: seconds, float64 (n,).
        sent: int32 (s,), the op of each transfer; empty without contention.
        receiver: int32 (s,), the device each transfer goes to.
        sent_at: seconds each transfer starts, float64 (s,).
        instance: content hash of the problem it answers, if known.
    """

    ops: tuple[str, ...]
    device: IntArray
    start: FloatArray
    sent: IntArray = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    receiver: IntArray = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    sent_at: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))
    instance: str | None = None

    def __post_init__(self) -> None:
        check_assignment(self, "device")
        object.__setattr__(self, "start", frozen(self.start, np.float64, "start", (len(self.ops),)))
        object.__setattr__(self, "sent", frozen(self.sent, np.int32, "sent", (None,)))
        object.__setattr__(self, "receiver", frozen(self.receiver, np.int32, "receiver", (len(self.sent),)))
        object.__setattr__(self, "sent_at", frozen(self.sent_at, np.float64, "sent_at", (len(self.sent),)))
        for field in ("start", "sent_at"):
            values = getattr(self, field)
            require(np.isfinite(values) & (values >= 0), values, field, "is no time from 0 on")
        known = (self.sent >= 0) & (self.sent < len(self.ops))
        require(known, self.sent, "sent", f"is not one of the {len(self.ops)} ops")
        require(self.receiver >= 0, self.receiver, "receiver", "is negative")

    def __repr__(self) -> str:
        return f"StepPlan({len(self.ops)} ops on {len(np.unique(self.device))} devices, {len(self.sent)} transfers)"
