"""Every block of servers that a job of some degree may hold on a RAMP cluster, in arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError, RampTopology
from gangplan.instances.arrays import BoolArray, IntArray, require_number
from gangplan.instances.errors import ENTRIES
from gangplan.instances.ramp import Shape, blocks_by_shape

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
            for span, rows in blocks_by_shape(self.topology, degree):
                shapes.append((i, span))
                of_shape.append(rows)
        many = [len(rows) for rows in of_shape]
        shape = np.repeat(np.arange(len(shapes)), many)
        degree_of = np.array([i for i, _ in shapes], dtype=np.int64)[shape]
        ENTRIES.check(len(shape) * max(self.degrees), "degrees")
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
