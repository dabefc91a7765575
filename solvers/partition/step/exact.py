"""The textbook model from a plan and a bound, part by part, with links that carry one transfer at a time, by CP-SAT."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import StepPlan
from gangplan.instances.arrays import IntArray
from gangplan.instances.graph import connected

from ...plain import TICKS, PlainRows, add_up, by_cpsat, literal, refine
from ...run import Run
from ..textbook import Textbook
from .bounds import local_heads
from .model import Prepared
from .plain import programme
from .schedule import retime, sent_of
from .series import half_of

_SHY = 1 - 1e-12
"""Share of a sum of seconds that rounding leaves."""


def cpsat(run: Run, p: Prepared) -> None:
    """Minimise the makespan with CP-SAT, from the best plan; offers plans as they come."""
    t, parts, times = Textbook.of(run.problem), parts_of(p), np.concatenate([p.time, p.delay])
    of = np.repeat(np.arange(len(parts)), [*map(len, parts)])[p.rank]
    firsts = [ops[0] for ops in parts[1:]]
    # no linear programme says when ops of one machine end: without any, ft10 takes 3 s instead of 17
    solver = partial(by_cpsat, by="cpsat", linear=not p.problem.is_shop(), instantiate=not p.problem.is_shop())
    families = equal_ops(p)
    leaders = [p.members[g][0] for g in dict.fromkeys(p.group_of[p.order].tolist())]
    whole = bool((np.floor(times) == times).all())

    def attempt(worst: float) -> None:
        # where all is in whole seconds, as in shops, a tick is one of them: far fewer are far sooner searched
        model = PlainRows(run, float(TICKS) if whole and worst < TICKS else worst, solver)
        transfers = _Transfers(model, p, of)

        def plan(device: IntArray, start: list[float], value: Callable[[Any], float]) -> StepPlan:
            begin = np.array([0.0, *(start[v] for v in firsts)])[of]
            sent = {(u, d): begin[u] + value(at) for (u, d), at in transfers.at.items()}
            return retime(p, device, np.array(start), sent)

        def known(x: list[dict[int, Any]], s: list[Any], z: list[Any]) -> None:
            """Add what is known of makespan and ops, (S) of the first groups' devices, and (B) of equal ops' order."""
            transfers.keep_apart()
            model.letter("T")
            model.row(add_up(z), model.units(worst))
            model.row(model.units(min(worst, run.bound or 0.0)), add_up(z))
            for v in firsts:
                model.row(s[v], 0)
            for i, ops in enumerate(parts):
                every = (*ops, *firsts[i : i + 1])
                heads = local_heads(p, half_of(p, every), lambda: run.stopped)
                for v, head in zip(every, heads, strict=True):
                    model.row(model.units(head * _SHY), s[v] if of[v] == i else z[i])
            model.letter("S")
            for _, d, earlier in renamed(p, []):
                for v in leaders[:earlier]:
                    model.row(x[v][d], 0)
            model.letter("B")
            for u, v in (pair for family in families for pair in pairwise(family)):
                model.row(s[u], s[v])
            if run.plan is not None:
                _start(run.plan, x, s)

        def _start(known: StepPlan, x: list[dict[int, Any]], s: list[Any]) -> None:
            name = {d: new for d, new, _ in renamed(p, known.device[leaders].tolist())}
            given, sent = known.start.copy(), sent_of(known)
            for ops in families:
                given[ops] = np.sort(given[ops])
                for d in range(p.n_devices):
                    pairs = [(u, d) for u in ops if (u, d) in sent]
                    sent.update(zip(pairs, sorted(sent[pair] for pair in pairs), strict=True))
            start = [model.units(at) for at in given.tolist()]
            begin = np.array([0, *(start[v] for v in firsts)])[of].tolist()
            for v, d in enumerate(known.device.tolist()):
                model.start.update((literal(y), a == name[d]) for a, y in x[v].items())
                model.start[literal(s[v])] = start[v] - begin[v]
            for (u, d), at in sent.items():
                if (u, name[d]) in transfers.at:
                    model.start[literal(transfers.at[u, name[d]])] = model.units(at) - begin[u]

        programme(model, run, "cpsat", t, plan, parts, transfers.send, known)

    worst = float(np.where(np.isfinite(p.time), p.time, 0.0).max(axis=0).sum() + p.delay.sum() * p.n_devices)
    refine(run, "cpsat", 0, worst, attempt, t.covers.found)


def parts_of(p: Prepared) -> list[list[int]]:
    """Return the ops in topological order, a part from each op on that all others come before or after.

    Nothing of an earlier part still runs when one begins. With contention none begins where an edge passes by: its
    transfer may be under way.
    """
    before, after = p.reach
    first, index = p.successors
    parts, last = [list[int]()], 0
    for i, v in enumerate(p.order.tolist()):
        alone = (before[v] | after[v]).bit_count() == p.n - 1
        if alone and parts[-1] and not (p.contention and last > i):
            parts.append([])
        parts[-1].append(v)
        last = max(last, int(p.rank[index[first[v] : first[v + 1]]].max(initial=0)))
    return parts


def equal_ops(p: Prepared) -> list[list[int]]:
    """Return ops that do the same in parts of the graph that do exactly the same, such as micro-batches.

    A part is a connected component. The i-th ops of equal parts are colocated and equally long, send as much, and have
    the same edges. So if some schedule gives the i-th ops certain starts, they can be handed out in the order of the
    parts: sorting keeps every precedence and moves nothing on any device or link.
    """
    families: dict[Hashable, list[list[int]]] = defaultdict(list)
    for part in connected(p.n, zip(*(ends.tolist() for ends in p.edges), strict=True)):
        place = {v: i for i, v in enumerate(part)}
        first, index = p.successors
        edges = tuple((i, place[w]) for i, v in enumerate(part) for w in index[first[v] : first[v + 1]].tolist())
        looks = np.concatenate([p.time[:, part], p.delay[:, part], p.group_of[None, part].astype(float)])
        families[edges, looks.tobytes()].append(part)
    return [[*ops] for family in families.values() if len(family) > 1 for ops in zip(*family, strict=True)]


def renamed(p: Prepared, used: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (device, new name, how many other groups come before the first one there) for devices used in an order.

    Devices are a tree of circles, the widest first. Circles of one shape may be swapped, and of them the one that is
    used first gets the first name: so the first group of the i-th comes after those of the i - 1 before it.
    """
    turn = {d: -i for i, d in enumerate(reversed(used))}

    def parts(devices: Sequence[int], level: int) -> Iterator[tuple[Hashable, list[int]]]:
        for circle in dict.fromkeys(np.argmax(p.level <= level, axis=1)[devices].tolist()):
            inside = [d for d in devices if p.level[circle, d] <= level]
            yield shape(inside, level), inside

    def shape(devices: list[int], level: int) -> Hashable:
        lower = p.used_levels[p.used_levels < level].tolist()
        inner = (of for of, _ in parts(devices, [-1, *lower][-1])) if level >= 0 else ()
        return int(p.type_of[devices[0]]) if level < 0 else tuple(sorted(inner, key=repr))

    def match(
        old: Sequence[int], new: Sequence[int], levels: list[int], earlier: int
    ) -> Iterator[tuple[int, int, int]]:
        if not levels:
            yield old[0], new[0], earlier
            return
        alike: dict[Hashable, tuple[list[list[int]], list[list[int]]]] = {}
        for i, devices in enumerate((old, new)):
            for kind, inside in parts(devices, levels[0]):
                alike.setdefault(kind, ([], []))[i].append(inside)
        for olds, news in alike.values():
            olds.sort(key=lambda inside: min(turn.get(d, 1) for d in inside))
            for i, (one, other) in enumerate(zip(olds, news, strict=True)):
                yield from match(one, other, levels[1:], earlier + i)

    every = range(p.n_devices)
    return list(match(every, every, [*p.used_levels[-2::-1].tolist(), -1], 0))


