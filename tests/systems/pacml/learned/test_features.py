"""The rows of a decision are what a plain recount of blocks says, whatever the unit of time and the servers' names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from gangplan.instances import InstanceError, RampTopology
from gangplan.systems.pacml.jobs import Blocks
from gangplan.systems.pacml.learned import features as of
from gangplan.systems.pacml.learned.features import CONTEXT, LEVELS, MOST, WIDTH, DegreeDecision, Past
from gangplan.systems.pacml.learned.tables import DEGREES, NEAR, BlockTables, TypeTimes, tables
from gangplan.systems.pacml.learned.values import Scenario

PER_SHAPE = 24
"""Candidates of a shape that are looked at."""


class Moment(NamedTuple):
    """A random state: the past as (beta, type, gap), the job last; when servers are free, and the time."""

    past: list[tuple[float, int, float]]
    end: Any
    now: float


def moment(scenario: Scenario, seed: int, busy: float) -> Moment:
    """Draw a state in which about a share `busy` of the servers is held, some exactly as long as a level."""
    rng = np.random.default_rng(seed)
    gap = float(rng.uniform(0.3, 3.0)) * np.mean(scenario.times.sequential) / scenario.tables.n
    past = [
        (
            min(1.0, float(rng.uniform(0.5, 1.2))),
            int(rng.integers(len(scenario.types))),
            gap * rng.uniform(0.5, 1.5) * (i > 0),
        )
        for i in range(int(rng.integers(1, 6)))
    ]
    now = sum(gap for _, _, gap in past)
    turn = past_of(scenario, past).turn(scenario.tables.n)
    end = np.full(scenario.tables.n, -1.0)
    held = rng.random(scenario.tables.n) < busy
    left = np.where(rng.random(held.sum()) < 0.3, rng.choice(LEVELS[1:], held.sum()), rng.uniform(0, 30, held.sum()))
    end[held] = now + left * turn
    return Moment(past, end, now)


def past_of(scenario: Scenario, jobs: list[tuple[float, int, float]], unit: float = 1.0) -> Past:
    """Return the sums of the past, with times in another unit."""
    past, times = Past(), scenario.times
    for beta, kind, gap in jobs:
        past.add(beta, unit * times.sequential[kind], *times.efficiency[kind], unit * gap)
    return past


def decided(
    scenario: Scenario, at: Moment, *, unit: float = 1.0, table: BlockTables | None = None, choose: bool = True
) -> tuple[DegreeDecision, int]:
    """Return a decision with the rows of a state, and how many there are."""
    decision = DegreeDecision(scenario.tables if table is None else table, choose=choose)
    past, (beta, kind, _) = past_of(scenario, at.past, unit), at.past[-1]
    types = [replace(x, jct=x.jct * unit, sequential=x.sequential * unit) for x in scenario.types]
    times = scenario.times if unit == 1.0 else TypeTimes(types)
    turn = past.turn(decision.tables.n)
    k = decision.look(at.end * unit, at.now * unit, turn, times, kind, beta, past)
    decision.write(k)
    return decision, k


def written(*args: Any, **kwargs: Any) -> Any:
    """Return the rows of a state and their blocks."""
    decision, k = decided(*args, **kwargs)
    return np.array(decision.row)[:k], np.array(decision.choice)[:k]


def recount(scenario: Scenario, at: Moment) -> tuple[list[Any], list[int]]:
    """Return the same by lists and loops: take each candidate's servers, and count which blocks are then available."""
    blocks, jct = scenario.types[0].blocks, np.asarray(scenario.times.jct)[at.past[-1][1]]
    members = [blocks.members(b).tolist() for b in range(blocks.n_blocks)]
    n = blocks.n_servers
    turn = past_of(scenario, at.past).turn(n)
    betas, alone = ([x[0] for x in at.past], [scenario.times.sequential[x[1]] for x in at.past])
    beta, sequential = betas[-1], alone[-1]
    limit = beta * sequential
    fast = scenario.tables.fast

    def available(end: Any) -> Any:
        until = [max(0.0, *(end[s] - at.now for s in servers)) / turn for servers in members]
        count = np.zeros((2 * len(DEGREES), len(LEVELS)), dtype=int)
        for b, q in enumerate(blocks.degree.tolist()):
            soon = until[b] <= LEVELS + 1e-9
            count[q] += soon
            count[len(DEGREES) + q] += soon * fast[blocks.shape[b]]
        return count, [u <= 1e-9 for u in until]

    def row(count: Any, own: list[float]) -> Any:
        counts = [x for c in count.ravel().tolist() for x in (0.3 * np.log1p(c * 32 / n), float(c > 0))]
        needs = [(sum(1 / x <= step + 1e-9 for x in betas) + 0.5) / (len(betas) + 1) for step in (1, 2, 4, 6, 8, 16)]
        efficient = np.mean([scenario.times.efficiency[x[1]] for x in at.past], axis=0)
        load, busy = min(np.mean(alone) / (32 * turn), 3.0), float((at.end > at.now).mean())
        context = [*needs, np.mean(betas), 2 * np.std(betas), load, np.std(alone) / np.mean(alone), *efficient, busy]
        job = [beta, np.log1p(sequential / (32 * turn)), 0.3 * np.log1p(limit / turn)]
        return np.array([*counts, *context, np.log2(n / 32) / 4, *job, *own])

    count, free = available(at.end)
    could = [b for b in range(len(members)) if free[b] and jct[blocks.shape[b]] <= limit]
    for shape in set(blocks.shape[could].tolist()):
        of_shape = [b for b in could if blocks.shape[b] == shape]
        spoils = [sum(free[c] * len({*members[b]} & {*members[c]}) for c in range(len(members))) for b in of_shape]
        best = sorted(range(len(of_shape)), key=lambda i: (spoils[i], i))[:PER_SHAPE]
        could = [b for b in could if blocks.shape[b] != shape or b in {of_shape[i] for i in best}]
    found, taken, seen = [row(count, [0.0] * len(of.CANDIDATE))], [-1], set()
    for b in sorted(could):
        end, time, size = at.end.copy(), jct[blocks.shape[b]], len(members[b])
        end[members[b]] = at.now + time
        left, _ = available(end)
        key = int(blocks.shape[b]), left.tobytes()
        if key in seen:
            continue
        seen.add(key)
        area, wasted = time * size / (32 * turn), np.ceil(time / turn - 1e-9) - time / turn
        own = [1.0, np.log2(size) / 4, 0.3 * np.log1p(time / turn), area, time / limit, sequential / (time * size)]
        found.append(row(left, [*own, float(fast[blocks.shape[b]]), wasted]))
        taken.append(b)
    return found, taken


