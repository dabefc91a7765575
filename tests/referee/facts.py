"""A problem of an op graph as the pages speak of it: devices, seconds, edges, outputs, and what fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from gangplan.instances import RampTopology

SLACK = 1e-9
Pairs = list[tuple[int, int]]


class Facts:
    """The data in plain Python: `time[device][op]`, `size[op]` of outputs, `edges`, `order` of a pipeline's stages."""

    def __init__(self, problem: Any) -> None:
        graph, cluster = problem.graph, problem.cluster
        self.problem, self.n = problem, graph.n_ops
        self.kinds = [cluster.device_types[t] for t in cluster.type_of.tolist()]
        row = [graph.device_types.index(kind.name) for kind in self.kinds]
        self.time = [[float(graph.time[r, v]) for v in range(self.n)] for r in row]
        self.edges: Pairs = sorted(set(zip(graph.source.tolist(), graph.target.tolist(), strict=True)))
        self.size = [0.0] * self.n
        for u, amount in zip(graph.source.tolist(), graph.edge_bytes.tolist(), strict=True):
            self.size[u] = max(self.size[u], amount)
        mesh = cluster.topology
        if isinstance(mesh, RampTopology):
            self.links = [(mesh.channel_bandwidth, mesh.propagation + 2 * mesh.io_latency)]
        else:
            self.links = [(level.bandwidth, level.latency) for level in mesh.levels]

    @property
    def order(self) -> Pairs:
        """The edges that order a pipeline: forward ones, and reversed those of backward ops without a forward op."""
        graph = self.problem.graph
        home = {c for c, back in zip(graph.colocation.tolist(), graph.backward.tolist(), strict=True) if not back} - {
            -1
        }
        back = graph.backward.tolist()
        alone = [back[v] and graph.colocation[v] not in home for v in range(self.n)]
        forward = [(a, b) for a, b in self.edges if not back[a] and not back[b]]
        return forward + [(b, a) for a, b in self.edges if back[a] and back[b] and (alone[a] or alone[b])]

    def allows(self, where: Sequence[int]) -> bool:
        """Return whether ops run where they are, fit within a relative 1e-9, and classes keep together."""
        graph, used, home = self.problem.graph, [0.0] * len(self.kinds), dict[int, int]()
        for v, d in enumerate(where):
            used[d] += float(graph.memory[v])
        runs = all(self.time[d][v] < float("inf") for v, d in enumerate(where))
        fits = all(k.memory is None or u <= k.memory * (1 + SLACK) for u, k in zip(used, self.kinds, strict=True))
        pairs = zip(graph.colocation.tolist(), where, strict=True)
        return runs and fits and all(c < 0 or home.setdefault(c, d) == d for c, d in pairs)

    def placements(self) -> Iterator[tuple[int, ...]]:
        """Yield every placement that is allowed."""
        yield from filter(self.allows, product(range(len(self.kinds)), repeat=self.n))

    def loads(self, where: Sequence[int]) -> list[float]:
        """Return the seconds of each device: its ops, and on accelerators each output once in or once out."""
        bandwidth, latency = min(b for b, _ in self.links), max(wait for _, wait in self.links)
        load = [0.0] * len(self.kinds)
        for v, d in enumerate(where):
            load[d] += self.time[d][v]
        for u, home in enumerate(where):
            away = {where[b] for a, b in self.edges if a == u} - {home}
            if self.size[u] > 0 and away:
                for d in {home, *away}:
                    load[d] += 0.0 if self.kinds[d].host else latency + self.size[u] / bandwidth
        return load


def reach(n: int, edges: Pairs) -> list[list[bool]]:
    """Return which of n nodes come after which."""
    found = [[(a, b) in edges for b in range(n)] for a in range(n)]
    for m, a, b in product(range(n), repeat=3):
        found[a][b] = found[a][b] or (found[a][m] and found[m][b])
    return found
