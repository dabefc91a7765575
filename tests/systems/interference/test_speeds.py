"""Speeds under a hidden truth: measured where a job is alone, the cost model where that says the same, and a twin."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from benchmarks.learned_speeds import slower_link
from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementPlan, PlacementProblem, SpeedModel
from gangplan.instances.placement.rate import rates
from gangplan.simulator.snapshots import Long, Snapshots
from gangplan.solvers import native
from gangplan.systems.interference import speeds
from gangplan.systems.interference.case import harmony_fleet
from gangplan.systems.interference.truths import (
    CONTENTION,
    LINKS,
    MEASURED,
    PAIRS,
    SPREADS,
    TESTBED,
    Hidden,
    HiddenTruth,
    contention,
    hidden,
    links,
)

from ...solvers.uncompiled import uncompiled

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernels of commit feefd4b9 made of `odd`."""
Placed = tuple[int, dict[int, tuple[int, int]]]
"""Of a job its type, and server -> workers, parameter servers."""


def snapshot(jobs: list[Placed]) -> Snapshots:
    """Return one snapshot of some jobs."""
    return Snapshots.of_rows(np.array([kind for kind, _ in jobs]), [rows for _, rows in jobs])


@pytest.mark.parametrize("seed", [0, 1])
def test_measured_speeds(seed: int) -> None:
    """Alone, two workers and two parameter servers take what was measured of them: apart, mixed and together."""
    truth = contention(harmony_fleet(6), seed)
    where = [{0: (2, 0), 3: (0, 2)}, {1: (1, 1), 2: (1, 1)}, {4: (2, 2)}]
    for kind, (place, rows) in product(range(8), enumerate(where)):
        (speed,) = truth.speeds(snapshot([(kind, rows)]))
        assert 2 / (speed * TESTBED.batches[kind]) == pytest.approx(MEASURED[place, kind], rel=1e-9)


def drawn(rng: np.random.Generator, servers: int, types: int, at_least: int = 0) -> list[Placed]:
    """Return up to eight jobs with up to three rows each, and so many workers at least in each."""
    jobs: list[Placed] = []
    for _ in range(rng.integers(1, 9)):
        spots = rng.choice(servers, rng.integers(1, 4), replace=False).tolist()
        serving = rng.random() < 0.5
        rows = {s: (int(rng.integers(at_least, 3)), int(rng.integers(0, 2)) * serving) for s in spots}
        rows[spots[0]] = (1 + rows[spots[0]][0], int(serving))
        jobs.append((int(rng.integers(types)), {s: x for s, x in rows.items() if x != (0, 0)}))
    return jobs


def slow(h: Hidden, jobs: list[Placed]) -> FloatArray:
    """Return the speeds by the formulas, with dictionaries and loops over pairs of jobs."""
    crossed = [links_of(h, rows) for _, rows in jobs]
    found = []
    for j, (kind, rows) in enumerate(jobs):
        others = [(i, k, r) for i, (k, r) in enumerate(jobs) if i != j]
        workers = sum(w for w, _ in rows.values())
        if h.mode == PAIRS:
            step = h.step[kind] * max(shared(h, jobs, j, server) for server in rows)
        elif h.mode == LINKS:
            mine = h.row[kind, spread(rows)]
            step = h.alone[mine]
            for i, k, r in others:
                step /= h.kept[mine, h.row[k, spread(r)]] if crossed[i] & crossed[j] else 1.0
        else:
            part = [1.0, 1.0]
            for server, counts in rows.items():
                for mine_part in (0, 1):
                    if counts[mine_part]:
                        more = sum(
                            h.host[mine_part * len(h.step) + kind, theirs * len(h.step) + k] * r[server][theirs]
                            for _, k, r in others
                            for theirs in (0, 1)
                            if server in r
                        )
                        part[mine_part] = max(part[mine_part], 1 + h.socket[server] * more)
            step = h.step[kind] * part[0] + part[1] * max((wait(h, jobs, crossed, j, x) for x in crossed[j]), default=0)
        found.append(workers / (step * h.batches[kind]))
    return np.array(found)


def links_of(h: Hidden, rows: dict[int, tuple[int, int]]) -> set[int]:
    """Return the links that a job crosses."""
    found: set[int] = set()
    for level in h.link:
        behind = {int(level[s]) for s in rows}
        if len(behind) < 2:
            return found
        found |= behind
    return found


def shared(h: Hidden, jobs: list[Placed], j: int, server: int) -> float:
    """Return by what a worker of job j is slowed down by each other task on its server."""
    mine, slower = h.row[jobs[j][0], 0], 1.0
    for i, (k, rows) in enumerate(jobs):
        if server in rows:
            slower /= h.kept[mine, h.row[k, 0]] ** (rows[server][0] - (i == j))
    return slower


def spread(rows: dict[int, tuple[int, int]]) -> int:
    """Return which column of a table of links a job is in."""
    return min(int(np.ceil(np.log2(len(rows)))), SPREADS - 1)


