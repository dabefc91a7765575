"""Patterns on nodes: which jobs of a family, and which of the nodes that are alike."""

from __future__ import annotations

from collections import defaultdict

from .columns import Columns, Pattern
from .prepare import Rows


def seat(columns: Columns, patterns: list[Pattern]) -> list[Rows]:
    """Return the rows of each job if the nodes hold `patterns`: split gangs in as few racks as first fit finds."""
    batch, kin = columns.batch, columns.kin
    rack = batch.members[1] if len(batch.members) > 1 else [0] * batch.n_nodes
    free: dict[tuple[int, int], list[int]] = defaultdict(list)
    for n in range(batch.n_nodes - 1, -1, -1):
        free[int(columns.kind[n]), rack[n]].append(n)
    racks = sorted(set(rack))
    waiting = [list(jobs) for jobs in kin.members]
    rows: list[Rows] = [{} for _ in batch.jobs]
    for group in _groups(columns, patterns):
        for pattern in group:
            q = pattern.kind
            # all of a group in one rack if one has the room, the fullest that does
            need = sum(1 for other in group if other.kind == q)
            able = [r for r in racks if len(free[q, r]) >= need] or [max(racks, key=lambda r: len(free[q, r]))]
            near = [r for r in able if any(rack[n] == r for row in _mine(columns, rows, pattern) for n in row)]
            r = min(near or able, key=lambda r: len(free[q, r]))
            if not free[q, r]:
                r = max(racks, key=lambda r: len(free[q, r]))
            node = free[q, r].pop()
            opts = columns.options[q]
            for x in pattern.options:
                f = int(opts.family[x])
                j = waiting[f].pop() if len(kin.members[f]) > 1 else kin.lead[f]
                rows[j][node] = int(opts.workers[x]), int(opts.servers[x])
    return rows


def _mine(columns: Columns, rows: list[Rows], pattern: Pattern) -> list[Rows]:
    opts = columns.options[pattern.kind]
    return [rows[columns.kin.lead[int(opts.family[x])]] for x in pattern.options if opts.split[x]]


def _groups(columns: Columns, patterns: list[Pattern]) -> list[list[Pattern]]:
    """Return the patterns that split gangs tie together, largest groups first."""
    parent = list(range(len(patterns)))

    def root(i: int) -> int:
        while parent[i] != i:
            i = parent[i]
        return i

    seen: dict[int, int] = {}
    for i, pattern in enumerate(patterns):
        opts = columns.options[pattern.kind]
        for x in pattern.options:
            if opts.split[x]:
                first = seen.setdefault(int(opts.family[x]), i)
                parent[root(i)] = root(first)
    groups: dict[int, list[Pattern]] = {}
    for i, pattern in enumerate(patterns):
        groups.setdefault(root(i), []).append(pattern)
    return sorted(groups.values(), key=len, reverse=True)
