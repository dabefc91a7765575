"""Blocks of servers, and kinds of job: how long each takes on each shape of block, or placed by published first fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError, OpGraph, RampTopology
from gangplan.instances.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    check_fields,
    frozen,
    limited,
    require,
    require_choice,
    require_number,
    require_text,
    require_unique,
)
from gangplan.instances.errors import ENTRIES
from gangplan.instances.generators import GENERATORS, generate
from gangplan.instances.graph import grouped
from gangplan.instances.intake import read_text
from gangplan.instances.published import PUBLISHERS
from gangplan.instances.ramp import Shape, blocks_by_shape, span
from gangplan.instances.readers import read
from gangplan.instances.readers.pipedream import listed_order
from gangplan.instances.schedule import ramp_blocks
from gangplan.instances.splitting import SplitGraph, leaders, split

from .step import OP_SECONDS, Units, training_step

DEGREES = (1, 2, 4, 6, 8, 16)
"""The degrees that admit a block on the published cluster of 4 x 4 x 2 servers."""

Long = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of each degree, in the order in which first fit tries them, without repeats.

    A degree that admits no block is simply without.

    Attributes:
        topology: the cluster, of n servers.
        degrees: ascending.
        servers: int32 (b, largest degree), ascending in each of the b blocks and filled up with -1.
        size: int64 (b,), servers of each.
        degree: int64 (b,), index into `degrees`.
        shape: int64 (b,), index into `shapes`.
        shapes: of each shape the index of its degree, and over how many communication groups, racks and servers per
            rack it extends. Two blocks of a shape differ by a shift only.
        first: int64 (len(degrees) + 1,): the blocks of degree i are those from `first[i]` up to `first[i + 1]`.
    """

    topology: RampTopology
    degrees: tuple[int, ...] = limited(DEGREES, positive=True, ascending=True)
    servers: IntArray = field(init=False)
    size: Long = field(init=False)
    degree: Long = field(init=False)
    shape: Long = field(init=False)
    shapes: tuple[tuple[int, Shape], ...] = field(init=False)
    first: Long = field(init=False)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.degrees:
            raise InstanceError("degrees", "names no degree")
        of_degree = [(i, *x) for i, degree in enumerate(self.degrees) for x in blocks_by_shape(self.topology, degree)]
        shapes = tuple((i, extends) for i, extends, _ in of_degree)
        shape = np.repeat(np.arange(len(shapes)), [len(rows) for *_, rows in of_degree])
        degree_of = np.array([i for i, _ in shapes], dtype=np.int64)[shape]
        most = max(self.degrees)
        ENTRIES.check(len(shape) * most, "degrees")
        wide = [np.pad(rows, ((0, 0), (0, most - rows.shape[1])), constant_values=-1) for *_, rows in of_degree]
        servers = np.concatenate([np.zeros((0, most), dtype=np.int32), *wide])
        values: dict[str, Any] = {
            "servers": servers,
            "size": np.array(self.degrees, dtype=np.int64)[degree_of],
            "degree": degree_of,
            "shape": shape,
            "first": np.searchsorted(degree_of, np.arange(len(self.degrees) + 1)),
        }
        for name, array in values.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "shapes", shapes)

    @property
    def n_blocks(self) -> int:
        """How many blocks there are, of all degrees."""
        return len(self.servers)

    @property
    def n_servers(self) -> int:
        """How many servers the cluster has."""
        return self.topology.n_devices

    def of(self, degree: int) -> IntArray:
        """Return the servers of the blocks of `degrees[degree]`, int32 (blocks, size)."""
        return self.servers[self.first[degree] : self.first[degree + 1], : self.degrees[degree]]

    def members(self, block: int) -> IntArray:
        """Return the servers of a block, int32 (size,)."""
        return self.servers[block, : self.size[block]]

    def fits(self, free: BoolArray) -> BoolArray:
        """Return which blocks have all their servers among the free ones: bool (n,) to bool (b,)."""
        if not self.n_blocks:
            return np.zeros(0, dtype=bool)
        return np.concatenate([free[self.of(i)].all(axis=1) for i in range(len(self.degrees))])

    @cached_property
    def incidence(self) -> tuple[Long, Long]:
        """Return which blocks hold each server: those of server s are ``block[first[s] : first[s + 1]]``, ascending."""
        held = self.servers >= 0
        block = np.repeat(np.arange(self.n_blocks), self.size)
        server = self.servers[held]
        order = np.argsort(server, kind="stable")
        return np.searchsorted(server[order], np.arange(self.n_servers + 1)), block[order]

    def touching(self, block: int) -> Long:
        """Return the blocks that share a server with `block`, itself among them, int64 and ascending."""
        first, held = self.incidence
        return np.unique(np.concatenate([held[first[s] : first[s + 1]] for s in self.members(block).tolist()]))