@pytest.mark.parametrize(("seed", "busy"), [(0, 0.0), (1, 0.3), (2, 0.5), (3, 0.7), (4, 0.8), (5, 0.2), (6, 1.0)])
@pytest.mark.parametrize("name", ["scenario", "small"])
def test_rows_are_a_recount(name: str, seed: int, busy: float, request: pytest.FixtureRequest) -> None:
    """Counts, classes, what is one row, what is left out beyond 24 of a shape, and every other feature."""
    scenario: Scenario = request.getfixturevalue(name)
    at = moment(scenario, seed, busy)
    found, blocks = written(scenario, at)
    expected, taken = recount(scenario, at)
    assert blocks.tolist() == taken
    assert found.shape[1] == WIDTH and np.allclose(found, expected, atol=2e-6)
    assert len(taken) > 1 or busy >= 0.7


def test_many_of_a_shape(scenario: Scenario) -> None:
    """Of the 32 free servers of an empty cluster 24 are looked at, and of those few differ in what they spoil."""
    at = Moment([(1.0, 0, 0.0)], np.full(32, -1.0), 0.0)
    _, blocks = written(scenario, at)
    alone = [b for b in blocks.tolist() if b >= 0 and scenario.tables.size[b] == 1]
    assert 1 <= len(alone) < PER_SHAPE
    assert len(blocks) < MOST


