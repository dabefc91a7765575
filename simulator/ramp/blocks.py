"""Every block of servers that a job of some degree may hold on a RAMP cluster, in arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError, RampTopology
from gangplan.instances.arrays import BoolArray, IntArray, require_number
from gangplan.instances.ramp import Shape, block_shapes

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
    degrees: tuple[int, ...] = DEGREES
    servers: IntArray = field(init=False)
    size: Long = field(init=False)
    degree: Long = field(init=False)
    shape: Long = field(init=False)
    shapes: tuple[tuple[int, Shape], ...] = field(init=False)
    first: Long = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "degrees", tuple(self.degrees))
        if not self.degrees:
            raise InstanceError("degrees", "names no degree")
        for i, degree in enumerate(self.degrees):
            require_number(degree, f"degrees[{i}]", positive=True, whole=True)
            if i and degree <= self.degrees[i - 1]:
                raise InstanceError(f"degrees[{i}]", f"{degree!r} does not ascend")
        shapes: list[tuple[int, Shape]] = []
        of_shape: list[IntArray] = []
        for i, degree in enumerate(self.degrees):
            for span, rows in _by_shape(self.topology, degree):
                shapes.append((i, span))
                of_shape.append(rows)
        many = [len(rows) for rows in of_shape]
        shape = np.repeat(np.arange(len(shapes)), many)
        degree_of = np.array([i for i, _ in shapes], dtype=np.int64)[shape]
        servers = np.full((len(shape), max(self.degrees)), -1, dtype=np.int32)
        start = 0
        for rows in of_shape:
            servers[start : start + len(rows), : rows.shape[1]] = rows
            start += len(rows)
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
        object.__setattr__(self, "shapes", tuple(shapes))

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


@lru_cache(maxsize=64)
def of_size(topology: RampTopology, size: int) -> IntArray:
    """Return the blocks of `size` servers, int32 (blocks, size), as `gangplan.instances.schedule.capacity.ramp_blocks`.

    It makes no array a block, and so is quick on thousands of servers.
    """
    rows = [rows for _, rows in _by_shape(topology, size)]
    found = np.concatenate(rows) if rows else np.zeros((0, size), dtype=np.int32)
    found.setflags(write=False)
    return found


def _by_shape(topology: RampTopology, size: int) -> list[tuple[Shape, IntArray]]:
    """Return the blocks of each shape: boxes, then diagonals.

    No two shapes have a block in common: boxes of a size are told apart by what they span, and a diagonal of more
    than one server is no box.
    """
    groups, racks = topology.communication_groups, topology.racks
    found = [(shape, _boxes(topology, shape)) for shape in block_shapes(topology, size)]
    if 1 < size <= min(groups, racks):
        step = np.arange(size)
        found.append(((size, size, 1), _shifted(topology, (step, step, 0 * step), (size, size, 1))))
    return [(shape, rows) for shape, rows in found if len(rows)]


def _boxes(topology: RampTopology, shape: Shape) -> IntArray:
    group, rack, server = np.indices(shape).reshape(3, -1)
    return _shifted(topology, (group, rack, server), shape)


def _shifted(topology: RampTopology, at: tuple[Any, Any, Any], shape: Shape) -> IntArray:
    """Return the block with its servers `at` these coordinates at every origin, by group, rack and server."""
    whole = topology.communication_groups, topology.racks, topology.servers
    room = [max(0, total - extent + 1) for total, extent in zip(whole, shape, strict=True)]
    i, j, k = (axis[:, None] for axis in np.indices(room).reshape(3, -1))
    group, rack, server = at
    return np.asarray(((i + group) * topology.racks + j + rack) * topology.servers + k + server, dtype=np.int32)
