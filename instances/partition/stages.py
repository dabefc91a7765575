"""The stages problem: a pipeline whose stages are replicated, on clusters of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import ClassVar
from warnings import warn

import numpy as np

from ..arrays import AMOUNT, POSITIVE, TIMES, FloatArray, IntArray, array, check_fields, frozen, listed, require
from ..cluster import Level, RampTopology, TreeTopology
from ..errors import InstanceError
from ..graph import OpGraph
from . import GraphProblem


@dataclass(frozen=True, slots=True, eq=False)
class TensorMenu:
    """What n ops cost at K degrees of tensor parallelism, on one type of device.

    Attributes:
        degree: int32 (K,), how many devices share an op; increasing.
        time: seconds on each of them without communication, float64 (K, n); infinite where an op has no such degree.
        memory: bytes the op occupies on each device, float64 (K, n).
        parameter_bytes: bytes of weights on each device, float64 (K, n).
        activation_bytes: bytes of output kept on each device, float64 (K, n).
        sync_bytes: bytes each device moves over its link so that the op's results agree, a sample, float64 (K, n).
    """

    degree: IntArray = field(metadata=array(None, holds=POSITIVE))
    time: FloatArray = field(metadata=array("degree", None, holds=TIMES, null="infinite"))
    memory: FloatArray = field(metadata=array("degree", None, holds=AMOUNT))
    parameter_bytes: FloatArray = field(metadata=array("degree", None, holds=AMOUNT))
    activation_bytes: FloatArray = field(metadata=array("degree", None, holds=AMOUNT))
    sync_bytes: FloatArray = field(metadata=array("degree", None, holds=AMOUNT))

    def __post_init__(self) -> None:
        check_fields(self)
        if not len(self.degree):
            raise InstanceError("degree", "the menu has no degree")
        rising = np.concatenate([[True], np.diff(self.degree) > 0])
        require(rising, self.degree, "degree", "is not above the one before it")
        for name in ("memory", "parameter_bytes", "activation_bytes", "sync_bytes"):
            frozen(getattr(self, name), np.float64, name, self.time.shape)

    def __repr__(self) -> str:
        return f"TensorMenu({self.n_ops} ops at degrees {', '.join(map(str, self.degree.tolist()))})"

    @property
    def n_ops(self) -> int:
        """How many ops the menu is for."""
        return int(self.time.shape[1])


def single(graph: OpGraph, device_type: str) -> TensorMenu:
    """Return the menu without a choice: every op whole on one device."""
    row = graph.time[[graph.device_types.index(device_type)]]
    amounts = graph.memory, graph.parameter_bytes, graph.activation_bytes, np.zeros(graph.n_ops)
    return TensorMenu(np.ones(1, dtype=np.int32), row, *(x[None] for x in amounts))


def megatron(graph: OpGraph, device_type: str, degrees: Sequence[int]) -> TensorMenu:
    """Make a menu in which every op divides evenly (Shoeybi et al., arXiv 1909.08053).

    Deprecated: a `LayoutProblem` knows what tensor parallelism costs. It leaves with the next release.

    At degree t an op takes 1/t of its time and memory on each device. An op with weights ends in a ring all-reduce
    of its output, forward and backward, which moves 2 (t - 1)/t of those bytes over the link of each device; ops
    without weights work on what is there. Megatron pairs two matrix products per all-reduce, so this is on the safe
    side.

    Args:
        graph: the job.
        device_type: whose times to take.
        degrees: how many devices may share an op, e.g. ``(1, 2, 4, 8)``.

    Raises:
        InstanceError: if a degree is not a positive whole number, or the graph has no times for the type.
    """
    warn("megatron is deprecated: a LayoutProblem knows tensor parallelism", DeprecationWarning, stacklevel=2)
    if device_type not in graph.device_types:
        raise InstanceError("device_type", f"the graph has no times for {device_type!r}")
    for i, t in enumerate(degrees := listed(degrees, "degrees")):
        if isinstance(t, bool) or not isinstance(t, int) or t < 1:
            raise InstanceError(f"degrees[{i}]", f"{t!r} is not a positive whole number")
    degree = np.unique(np.array(degrees, dtype=np.int32))
    share = 1.0 / degree[:, None]
    holds = graph.parameter_bytes > 0
    # the backward twin of an op with weights reduces the gradient of its input
    twins = graph.twin[holds & (graph.twin >= 0)]
    reduces = holds.copy()
    reduces[twins] = True
    moved = np.where(reduces, np.maximum(graph.activation_bytes, graph.output_bytes()), 0.0)
    row = graph.time[graph.device_types.index(device_type)]
    return TensorMenu(
        degree,
        row * share,
        graph.memory * share,
        graph.parameter_bytes * share,
        graph.activation_bytes * share,
        2.0 * (1.0 - share) * moved,
    )


MEMORY_MODELS = ("1f1b", "pipedream", "none")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StagesProblem(GraphProblem):
    """Cut the job into stages and replicate each, so that the slowest takes least time a sample (docs/stages.md).

    A sample is what the times of the graph are of, usually a minibatch. The model is that of PipeDream's optimiser
    (Narayanan et al., SOSP 2019): a pipeline over the members of the top level, each stage on some of them, each of
    these running a pipeline over its own members, down to single devices or groups of them that share ops.

    Attributes:
        graph: the job. Weights are synchronised, and activations kept, if it has backward ops.
        cluster: the devices, all of one type, in a tree whose groups of a level have equally many members.
        activations: whether moving activations and their gradients between stages takes time (beside the computing).
        recompute: keep the inputs of a stage only, and run it forward once more before it runs backward.
        stashing: keep a version of the weights for each sample under way, as PipeDream does; one version otherwise.
        memory_model: ``1f1b`` (what the ops occupy, and what the samples under way add), ``pipedream`` (only what
            these add, as its optimiser counts) or ``none``.
        menu: degrees of tensor parallelism; by default every op is whole.
    """

    activations: bool = True
    recompute: bool = False
    stashing: bool = True
    memory_model: str = field(default="1f1b", metadata={"choices": MEMORY_MODELS})
    menu: TensorMenu | None = None

    objective: ClassVar[str] = "stages"

    def __post_init__(self) -> None:
        GraphProblem.__post_init__(self)
        if self.recompute and not self.training:
            raise InstanceError("recompute", "True, but the graph has no backward pass to run forward again for")
        self._check_cluster()
        if self.menu is not None and self.menu.n_ops != self.graph.n_ops:
            raise InstanceError("menu", f"is for {self.menu.n_ops} ops, the graph has {self.graph.n_ops}")

    @property
    def training(self) -> bool:
        """Whether the graph has a backward pass."""
        return bool(self.graph.backward.any())

    @property
    def kind(self) -> int:
        """The one device type in use, index into those of the cluster."""
        return int(self.cluster.type_of[0])

    def options(self) -> TensorMenu:
        """Return the menu, or the one without a choice."""
        return single(self.graph, self.cluster.device_types[self.kind].name) if self.menu is None else self.menu

    def levels(self) -> tuple[Level, ...]:
        """Return the levels of links, from the innermost."""
        topology = self.cluster.topology
        if isinstance(topology, RampTopology):
            return (Level("mesh", *topology.slowest_link()),)
        return topology.levels

    def members(self) -> tuple[int, ...]:
        """Return how many members a group of each level has, from the innermost."""
        topology = self.cluster.topology
        if isinstance(topology, RampTopology):
            return (topology.n_devices,)
        sizes = [1, *(int(np.unique(row, return_counts=True)[1][0]) for row in topology.group)]
        return tuple(b // a for a, b in pairwise(sizes))

    def device_order(self) -> IntArray:
        """Return the devices so that the members of every group are together, int32 (n_devices,)."""
        topology = self.cluster.topology
        if isinstance(topology, RampTopology):
            return np.arange(topology.n_devices, dtype=np.int32)
        return np.lexsort((np.arange(topology.n_devices), *topology.group)).astype(np.int32)

    def seconds(self) -> FloatArray:
        """Return what each op takes at each degree on each of the devices that share it, float64 (K, n).

        Communication among them and, with recomputation, the forward pass once more included; infinite for a degree
        that the menu does not have for the op or that no innermost group has devices for.
        """
        menu, inner = self.options(), self.levels()[0]
        t = menu.degree[:, None]
        rounds = 2.0 * (t - 1) * inner.latency
        seconds = menu.time + np.where(menu.sync_bytes > 0, rounds + menu.sync_bytes / inner.bandwidth, 0.0)
        if self.recompute:
            seconds = seconds + np.where(self.graph.backward, 0.0, seconds)
        return np.where(t <= self.members()[0], seconds, np.inf)

    def sync(self, level: int, replicas: int, size: FloatArray) -> FloatArray:
        """Return the seconds that `replicas` members of `level` take to agree on `size` bytes of weights.

        PipeDream's 4 (m - 1)/m of the bytes over the link, which at upper levels every device of a member has an
        equal part of; nothing without a backward pass.

        Args:
            level: from 0, the innermost.
            replicas: m.
            size: bytes; on one device at level 0, of the whole stage above.
        """
        if not self.training:
            return np.zeros_like(size)
        link, m = self.levels()[level], replicas
        devices = prod(self.members()[:level])
        seconds = 4.0 * (m - 1) * size / (m * link.bandwidth * devices)
        return np.where(size > 0, 2.0 * (m - 1) * link.latency + seconds, 0.0)

    def move(self, level: int, size: FloatArray) -> FloatArray:
        """Return the seconds to move `size` bytes of activations of a sample between stages of `level`.

        As many bytes of gradients go back in training.
        """
        if not self.activations:
            return np.zeros_like(size)
        link, ways = self.levels()[level], 2.0 if self.training else 1.0
        return np.where(size > 0, ways * (link.latency + size / link.bandwidth), 0.0)

    def forward_edges(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the edges within the forward pass, and what each op sends along them: float64 (n,)."""
        graph = self.graph
        kept = ~graph.backward[graph.source] & ~graph.backward[graph.target]
        sent = np.zeros(graph.n_ops)
        np.maximum.at(sent, graph.source[kept], graph.edge_bytes[kept])
        return graph.source[kept], graph.target[kept], sent

    def need(self) -> tuple[FloatArray, FloatArray]:
        """Return the bytes each op needs on a device at each degree: once, and per further sample under way.

        The inputs that recomputation keeps per sample depend on the stage and come on top. float64 (K, n) each.
        """
        menu = self.options()
        nothing = np.zeros_like(menu.memory)
        if self.memory_model == "none":
            return nothing, nothing
        once = menu.memory if self.memory_model == "1f1b" else nothing
        kept = nothing if self.recompute else np.where(self.graph.backward, 0.0, menu.activation_bytes)
        return once, kept + (menu.parameter_bytes if self.stashing else 0.0)

    def _check_cluster(self) -> None:
        cluster = self.cluster
        used = np.flatnonzero(cluster.counts())
        names = ", ".join(cluster.device_types[t].name for t in used)
        if len(used) > 1:
            words = f"{names} are {len(used)} types of devices; replicated stages are for clusters of one type"
            raise InstanceError("cluster.type_of", words)
        if cluster.device_types[used[0]].host:
            raise InstanceError("cluster.type_of", f"{names} is a host; replicated stages are for accelerators")
        if isinstance(cluster.topology, TreeTopology):
            for level, row in zip(cluster.topology.levels, cluster.topology.group, strict=True):
                sizes = np.unique(np.unique(row, return_counts=True)[1])
                if len(sizes) > 1:
                    words = f"{level.name}s of {sizes[0]} and of {sizes[-1]} devices; all must be of one size"
                    raise InstanceError("cluster.topology.group", words)