def wait(h: Hidden, jobs: list[Placed], crossed: list[set[int]], j: int, link: int) -> float:
    """Return the seconds of synchronisation of job j through one link."""
    kind, rows = jobs[j]
    level = next(level for level in h.link if link in level)
    w, p = (sum(x[part] for x in rows.values()) for part in (0, 1))
    here, beside = (sum(x[part] for s, x in rows.items() if level[s] == link) for part in (0, 1))
    times = (here * (p - beside) + beside * (w - here)) / p if p else 2 * (w - 1) / w
    once, twice = h.sync[kind]
    seconds = np.interp(times, [0, 1, 2], [0, once, twice]) if times <= 2 else twice * times / 2
    load = sum(h.duty[k] for i, (k, _) in enumerate(jobs) if i != j and link in crossed[i])
    return float(seconds * (1 + load) / h.quality[link])


@pytest.mark.parametrize("mode", [CONTENTION, PAIRS, LINKS])
def test_a_slow_twin(mode: int) -> None:
    """On random snapshots of two racks the compiled speeds are those of the formulas written out."""
    rng, fleet = np.random.default_rng(mode), harmony_fleet(8, rack=4)
    truth = contention(fleet, 5)
    if mode != CONTENTION:
        row = rng.integers(0, 20, (8, SPREADS))
        table, alone = rng.uniform(0.2, 1.0, (20, 20)), rng.uniform(0.1, 1.0, 20)
        truth = HiddenTruth(hidden(mode, links(fleet), TESTBED, row=row, kept=table, alone=alone))
    many = [drawn(rng, 8, 8, at_least=int(mode == PAIRS)) for _ in range(40)]
    together = truth.speeds(Snapshots.join([snapshot(jobs) for jobs in many]))
    assert np.allclose(together, np.concatenate([slow(truth.hidden, jobs) for jobs in many]), rtol=1e-9)


def test_the_cost_model_says_the_same() -> None:
    """With bytes for measurements, workers that add alike and equal links, steps are those of `rate.rates`."""
    rng, fleet = np.random.default_rng(3), Fleet.regular(2, 4, 4, cpu=64, memory=1e12, nic=1e9, uplink=2e9, link=1e18)
    host, gradient, duty = rng.uniform(0, 0.5, (8, 8)), rng.uniform(1e7, 1e9, 8), rng.uniform(0.1, 1.0, 8)
    drawn_host = np.zeros((16, 16))
    drawn_host[:8, :8] = host
    h = contention(fleet, 0).hidden
    quality = np.append(np.ones(8), [2.0, 2.0])
    sync = np.outer(gradient / 1e9, [1.0, 2.0])
    truth = HiddenTruth(h._replace(host=drawn_host, socket=np.ones(8), duty=duty, quality=quality, sync=sync))
    speeds = SpeedModel(TESTBED.names, ("A100",), h.step[None], gradient, np.zeros(8), host, np.zeros((8, 8)), duty)
    for _ in range(30):
        jobs = [(k, {s: (min(w, 1), p) for s, (w, p) in r.items()}) for k, r in drawn(rng, 8, 8)]
        jobs = jobs[:4]  # that the GPUs suffice
        gangs = tuple(
            GangJob(
                str(i),
                TESTBED.names[k],
                (sum(w for w, _ in r.values()),),
                collective="ps" if any(p for _, p in r.values()) else "ring",
                servers=sum(p for _, p in r.values()),
                server=Demand(gpu=0.0),
            )
            for i, (k, r) in enumerate(jobs)
        )
        problem = PlacementProblem(fleet, gangs, speeds)
        flat = [(i, s, w, p) for i, (_, r) in enumerate(jobs) for s, (w, p) in sorted(r.items())]
        job, node, workers, servers = (np.array(x) for x in zip(*flat, strict=True))
        used: dict[int, int] = {}
        grants = []
        for row, (_, s, w, _) in enumerate(flat):
            if w:
                grants.append((row, used.setdefault(s, 0)))
                used[s] += 1
        grant_row, grant_gpu = (np.array(x) for x in zip(*grants, strict=True))
        plan = PlacementPlan(tuple(g.name for g in gangs), job, node, workers, servers, grant_row, grant_gpu)
        step = rates(problem, plan).step
        found = truth.speeds(snapshot(jobs))
        gang = np.array([sum(w for w, _ in r.values()) for _, r in jobs])
        batches = TESTBED.batches[[k for k, _ in jobs]]
        assert np.allclose(gang / (found * batches), step, rtol=1e-9)


@pytest.mark.parametrize("mode", [CONTENTION, PAIRS, LINKS])
def test_without_interference(mode: int) -> None:
    """Where nobody slows anybody down, jobs together are as fast as each by itself."""
    rng, fleet = np.random.default_rng(7), harmony_fleet(8, rack=4)
    truth = contention(fleet, 5)
    if mode != CONTENTION:
        row, table = rng.integers(0, 20, (8, SPREADS)), rng.uniform(0.2, 0.9, (20, 20))
        truth = HiddenTruth(hidden(mode, links(fleet), TESTBED, row=row, kept=table, alone=rng.uniform(0.1, 1.0, 20)))
    jobs = drawn(rng, 8, 8, at_least=1)
    while len(jobs) < 4:
        jobs = drawn(rng, 8, 8, at_least=1)
    each = np.concatenate([truth.alone().speeds(snapshot([job])) for job in jobs])
    assert np.allclose(truth.alone().speeds(snapshot(jobs)), each)
    assert (truth.speeds(snapshot(jobs)) < each * 0.999).any()


