"""A bound from the series of a job: every unit takes its time, and memory forces some of them to be cut."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray

from ...run import Run
from ..sizes import most
from .heft import offer_placement
from .model import Prepared
from .schedule import mean_rank, ranked
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
    """Raise the bound to the time that the units of the job's series must take one after the other, and offer a plan.

    A unit is on one device, or on several of one server, or on several servers; each has its own least time, found by
    `UnitSearch`. The groups of neighbours that are not cut are together on one device, and must fit there; those of
    neighbours that are not cut between servers must fit into one. A dynamic programme finds the cheapest choice, from
    which a plan is assembled. All that is done twice: with small units, and with those no edge jumps over.
    """
    if p.n_devices == 1:
        return
    small, large = series(p), series(p, jumped=False)
    with run.share(0.5):
        _bound_and_plan(run, p, small)
    if not run.stopped and len(large.units) < len(small.units):
        _bound_and_plan(run, p, large)


def _bound_and_plan(run: Run, p: Prepared, parts: Series) -> None:
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
    # what is left of the time is for the plan
    with run.share(0.7):
        choice = _refine(run, p, parts, searches, server)
    if run.stopped:
        return
    # a search that was not done has no whole placement
    chosen = [searches[c - 1][k] if c else None for k, c in enumerate(choice)]
    whole = [search.open[0][3] if search is not None and search.done and search.open else None for search in chosen]
    assemble(run, p, parts, whole)


def _refine(run: Run, p: Prepared, parts: Series, searches: list[list[UnitSearch]], server: IntArray) -> list[int]:
    """Raise the bound as long as there is something to search; return what the units are: see `_cheapest`."""
    costs = np.array([_serial(p, parts), *([search.bound for search in row] for row in searches)])
    choice = [0] * len(parts.units)
    while not run.stopped:
        value, choice = _cheapest(p, parts, costs, server)
        if np.isfinite(value):
            run.raise_bound(value, "series")
        # no other search can lift the bound before one of these does
        open_ = [(c - 1, k) for k, c in enumerate(choice) if c and not searches[c - 1][k].done]
        todo = [(row, k) for row, k in open_ if searches[row][k].opened < _most(parts, k)]
        if not todo:
            break
        for row, k in todo:
            if run.stopped:
                return choice
            searches[row][k].work(max(1, _NODES // len(parts.units[k].groups)))
            costs[row + 1, k] = searches[row][k].bound
    return choice


def _most(parts: Series, k: int) -> int:
    width = len(parts.units[k].groups)
    return next(
        (nodes for groups, nodes in _MOST.items() if width <= groups), min(_MOST_OF_WIDE, _WORK_OF_WIDE // width)
    )


def _serial(p: Prepared, parts: Series) -> FloatArray:
    """Return the seconds of each unit on one device, joints left out, float64 (units,)."""
    found = []
    for unit in parts.units:
        ops = [v for half in unit.halves for v in half.ops[1:-1]]
        able = np.isfinite(p.group_time[p.types][:, list(unit.groups)]).all(axis=1)
        found.append(np.where(able, p.time[p.types][:, ops].sum(axis=1), np.inf).min())
    return np.array(found)


def _cheapest(p: Prepared, parts: Series, costs: FloatArray, server: IntArray) -> tuple[float, list[int]]:
    """Return the least time of the series in seconds, and the row of `costs` that each unit takes.

    Args:
        p: the problem.
        parts: its series of S units.
        costs: least seconds of each unit on one device, on several, and on several servers; two rows if servers do not
            matter; float64 (2 or 3, S).
        server: of each device.
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


def assemble(run: Run, p: Prepared, parts: Series, placements: list[tuple[int, ...] | None]) -> None:
    """Offer the plan that puts each unit as its placement says, moved to where the unit before has left off.

    A unit's placement holds on any devices as far from one another: servers change places so that its first joint is
    where the last one is. Groups outside the series go to a neighbour.

    Args:
        run, p: the solve.
        parts: the series.
        placements: for each unit a device for each of its groups, `None` if all are on one device.
    """
    where = [-1] * p.n_groups
    for unit, placement in zip(parts.units, placements, strict=True):
        first = unit.groups[0]
        if where[first] < 0:
            where[first] = placement[0] if placement else int(p.allowed[first].argmax())
        here = where[first]
        to = _swap(p, placement[0], here) if placement else {}
        for g, d in zip(unit.groups, placement or [here] * len(unit.groups), strict=True):
            if where[g] < 0:
                where[g] = to.get(d, d)
    group = p.group_of.tolist()
    edges = [(group[u], group[v]) for u, v in zip(*(ends.tolist() for ends in p.edges), strict=True)]
    while found := [(a, b) if where[a] < 0 else (b, a) for a, b in edges if (where[a] < 0) != (where[b] < 0)]:
        for g, neighbour in found:
            where[g] = where[neighbour]
    where = [max(d, 0) for d in where]
    need = np.bincount(where, p.group_memory, p.n_devices)
    if (need <= p.room).all() and p.allowed[np.arange(p.n_groups), where].all():
        offer_placement(run, p, where, ranked(p, mean_rank(p)), "series")


def _swap(p: Prepared, a: int, b: int) -> dict[int, int]:
    """Return a renaming of devices that takes a to b and keeps all distances, or none if it is not plain."""
    if a == b:
        return {}
    swap = {a: b, b: a}
    if p.twins[a] != p.twins[b]:
        near = p.used_levels[0]
        one = [a, *(d for d in range(p.n_devices) if p.level[a, d] == near)]
        two = [b, *(d for d in range(p.n_devices) if p.level[b, d] == near)]
        swap = dict(zip([*one, *two], [*two, *one], strict=False)) if len(one) == len(two) else {}
    new = [swap.get(d, d) for d in range(p.n_devices)]
    same = (p.level[new][:, new] == p.level).all() and (p.type_of[new] == p.type_of).all()
    return swap if same else {}
