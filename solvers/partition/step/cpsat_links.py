"""Contention in CP-SAT: transfers as intervals on links; letters as in docs/step.md."""

from __future__ import annotations

from typing import Any

from .cpsat_model import StepModel
from .schedule import Sent


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
            device: of each group.
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
