"""A bound from the series of a job: every unit takes its time, and memory forces some of them to be cut."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from ...run import Run
from ..sizes import most
from .model import Prepared
from .series import Series, Tables, UnitSearch, series

_NODES = 2000
"""Groups, times nodes, to look at between two looks at the clock."""
_MOST = {16: 20_000, 40: 2_000}
"""Nodes after which a search has become too large to go on, for units of at most so many groups; fewer for the rest,
whose groups times nodes count too."""
_MOST_OF_WIDE, _WORK_OF_WIDE = 100, 20_000
_LONGEST = 500
"""Units up to which the programme also counts what a server holds: it takes their number to the third power."""


def series_bound(run: Run, p: Prepared) -> None:
    """Raise the bound to the time that the units of the job's series must take one after the other.

    A unit is on one device, or on several of one server, or on several servers; each has its own least time, found by
    `UnitSearch`. The groups of neighbours that are not cut are together on one device, and must fit there; those of
    neighbours that are not cut between servers must fit into one. A dynamic programme finds the cheapest choice.
    All that is done twice: with small units, and with those no edge jumps over.
    """
    if p.n_devices == 1:
        return
    small, large = series(p), series(p, jumped=False)
    with run.share(0.5):
        _raise(run, p, small)
    if not run.stopped and len(large.units) < len(small.units):
        _raise(run, p, large)


def _raise(run: Run, p: Prepared, parts: Series) -> None:
    if not parts.units:
        return
    server, tables = p.servers, Tables.of(p)
    spans: list[Callable[[set[int]], bool]] = [lambda used: len(used) > 1]
    if p.memory_binds and len(set(server.tolist())) > 1 and len(parts.units) <= _LONGEST:
        spans.append(lambda used: len({int(server[d]) for d in used}) > 1)
    searches = list[list[UnitSearch]]()
    for wanted in spans:
        searches.append([])
        for unit in parts.units:
            if run.stopped:
                return
            searches[-1].append(UnitSearch(p, tables, unit, wanted))
    costs = np.array([_serial(p, parts), *([search.bound for search in row] for row in searches)])
    while not run.stopped:
        value, choice = _cheapest(p, parts, costs, server)
        if np.isfinite(value):
            run.raise_bound(value, "series")
        # no other search can lift the bound before one of these does
        open_ = [(c - 1, k) for k, c in enumerate(choice) if c and not searches[c - 1][k].done]
        todo = [(row, k) for row, k in open_ if searches[row][k].opened < _limit(parts, k)]
        if not todo:
            return
        for row, k in todo:
            if run.stopped:
                return
            searches[row][k].work(max(1, _NODES // len(parts.units[k].groups)))
            costs[row + 1, k] = searches[row][k].bound


def _limit(parts: Series, k: int) -> int:
    width = len(parts.units[k].groups)
    return next(
        (nodes for groups, nodes in _MOST.items() if width <= groups), min(_MOST_OF_WIDE, _WORK_OF_WIDE // width)
    )


def _serial(p: Prepared, parts: Series) -> FloatArray:
    found = []
    for unit in parts.units:
        ops = [v for half in unit.halves for v in half.ops[1:-1]]
        able = np.isfinite(p.group_time[p.types][:, list(unit.groups)]).all(axis=1)
        found.append(np.where(able, p.time[p.types][:, ops].sum(axis=1), np.inf).min())
    return np.array(found)


def _cheapest(p: Prepared, parts: Series, costs: FloatArray, server: IntArray) -> tuple[float, list[int]]:
    """Return the least time of the series in seconds, and the row of `costs` that each unit takes.

    `costs`: least seconds of each unit on one device, on several, and on several servers; two rows if servers do not
    matter; float64 (2 or 3, S).
    """
    count, servers_matter = costs.shape[1], len(costs) == 3
    # rows: the joint at which the present server begins; columns: the joint at which the present device does
    best = np.full((count + 1 if servers_matter else 1, count + 1), np.inf)
    best[0, 0] = 0.0
    begins = parts.memory - parts.joint_memory
    device_room = most(float(p.capacity.max()), p.n)
    rooms = [float(p.capacity[server == s].sum()) for s in set(server.tolist())] if servers_matter else [np.inf]
    server_room = most(max(rooms), p.n)
    came: list[tuple[list[int], int]] = []
    for k in range(count):
        size = parts.memory[k + 1] - begins[: k + 1]
        rows = slice(0, min(k + 1, len(best)))
        table = best[rows, : k + 1]
        fits = size[rows] <= server_room
        came.append((table.argmin(axis=1).tolist(), int(table.argmin())))
        row_least, least = table.min(axis=1), table.min()
        best[rows, : k + 1] = np.where(fits[:, None] & (size <= device_room), table + costs[0, k], np.inf)
        best[rows, k + 1] = np.where(fits, row_least + costs[1, k], np.inf)
        if servers_matter:
            best[k + 1, k + 1] = least + costs[2, k]
    row, column = divmod(int(best.argmin()), count + 1)
    choice = []
    for k in reversed(range(count)):
        if column <= k:
            choice.append(0)
        elif servers_matter and row == k + 1:
            choice.append(2)
            row, column = divmod(came[k][1], k + 1)
        else:
            choice.append(1)
            column = came[k][0][row]
    return parts.joints + float(best.min()), choice[::-1]