SERVER_MEMORY = 80e9
"""Bytes of the one GPU of a server in the published set-up."""


def first_fit(
    split: SplitGraph, topology: RampTopology, *, free: BoolArray | None = None, memory: float = SERVER_MEMORY
) -> IntArray | None:
    """Return the server of each sub-op, int32 (split.n_sub_ops,), or None where an op finds no block.

    Ops that lead (see `gangplan.instances.splitting.leaders`) are placed in topological order: on the servers of
    the first parent with as many sub-ops, if those have the memory, else on the first block of free servers that has
    (see `gangplan.instances.ramp.blocks`). Backward ops sit with their twins. Ops of the job may share servers.

    Args:
        free: bool (n_devices,), the servers the job may use; by default all. A single block makes a meta-block.
        memory: bytes of a server. Forward and backward sub-ops both occupy their share.
    """
    usable = np.ones(topology.n_devices, dtype=bool) if free is None else frozen(free, np.bool_, "free", (None,))
    if len(usable) != topology.n_devices:
        raise InstanceError("free", f"has {len(usable)} entries for {topology.n_devices} servers")
    require_number(memory, "memory", positive=True)
    room = np.where(usable, float(memory), -1.0)
    graph, first, leader = split.graph, split.first, leaders(split.graph)
    require(split.copies == split.copies[leader], split.copies, "copies", "is not that of the op's twin")
    need = np.bincount(leader, weights=split.memory, minlength=graph.n_ops)
    parents = grouped(zip(graph.target.tolist(), graph.source.tolist(), strict=True), graph.n_ops)
    home: dict[int, IntArray] = {}
    for op in graph.topological_order().tolist():
        if leader[op] != op:
            continue
        k = int(split.copies[op])
        beside = [home[p] for p in parents[op] if p in home and split.copies[p] == k]
        servers = next((home_of for home_of in beside if (room[home_of] >= need[op]).all()), None)
        if servers is None:
            blocks = ramp_blocks(topology, k)
            fits = (room[blocks] >= need[op]).all(axis=1)
            if not fits.any():
                return None
            servers = blocks[int(np.argmax(fits))]
        room[servers] -= need[op]
        home[op] = servers
    placed = np.empty(split.n_sub_ops, dtype=np.int32)
    for op in range(graph.n_ops):
        placed[first[op] : first[op + 1]] = home[int(leader[op])]
    return placed


MODELS = ("alexnet", "gnmt", "resnet18", "squeezenet1_0", "vgg16")
"""The five of the paper."""
STEPS = 50
"""Training steps of a published job."""


class Placed(NamedTuple):
    """Servers that a job would hold, int32 ascending, and its completion time there."""

    servers: IntArray
    jct: float


