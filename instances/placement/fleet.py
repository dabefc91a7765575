"""A cluster as placement sees it: nodes with GPUs, cores and memory, and the network above them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..arrays import (
    AMOUNT,
    NONE,
    POSITIVE,
    BoolArray,
    FloatArray,
    IntArray,
    array,
    check_fields,
    limited,
    require,
    require_counts,
    require_number,
)
from ..cluster import Cluster, Level, TreeTopology
from ..errors import DEVICES, InstanceError
from ..quantities import counted

Where = Sequence[str | int] | slice | BoolArray
"""Nodes, by name or number."""


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    """Nodes, m of them.

    Attributes:
        names: unique node names.
        gpu_types: the GPU types present, by name.
        gpu_type: int32 (m,), index into `gpu_types`; of no meaning where a node has no GPU.
        gpus: int32 (m,), GPUs of each node.
        cpu: cores, float64 (m,).
        memory: bytes of host memory, float64 (m,).
        link: bytes/s between two GPUs of the node, float64 (m,).
        topology: the network above the nodes, which are its leaves. The bandwidth of a level is that of the link which
            joins one member (a node, or a group of the level below) to the level's switch, in each direction.
        labels: names that node selectors may ask for.
        labelled: bool (len(labels), m), which nodes carry each label.
        usable: bool (m,), false where a node has failed or is reserved.
        taints: names of what keeps jobs off nodes, unless they tolerate it.
        tainted: bool (len(taints), m), which nodes have each taint.
    """

    names: tuple[str, ...] = field(metadata={"unique": True})
    gpu_types: tuple[str, ...] = field(metadata={"unique": True})
    gpu_type: IntArray = field(metadata=array("names"))
    gpus: IntArray = field(metadata=array("names", holds=AMOUNT))
    cpu: FloatArray = field(metadata=array("names", holds=AMOUNT))
    memory: FloatArray = field(metadata=array("names", holds=AMOUNT))
    link: FloatArray = field(metadata=array("names", holds=POSITIVE))
    topology: TreeTopology
    labels: tuple[str, ...] = limited((), unique=True)
    labelled: BoolArray = field(default=NONE, metadata=array("labels", "names", usual=False))
    usable: BoolArray | None = field(default=None, metadata=array("names", usual=True))
    taints: tuple[str, ...] = limited((), unique=True, later=True)
    tainted: BoolArray = field(default=NONE, metadata=array("taints", "names", usual=False) | {"later": True})

    def __post_init__(self) -> None:
        check_fields(self)
        DEVICES.check(int(self.gpus.sum(dtype=np.int64)), "gpus")
        known = (self.gpus == 0) | ((self.gpu_type >= 0) & (self.gpu_type < len(self.gpu_types)))
        require(known, self.gpu_type, "gpu_type", f"is not one of the {len(self.gpu_types)} GPU types")
        m = len(self.names)
        if self.topology.n_devices != m:
            raise InstanceError("topology", f"spans {self.topology.n_devices} nodes, the fleet has {m}")

    def __repr__(self) -> str:
        return f"Fleet({counted(self.n_nodes, 'node')} with {self.n_gpus} GPUs: {', '.join(self.gpu_types)})"

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.names)

    @property
    def nic(self) -> FloatArray:
        """Bytes/s of the link that joins each node to the network, float64 (m,): what tasks may set aside."""
        return np.full(self.n_nodes, self.topology.levels[0].bandwidth)

    @property
    def n_gpus(self) -> int:
        """How many GPUs there are."""
        return int(self.gpus.sum())

    def admits(self, requires: Sequence[str], tolerates: Sequence[str]) -> BoolArray:
        """Return the nodes that carry these labels and have no taints but these, usable or not, bool (m,)."""
        if not {*requires} <= {*self.labels}:
            return np.zeros(self.n_nodes, dtype=bool)
        carry = self.labelled[[self.labels.index(label) for label in requires]].all(axis=0)
        return np.asarray(carry & ~self.tainted[[taint not in tolerates for taint in self.taints]].any(axis=0))

    def at(self, nodes: Sequence[int]) -> Fleet:
        """Return the fleet of these nodes, in this order."""
        chosen = list(nodes)
        arrays = ("gpu_type", "gpus", "cpu", "memory", "link", "labelled", "usable", "tainted")
        return replace(
            self,
            names=tuple(self.names[i] for i in chosen),
            topology=TreeTopology(self.topology.levels, self.topology.group[:, chosen]),
            **{name: getattr(self, name)[..., chosen] for name in arrays},
        )

    @classmethod
    def regular(
        cls,
        racks: int,
        nodes: int,
        gpus: int | Sequence[int] = 8,
        *,
        gpu_type: str | Sequence[str] | Mapping[str, int] = "A100",
        cpu: float = 96.0,
        memory: float = 1e12,
        link: float = 300e9,
        nic: float = 25e9,
        uplink: float | None = None,
        labels: Mapping[str, Where] | None = None,
        taints: Mapping[str, Where] | None = None,
    ) -> Fleet:
        """Build racks of equal nodes, or of nodes that differ as those of every other rack do.

        Args:
            racks: how many.
            nodes: of each rack, none of a cluster that is empty as yet.
            gpus: of each node; several numbers go round the nodes of a rack, as several types do.
            gpu_type: of each node; ``{"A100": 6, "H100": 2}`` says how many nodes of each rack, in this order.
            cpu, memory, link: of each node, see the attributes.
            nic: bytes/s of a node's link to its rack's switch.
            uplink: bytes/s of a rack's link to the switch above, by default half of what its nodes' NICs could fill.
            labels, taints: by name, the nodes that have it: their names or numbers, a slice, or bool (m,).

        Raises:
            InstanceError: if there is no such node, or types are not of all nodes of a rack.
        """
        require_counts(racks=racks)
        require_number(nodes, "nodes", whole=True)
        if not nodes:
            return cls.regular(1, 1, gpus, gpu_type=gpu_type, link=link, nic=nic, uplink=uplink).at(())
        levels = (Level("rack", nic), Level("cluster", nic * nodes / 2 if uplink is None else uplink))
        topology = TreeTopology.regular(levels, (nodes, racks))
        m = racks * nodes
        names = tuple(f"node{i}" for i in range(m))
        kinds, counts = _types(gpu_type, nodes), list(gpus) if isinstance(gpus, Sequence) else [gpus]
        for name, entries in (("gpu_type", kinds), ("gpus", counts)):
            if not entries:
                raise InstanceError(name, "names none")
        place = np.arange(m) % nodes  # of each node in its rack
        types = tuple(dict.fromkeys(kinds))
        marks: dict[str, BoolArray] = {}
        for name, given in (("labels", labels or {}), ("taints", taints or {})):
            rows = [_marked(names, where, f"{name}.{each}") for each, where in given.items()]
            marks[name] = np.array(rows, dtype=bool).reshape(-1, m)
        return cls(
            names=names,
            gpu_types=types,
            gpu_type=np.array([types.index(kind) for kind in kinds], dtype=np.int32)[place % len(kinds)],
            gpus=np.array(counts)[place % len(counts)],
            cpu=np.full(m, float(cpu)),
            memory=np.full(m, float(memory)),
            link=np.full(m, float(link)),
            topology=topology,
            labels=tuple(labels or ()),
            labelled=marks["labels"],
            taints=tuple(taints or ()),
            tainted=marks["taints"],
        )

    @classmethod
    def of(cls, cluster: Cluster, cpu: float = 96.0, memory: float = 1e12) -> Fleet:
        """Return the nodes of a device-level cluster: the groups of its lowest level, or single devices of a mesh.

        Args:
            cluster: hosts among its devices are left out.
            cpu, memory: cores and bytes of each node, which such a cluster does not state.

        Raises:
            InstanceError: if a node has GPUs of two types.
        """
        topology, host = cluster.topology, np.array([kind.host for kind in cluster.device_types])[cluster.type_of]
        if isinstance(topology, TreeTopology):
            lowest, rows = topology.group[0], topology.group[1:]
            link, levels = topology.levels[0].bandwidth, topology.levels[1:]
        else:
            lowest, rows = np.arange(cluster.n_devices), np.zeros((0, cluster.n_devices), dtype=np.int32)
            link, levels = topology.channel_bandwidth, ()
        nodes, first, member = np.unique(lowest, return_index=True, return_inverse=True)
        kind = cluster.type_of[first]
        mixed = ~host & (cluster.type_of != kind[member]) & ~host[first][member]
        if mixed.any():
            raise InstanceError("cluster.type_of", f"node {nodes[member[mixed][0]]} has GPUs of two types")
        for i in np.flatnonzero(~host):  # a node whose first device is a host takes the type of its GPUs
            kind[member[i]] = cluster.type_of[i]
        group = rows[:, first] if levels else np.zeros((1, len(nodes)), dtype=np.int32)
        return cls(
            names=tuple(f"node{i}" for i in range(len(nodes))),
            gpu_types=tuple(t.name for t in cluster.device_types),
            gpu_type=kind,
            gpus=np.bincount(member[~host], minlength=len(nodes)).astype(np.int32),
            cpu=np.full(len(nodes), float(cpu)),
            memory=np.full(len(nodes), float(memory)),
            link=np.full(len(nodes), float(link)),
            topology=TreeTopology(levels or (Level("cluster", link),), group),
        )


def _types(gpu_type: str | Sequence[str] | Mapping[str, int], nodes: int) -> list[str]:
    """Return the GPU types that go round the nodes of a rack."""
    if not isinstance(gpu_type, Mapping):
        return [gpu_type] if isinstance(gpu_type, str) else list(gpu_type)
    kinds = [kind for kind, count in gpu_type.items() for _ in range(count)]
    if len(kinds) != nodes:
        raise InstanceError("gpu_type", f"names the types of {len(kinds)} nodes, a rack has {nodes}")
    return kinds


def _marked(names: Sequence[str], where: Where, field: str) -> BoolArray:
    """Return which nodes are named, bool (m,)."""
    marked = np.zeros(len(names), dtype=bool)
    if isinstance(where, slice | np.ndarray):
        marked[where] = True
        return marked
    index = {name: node for node, name in enumerate(names)}
    for i, node in enumerate([where] if isinstance(where, str) else where):
        at = index.get(node) if isinstance(node, str) else node
        if at is None or not 0 <= at < len(names):
            raise InstanceError(f"{field}[{i}]", f"{node!r} is no node of the fleet")
        marked[at] = True
    return marked
