"""A bound by patterns of nodes for batches of any size: families of jobs that are alike, each with one price.

Take prices p_f for a gang of family f, no more than its value if it may be left out, and mu_q <= 0 such that no pattern
t on a node of kind q costs less than what it pays: cost(t) >= sum over its options x of p_f(x) a_x / d_x + mu_q. Every
plan puts some pattern on each node, pays no less than those patterns (`options`), has all of every gang that it places,
so that the shares a / d of the options of f add up to the number of gangs placed, and leaves no more nodes empty than
there are. Summed over the nodes,

    goal >= sum over f of count_f p_f + sum over q of nodes_q mu_q        (Lagrange's bound)

for any such prices. They come from the linear programme over the patterns found so far; mu_q is the least reduced cost
that a complete search has found, and a billionth is taken off for rounding. Everything that is simplified lets more be
a pattern or makes one cheaper, so the inequality stays: jobs of a family differ in how they synchronise and count as
the best of them; servers take no room; jobs that run and may move do so for nothing; shares of a GPU may be on any, and
slow each other down as on two; those without GPUs are on no node and cost what they must. Jobs whose weights times best
rates differ by less than a tenth are one family: what each costs at least counts by its own weight, and what is beyond
that by the family's least. Jobs that run and stay are where they are.

A pattern of a node with jobs that stay is what comes besides, and costs what it adds. A job that is all on the node
adds by what the pattern slows it down. Of one that spans nodes the slowest counts, so it adds nothing, but is there: it
slows others down, and its gang is on the NIC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import replace
from math import log
from typing import NamedTuple

import highspy
import numpy as np

from gangplan.instances.arrays import FloatArray

from ..highs import new_highs
from ..run import Run
from .best_case import BestCase
from .build import start
from .options import Options, Pricing, joined, merged_kinds, parts_of, relaxed_options, staying, within
from .prepare import Indices, PreparedBatch
from .state import PlacementState

_STEPS = 2_000_000
"""Sets of options that a search looks at."""


class NodeKind:
    """The options of a kind of node and the search for patterns of them.

    Attributes:
        gpus: of an empty one, in parts.
        alone: what each costs on an empty node, float64 (n,).
        plain: whether nobody who stays is on it.
    """

    def __init__(self, batch: PreparedBatch, many: Indices, options: Options, nodes: int, gpus: int) -> None:
        self.nodes, self.gpus, self.options = nodes, gpus, options
        self.alone = options.cost(slice(None))
        self._many = many
        self.plain, self._held, self._base = True, 0, 0.0
        self._search_in(batch, many, options)

    def hold(self, batch: PreparedBatch, held: Options) -> None:
        """Let jobs stay on it."""
        self.plain, self._held = False, len(held.rate)
        every = joined(self.options, replace(held, family=held.family + len(self._many)))
        self._base = held.pattern_cost(tuple(range(self._held)), batch.host)
        self._search_in(batch, np.append(self._many, np.ones(self._held, dtype=self._many.dtype)), every)

    def _search_in(self, batch: PreparedBatch, many: Indices, options: Options) -> None:
        self.pricing = Pricing(batch, many, np.zeros((len(many), len(many)), dtype=bool), options)

    def shares(self, chosen: tuple[int, ...]) -> dict[int, float]:
        """Return what share of a gang of each family a pattern has."""
        found: dict[int, float] = {}
        for x in chosen:
            f = int(self.options.family[x])
            found[f] = found.get(f, 0.0) + float(self.options.cover[x])
        return found

    def search(self, run: Run, price: FloatArray, most: int) -> tuple[FloatArray, FloatArray, Indices, bool]:
        """Return what `Pricing.search` does of the patterns that add less than they pay, jobs that stay left out."""
        n, held, options = len(self.alone), self._held, self.options
        pays = price[options.family] * options.cover
        if not held:
            return self.pricing.search(run, pays, 0.0, most, True, _STEPS)
        # those who stay pay so much that no pattern is without them
        much = 1.0 + self._base + float(np.maximum(pays, 0.0).sum())
        offset = self._base - much * held
        paid = np.append(pays, np.full(held, much))
        reduced, cost, chosen, complete = self.pricing.search(run, paid, offset, most, True, _STEPS)
        return reduced - offset, cost - self._base, np.where(chosen < n, chosen, -1), complete


def kinds_of(batch: PreparedBatch, families: list[list[int]], state: PlacementState, *, known: bool) -> list[NodeKind]:
    """Return the kinds of nodes that may hold a job of the families.

    `known`: whether it counts who stays on a node, which is then a kind of its own; else how many GPUs they leave.
    """
    same, many = merged_kinds(batch), np.array([len(jobs) for jobs in families])
    lead = [jobs[0] for jobs in families]
    kind = same[batch.kind]
    options = {q: relaxed_options(batch, families, q) for q in np.unique(same).tolist() if batch.room[lead, q].any()}
    # GPUs of which only a part is taken count as idle
    idle = batch.problem.fleet.gpus.copy()
    for n, rows in state.at.items():
        idle[n] -= sum(w * int(batch.each[j]) for j, (w, _) in rows.items() if batch.share[j] == 1)
    alike = Counter(
        (int(kind[n]), int(idle[n]), n if known and holds_workers(state, n) else -1)
        for n in range(batch.n_nodes)
        if int(kind[n]) in options and idle[n] > 0
    )
    found, parts = [], parts_of(batch)
    for (q, gpus, node), count in alike.items():
        found.append(NodeKind(batch, many, within(options[q], gpus * parts), count, options[q].room[0]))
        if node >= 0:
            found[-1].hold(batch, staying(state, node))
    return found


def holds_workers(state: PlacementState, node: int) -> bool:
    """Return whether a job that stays has workers on a node."""
    return any(workers for workers, _ in state.at.get(node, {}).values())


_EACH = 40
"""Patterns that a search adds."""
_CENTRES = 0.0, 0.04, 0.08, 0.15, 0.3, 0.6
"""First prices of a node, as shares of the mean cost of what is on one."""
_MET = 0.0, 0.15, 0.3, 0.45, 0.6, 0.75
"""First prices of who is met, as shares of what it costs in the mean if all nodes hold as many."""
_WIDTH = 0.1
"""How far prices of the linear programme may be from those of the best bound at first, as a share of them."""
_WIDEST = 16.0
_ENOUGH = 1e-6
"""How near the bound is to the linear programme's, relatively, in the end."""
_ALIKE = log(1.1)
_EPS = 1e-9
Patterns = tuple[FloatArray, Indices]
"""Costs and options."""


