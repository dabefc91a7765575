"""The CP-SAT model of a step; letters as in docs/step.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from ...run import never, watched
from ..sizes import CoverCuts, whole
from .model import Prepared
from .schedule import Sent
from .segments import Segments, local_windows


class StepModel:
    """Variables, constraints and objective, a method a constraint.

    Attributes:
        x: x[g][d], whether group g is on device d; only where it may be.
        start: s[v], when op v starts, in ticks after the begin of its segment.
        length: T[j], ticks from the begin of segment j to that of the next or the end.
        shortest: what T[j] is at least, ticks.
        slack: ticks by which all T[j] together may exceed that.
    """

    def __init__(
        self,
        p: Prepared,
        cut: Segments,
        ceiling: int,
        *,
        covers: CoverCuts | None = None,
        stopped: Callable[[], bool] = never,
    ) -> None:
        """Build all but the symmetry, the transfers and the hint.

        Args:
            ceiling: no plan of more ticks is wanted.
            stopped: whether to give up building; the model is then of no use.
        """
        self.p, self.cut, self.ceiling = p, cut, ceiling
        self.covers = covers if covers is not None else CoverCuts()
        self.model = cp_model.CpModel()
        self.stopped = stopped
        self.above, self.below = p.reach
        self.devices = [np.flatnonzero(p.allowed[g]).tolist() for g in range(p.n_groups)]
        self.ticks: list[list[int]] = np.where(np.isfinite(p.time), p.time, 0).astype(np.int64).tolist()
        self.kind: list[int] = p.type_of.tolist()
        self.group: list[int] = p.group_of.tolist()
        self.levels: list[int] = p.used_levels.tolist()
        self.delay: list[list[int]] = p.delay.astype(np.int64).tolist()
        self._circle: dict[tuple[int, int], dict[int, Any]] = {}
        self._same: dict[tuple[int, int, int], Any] = {}
        for build in (self._variables, self._memory, self._precedence, self._devices, self._groups):
            if stopped():
                return
            build()
        self.model.minimize(sum(self.length))

    def _variables(self) -> None:
        """Add (A), sum over d of x[g, d] = 1: every group is on one device. Starts lie in `local_windows`."""
        p, model, cut = self.p, self.model, self.cut
        self.x: list[dict[int, Any]] = [
            {devices[0]: model.new_constant(1)} if len(devices) == 1 else {d: model.new_bool_var("") for d in devices}
            for devices in self.devices
        ]
        for row in self.x:
            model.add_exactly_one(row.values())
        least = np.array([self._least(v) for v in range(p.n)], dtype=np.int64)
        head, tail, self.shortest = local_windows(p, cut)
        slack = self.slack = max(0, self.ceiling - sum(self.shortest))
        self.length = [model.new_int_var(t, t + slack, "") for t in self.shortest]
        self.start: list[Any] = []
        for v, j in enumerate(cut.of.tolist()):
            low, high = int(head[v]), int(self.shortest[j] + slack - tail[v] - least[v])
            self.start.append(0 if cut.gate(j) == v else model.new_int_var(low, max(low, high), ""))
        self.end = [s + self._took(v) for v, s in enumerate(self.start)]

    def _least(self, v: int) -> int:
        return min((self.ticks[self.kind[d]][v] for d in self.devices[self.group[v]]), default=0)

    def _took(self, v: int) -> Any:
        ticks = {d: self.ticks[self.kind[d]][v] for d in self.devices[self.group[v]]}
        if len(set(ticks.values())) == 1:
            return next(iter(ticks.values()))
        return sum(ticks[d] * x for d, x in self.x[self.group[v]].items())

    def _memory(self) -> None:
        """(M) sum of m[g] x[g, d] <= capacity of d, see `sizes`; what is too large alone has no x."""
        p = self.p
        if not p.memory_binds:
            return
        for limit in np.unique(p.capacity).tolist():
            sizes, covers = whole(p.group_memory, limit, p.n), list(self.covers.of(limit))
            size = sizes.size.tolist()
            for d in np.flatnonzero(p.capacity == limit).tolist() if sizes.binds else ():
                held = [size[g] * row[d] for g, row in enumerate(self.x) if d in row and size[g]]
                if held:
                    self.model.add(sum(held) <= sizes.room)
                for cover in covers:
                    if all(d in self.x[g] for g in cover):
                        self.model.add_bool_or([~self.x[g][d] for g in cover])

    def _precedence(self) -> None:
        """(P) s[v] >= s[u] + p[u] + c[l, u] on each edge, l being the level that joins the devices of u and v.

        With q[g, h, l] = 1 where level l or a lower one joins the devices of g and h, and delays that grow with the
        level, it is s[v] >= s[u] + p[u] + sum over l of (c[l, u] - c[l-1, u]) (1 - q[g, h, l-1]), q[., ., -1] = 1 on
        one device. (T) The next segment begins when the outputs its gate waits for are there, and after the last one
        all is done.
        """
        first, index = self.p.successors
        for u in watched(range(self.p.n), self.stopped, 32):
            after = index[first[u] : first[u + 1]].tolist()
            for v in after:
                self._edge(u, v)
            if not after:
                self.model.add(self.length[-1] >= self.end[u])

    def _edge(self, u: int, v: int) -> None:
        model, cut = self.model, self.cut
        i, j = int(cut.of[u]), int(cut.of[v])
        if i == j:
            at = self.start[v]
        elif cut.gate(j) == v:
            at = sum(self.length[i:j])
        else:
            at = self.start[v] + sum(self.length[i:j])
        g, h = self.group[u], self.group[v]
        delays = [0, *(self.delay[level][u] for level in self.levels)]
        if g == h or not any(delays):
            if i == j or cut.gate(j) == v:
                model.add(at >= self.end[u])
            return
        near = [1, *(1 - self.same(g, h, level) for level in [-1, *self.levels[:-1]])]
        if delays == sorted(delays):
            steps = [b - a for a, b in pairwise(delays)]
            model.add(at >= self.end[u] + sum(step * far for step, far in zip(steps, near[1:], strict=True) if step))
            return
        # a level may be slower than the one above it
        model.add(at >= self.end[u])
        literals = [self.same(g, h, level) for level in [-1, *self.levels[:-1]]]
        for k, delay in enumerate(delays[1:]):
            where = [~literals[k]] + ([literals[k + 1]] if k + 1 < len(literals) else [])
            model.add(at >= self.end[u] + delay).only_enforce_if(where)

    def same(self, g: int, h: int, level: int) -> Any:
        """Return the literal q[g, h, level]: whether `level`, or a lower one, joins the devices of two groups."""
        key = min(g, h), max(g, h), level
        if g == h:
            return self.model.new_constant(1)
        if key not in self._same:
            one, other = self._circles(g, level), self._circles(h, level)
            if len(one) == 1 or len(other) == 1:
                (circle,), wide = (one, other) if len(one) == 1 else (other, one)
                self._same[key] = wide.get(circle, self.model.new_constant(0))
                return self._same[key]
            q = self._same[key] = self.model.new_bool_var("")
            no = self.model.new_constant(0)
            for circle in sorted({*one, *other}):
                a, b = one.get(circle, no), other.get(circle, no)
                self.model.add_bool_or(~a, ~b, q)
                self.model.add_bool_or(~a, b, ~q)
                self.model.add_bool_or(a, ~b, ~q)
            below = [k for k in [-1, *self.levels] if k < level]
            if below:
                self.model.add_implication(self.same(g, h, below[-1]), q)
        return self._same[key]

    def _circles(self, g: int, level: int) -> dict[int, Any]:
        """Return for each circle of devices within `level` of each other whether group g is in it, by first device."""
        if level < 0:
            return self.x[g]
        if (g, level) not in self._circle:
            inside: dict[int, list[Any]] = {}
            for d, x in self.x[g].items():
                inside.setdefault(int(np.flatnonzero(self.p.level[d] <= level)[0]), []).append(x)
            found = {}
            for circle, members in inside.items():
                if len(members) == 1:
                    found[circle] = members[0]
                    continue
                found[circle] = self.model.new_bool_var("")
                self.model.add_bool_or(*members, ~found[circle])
                for x in members:
                    self.model.add_implication(x, found[circle])
            self.model.add_exactly_one(found.values())
            self._circle[g, level] = found
        return self._circle[g, level]

    def _devices(self) -> None:
        """(D) a device runs one op at a time: its ops, optional intervals with presence x[g, d], do not overlap.

        Ops of different segments never do, and neither do those that come after one another.
        """
        for members in self.cut.members:
            open_ = self._rivals(members)
            for d in range(self.p.n_devices):
                here = [v for v in open_ if d in self.x[self.group[v]]]
                if len(here) > 1:
                    self.model.add_no_overlap([self._interval(v, d) for v in here])
            if len(open_) > self.p.n_devices > 1 and any(len(self.x[self.group[v]]) > 1 for v in open_):
                least = [self.model.new_fixed_size_interval_var(self.start[v], self._least(v), "") for v in open_]
                self.model.add_cumulative(least, [1] * len(least), self.p.n_devices)

    def _interval(self, v: int, d: int) -> Any:
        took = self.ticks[self.kind[d]][v]
        return self.model.new_optional_fixed_size_interval_var(self.start[v], took, self.x[self.group[v]][d], "")

    def _rivals(self, ops: Sequence[int]) -> list[int]:
        """Return those of `ops` that run beside another of them in some plan: the graph does not order the two."""
        every = sum(1 << v for v in ops)
        return [v for v in ops if every & ~(self.above[v] | self.below[v] | 1 << v)]

    def _groups(self) -> None:
        """(G) the ops of a group do not overlap wherever it is; implied by (D), but known before it is placed."""
        for ops in self.p.members:
            by_segment: dict[int, list[int]] = {}
            for v in ops:
                by_segment.setdefault(int(self.cut.of[v]), []).append(v)
            for members in by_segment.values():
                mine = self._rivals(members)
                if len(mine) > 1:
                    self.model.add_no_overlap(
                        [self.model.new_fixed_size_interval_var(self.start[v], self._least(v), "") for v in mine]
                    )

    def placed(self, device: Sequence[int]) -> Iterator[tuple[Any, int]]:
        """Yield every literal that speaks of places, with its value where group g is on ``device[g]``."""
        first = {level: np.argmax(self.p.level <= level, axis=1).tolist() for level in [-1, *self.levels]}
        for g, row in enumerate(self.x):
            yield from ((x, int(d == device[g])) for d, x in row.items())
        for (g, level), row in self._circle.items():
            yield from ((x, int(circle == first[level][device[g]])) for circle, x in row.items())
        for (g, h, level), q in self._same.items():
            yield q, int(first[level][device[g]] == first[level][device[h]])


class Transfers:
    """The transfers of a `StepModel`.

    Attributes:
        way: w[u, a, d], whether the output of op u is sent from device a to device d.
        start: r[u, d], when the transfer of op u's output to device d starts.
    """

    def __init__(self, base: StepModel) -> None:
        self.base = base
        self.way: dict[tuple[int, int, int], Any] = {}
        self.start: dict[tuple[int, int], Any] = {}
        self._on: list[list[list[Any]]] = [[[] for _ in base.p.links.names] for _ in range(base.cut.count)]
        first, index = base.p.successors
        sends = (base.p.problem.graph.output_bytes() > 0).tolist()
        for u in range(base.p.n):
            if base.stopped():
                return
            after = index[first[u] : first[u + 1]].tolist()
            # what takes less than a tick takes its turn on the links all the same, or its place would be lost
            if after and sends[u] and base.levels:
                self._send(u, after)
        self._links()

    def _send(self, u: int, after: list[int]) -> None:
        """(W) w[u, a, d] = 1 if u is on a and some op that needs its output on d, for a other than d.

        (R) It is sent once u is done, and who needs it starts when it is there: r[u, d] >= s[u] + p[u] and
        s[v] >= r[u, d] + sum over a of c[l(a, d), u] w[u, a, d] for v on d.
        """
        base, model, p = self.base, self.base.model, self.base.p
        g, segment = base.group[u], int(base.cut.of[u])
        readers = sorted({base.group[v] for v in after} - {g})
        for d in sorted({d for h in readers for d in base.x[h]}):
            ways = {a: model.new_bool_var("") for a in base.x[g] if a != d and p.routes[a][d]}
            if not ways:
                continue
            top = base.shortest[segment] + base.slack
            at = self.start[u, d] = model.new_int_var(0, top, "")
            elsewhere = [~base.x[g][d]] if d in base.x[g] else []
            model.add(at >= base.end[u]).only_enforce_if(elsewhere)
            for a, w in ways.items():
                self.way[u, a, d] = w
                model.add_implication(w, base.x[g][a])
                took = base.delay[int(p.level[a, d])][u]
                interval = model.new_optional_fixed_size_interval_var(at, took, w, "")
                for link in p.routes[a][d]:
                    self._on[segment][link].append(interval)
                for h in readers:
                    if d in base.x[h]:
                        model.add_bool_or(~base.x[g][a], ~base.x[h][d], w)
            total: Any = sum(base.delay[int(p.level[a, d])][u] * w for a, w in ways.items())
            for v in after:
                h, j = base.group[v], int(base.cut.of[v])
                if h == g or d not in base.x[h]:
                    continue
                # gates that an edge passes by are none here, so an output waits for the next segment at most
                then = base.start[v] if j == segment else sum(base.length[segment:j])
                model.add(then >= at + total).only_enforce_if([base.x[h][d], *elsewhere])

    def _links(self) -> None:
        """(K) a link carries one transfer at a time: those it may carry, with presence w, do not overlap."""
        for links in self._on:
            for intervals in links:
                if len(intervals) > 1:
                    self.base.model.add_no_overlap(intervals)

    def values(self, device: list[int], begin: list[int], sent: Sent, ends: list[float]) -> list[tuple[Any, int]]:
        """Return the value of every variable in a plan, for the hint.

        Args:
            begin: when each segment begins, ticks.
            sent: when each transfer starts, ticks; those that take no time may be missing.
            ends: when each op ends, ticks.
        """
        base = self.base
        found: list[tuple[Any, int]] = []
        first, index = base.p.successors
        for (u, d), at in self.start.items():
            a = device[base.group[u]]
            needed = any(device[base.group[v]] == d for v in index[first[u] : first[u + 1]].tolist()) and a != d
            found.append((at, int(sent.get((u, d), ends[u])) - begin[int(base.cut.of[u])]))
            for b in range(base.p.n_devices):
                if (u, b, d) in self.way:
                    found.append((self.way[u, b, d], int(needed and a == b)))
        return found

    def times(self, value: Any, begin: list[int]) -> Sent:
        """Return when each transfer starts in a solution; `value` gives a variable's value, `begin` each segment's."""
        return {
            (u, d): float(value(self.start[u, d]) + begin[int(self.base.cut.of[u])])
            for (u, a, d), w in self.way.items()
            if value(w)
        }
