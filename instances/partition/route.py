"""Which links a transfer occupies."""

from __future__ import annotations

from ..cluster import Cluster, TreeTopology


class Links:
    """The links of a cluster, numbered: one out of and one into every device, and every group below the top level.

    A transfer takes the way up from its sender to the lowest level that joins the two devices, and down to its
    receiver. A flat mesh has the links of its devices only.
    """

    def __init__(self, cluster: Cluster) -> None:
        n = cluster.n_devices
        topology = cluster.topology
        self.topology = topology
        names = [f"device {d}" for d in range(n)]
        self._group: list[dict[int, int]] = []
        if isinstance(topology, TreeTopology):
            for level, row in zip(topology.levels[:-1], topology.group[:-1], strict=True):
                known = sorted(set(row.tolist()))
                self._group.append({g: len(names) + i for i, g in enumerate(known)})
                names += [f"{level.name} {g}" for g in known]
        self.names = tuple(f"{name} {way}" for name in names for way in ("out", "in"))
        """What each link is called."""

    def route(self, a: int, b: int) -> tuple[int, ...]:
        """Return the links that a transfer from device `a` to device `b` occupies; none if they are one."""
        if a == b:
            return ()
        up, down = [2 * a], [2 * b + 1]
        if isinstance(self.topology, TreeTopology):
            for row, known in zip(self.topology.group[:-1].tolist(), self._group, strict=True):
                if row[a] == row[b]:
                    break
                up.append(2 * known[row[a]])
                down.append(2 * known[row[b]] + 1)
        return (*up, *down[::-1])
