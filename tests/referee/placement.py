"""The cost model of docs/placement.md in plain Python, and the least goal by looking at every placement.

It takes nothing from the package but the fields of a problem, so that it says what the page says.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import ceil, floor, inf, isfinite, prod
from typing import Any

SLACK = 1e-9
Place = tuple[tuple[int, int], ...]
"""Workers and servers of a job on each node."""
Cards = dict[int, list[tuple[int, int]]]
"""On each node the GPUs that are shared: (job, GPU) of each worker that needs a share."""


def optimum(problem: Any) -> float | None:
    """Return the least goal of any placement, `None` if there is none."""
    best: float | None = None
    for places in product(*(list(_places(problem, j)) for j in range(len(problem.jobs)))):
        if _fits(problem, places):
            for cards in _cards(problem, places):
                value = goal(problem, places, cards)
                best = value if best is None else min(best, value)
    return best


def placements(problem: Any) -> int:
    """Return how many placements are looked at, GPUs that are shared apart."""
    return prod(sum(1 for _ in _places(problem, j)) for j in range(len(problem.jobs)))


def noise(problem: Any) -> float:
    """Return what rounding may be worth: the goal is a sum of weights times differences from 1."""
    return 1e-15 * float(sum(job.weight + (job.value or 0.0) for job in problem.jobs))


def same(problem: Any, a: Any, b: Any) -> bool:
    """Return whether two goals agree."""
    return bool(abs(a - b) <= SLACK * abs(b) + noise(problem))


def below(problem: Any, a: Any, b: Any, share: float) -> bool:
    """Return whether one goal is less than another by more than a share of it."""
    return bool(a < b - share * abs(b) - noise(problem))


def value(problem: Any, plan: Any) -> float | None:
    """Return the goal of a plan, `None` if it breaks a rule."""
    jobs, fleet = problem.jobs, problem.fleet
    rows = list(zip(*(x.tolist() for x in (plan.job, plan.node, plan.workers, plan.servers)), strict=True))
    if len({(j, n) for j, n, _, _ in rows}) < len(rows) or any(
        n >= len(fleet.names) or w + p == 0 for _, n, w, p in rows
    ):
        return None
    table = [[(0, 0)] * len(fleet.names) for _ in jobs]
    for j, n, w, p in rows:
        table[j][n] = (w, p)
    places = tuple(map(tuple, table))
    cards = _granted(problem, rows, zip(plan.grant_row.tolist(), plan.grant_gpu.tolist(), strict=True))
    fine = cards is not None and all(places[j] in list(_places(problem, j)) for j in range(len(jobs)))
    return goal(problem, places, cards) if fine and _fits(problem, places) and cards is not None else None


def _granted(problem: Any, rows: list[Any], grants: Any) -> Cards | None:
    """Return the shared GPUs of each node, numbered after those that are held whole, `None` if grants do not fit."""
    held: dict[tuple[int, int], list[tuple[int, float]]] = {}
    count = [0] * len(rows)
    for r, card in grants:
        j, n, _, _ = rows[r]
        need = problem.jobs[j].worker.gpu
        if card >= problem.fleet.gpus[n] or not need:
            return None
        held.setdefault((n, card), []).append((j, min(1.0, need)))
        count[r] += 1
    due = [w * (int(g) if (g := problem.jobs[j].worker.gpu) >= 1 else g > 0) for j, _, w, _ in rows]
    if count != due or any(sum(x for _, x in holders) > 1 + SLACK for holders in held.values()):
        return None
    cards: Cards = {n: [] for n in range(len(problem.fleet.names))}
    for n in cards:
        here = sorted((card, holders) for (node, card), holders in held.items() if node == n)
        whole = sum(holders[0][1] == 1.0 for _, holders in here)
        shared = [holders for _, holders in here if holders[0][1] < 1.0]
        cards[n] = [(j, whole + i) for i, holders in enumerate(shared) for j, _ in holders]
    return cards


def goal(problem: Any, places: tuple[Place, ...], cards: Cards) -> float:
    """Return the goal of a placement that fits."""
    total = 0.0
    slow = slowdowns(problem, places, cards)
    index = {job.name: j for j, job in enumerate(problem.jobs)}
    for j, job in enumerate(problem.jobs):
        if not _any(places[j]):
            total += job.value
        elif problem.goal == "slowdown":
            total += job.weight * slow[j]
        elif problem.goal == "throughput":
            total += job.weight * max(0.0, 1 - 1 / slow[j])
        elif problem.goal == "communication":
            total += job.weight * _communication(problem, j, places[j])
    for run in problem.running:
        total += run.migration * (places[index[run.job]] != _rows(problem, run))
    return total + (_fragments(problem, places, cards) if problem.goal == "fragmentation" else 0.0)


def slowdowns(problem: Any, places: tuple[Place, ...], cards: Cards) -> list[float]:
    """Return the slowdown of each job; infinite if it is left out."""
    speeds, found = problem.speeds, []
    for j, job in enumerate(problem.jobs):
        if not _any(places[j]):
            found.append(inf)
            continue
        k = speeds.models.index(job.model)
        compute = max(_compute(problem, places, cards, j, n) for n, (w, _) in enumerate(places[j]) if w)
        step = max(compute, (1 - speeds.overlap[k]) * compute + _sync(problem, places, j))
        found.append(float(_best(problem, job, k) * step / sum(w for w, _ in places[j])))
    return found


def _any(place: Place) -> bool:
    return any(w or p for w, p in place)


def _seconds(problem: Any, job: Any, n: int) -> float:
    fleet, speeds = problem.fleet, problem.speeds
    if not fleet.gpus[n]:
        return inf
    kind = speeds.gpu_types.index(fleet.gpu_types[fleet.gpu_type[n]])
    return float(speeds.compute[kind][speeds.models.index(job.model)])


def _compute(problem: Any, places: tuple[Place, ...], cards: Cards, j: int, n: int) -> float:
    speeds, more = problem.speeds, 0.0
    k = speeds.models.index(problem.jobs[j].model)
    mine = {card for i, card in cards[n] if i == j}
    for i, other in enumerate(problem.jobs):
        if i != j and places[i][n][0]:
            met = any(card in mine for other_job, card in cards[n] if other_job == i)
            more += float((speeds.gpu if met else speeds.host)[k][speeds.models.index(other.model)])
    return _seconds(problem, problem.jobs[j], n) * (1 + more)


def _member(problem: Any, level: int, n: int) -> int:
    """Return the member of a level, from 1 for nodes, that node n is in."""
    return n if level == 1 else int(problem.fleet.topology.group[level - 2][n])


def _used(problem: Any, level: int, place: Place) -> set[int]:
    return {_member(problem, level, n) for n, (w, p) in enumerate(place) if w or p}


def _share(problem: Any, places: tuple[Place, ...], j: int, level: int, member: int) -> float:
    speeds, load = problem.speeds, 1.0
    for i, job in enumerate(problem.jobs):
        used = _used(problem, level, places[i])
        if i != j and len(used) > 1 and member in used:
            load += float(speeds.duty[speeds.models.index(job.model)])
    return float(problem.fleet.topology.levels[level - 1].bandwidth) / load


def _r(n: int) -> float:
    return 2 * (n - 1) / n


def _sync(problem: Any, places: tuple[Place, ...], j: int) -> float:
    job, place, fleet = problem.jobs[j], places[j], problem.fleet
    g = float(problem.speeds.gradient[problem.speeds.models.index(job.model)])
    levels = range(1, len(fleet.topology.levels) + 1)
    crossed = [level for level in levels if len(_used(problem, level, place)) > 1]
    total = sum(w for w, _ in place)
    if job.collective == "ps":
        times = [w * p * g / job.servers / float(fleet.link[n]) for n, (w, p) in enumerate(place)]
        for level in crossed:
            for u in _used(problem, level, place):
                inside = [(w, p) for n, (w, p) in enumerate(place) if _member(problem, level, n) == u]
                w, p = sum(x for x, _ in inside), sum(x for _, x in inside)
                bytes_ = (w * (job.servers - p) + p * (total - w)) * g / job.servers
                times.append(bytes_ / _share(problem, places, j, level, u))
        return max(times)
    b = {level: min(_share(problem, places, j, level, u) for u in _used(problem, level, place)) for level in crossed}
    own = min((float(fleet.link[n]) for n, (w, _) in enumerate(place) if w > 1), default=inf)
    if job.collective == "ring":
        return _r(total) * g / min([own, *b.values()])
    if job.collective == "tree":
        return 2 * g / min([own, *b.values()]) if total > 1 else 0.0
    seconds = _r(max(w for w, _ in place)) * g / own
    for level in crossed:
        above: dict[int, set[int]] = {}
        for n, (w, _) in enumerate(place):
            if w:
                above.setdefault(_member(problem, level + 1, n), set()).add(_member(problem, level, n))
        seconds += _r(max(map(len, above.values()))) * g / min(b[i] for i in crossed if i <= level)
    return seconds


def _best(problem: Any, job: Any, k: int) -> float:
    fleet, speeds = problem.fleet, problem.speeds
    g, o = float(speeds.gradient[k]), float(speeds.overlap[k])
    c = min(_seconds(problem, job, n) for n in range(len(fleet.names)))
    link, nic = max(map(float, fleet.link)), float(fleet.topology.levels[0].bandwidth)
    rates = []
    for d in job.workers:
        room = floor(max(fleet.gpus) / job.worker.gpu) if job.worker.gpu else d
        room = max(1, min(room, job.most_per_node or room))
        nodes = ceil(d / room)
        here = ceil(d / nodes)
        if job.collective == "ps":
            s = max(2 * d / nodes * (1 - 1 / nodes) * g / nic, g * d / nodes**2 / link)
        elif job.collective == "hierarchical":
            s = _r(here) * g / link + _r(nodes) * g / nic
        else:
            slowest = min(link if here > 1 else inf, nic if nodes > 1 else inf)
            s = (_r(d) if job.collective == "ring" else 2.0 * (d > 1)) * g / slowest
        rates.append(d / max(c, (1 - o) * c + s))
    return max(rates)


def _communication(problem: Any, j: int, place: Place) -> float:
    fleet, each = problem.fleet, ceil(problem.jobs[j].worker.gpu)
    gpus = [n for n, (w, _) in enumerate(place) for _ in range(w * each)]
    total = 0.0
    for a, b in combinations(gpus, 2):
        bandwidth, level = float(fleet.link[a]) if a == b else inf, 1
        while a != b:
            bandwidth = min(bandwidth, float(fleet.topology.levels[level - 1].bandwidth))
            level += 1
            if level > len(fleet.topology.levels) or _member(problem, level, a) == _member(problem, level, b):
                break
        total += 1e9 / bandwidth
    return total


def _fragments(problem: Any, places: tuple[Place, ...], cards: Cards) -> float:
    fleet, total = problem.fleet, 0.0
    mix = [(x.task.demand, x.task.gpu_types, x.share) for x in problem.mix]
    if not mix:
        for job in problem.jobs:
            able = [
                kind
                for kind in fleet.gpu_types
                if isfinite(problem.speeds.compute[problem.speeds.gpu_types.index(kind)][_model(problem, job)])
            ]
            mix += [(job.worker, able, job.workers[0])] if able else []
    whole = sum(share for _, _, share in mix)
    for n in range(len(fleet.names)):
        if not fleet.usable[n]:
            continue
        taken = sum(places[j][n][0] * int(job.worker.gpu) for j, job in enumerate(problem.jobs) if job.worker.gpu >= 1)
        free = [1.0] * int(fleet.gpus[n])
        for card in range(taken):
            free[card] = 0.0
        for j, card in cards[n]:
            free[card] -= problem.jobs[j].worker.gpu
        left = {field: float(getattr(fleet, field)[n]) - _need(problem, places, n, field) for field in FIELDS}
        for demand, types, share in mix:
            if not demand.gpu:
                continue
            enough = [x for x in free if x >= min(1.0, demand.gpu) - SLACK]
            fits = len(enough) >= max(1, demand.gpu) and (not types or fleet.gpu_types[fleet.gpu_type[n]] in types)
            fits &= all(getattr(demand, x) <= left[x] + SLACK * float(getattr(fleet, x)[n]) for x in FIELDS)
            total += share / whole * (sum(free) - (sum(enough) if fits else 0.0))
    return total


FIELDS = ("cpu", "memory", "nic")


def _model(problem: Any, job: Any) -> int:
    return int(problem.speeds.models.index(job.model))


def _need(problem: Any, places: tuple[Place, ...], n: int, field: str) -> float:
    return float(
        sum(
            places[j][n][0] * getattr(job.worker, field) + places[j][n][1] * getattr(job.server, field)
            for j, job in enumerate(problem.jobs)
        )
    )


def _rows(problem: Any, run: Any) -> Place:
    rows = [(0, 0)] * len(problem.fleet.names)
    for name, w, p in zip(run.nodes, run.workers, run.servers, strict=True):
        rows[problem.fleet.names.index(name)] = (w, p)
    return tuple(rows)


def _split(total: int, nodes: int) -> Iterator[tuple[int, ...]]:
    yield from (x for x in product(range(total + 1), repeat=nodes) if sum(x) == total)


def _places(problem: Any, j: int) -> Iterator[Place]:
    job, fleet = problem.jobs[j], problem.fleet
    nodes = len(fleet.names)
    pinned = [_rows(problem, run) for run in problem.running if run.job == job.name and not run.movable]
    every = (
        tuple(zip(workers, servers, strict=True))
        for degree in job.workers
        for workers in _split(degree, nodes)
        for servers in _split(job.servers, nodes)
    )
    for place in pinned or [*every, *([((0, 0),) * nodes] if job.value is not None else [])]:
        if all(_able(problem, job, n, w) for n, (w, p) in enumerate(place) if w or p):
            yield place


def _able(problem: Any, job: Any, n: int, w: int) -> bool:
    fleet = problem.fleet
    return bool(
        fleet.usable[n]
        and (not w or isfinite(_seconds(problem, job, n)))
        and w <= (job.most_per_node or w)
        and all(fleet.labelled[fleet.labels.index(label)][n] for label in job.requires)
    )


def _fits(problem: Any, places: tuple[Place, ...]) -> bool:
    fleet = problem.fleet
    for n in range(len(fleet.names)):
        here = [job for j, job in enumerate(problem.jobs) if places[j][n] != (0, 0)]
        names = {job.name for job in here}
        if any((job.whole_nodes and len(here) > 1) or names & set(job.apart) for job in here):
            return False
        if any(_need(problem, places, n, x) > float(getattr(fleet, x)[n]) * (1 + SLACK) for x in FIELDS):
            return False
    return True


def _cards(problem: Any, places: tuple[Place, ...]) -> Iterator[Cards]:
    choices = []
    for n, gpus in enumerate(map(int, problem.fleet.gpus)):
        taken = sum(places[j][n][0] * int(x.worker.gpu) for j, x in enumerate(problem.jobs) if x.worker.gpu >= 1)
        tasks = [j for j, x in enumerate(problem.jobs) if 0 < x.worker.gpu < 1 for _ in range(places[j][n][0])]
        if taken > gpus:
            return
        found = []
        for chosen in product(range(taken, gpus), repeat=len(tasks)):
            held = list(zip(tasks, chosen, strict=True))
            used = [sum(problem.jobs[j].worker.gpu for j, card in held if card == c) for c in range(gpus)]
            if all(x <= 1 + SLACK for x in used):
                found.append(held)
        choices.append(found)
    for chosen_cards in product(*choices):
        yield dict(enumerate(chosen_cards))
