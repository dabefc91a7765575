"""The step as a mixed-integer linear programme; letters as in docs/step.md, see `cpsat_model` for what each says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pulp

from ...pulp_solvers import Model
from ..sizes import Covers, whole
from .cpsat_segments import longest_paths, reach
from .cpsat_symmetry import DeviceTree
from .model import Prepared


class MilpModel:
    """Variables, rows and objective, a method a constraint; all times in units, so that none in a plan exceeds 1.

    That makes 1 the constant that switches a row off ("big M").
    """

    def __init__(
        self, p: Prepared, unit: float, covers: Covers | None = None, stopped: Callable[[], bool] = lambda: False
    ) -> None:
        self.p, self.unit, self.covers = p, unit, covers if covers is not None else Covers()
        self.lp = Model("step", stopped)
        self.z = pulp.LpVariable("Z", 0, 1)
        self.lp += self.z
        self.kind: list[int] = p.type_of.tolist()
        self.group: list[int] = p.group_of.tolist()
        self.levels: list[int] = p.used_levels.tolist()
        # what takes longer than the unit is as forbidden if it takes two
        self.seconds = np.where(np.isfinite(p.time), np.minimum(p.time / unit, 2.0), 0.0).tolist()
        self.delay = np.minimum(p.delay / unit, 2.0).tolist()
        self._far: dict[tuple[int, int, int], Any] = {}
        for build in (self._assign, self._memory, self._precedence, self._order, self._symmetry, self._transfers):
            if stopped():
                return
            build()

    @staticmethod
    def _binary(name: str) -> Any:
        return pulp.LpVariable(name, cat=pulp.LpBinary)

    def _assign(self) -> None:
        """(A) on one device each; starts within what the paths before and after an op leave."""
        p = self.p
        self.x: list[dict[int, Any]] = []
        for g in range(p.n_groups):
            self.x.append({d: self._binary(f"x_{g}_{d}") for d in np.flatnonzero(p.allowed[g]).tolist()})
            self.lp += pulp.lpSum(self.x[g].values()) == 1
        head, tail = longest_paths(p, p.fastest)
        low, high = head / self.unit, 1 - (tail + p.fastest) / self.unit
        self.start = [pulp.LpVariable(f"s_{v}", float(low[v]), float(max(low[v], high[v] + 1e-6))) for v in range(p.n)]
        self.end = [
            self.start[v] + pulp.lpSum(self.seconds[self.kind[d]][v] * x for d, x in self.x[self.group[v]].items())
            for v in range(p.n)
        ]

    def _memory(self) -> None:
        """(M) memory, each device's as 1."""
        p = self.p
        if not p.memory_binds:
            return
        for d, limit in enumerate(p.capacity.tolist()):
            sizes = whole(p.group_memory, limit, p.n)
            if sizes.binds:
                share = sizes.shares.tolist()
                self.lp += pulp.lpSum(share[g] * row[d] for g, row in enumerate(self.x) if d in row) <= 1
            for cover in self.covers.of(limit):
                if all(d in self.x[g] for g in cover):
                    self.lp += pulp.lpSum(self.x[g][d] for g in cover) <= len(cover) - 1

    def _precedence(self) -> None:
        """(P) an op starts when its inputs are there; (Z) the last one ends at Z."""
        for u, v in zip(*(ends.tolist() for ends in self.p.edges), strict=True):
            g, h = self.group[u], self.group[v]
            delays = [0.0, *(self.delay[level][u] for level in self.levels)]
            at, ready = self.start[v], self.end[u]
            if g == h or not any(delays):
                self.lp += at >= ready
            elif delays == sorted(delays):
                below = [-1, *self.levels[:-1]]
                steps = [(level, b - a) for level, (a, b) in zip(below, pairwise(delays), strict=True) if b > a]
                self.lp += at >= ready + pulp.lpSum(step * self.far(g, h, level) for level, step in steps)
            else:
                # a level may be slower than the one above it, so each pair of devices gets a row
                self.lp += at >= ready
                for a, x in self.x[g].items():
                    for b, y in self.x[h].items():
                        if a != b:
                            self.lp += at >= ready + self.delay[int(self.p.level[a, b])][u] * (x + y - 1)
        for end in self.end:
            self.lp += self.z >= end

    def far(self, g: int, h: int, level: int) -> Any:
        """Return 1 - q[g, h, level]: whether neither `level` nor a lower one joins the devices of two groups."""
        key = min(g, h), max(g, h), level
        if key not in self._far:
            far = self._far[key] = pulp.LpVariable(f"far_{key[0]}_{key[1]}_{level + 1}", 0, 1)
            one, other = self._circles(g, level), self._circles(h, level)
            for circle in sorted({*one, *other}):
                a, b = pulp.lpSum(one.get(circle, [])), pulp.lpSum(other.get(circle, []))
                self.lp += far >= a - b
                self.lp += far >= b - a
                self.lp += far + a + b <= 2
        return self._far[key]

    def _circles(self, g: int, level: int) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {}
        for d, x in self.x[g].items():
            found.setdefault(int(np.flatnonzero(self.p.level[d] <= level)[0]), []).append(x)
        return found

    def _order(self) -> None:
        """(D) of two ops on one device one ends before the other starts: y[u, v] says which."""
        above, below = reach(self.p)
        for u, v in combinations(range(self.p.n), 2):
            g, h = self.group[u], self.group[v]
            if (above[u] | below[u]) >> v & 1 or not self.x[g].keys() & self.x[h].keys():
                continue
            y = self._binary(f"y_{u}_{v}")
            apart = 0 if g == h else self.far(g, h, -1)
            self.lp += self.start[v] >= self.end[u] - (1 - y) - apart
            self.lp += self.start[u] >= self.end[v] - y - apart

    def _symmetry(self) -> None:
        """(S) of like devices the first is used first."""
        rank = DeviceTree(self.p).ranks()
        for i, g in enumerate(dict.fromkeys(self.p.group_of[self.p.order].tolist())):
            for d, x in self.x[g].items():
                if rank[d] > i:
                    x.upBound = 0

    def _transfers(self) -> None:
        """(W) w[u, a, d] = 1 if the output of u goes from a to d; (R) it goes after u and before who needs it."""
        self.way: dict[tuple[int, int], dict[int, Any]] = {}
        self.sent: dict[tuple[int, int], Any] = {}
        if not self.p.contention:
            return
        for u, after in enumerate(self._readers()):
            g = self.group[u]
            if not any(self.delay[level][u] for level in self.levels):
                continue
            for d in sorted({d for v in after if self.group[v] != g for d in self.x[self.group[v]]}):
                at = self.sent[u, d] = pulp.LpVariable(f"r_{u}_{d}", 0, 1)
                ways = self.way[u, d] = {a: pulp.LpVariable(f"w_{u}_{a}_{d}", 0, 1) for a in self.x[g] if a != d}
                here = self.x[g].get(d, 0)
                self.lp += at >= self.end[u] - here
                took = pulp.lpSum(self._took(u, a, d) * w for a, w in ways.items())
                for v in after:
                    there = self.x[self.group[v]].get(d)
                    if self.group[v] == g or there is None:
                        continue
                    for a, w in ways.items():
                        self.lp += w >= self.x[g][a] + there - 1
                    self.lp += self.start[v] >= at + took - (1 - there) - here
        self._links()

    def _readers(self) -> list[list[int]]:
        first, index = self.p.successors
        return [index[first[u] : first[u + 1]].tolist() for u in range(self.p.n)]

    def _took(self, u: int, a: int, d: int) -> float:
        return float(self.delay[int(self.p.level[a, d])][u])

    def _links(self) -> None:
        """(K) of two transfers over one link one is through before the other starts: o says which."""
        routes = self.p.routes
        for (u, d), (v, e) in combinations(self.way, 2):
            clashes = [
                (a, b)
                for a in self.way[u, d]
                for b in self.way[v, e]
                if (u != v or a == b) and set(routes[a][d]) & set(routes[b][e])
            ]
            if not clashes:
                continue
            o = self._binary(f"o_{u}_{d}_{v}_{e}")
            first, second = self.sent[u, d], self.sent[v, e]
            for a, b in clashes:
                off = 2 - self.way[u, d][a] - self.way[v, e][b]
                self.lp += second >= first + self._took(u, a, d) - 2 * (1 - o) - 2 * off
                self.lp += first >= second + self._took(v, b, e) - 2 * o - 2 * off