@pytest.mark.parametrize("busy", [0.0, 0.3, 0.6])
def test_degrees_by_published_first_fit(scenario: Scenario, busy: float) -> None:
    """Without a choice of the block there is a row for each degree that first fit places, and it holds what that says.

    A job that is started so holds the same servers as in the simulator, and takes as long but for its shape.
    """
    at = moment(scenario, 11, busy)
    beta, m, _ = at.past[-1]
    decision, k = decided(scenario, at, choose=False)
    rows, degrees = decision.row[:k], np.asarray(decision.choice)[:k]
    free, kind = at.end <= at.now, scenario.types[m]
    placed = [kind.published(q, free) for q in range(len(DEGREES))]
    limit = beta * kind.sequential
    assert degrees.tolist() == [-1, *(q for q, x in enumerate(placed) if x is not None and x.jct <= limit)]
    end = np.asarray(decision.at.ends)[0]
    for i, (row, q) in enumerate(zip(rows[1:], degrees[1:].tolist(), strict=True), 1):
        end[:], found = at.end, placed[q]
        assert found is not None
        until = decision.accept(i)
        assert np.flatnonzero(end != at.end).tolist() == found.servers.tolist()
        assert until - at.now == pytest.approx(found.jct, rel=0.1)
        assert row[-7] == pytest.approx(np.log2(DEGREES[q]) / 4)


@pytest.mark.parametrize("unit", [1000.0, 1e-3])
def test_units(scenario: Scenario, unit: float) -> None:
    """All times in another unit are the same rows."""
    for seed in range(4):
        at = moment(scenario, seed, 0.5)
        (rows, blocks), (other, there) = written(scenario, at), written(scenario, at, unit=unit)
        assert np.array_equal(blocks, there) and np.allclose(rows, other, atol=1e-6)


def relabelled(table: BlockTables, rng: np.random.Generator) -> tuple[BlockTables, Any, Any]:
    """Return the cluster with its servers named otherwise and the blocks of a degree in another order, and both."""
    name = rng.permutation(table.n)
    degree, shape, servers = (np.asarray(x) for x in (table.degree, table.shape, table.servers))
    order = np.lexsort([rng.random(len(degree)), degree])  # block i is now that which was order[i]
    servers = np.where(servers[order] >= 0, name[servers[order]], -1).astype(np.int32)
    return BlockTables(servers, degree[order], shape[order], np.asarray(table.fast), table.n), name, order


@pytest.mark.parametrize("seed", range(6))
def test_names_of_servers(scenario: Scenario, seed: int) -> None:
    """Servers named otherwise, and blocks in another order, are the same of rows, each for the same shape."""
    at = moment(scenario, seed, 0.5)  # of a shape there are then fewer than the 24 from which on the order could matter
    rows, blocks = written(scenario, at)
    table, name, order = relabelled(scenario.tables, np.random.default_rng(seed))
    end = np.empty_like(at.end)
    end[name] = at.end
    other, there = written(scenario, at._replace(end=end), table=table)
    assert sorted(map(bytes, rows)) == sorted(map(bytes, other))
    shapes = {x.tobytes(): scenario.tables.shape[b] for x, b in zip(rows[1:], blocks[1:], strict=True)}
    assert all(
        shapes[x.tobytes()] == scenario.tables.shape[order[b]] for x, b in zip(other[1:], there[1:], strict=True)
    )


def test_context() -> None:
    """The features that the page about the policy counts are those that are written."""
    assert len(CONTEXT) == 14 and 2 * 12 * 22 + 14 + len(of.JOB) + len(of.CANDIDATE) == WIDTH
    assert LEVELS[0] == 0 and (np.diff(LEVELS) > 0).all() and NEAR > 1


def test_other_degrees() -> None:
    """A cluster with other degrees is refused, and not read as if it had the policy's."""
    with pytest.raises(InstanceError, match="degrees"):
        tables(Blocks(RampTopology(), (1, 2, 4)))
