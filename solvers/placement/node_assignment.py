"""Patterns on nodes: which jobs of a family, and which of the nodes that are alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .columns import Columns, Pattern
from .prepare import Rows
from .state import State

_NODES = 32
"""Nodes that a server without one is tried on, those with most idle NICs."""


def assign_nodes(columns: Columns, patterns: list[Pattern], evenly: bool) -> list[Rows]:
    """Return the rows of each job if the nodes hold `patterns`: split gangs in one rack if that is easy, or evenly."""
    batch, kin = columns.batch, columns.kin
    rack = batch.members[1] if len(batch.members) > 1 else [0] * batch.n_nodes
    free: dict[tuple[int, int], list[int]] = defaultdict(list)
    for n in range(batch.n_nodes - 1, -1, -1):
        free[int(columns.kind[n]), rack[n]].append(n)
    racks = sorted(set(rack))
    waiting = [list(jobs) for jobs in kin.members]
    rows: list[Rows] = [{} for _ in batch.jobs]
    for group in _groups(columns, patterns):
        counts = Counter(pattern.kind for pattern in group)
        # the fullest rack that holds the group, else the emptiest and then the next
        able = [r for r in racks if all(len(free[q, r]) >= count for q, count in counts.items())]
        order = sorted(able or racks, key=lambda r: sum(len(free[q, r]) for q in counts), reverse=not able)
        used: Counter[int] = Counter()
        for pattern in group:
            q = pattern.kind
            left = [r for r in order if free[q, r]]
            r = min(left, key=lambda r: used[r]) if evenly else left[0]
            used[r] += 1
            node = free[q, r].pop()
            opts = columns.options[q]
            for x in pattern.options:
                f = int(opts.family[x])
                j = waiting[f].pop() if len(kin.members[f]) > 1 else kin.lead[f]
                rows[j][node] = int(opts.workers[x]), int(opts.servers[x])
    return rows


def place_servers(state: State) -> bool:
    """Put the servers that are on no node yet, gang by gang, where the goal is then least; return if they fit."""
    for j, job in enumerate(state.batch.jobs):
        here = state.rows[j]
        missing = job.servers - sum(p for _, p in here.values())
        while here and missing > 0:
            state.remove(j)
            best: tuple[float, Rows] | None = None
            room = state.server_room(j, here)
            able = np.flatnonzero(room > [here.get(n, (0, 0))[1] for n in range(len(room))])
            near = able[np.argsort(state.crossing[able], kind="stable")[:_NODES]].tolist()
            # of places that cost the same, the idle NIC: the next server may need what is left of the other
            for n in dict.fromkeys([*near, *(n for n in here if n in able)]):
                w, p = here.get(n, (0, 0))
                rows = {**here, n: (w, p + 1)}
                state.add(j, rows)
                total = state.settle()
                if best is None or total < best[0]:
                    best = total, rows
                state.remove(j)
            if best is None:  # no cores or memory for it
                return False
            here = best[1]
            missing -= 1
            state.add(j, here)
            state.settle()
    return True


def swap_nodes(state: State, columns: Columns) -> float:
    """Swap what nodes of a kind in different racks hold while that helps; return the goal."""
    batch = columns.batch
    rack = batch.members[1] if len(batch.members) > 1 else [0] * batch.n_nodes
    total, better = state.exact(), True
    while better:
        better = False
        tied = [n for n in range(batch.n_nodes) if any(len(state.rows[j]) > 1 for j in state.at[n])]
        for a in tied:
            for b in range(batch.n_nodes):
                if rack[a] == rack[b] or columns.kind[a] != columns.kind[b]:
                    continue
                before = state.snapshot()
                state.restore(_swapped(state, before, a, b))
                now = state.exact()
                if now < total * (1 - 1e-9):
                    total, better = now, True
                else:
                    state.restore(before)
    return total


def _swapped(state: State, rows: list[Rows], a: int, b: int) -> list[Rows]:
    there = {a: b, b: a}
    changed = {*state.at[a], *state.at[b]}
    return [{there.get(n, n): task for n, task in row.items()} if j in changed else row for j, row in enumerate(rows)]


def _groups(columns: Columns, patterns: list[Pattern]) -> list[list[Pattern]]:
    """Return the patterns that split gangs tie together, largest groups first."""
    parts: defaultdict[int, list[int]] = defaultdict(list)
    for i, pattern in enumerate(patterns):
        opts = columns.options[pattern.kind]
        for x in pattern.options:
            if opts.split[x]:
                parts[int(opts.family[x])].append(i)
    groups: dict[int, list[Pattern]] = {}
    for group, pattern in zip(tied(parts.values(), len(patterns)), patterns, strict=True):
        groups.setdefault(group, []).append(pattern)
    return sorted(groups.values(), key=len, reverse=True)


def tied(together: Iterable[Sequence[int]], count: int) -> list[int]:
    """Return a label for each of `count` things: those that `together` names in one go have the same."""
    pairs = np.array([(group[0], i) for group in together for i in group], dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    labels: list[int] = connected_components(graph, directed=False)[1].tolist()
    return labels
