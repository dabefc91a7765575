"""Large-neighbourhood search with CP-SAT inside, for graphs too large for one model (Shaw, CP 1998)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...run import Run
from ..sizes import Covers
from .lns_model import Around
from .model import Prepared


def lns(run: Run, p: Prepared) -> None:
    """Free a part of the best plan, place and order it anew by CP-SAT, keep what is better; again and again.

    It ends when the run stops, or once everything was free at the same time and nothing better exists.
    """
    if run.plan is None or run.objective is None:
        return
    rng = np.random.default_rng(run.seed)
    choice = Choice(p, rng)
    unit = run.objective
    with run.phase("lns"):
        around = Around(p, run.plan, unit, covers := Covers())
        while not run.stopped:
            i, free = choice.pick(around)
            plan, searched = around.improve(free, run)
            better = plan is not None and run.offer(plan, "lns")
            choice.learn(i, better, searched)
            if better and plan is not None:
                around = Around(p, plan, unit, covers)
            elif searched and len(free) == p.n_groups:
                return


Pick = Callable[[Around, int, np.random.Generator], set[int]]
"""Returns about so many groups to free."""


def window(around: Around, size: int, rng: np.random.Generator) -> set[int]:
    """Free what runs around one moment, and whatever is colocated with it."""
    moment = rng.uniform(0.0, float(around.end.max()))
    distance = np.maximum(around.start - moment, moment - around.end)
    return _first(around.p, np.lexsort((rng.random(around.p.n), distance)), size)


def devices(around: Around, size: int, rng: np.random.Generator) -> set[int]:
    """Free what two or three devices run around one moment: they may swap and share anew."""
    p = around.p
    count = min(int(rng.integers(2, 4)), p.n_devices)
    chosen = rng.choice(p.n_devices, count, replace=False)
    moment = rng.uniform(0.0, float(around.end.max()))
    distance = np.maximum(around.start - moment, moment - around.end)
    elsewhere = ~np.isin(np.array(around.device)[p.group_of], chosen)
    return _first(p, np.lexsort((distance, elsewhere))[: int((~elsewhere).sum())], size)


def subgraph(around: Around, size: int, rng: np.random.Generator) -> set[int]:
    """Free what is near one op in the graph, breadth first."""
    p = around.p
    seed = int(rng.integers(p.n))
    seen, queue = {seed}, [seed]
    free: set[int] = set()
    for v in queue:
        if len(free) >= size:
            break
        free.add(int(p.group_of[v]))
        near = [index[first[v] : first[v + 1]] for first, index in (p.predecessors, p.successors)]
        for u in rng.permutation(np.concatenate(near)).tolist():
            if u not in seen:
                seen.add(u)
                queue.append(u)
    return free


def critical(around: Around, size: int, rng: np.random.Generator) -> set[int]:
    """Free a stretch of what the makespan hangs on: ops without room to start later, and those beside them."""
    p = around.p
    head, tail = around.paths((), around.arcs(()))
    through = head + around.least(()) + tail
    # not the makespan: with contention waits for links are on no path
    tight = through >= through.max() * (1 - 1e-9)
    at = float(around.start[int(rng.choice(np.flatnonzero(tight)))])
    distance = np.abs(around.start - at) * np.where(tight, 0.3, 1.0)
    return _first(p, np.argsort(distance, kind="stable"), size)


PICKS: tuple[Pick, ...] = (window, devices, subgraph, critical)


class Choice:
    """Choose a pick by its recent success, as adaptive large-neighbourhood search does (Ropke and Pisinger, 2006).

    Each pick has a size of its own: it grows while neighbourhoods are searched to the end in vain, and shrinks when
    they are too large for that.
    """

    def __init__(self, p: Prepared, rng: np.random.Generator) -> None:
        self.p, self.rng = p, rng
        self.weight = np.ones(len(PICKS))
        self.size = np.full(len(PICKS), 20.0)

    def pick(self, around: Around) -> tuple[int, set[int]]:
        """Return which pick it is, and the groups to free."""
        i = int(self.rng.choice(len(PICKS), p=self.weight / self.weight.sum()))
        return i, PICKS[i](around, int(self.size[i]), self.rng)

    def learn(self, i: int, better: bool, searched: bool) -> None:
        """Take note of what came of pick `i`."""
        self.weight[i] = max(0.1, 0.8 * self.weight[i] + (0.4 if better else 0.0))
        if not better:
            self.size[i] *= 1.15 if searched else 0.8
            self.size[i] = min(max(self.size[i], 8.0), self.p.n_groups)


def _first(p: Prepared, ops: np.ndarray, size: int) -> set[int]:
    """Return the groups of the first ops, up to `size` groups."""
    groups = dict.fromkeys(p.group_of[ops].tolist())
    return set(list(groups)[:size])
