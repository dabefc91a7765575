"""Which plans are the same but for names: of devices, and of equal micro-batches."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from gangplan.instances.arrays import IntArray

from .model import Prepared


class DeviceTree:
    """The devices as a tree of circles, the widest first, down to single ones; siblings of one shape may be swapped."""

    def __init__(self, p: Prepared) -> None:
        self.kind = list(zip(p.type_of.tolist(), p.capacity.tolist(), strict=True))
        self.levels = [*p.used_levels[-2::-1].tolist(), -1]
        self.level = p.level
        self.paths: list[tuple[int, ...]] = [
            tuple(int(np.flatnonzero(p.level[d] <= level)[0]) for level in self.levels) for d in range(p.n_devices)
        ]
        """The circles of each device, each named by its first device."""

    def ranks(self) -> IntArray:
        """Return how many other groups must be placed before one needs a device: the earlier siblings on its way.

        Devices are renamed so that of siblings of one shape an earlier one is used first. The first use of a sibling
        with i earlier ones then comes after the first uses of those, by i other groups; and so on inside it.
        """
        rank = np.zeros(len(self.kind), dtype=np.int32)
        for depth in range(len(self.levels)):
            seen: dict[Hashable, list[int]] = {}
            for d, path in enumerate(self.paths):
                if path[depth] == d:
                    seen.setdefault((path[:depth], self._shape(d, depth)), []).append(d)
            for circles in seen.values():
                for i, first in enumerate(circles):
                    for d, path in enumerate(self.paths):
                        if path[depth] == first:
                            rank[d] += i
        return rank

    def canonical(self, used: Sequence[int]) -> dict[int, int]:
        """Return new names for devices, so that along `used` earlier siblings are used first."""
        name: dict[tuple[int, ...], tuple[int, ...]] = {(): ()}
        taken: set[tuple[int, ...]] = set()
        for d in [*dict.fromkeys(used), *(d for d in range(len(self.kind)) if d not in used)]:
            path = self.paths[d]
            for depth in range(len(self.levels)):
                here, above = path[: depth + 1], name[path[:depth]]
                if here not in name:
                    shape = self._shape(path[depth], depth)
                    name[here] = next(
                        other[: depth + 1]
                        for e, other in enumerate(self.paths)
                        if other[:depth] == above
                        and other[: depth + 1] not in taken
                        and other[depth] == e
                        and self._shape(e, depth) == shape
                    )
                    taken.add(name[here])
        return {d: name[path][-1] for d, path in enumerate(self.paths)}

    def _shape(self, d: int, depth: int) -> Hashable:
        """Return what tells a circle's inside from that of others: equal shapes can be mapped on each other."""
        if depth == len(self.levels) - 1:
            return self.kind[d]
        inside = {path[depth + 1] for path in self.paths if path[depth] == d and self.paths[d][:depth] == path[:depth]}
        return tuple(sorted((self._shape(e, depth + 1) for e in inside), key=repr))


def equal_parts(p: Prepared) -> list[list[list[int]]]:
    """Return families of parts of the graph that do exactly the same on the same devices, such as micro-batches.

    A part is a connected component, its ops ascending. The i-th ops of all parts of a family are colocated and equally
    long, send as much, and have the same edges. So if some schedule gives the i-th ops certain starts, they can be
    handed out in the order of the parts: sorting keeps every precedence and moves nothing on any device or link.
    """
    component = list(range(p.n))

    def find(v: int) -> int:
        while component[v] != v:
            component[v] = component[component[v]]
            v = component[v]
        return v

    source, target = (ends.tolist() for ends in p.edges)
    for u, v in zip(source, target, strict=True):
        component[find(v)] = find(u)
    parts: dict[int, list[int]] = {}
    for v in range(p.n):
        parts.setdefault(find(v), []).append(v)
    families: dict[Hashable, list[list[int]]] = {}
    for part in parts.values():
        place = {v: i for i, v in enumerate(part)}
        first, index = p.successors
        edges = tuple((i, place[w]) for i, v in enumerate(part) for w in index[first[v] : first[v + 1]].tolist())
        looks = np.concatenate([p.time[:, part], p.delay[:, part], p.group_of[None, part].astype(float)])
        families.setdefault((edges, looks.tobytes()), []).append(part)
    return [family for family in families.values() if len(family) > 1]