def test_a_link_at_half_speed() -> None:
    """Who crosses the slower link waits twice as long there, and nobody else notices."""
    truth = contention(harmony_fleet(6), 1)
    jobs = snapshot([(1, {0: (1, 0), 1: (1, 0)}), (1, {3: (1, 0), 4: (1, 0)})])
    before, after = (truth.speeds(jobs), slower_link(truth, 0, 0.5).speeds(jobs))
    step = 2 / (before * TESTBED.batches[1])
    slower = 2 / (after * TESTBED.batches[1])
    assert slower[1] == pytest.approx(step[1])
    assert slower[0] - MEASURED[2, 1] == pytest.approx(2 * (step[0] - MEASURED[2, 1]))


def odd(seed: int) -> tuple[Hidden, Snapshots, FloatArray]:
    """Return a truth and snapshots of random sizes, with zeros and large numbers, and epochs that jobs have to do."""
    rng = np.random.default_rng(seed)
    m, k, q = (int(x) for x in rng.integers(1, 9, 3))
    group, level = np.arange(m), list[Long]()
    for wide in rng.integers(1, 4, rng.integers(1, 4)):
        level.append(group + (level[-1].max() + 1 if level else 0))
        group = group // wide
    link, extremes = np.array(level), [0.0, 1e-9, 1e9] if seed % 2 else []

    def numbers(*shape: int) -> FloatArray:
        return rng.random(shape) * rng.choice([*extremes, *9 * [1.0]], shape)

    h = Hidden(
        seed % 3, link, numbers(k), numbers(k, 2), numbers(k), numbers(2 * k, 2 * k), numbers(m), numbers(k),
        numbers(link.max() + 1), rng.integers(0, q, (k, SPREADS)), numbers(q, q), numbers(q),
    )  # fmt: skip
    parts = []
    for n in rng.integers(0, 7, 4).tolist():
        spots = [rng.permutation(m)[: rng.integers(1, m + 1)].tolist() for _ in range(n)]
        rows = [{s: rng.integers([1 - seed % 2, 0], 4).tolist() for s in spot} for spot in spots]
        parts.append(Snapshots.of_rows(rng.integers(0, k, n), rows))
    return h, Snapshots.join(parts), numbers(len(parts[0].kind))


def outcomes(seed: int, module: ModuleType = speeds) -> str:
    """Return a digest of what all jobs are like, and of how far those of the first snapshot get until some times."""
    h, now, left = odd(seed)
    first, _ = now.take(np.array([0]))
    found = [module.all_speeds(h, now), *(module.advance(h, first, left, 3.0, x) for x in (3.5, 1e3, 1e9, np.inf))]
    text = repr([np.array(x).tolist() for x in found])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("seed", range(60))
def test_outcomes_are_those_recorded(seed: int) -> None:
    """Speeds, and who gets how far, are to the bit what numba's kernels made of them."""
    assert outcomes(seed) == json.loads(GOLDEN.read_text())[seed]


@pytest.mark.parametrize("seed", range(12))
def test_the_source_does_what_is_compiled(seed: int) -> None:
    """Run from the source as plain Python the kernels say the same, where nothing is divided by zero."""
    assert outcomes(2 * seed, uncompiled(native, speeds)) == outcomes(2 * seed)


def test_arrays_of_another_shape_are_refused() -> None:
    """What does not fit is not read or written beyond its end, and neither is a job of no type or on no server."""
    h, now, left = odd(4)
    for name in ("step", "sync", "batches", "host", "socket", "duty", "quality", "row", "kept", "alone"):
        with pytest.raises(ValueError, match=r"mode|below"):
            speeds.all_speeds(h._replace(**{name: getattr(h, name)[:-1].copy()}), now)
    for change in ({"mode": 3}, {"row": h.row[:, :0].copy()}, {"link": h.link + 1}, {"row": h.row - len(h.alone)}):
        with pytest.raises(ValueError, match=r"mode|below|rows"):
            speeds.all_speeds(h._replace(**change), now)
    for name in ("first", "kind", "rows", "server", "workers", "ps"):
        x = getattr(now, name)
        for other in ([x[:-1].copy()] if name != "first" else []) + (
            [x - 9, x + 9] if name not in ("workers", "ps") else []
        ):
            with pytest.raises(ValueError, match="jobs"):
                speeds.all_speeds(h, replace(now, **{name: other}))
    with pytest.raises(ValueError, match="jobs"):
        speeds.advance(h, now.take(np.array([0]))[0], np.append(left, 1.0), 0.0, 1.0)