@dataclass(frozen=True, eq=False)
class JobType:
    """A model that is trained for some steps, and its completion times on one cluster.

    Times are seconds, or in the published code's unit (ms of compute plus s of transfer) if `units` says so.

    Attributes:
        name: of the model.
        graph: one training step, forward and backward.
        order: in which the profile lists the ops, int32; see `gangplan.instances.splitting.split`.
        blocks: of the cluster.
        units: ``"physical"`` or ``"as-published"``.
        steps: of a job.
        splits: the graph split at each degree of `blocks`.
        sizes: at each degree, the numbers of sub-ops that its ops have.
        tight: at each degree, whether all ops together need more than the memory of a server.
        sequential: completion time unsplit.
        jct: float64 (len(blocks.shapes),): completion time when the whole job is kept inside one block of the shape,
            by first fit there; inf where an op finds no place in it (gnmt at 8 in a (2, 2, 2) box).
    """

    name: str
    graph: OpGraph
    order: IntArray | None
    blocks: Blocks
    units: Units
    steps: int
    splits: tuple[SplitGraph, ...]
    sizes: tuple[tuple[int, ...], ...]
    tight: tuple[bool, ...]
    sequential: float
    jct: FloatArray
    _known: dict[tuple[object, ...], float] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        graph: OpGraph,
        order: IntArray | None = None,
        *,
        name: str,
        blocks: Blocks | None = None,
        units: Units = "physical",
        steps: int = STEPS,
    ) -> JobType:
        """Split, place and run `graph` once on a block of every shape; by default on the published cluster."""
        require_text(name, "name")
        require_number(steps, "steps", positive=True, whole=True)
        require_choice(units, "units", OP_SECONDS)
        blocks = Blocks(RampTopology()) if blocks is None else blocks
        splits = tuple(split(graph, degree, order=order) for degree in blocks.degrees)
        alone = split(graph, 1, order=order)
        sequential = training_step(alone, np.zeros(alone.n_sub_ops, np.int32), blocks.topology, units=units).seconds
        jct = np.full(len(blocks.shapes), np.inf)
        _, member = np.unique(blocks.shape, return_index=True)
        for shape, block in enumerate(member.tolist()):
            job = splits[blocks.shapes[shape][0]]
            placed = inside(job, blocks.topology, blocks.members(block))
            if placed is not None:
                jct[shape] = steps * training_step(job, placed, blocks.topology, units=units).seconds
        jct.setflags(write=False)
        sizes = tuple(tuple(sorted(set(job.copies.tolist()))) for job in splits)
        tight = tuple(float(job.memory.sum()) > SERVER_MEMORY for job in splits)
        return cls(name, graph, order, blocks, units, steps, splits, sizes, tight, steps * sequential, jct)

    def lasting(self, steps: int) -> JobType:
        """Return the same job for another number of steps."""
        require_number(steps, "steps", positive=True, whole=True)
        jct = self.jct * (steps / self.steps)
        jct.setflags(write=False)
        return replace(self, steps=steps, sequential=self.sequential * steps / self.steps, jct=jct, _known={})

    def kept(self, block: int) -> float:
        """Return the completion time inside one block."""
        return float(self.jct[self.blocks.shape[block]])

    def published(self, degree: int, free: BoolArray) -> Placed | None:
        """Place the job by published first fit on all free servers, where small ops may spill out of its block.

        Args:
            degree: index into `blocks.degrees`.
            free: bool (n,).

        Returns:
            Its servers and completion time, or None where an op finds no block.
        """
        job, topology = self.splits[degree], self.blocks.topology
        if self.tight[degree]:
            placed = first_fit(job, topology, free=free)
            if placed is None:
                return None
            servers = np.unique(placed)
            key: tuple[object, ...] = (degree, placed.tobytes())
        else:
            # every op of k sub-ops is on the first free block of k servers, or beside a parent that is there
            found = []
            for k in self.sizes[degree]:
                rows = ramp_blocks(topology, k)
                fits = free[rows].all(axis=1)
                if not fits.any():
                    return None
                found.append(rows[int(np.argmax(fits))])
            held = np.concatenate(found)
            servers = np.unique(held)
            # time depends on the shape of each block and on what they share, not on where they are
            label: dict[int, int] = {}
            shared = tuple(label.setdefault(server, len(label)) for server in held.tolist())
            key = (degree, *(span(topology, rows) for rows in found), shared)
            placed = None
        if key not in self._known:
            if placed is None:
                placed = inside(job, topology, servers)
            assert placed is not None  # the blocks found are among these servers
            self._known[key] = self.steps * training_step(job, placed, topology, units=self.units).seconds
        return Placed(servers, self._known[key])


def inside(job: SplitGraph, topology: RampTopology, servers: IntArray) -> IntArray | None:
    """Return the server of each sub-op by first fit on these servers alone, int32 (sub-ops,), or None."""
    free = np.zeros(topology.n_devices, dtype=bool)
    free[servers] = True
    return first_fit(job, topology, free=free)


def read_types(folder: str | Path, names: Sequence[str] = MODELS, **words: Any) -> tuple[JobType, ...]:
    """Return the types of the profiles ``NAME.txt`` in `folder`; other arguments as of `JobType.of`.

    The data loading node is kept, and ops are cut in the order of the file, as in the published set-up.

    Raises:
        InstanceError: if a profile is absent or wrong, or an argument is.
    """
    if not names:
        raise InstanceError("models", "names no model")
    home = Path(folder)
    if not home.is_dir():
        publisher = PUBLISHERS["pipedream"]
        raise InstanceError("profiles", f"{str(folder)!r} is not a folder; {publisher} has PipeDream's profiles")
    require_unique(names, "models")
    found = []
    for i, name in enumerate(names):
        path = home / f"{name}.txt"
        if not path.is_file():
            raise InstanceError(f"models[{i}]", f"{name!r} has no profile {name}.txt in the folder of profiles")
        graph = read(path, keep_inputs=True).graph
        order = listed_order(read_text(path), graph)
        found.append(JobType.of(graph, order, name=name, **words))
    return tuple(found)


def generated_types(names: Sequence[str], **words: Any) -> tuple[JobType, ...]:
    """Return the types of generated networks on P100 GPUs, for want of profiles; other arguments as of `JobType.of`.

    Raises:
        InstanceError: if a name is no network that is generated, or an argument is wrong.
    """
    for i, name in enumerate(names):
        require_choice(name, f"models[{i}]", tuple(GENERATORS))
    return tuple(JobType.of(generate(x, device_type="P100", devices=1).graph, name=x, **words) for x in names)
