"""The partition problems of one graph on one cluster, their plans, and the links of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..arrays import AMOUNT, NONE, Checked, FloatArray, IntArray, array, check_fields, limited
from ..cluster import Cluster, TreeTopology
from ..errors import InstanceError
from ..graph import OpGraph
from ..lazy import exported

if TYPE_CHECKING:
    from ..kinds import Plan as Plan
    from .stages import MEMORY_MODELS as MEMORY_MODELS
    from .stages import StagesPlan as StagesPlan
    from .stages import StagesProblem as StagesProblem
    from .stages import TensorMenu as TensorMenu
    from .stages import megatron as megatron
else:
    __getattr__ = exported(
        __name__, {"..kinds": "Plan", ".stages": "MEMORY_MODELS StagesPlan StagesProblem TensorMenu megatron"}
    )


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
        check_fields(self)
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

    variant: str = limited("contiguous", choices=VARIANTS)  # type: ignore[misc]  # a field here, a constant of the other objectives

    objective: ClassVar[str] = "throughput"


@dataclass(frozen=True, slots=True, eq=False)
class PartitionPlan(Checked):
    """An answer: the device of each op, and each op's place along the pipeline.

    Attributes:
        ops: the names of the graph's ops, in its order.
        device: int32 (n,), index into the cluster's devices.
        stage: int32 (n,), from 0; one stage is one device.
        instance: content hash of the problem it answers, if known.
    """

    ops: tuple[str, ...]
    device: IntArray = field(metadata=array("ops", holds=AMOUNT))
    stage: IntArray = field(metadata=array("ops", holds=AMOUNT))
    instance: str | None = None

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LatencyProblem(GraphProblem):
    """Place every op so that one sample is through as soon as possible (Tarnawski et al., NeurIPS 2020, section 4).

    An op on a host starts when its inputs are there; a host has as many cores as are asked for. An accelerator runs its
    ops as one call: that starts when all results it needs are on the host, takes the transfers of these, the compute of
    its ops and the transfers of what others need, and then has all its results on the host.
    """

    objective: ClassVar[str] = "latency"

    def __post_init__(self) -> None:
        GraphProblem.__post_init__(self)
        if self.graph.backward.any():
            words = f"{self.graph.backward.sum()} ops belong to a backward pass; latency is of a forward pass alone"
            raise InstanceError("graph.backward", words)


@dataclass(frozen=True, slots=True, eq=False)
class LatencyPlan(Checked):
    """An answer: the device of each op; when everything runs follows from it.

    Attributes:
        ops: the names of the graph's ops, in its order.
        device: int32 (n,), index into the cluster's devices.
        instance: content hash of the problem it answers, if known.
    """

    ops: tuple[str, ...]
    device: IntArray = field(metadata=array("ops", holds=AMOUNT))
    instance: str | None = None

    def __repr__(self) -> str:
        return f"LatencyPlan({len(self.ops)} ops on {len(set(self.device.tolist()))} devices)"


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

    def is_shop(self) -> bool:
        """Return whether each op runs on one device alone, as in a job shop, and none sends anything."""
        able = np.isfinite(self.time())[self.cluster.type_of].sum(axis=0)
        return bool((able == 1).all()) and not self.graph.edge_bytes.any()

    def delay(self, op: IntArray, a: IntArray, b: IntArray) -> FloatArray:
        """Return the seconds to send the output of `op` from device `a` to `b`, elementwise; 0 on one device."""
        size = self.graph.output_bytes()[op]
        return np.where(size > 0, self.cluster.topology.transfer_seconds(a, b, size), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class StepPlan(Checked):
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
    device: IntArray = field(metadata=array("ops", holds=AMOUNT))
    start: FloatArray = field(metadata=array("ops", holds=AMOUNT))
    sent: IntArray = field(default=NONE, metadata=array(None, of="ops", what="ops"))
    receiver: IntArray = field(default=NONE, metadata=array("sent", holds=AMOUNT))
    sent_at: FloatArray = field(default=NONE, metadata=array("sent", holds=AMOUNT))
    instance: str | None = None

    def __repr__(self) -> str:
        sent = f", {len(self.sent)} transfers" if len(self.sent) else ""
        return f"StepPlan({len(self.ops)} ops on {len(np.unique(self.device))} devices{sent})"


class Links:
    """The links of a cluster, numbered: one out of and one into every device, and every group below the top level.

    A transfer takes the way up from its sender to the lowest level that joins the two devices, and down to its
    receiver. A flat mesh has the links of its devices only.
    """

    def __init__(self, cluster: Cluster) -> None:
        topology, n = cluster.topology, cluster.n_devices
        names = [f"device {d}" for d in range(n)]
        rows = [np.arange(n)]
        if isinstance(topology, TreeTopology):
            for level, row in zip(topology.levels[:-1], topology.group[:-1], strict=True):
                known, number = np.unique(row, return_inverse=True)
                rows.append(len(names) + number)
                names += [f"{level.name} {g}" for g in known.tolist()]
        self._pair = np.stack(rows)  # of links, that of each device and of its group at each level
        self.names = tuple(f"{name} {way}" for name in names for way in ("out", "in"))
        """What each link is called."""

    def route(self, a: int, b: int) -> tuple[int, ...]:
        """Return the links that a transfer from device `a` to device `b` occupies; none if they are one."""
        here, there = self._pair[:, a].tolist(), self._pair[:, b].tolist()
        up = [2 * x for x, y in zip(here, there, strict=True) if x != y]
        down = [2 * y + 1 for x, y in zip(here, there, strict=True) if x != y]
        return (*up, *down[::-1])

    def table(self) -> IntArray:
        """Return the routes between all n devices, int64 (n, n, longest): links as of `route`, then -1."""
        here, there = self._pair[:, :, None], self._pair[:, None, :]
        rows = np.concatenate([np.where(here != there, 2 * here, -1), np.where(here != there, 2 * there + 1, -1)[::-1]])
        longest = int((rows >= 0).sum(axis=0).max())
        kept = np.argsort(rows < 0, axis=0, kind="stable")[:longest]
        return np.ascontiguousarray(np.moveaxis(np.take_along_axis(rows, kept, axis=0), 0, -1).astype(np.int64))

    def uses(self, a: IntArray, b: IntArray) -> tuple[IntArray, IntArray]:
        """Return (transfer, link) of all links that transfers from `a` to `b`, int32 (s,) each, occupy; unordered."""
        here, there = self._pair[:, a], self._pair[:, b]
        apart = here != there
        which = np.nonzero(apart)[1]
        links = np.concatenate([2 * here[apart], 2 * there[apart] + 1])
        return np.concatenate([which, which]).astype(np.int32), links.astype(np.int32)