@dataclass(frozen=True, slots=True, eq=False)
class StagesPlan:
    """An answer: the stage of each op, the stage that each device serves, and how many devices share a replica.

    How stages are replicated follows from that: members of a group that serve the same stages are replicas.

    Attributes:
        ops: the names of the graph's ops, in its order.
        stage: int32 (n,), from 0, in the order of the pipeline.
        serves: int32 (n_devices,), the stage of each device, -1 if it is idle.
        degree: int32 (stages,), the devices of one replica of each stage, its degree of tensor parallelism.
        instance: content hash of the problem it answers, if known.
    """

    ops: tuple[str, ...]
    stage: IntArray = field(metadata=array("ops", holds=AMOUNT))
    serves: IntArray
    degree: IntArray = field(metadata=array(None, holds=POSITIVE))
    instance: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        known = (self.serves >= -1) & (self.serves < len(self.degree))
        require(known, self.serves, "serves", f"is neither -1 nor one of the {len(self.degree)} stages")
        known = self.stage < len(self.degree)
        require(known, self.stage, "stage", f"is not one of the {len(self.degree)} stages that have a degree")

    def __repr__(self) -> str:
        return f"StagesPlan({len(self.ops)} ops in {len(self.degree)} stages on {(self.serves >= 0).sum()} devices)"
