"""Placement in CP-SAT as a first formulation has it: workers per job and node, a literal for each pair on a node."""

from __future__ import annotations

from itertools import combinations
from math import ceil, floor, isfinite
from typing import Any

from ortools.sat.python import cp_model

from gangplan.instances.placement import PlacementPlan
from gangplan.instances.placement.rate import ring_bytes
from gangplan.solvers import Run

from .engines import run_cpsat
from .gangs import Gangs

UNITS = 1 << 24
"""What a slowdown of 1 becomes in integers; rounding down keeps the bound a bound."""
FINE = 1 << 20
"""Units of what a node has."""
SHARES = 1 << 16
"""What all of the compute becomes where a share of it hides synchronisation."""
LONGEST = 1 << 44


def placement_cpsat(run: Run) -> None:  # noqa: PLR0912, one model read from top to bottom
    """Minimise the weighted slowdowns: w[j, n] workers, p[j, n] servers, y[i, j, n] both are there."""
    gangs = Gangs.of(run.problem)
    model = cp_model.CpModel()
    jobs, nodes = gangs.jobs, gangs.nodes
    w = [[model.new_int_var(0, gangs.most[j][n], "") for n in nodes] for j in jobs]
    p = [[model.new_int_var(0, gangs.servers[j] if gangs.open[j][n] else 0, "") for n in nodes] for j in jobs]
    busy, here = ([[model.new_bool_var("") for _ in nodes] for _ in jobs] for _ in range(2))
    for j in jobs:
        model.add(sum(w[j]) == gangs.workers[j])
        model.add(sum(p[j]) == gangs.servers[j])
        for n in nodes:
            for count, literal in ((w[j][n], busy[j][n]), (w[j][n] + p[j][n], here[j][n])):
                model.add(count >= 1).only_enforce_if(literal)
                model.add(count == 0).only_enforce_if(~literal)
    for has, worker, server in gangs.needs:
        for n in nodes:
            unit = max(has[n], *worker, *server) / FINE
            if any(worker) or any(server):
                used = sum(floor(worker[j] / unit) * w[j][n] + floor(server[j] / unit) * p[j][n] for j in jobs)
                model.add(used <= floor(has[n] / unit))
    for i, j in gangs.apart:
        for n in nodes:
            model.add_bool_or(~here[i][n], ~here[j][n])
    compute, sync = ([model.new_int_var(0, LONGEST, "") for _ in jobs] for _ in range(2))
    ticks = [UNITS * price for price in gangs.price]
    slower: list[list[list[tuple[int, Any]]]] = [[[] for _ in nodes] for _ in jobs]
    for i, j in combinations(jobs, 2):
        for n in nodes:
            y = model.new_bool_var("")
            model.add_bool_or(~busy[i][n], ~busy[j][n], y)
            model.add_implication(y, busy[i][n])
            model.add_implication(y, busy[j][n])
            slower[i][n].append((j, y))
            slower[j][n].append((i, y))
    for j in jobs:
        for n in nodes:
            alone = gangs.seconds[j][n] * ticks[j]
            if isfinite(alone):
                more = sum(floor(alone * gangs.added[j][i]) * y for i, y in slower[j][n])
                model.add(compute[j] >= floor(alone) + more).only_enforce_if(busy[j][n])
    _links(model, gangs, w, p, here, ticks, sync)
    cost = [model.new_int_var(0, LONGEST, "") for _ in jobs]
    for j in jobs:
        hidden = ceil(gangs.overlap[j] * SHARES)
        model.add(cost[j] >= compute[j])
        model.add(SHARES * cost[j] >= (SHARES - hidden) * compute[j] + SHARES * sync[j])
    model.minimize(sum(cost))

    def plan(solution: Any) -> PlacementPlan:
        return gangs.plan(*([[solution.value(x) for x in row] for row in counts] for counts in (w, p)))

    run_cpsat(run, model, UNITS, plan)


