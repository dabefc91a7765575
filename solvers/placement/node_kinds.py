"""Kinds of nodes of the bound by patterns: empty ones, and those with jobs that run and stay.

A pattern of a node with jobs that stay is what comes besides, and costs what it adds. A job that is all on the node
adds by what the pattern slows it down. Of one that spans nodes the slowest counts, so it adds nothing, but is there: it
slows others down, and its gang is on the NIC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..run import Run
from .columns import merged_kinds
from .options import Options, joined, parts_of, relaxed_options, staying, within
from .prepare import Batch, Indices
from .pricing import Pricing
from .state import State

_STEPS = 2_000_000
"""Sets of options that a search looks at."""
_REPEATED = 150
"""Options beyond which a pattern may have a gang more than once."""


class NodeKind:
    """The options of a kind of node and the search for patterns of them.

    Attributes:
        nodes: of this kind.
        gpus: of an empty one, in parts.
        options: of the families.
        alone: what each costs on an empty node, float64 (n,).
        plain: whether nobody who stays is on it.
    """

    def __init__(self, batch: Batch, many: Indices, options: Options, nodes: int, gpus: int) -> None:
        self.nodes, self.gpus, self.options = nodes, gpus, options
        self.alone = options.cost(slice(None))
        self.repeated = len(options.rate) > _REPEATED
        # of options that differ in the price and the rate alone only some can be in the best pattern
        fixed = np.where(~options.split & (options.fixed <= (1 - options.hidden) * options.compute), 0.0, options.fixed)
        alike = np.stack([options.model, options.gpus, options.split, fixed, options.nic, options.cpu, options.memory])
        self.alike = np.unique(alike, axis=1, return_inverse=True)[1].ravel() if len(fixed) else np.zeros(0, int)
        self._many = many + 32 * self.repeated
        self.plain, self._held, self._base = True, 0, 0.0
        self._search_in(batch, self._many, options)

    def hold(self, batch: Batch, held: Options) -> None:
        """Let jobs stay on it."""
        self.plain, self._held = False, len(held.rate)
        every = joined(self.options, replace(held, family=held.family + len(self._many)))
        self._base = held.pattern_cost(tuple(range(self._held)), batch.problem.speeds.host)
        self._search_in(batch, np.append(self._many, np.ones(self._held, dtype=self._many.dtype)), every)

    def _search_in(self, batch: Batch, many: Indices, options: Options) -> None:
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
        kept = self._useful(pays) if self.repeated else None
        if not held:
            return self.pricing.search(run, pays, 0.0, most, True, _STEPS, kept)
        # those who stay pay so much that no pattern is without them
        much = 1.0 + self._base + float(np.maximum(pays, 0.0).sum())
        offset = self._base - much * held
        kept = None if kept is None else np.append(kept, np.arange(n, n + held))
        paid = np.append(pays, np.full(held, much))
        reduced, cost, chosen, complete = self.pricing.search(run, paid, offset, most, True, _STEPS, kept)
        return reduced - offset, cost - self._base, np.where(chosen < n, chosen, -1), complete

    def _useful(self, pays: FloatArray) -> Indices:
        """Return the options that are not worse than another of those alike, wherever they are and beside whomever.

        What two that are alike cost in company grows with the rate: worse is one that costs more alone, less what is
        paid, and has no lower rate.
        """
        left, rate = self.alone - pays, self.options.rate
        order = np.lexsort([rate, left, self.alike])
        rank = rate[order] - self.alike[order] * (2 * float(rate.max()) + 1)  # lower from group to group
        least = np.minimum.accumulate(rank)
        return np.sort(order[np.concatenate([[True], rank[1:] < least[:-1]])])


def kinds_of(batch: Batch, families: Sequence[Sequence[int]], state: State, *, known: bool) -> list[NodeKind]:
    """Return the kinds of nodes that may hold a job of the families.

    Args:
        batch: the problem.
        families: of the jobs that do not stay.
        state: the jobs that stay.
        known: whether it counts who stays on a node, which is then a kind of its own; else how many GPUs they leave.
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


def holds_workers(state: State, node: int) -> bool:
    """Return whether a job that stays has workers on a node."""
    return any(workers for workers, _ in state.at.get(node, {}).values())