class Round(NamedTuple):
    """A round of column generation.

    Attributes:
        value: of the linear programme, before patterns are added to it.
        added: patterns that are.
        done: whether none improves it, which is proved.
    """

    value: float
    added: int
    done: bool


def bounds(run: Run, batch: PreparedBatch) -> None:
    """Raise the bound by patterns of nodes."""
    PatternBound(run, batch).solve()


class PatternBound:
    """The linear programme over patterns of families, and its prices. `bound`: the best bound so far."""

    def __init__(self, run: Run, batch: PreparedBatch) -> None:
        self.run, self.batch, self.bound, self._unit = run, batch, -np.inf, batch.unit
        best = BestCase(batch)
        self.families = _families(batch, best)
        lead = [jobs[0] for jobs in self.families]
        inside = [j for jobs in self.families for j in jobs]
        free = set(inside)
        self.state = state = start(batch, stay=False)
        floor = np.array(
            [
                state.cost[j] if j in batch.pinned else best.floor(j) if j in free else best.cost(j)
                for j in range(len(batch.jobs))
            ]
        )
        scale = batch.weight * batch.best
        own = np.array([scale[jobs[0]] / scale[j] for jobs in self.families for j in jobs])
        self._floor, self._own = floor, dict(zip(inside, own.tolist(), strict=True))
        self._best: FloatArray | None = None
        self.rest = float(floor.sum() - floor[inside] @ own) if inside else float(floor.sum())
        self.count = np.array([len(jobs) for jobs in self.families], dtype=float)
        values = [batch.jobs[j].value for j in lead]
        self.value = np.array([np.inf if value is None else value for value in values])

    def solve(self) -> None:
        """Raise the bound."""
        for _ in self.rounds():
            pass

    def rounds(self) -> Iterator[Round]:
        """Raise the bound: first it counts how many GPUs jobs that stay leave on a node, then who they are."""
        price: FloatArray | None = None
        for known in (False, True):
            if not self.families or (known and not any(holds_workers(self.state, n) for n in self.state.at)):
                return
            self.kinds = kinds_of(self.batch, self.families, self.state, known=known)
            self.nodes = np.array([kind.nodes for kind in self.kinds], dtype=float)
            self.known: list[set[tuple[int, ...]]] = [set() for _ in self.kinds]
            if self.kinds:
                price = yield from self._generate(price)

    def prices(self) -> FloatArray:
        """Return the prices of the best bound by job, at least 0: what each costs anyhow, and what its family adds."""
        found = self._floor.copy()
        if self._best is not None:
            for price, jobs in zip(self._best.tolist(), self.families, strict=True):
                for j in jobs:
                    found[j] += price - self._own[j] * self._floor[j]
        return np.asarray(np.maximum(np.nan_to_num(found, posinf=0.0), 0.0), dtype=np.float64)

    def _generate(self, price: FloatArray | None) -> Generator[Round, None, FloatArray]:
        """Generate patterns until the bound is that of the linear programme, or time is up; return the best prices."""
        if price is None:
            price, node = self._centre()
        else:
            found, node = self._price(price, 1)
            if found is None:
                return price
            self._raise(price, node)
        lp, width = self._programme(), _WIDTH
        self._box(lp, price, width)
        families = len(self.count)
        while not self.run.stopped:
            lp.run()
            value = float(lp.getObjectiveValue()) / self._unit
            dual = np.array(lp.getSolution().row_dual) / self._unit
            least, worth = np.minimum(dual[:families], self.value), np.minimum(dual[families:], 0.0)
            found, low = self._price(least, _EACH)
            if found is None:
                break
            if self._raise(least, low):
                price, node = least, low
                self._box(lp, price, width)
            boxed = any(lp.getSolution().col_value[: 2 * families])
            added = sum(self._add(lp, q, found[q], least, float(worth[q])) for q in range(len(found)))
            near = value - float(self.count @ price + self.nodes @ node) < _ENOUGH * abs(self.bound)
            done = near and (width > _WIDEST or not boxed)
            yield Round(self.rest + value, added, done)
            if done:
                break
            if near:
                width *= 2
                self._box(lp, price, width)
            elif not added:
                break
        return price

    def _centre(self) -> tuple[FloatArray, FloatArray]:
        """Return first prices: what gangs cost alone, a part of what they would if all nodes held as many, and GPUs.

        Of all multiples of the last two, those that give the best bound, searched one after the other.
        """
        count, nodes = self.count, float(self.nodes.sum())
        alone, size = np.full(len(count), np.inf), np.zeros(len(count))
        model = np.zeros(len(count), dtype=int)
        for kind in self.kinds:
            np.minimum.at(alone, kind.options.family, kind.alone / kind.options.cover)
            np.maximum.at(size, kind.options.family, kind.options.gpus / kind.options.cover / kind.gpus)
            model[kind.options.family] = kind.options.model
        # a gang for which jobs that stay leave no room
        alone = np.where(np.isfinite(alone), alone, np.where(np.isfinite(self.value), self.value, 0.0))
        scale = float(count @ alone) / max(1.0, nodes)
        host, least = np.array(self.batch.host), np.maximum(np.ceil(size), 1.0)
        there, costs = (np.bincount(model, x, len(host)) / max(1.0, nodes) for x in (count * least, count * alone))
        met = alone * (host @ there)[model] + least * (costs @ host)[model]
        self.alone = alone
        best, centre = -np.inf, (alone, np.zeros(len(self.nodes)))
        for share in _MET:
            before = best
            for part in _CENTRES:
                price = np.minimum(alone + share * met + part * scale * np.where(size < 1, 0.6, size), self.value)
                found, low = self._price(price, 1)
                total = float(count @ price + self.nodes @ low)
                if found is None or total < best:
                    break
                self._raise(price, low)
                best, centre = total, (price, low)
            if best == before:
                break
        return centre

    def _programme(self) -> highspy.Highs:
        """Return the linear programme in `unit`: a row a family and one a kind of node, gangs alone on their nodes."""
        lp, inf, families = new_highs(output_flag=False, threads=1), highspy.kHighsInf, len(self.count)
        for count in self.count:
            lp.addRow(count, count, 0, [], [])
        for count in self.nodes:
            lp.addRow(-inf, count, 0, [], [])
        for f in range(families):  # prices are from one to another, see `_box`
            lp.addCol(0.0, 0.0, inf, 1, [f], [1.0])
            lp.addCol(0.0, 0.0, inf, 1, [f], [-1.0])
        for q, kind in ((q, kind) for q, kind in enumerate(self.kinds) if kind.plain):
            for x in np.flatnonzero(~kind.options.split | (kind.options.gpus == kind.options.room[0])).tolist():
                self.known[q].add((x,))
                self._column(lp, q, kind.shares((x,)), float(kind.alone[x]))
        return lp

    def _add(self, lp: highspy.Highs, q: int, found: Patterns, pays: FloatArray, node: float) -> int:
        added = 0
        for cost, pattern in zip(found[0].tolist(), found[1], strict=True):
            chosen = tuple(sorted(pattern[pattern >= 0].tolist()))
            shares = self.kinds[q].shares(chosen)
            reduced = cost - node - sum(pays[f] * share for f, share in shares.items())
            if reduced < -_EPS * (1 / self._unit + cost) and chosen not in self.known[q]:
                self.known[q].add(chosen)
                self._column(lp, q, shares, cost)
                added += 1
        return added

    def _column(self, lp: highspy.Highs, q: int, shares: dict[int, float], cost: float) -> None:
        rows = [*shares, len(self.count) + q]
        lp.addCol(cost * self._unit, 0.0, highspy.kHighsInf, len(rows), rows, [*shares.values(), 1.0])

    def _box(self, lp: highspy.Highs, price: FloatArray, width: float) -> None:
        """Keep the prices of the linear programme near the best (Marsten, Hogan and Blankenship 1975)."""
        most = np.minimum(price + width * np.maximum(price, self.alone), self.value)
        for f, (up, down) in enumerate(zip(most.tolist(), (np.maximum(0.0, 1 - width) * price).tolist(), strict=True)):
            lp.changeColCost(2 * f, up * self._unit)
            lp.changeColCost(2 * f + 1, -down * self._unit)

    def _price(self, price: FloatArray, most: int) -> tuple[list[Patterns] | None, FloatArray]:
        """Return costs and options of the patterns of least reduced cost of each kind, and the least of these, <= 0.

        There are none if the search was not complete.
        """
        found, low = [], np.zeros(len(self.kinds))
        for q, kind in enumerate(self.kinds):
            reduced, cost, chosen, complete = kind.search(self.run, price, most)
            if not complete:
                return None, low
            low[q] = min(0.0, float(reduced[0])) if len(reduced) else 0.0
            found.append((cost, chosen))
        return found, low

    def _raise(self, price: FloatArray, node: FloatArray) -> bool:
        total = self.rest + float(self.count @ price + self.nodes @ node)
        total -= _EPS * (1 / self._unit + abs(total))
        if not self.bound < total < np.inf:
            return False
        self.bound, self._best = total, price.copy()
        self.run.raise_bound(total, "bounds")
        return True


def _families(batch: PreparedBatch, best: BestCase) -> list[list[int]]:
    found: dict[object, list[int]] = {}
    most = batch.room.max(axis=1)
    scale = batch.weight * batch.best
    for j in np.argsort(scale, kind="stable").tolist():
        job, weight = batch.jobs[j], float(scale[j])
        placed = min(best.least(j, degree) for degree in job.workers)
        if not batch.each[j] or not weight or not np.isfinite(placed) or j in batch.pinned:
            continue
        small = job.workers[-1] <= most[j]
        key = (
            *(job.model, job.worker, job.workers, job.where, job.most_per_node, job.value),
            *(weight if job.value is not None else round(log(weight) / _ALIKE), "" if small else job.collective),
        )
        found.setdefault(key, []).append(j)
    return list(found.values())