class _Transfers:
    """(P) outputs are sent over the level that joins two devices, and (K) a link carries one of them at a time.

    Attributes:
        at: r[u, d], when the output of op u leaves for device d, within the part of u; none without contention.
    """

    def __init__(self, model: PlainRows, p: Prepared, part: NDArray[np.int64]) -> None:
        self.model, self.p, self.part, self.at = model, p, part.tolist(), dict[tuple[int, int], Any]()
        self._sent, self._on = dict[tuple[int, int, int], Any](), defaultdict[tuple[int, int], list[int]](list)
        self._circles, self._near = dict[tuple[int, int], list[Any]](), dict[tuple[int, int, int], Any]()

    def send(self, u: int, v: int, end: Any, ready: Any, x: list[dict[int, Any]]) -> None:
        """Send the output of op u, which ends, to op v, which may start when it is ready."""
        model, p = self.model, self.p
        g, h = (int(p.group_of[w]) for w in (u, v))
        delays = p.delay[p.used_levels, u].tolist()
        if g == h or not any(delays):
            return
        if delays == sorted(delays):
            # what each level adds to the one below it, where that does not join the two
            added = np.diff([0, *map(model.units, delays)]).tolist()
            levels = [-1, *p.used_levels[:-1].tolist()]
            far = [more * (1 - self._joined(g, h, level, x)) for more, level in zip(added, levels, strict=True) if more]
            model.row(add_up([end, *far]), ready)
            if not p.contention:
                return
        for a, b in zip(*(ends.tolist() for ends in np.nonzero(p.level >= 0)), strict=True):
            if seconds := float(p.delay[p.level[a, b], u]):
                wait, here, there = model.units(seconds), x[u][a], x[v][b]
                model.row(add_up([self._leaves(u, a, b, end, wait, here, there), wait]), ready, here, there)

    def _joined(self, g: int, h: int, level: int, x: list[dict[int, Any]]) -> Any:
        """Return the binary of whether a level, or a lower one, joins the devices of two groups."""
        key = min(g, h), max(g, h), level
        if key not in self._near:
            near = self._near[key] = self.model.binary("q", *key)
            for one, other in zip(self._within(g, level, x), self._within(h, level, x), strict=True):
                self.model.equal(one, other, near)
                self.model.row(1, near, one, other)
        return self._near[key]

    def _within(self, g: int, level: int, x: list[dict[int, Any]]) -> list[Any]:
        """Return for each circle of devices within a level of one another the binary of whether a group is there."""
        if (g, level) not in self._circles:
            row, circles = x[self.p.members[g][0]], np.argmax(self.p.level <= level, axis=1)
            self._circles[g, level] = found = []
            for first in np.unique(circles).tolist():
                inside = [row[d] for d in np.flatnonzero(circles == first).tolist()]
                found.append(inside[0] if len(inside) == 1 else self.model.binary("c", g, level, first))
                if len(inside) > 1:
                    self.model.equal(add_up(inside), found[-1])
        return self._circles[g, level]

    def _leaves(self, u: int, a: int, b: int, end: Any, wait: Any, here: Any, there: Any) -> Any:
        """Return when the output of op u, which is here on device a, leaves for device b, where a reader may be."""
        model = self.model
        if not self.p.contention:
            return end
        if (u, b) not in self.at:
            self.at[u, b] = model.amount(1, "r", u, b)
        at = self.at[u, b]
        if (u, a, b) not in self._sent:
            sent = self._sent[u, a, b] = model.binary("w", u, a, b)
            model.row(sent, here)
            model.row(end, at, sent)
            transfer = model.interval(at, wait, at + wait, sent)
            for link in self.p.routes[a][b]:
                self._on[self.part[u], link].append(transfer)
        model.row(1, self._sent[u, a, b], here, there)
        return at

    def keep_apart(self) -> None:
        """Let no two transfers that a link may carry overlap."""
        self.model.letter("K")
        for transfers in self._on.values():
            self.model.together(transfers)