def _links(model: Any, gangs: Gangs, w: Any, p: Any, here: Any, ticks: list[float], sync: list[Any]) -> None:
    """Count the gangs that cross each link, and have every gang send what its collective asks for."""
    jobs, levels = gangs.jobs, range(len(gangs.bandwidth))
    inside: list[list[dict[int, Any]]] = [[{} for _ in jobs] for _ in levels]
    cross: list[list[dict[int, Any]]] = [[{} for _ in jobs] for _ in levels]
    for level in levels:
        for j in jobs:
            wide = model.new_bool_var("")
            for a, there in gangs.within(level, j).items():
                inside[level][j][a], cross[level][j][a] = model.new_bool_var(""), model.new_bool_var("")
                model.add_max_equality(inside[level][j][a], [here[j][n] for n in there])
                model.add_bool_or(~wide, ~inside[level][j][a], cross[level][j][a])
                model.add_implication(cross[level][j][a], wide)
                model.add_implication(cross[level][j][a], inside[level][j][a])
            model.add(sum(inside[level][j].values()) >= 2).only_enforce_if(wide)
            model.add(sum(inside[level][j].values()) <= 1).only_enforce_if(~wide)
    gangs_on = [{a: sum(c[a] for c in cross[level] if a in c) for a in set(gangs.member[level])} for level in levels]
    for j in jobs:
        size, members = gangs.size[j] * ticks[j], gangs.workers[j]
        if gangs.servers[j]:
            _servers(model, gangs, j, w, p, (cross, gangs_on), size, sync[j])
            continue
        if gangs.collective[j] == "hierarchical":
            _phases(model, gangs, j, w, (inside, cross, gangs_on), size, sync[j])
            continue
        moved = ring_bytes(members, size) if gangs.collective[j] == "ring" else 2 * size * (members > 1)
        for n in gangs.nodes:
            several = model.new_bool_var("")
            model.add(w[j][n] <= 1).only_enforce_if(~several)
            model.add(sync[j] >= floor(moved / gangs.link[n])).only_enforce_if(several)
        for level in levels:
            each = floor(moved / gangs.bandwidth[level])
            for a, crosses in cross[level][j].items():
                model.add(sync[j] >= each * gangs_on[level][a]).only_enforce_if(crosses)


def _phases(model: Any, gangs: Gangs, j: int, w: Any, network: Any, size: float, sync: Any) -> None:
    """Hierarchical: a ring in each node, one among a rack's nodes, one among racks, by tables of 2 (n - 1) / n."""
    inside, cross, gangs_on = network
    most, phases = gangs.workers[j], []
    rooms = sorted({gangs.link[n] for n in gangs.nodes})
    members = model.new_int_var(0, most, "")
    model.add_max_equality(members, w[j])
    phases.append(model.new_int_var(0, LONGEST, ""))
    for speed in rooms:
        several = model.new_bool_var("")
        for n in gangs.nodes:
            if gangs.link[n] == speed:
                model.add(w[j][n] <= 1).only_enforce_if(~several)
        bytes_sent = model.new_int_var(0, LONGEST, "")
        model.add_element(members, [floor(ring_bytes(max(n, 1), size) / speed) for n in range(most + 1)], bytes_sent)
        model.add(phases[0] >= bytes_sent).only_enforce_if(several)
    for level in range(len(gangs.bandwidth)):
        above = dict(zip(gangs.member[level], gangs.member[level + 1], strict=True))
        groups: dict[int, list[Any]] = {}
        for a, x in inside[level][j].items():
            groups.setdefault(above[a], []).append(x)
        wide = max(map(len, groups.values()), default=0)
        members = model.new_int_var(0, wide, "")
        model.add_max_equality(members, [sum(xs) for xs in groups.values()])
        phases.append(model.new_int_var(0, LONGEST, ""))
        for lower in range(level + 1):
            sent = [floor(ring_bytes(max(n, 1), size) / gangs.bandwidth[lower]) for n in range(wide + 1)]
            each = model.new_int_var(0, max(sent), "")
            model.add_element(members, sent, each)
            busiest = model.new_int_var(0, len(gangs.jobs), "")
            for a, crosses in cross[lower][j].items():
                model.add(busiest >= gangs_on[lower][a]).only_enforce_if(crosses)
            seconds = model.new_int_var(0, max(sent) * len(gangs.jobs), "")
            model.add_multiplication_equality(seconds, [each, busiest])
            model.add(phases[-1] >= seconds)
    model.add(sync >= sum(phases))


def _servers(model: Any, gangs: Gangs, j: int, w: Any, p: Any, network: Any, size: float, sync: Any) -> None:
    """Parameter servers: w (P - p) + p (W - w) gradients, over P, through the link of each member that is crossed."""
    cross, gangs_on = network
    workers, servers = gangs.workers[j], gangs.servers[j]
    for n in gangs.nodes:
        both = model.new_int_var(0, workers * servers, "")
        model.add_multiplication_equality(both, [w[j][n], p[j][n]])
        model.add(sync >= floor(size / servers / gangs.link[n]) * both)
    for level, bandwidth in enumerate(gangs.bandwidth):
        for a, there in gangs.within(level, j).items():
            here, beside = (model.new_int_var(0, most, "") for most in (workers, servers))
            model.add(here == sum(w[j][n] for n in there))
            model.add(beside == sum(p[j][n] for n in there))
            both, busy = (model.new_int_var(0, workers * servers * most, "") for most in (1, len(gangs.jobs)))
            model.add_multiplication_equality(both, [here, beside])
            through = model.new_int_var(0, workers * servers, "")
            model.add(through == servers * here + workers * beside - 2 * both)
            load = model.new_int_var(0, len(gangs.jobs), "")
            model.add(load == gangs_on[level][a])
            model.add_multiplication_equality(busy, [through, load])
            model.add(sync >= floor(size / servers / bandwidth) * busy).only_enforce_if(cross[level][j][a])
