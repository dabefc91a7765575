"""Compiled kernels say to the bit what numba's said before them, and what they say as plain Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances.generators.jobs import moldable
from gangplan.instances.schedule import ScheduleProblem
from gangplan.instances.workload import Workload
from gangplan.solvers import Run, native
from gangplan.solvers.schedule import (
    annealing,
    bounds,
    decode,
    kernels,
    local_search,
    price_kernels,
    prices,
    run_kernels,
    starts,
)
from gangplan.solvers.schedule.bounds import squashed
from gangplan.solvers.schedule.classic import PRICES, unit
from gangplan.solvers.schedule.decode import Decoder
from gangplan.solvers.schedule.enumeration import random_problem
from gangplan.solvers.schedule.local_search import _ListSearch
from gangplan.solvers.schedule.methods import METHODS
from gangplan.solvers.schedule.prepare import CHEAPEST, EARLIEST, LEFT_OUT, PreparedJobs, prepare
from gangplan.solvers.schedule.prices import BestPrices, ascend
from gangplan.solvers.schedule.starts import StartSearch
from gangplan.solvers.schedule.workload_bounds import mean_jct_bound

from ..uncompiled import uncompiled

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernels of commit 308a03ca made of `problems`."""
GOALS = ("weighted_completion", "mean_jct", "makespan", "blocked", "throughput")


def problems() -> Iterator[tuple[str, ScheduleProblem]]:
    """Yield problems by name: tiny ones with all that there is, and larger ones of every goal and capacity."""
    for seed in range(45):
        yield f"tiny {seed}", random_problem(seed, jobs=6)
    for i, goal in enumerate(GOALS):
        for capacity in ("pool", "nodes", "ramp"):
            for n in (12, 90):
                given = {"seed": i, "goal": goal, "capacity": capacity, "optional": 0.3, "rigid": 0.2}
                fraction = 2.0 if goal in ("blocked", "throughput") else 0.0
                problem = moldable(n, 2, 4, 2.0, grain=60.0 if n > 12 else 0.7, fraction=fraction, **given)
                yield f"{goal} {capacity} {n}", problem
    for capacity in ("pool", "nodes"):
        yield f"long {capacity}", moldable(1500, 6, 8, 2.0, seed=7, capacity=capacity)


def told(value: float, *parts: Any) -> str:
    """Return a value to the bit, and a digest of arrays."""
    text = json.dumps([np.asarray(part).tolist() for part in parts])
    return f"{float(value).hex()} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def listed(p: PreparedJobs) -> Iterator[str]:
    """Yield what lists become: as they come and shuffled, with every kind of wish, at several prices, in parts."""
    decoder, rng = Decoder(p), np.random.default_rng(0)
    orders = np.arange(p.n), rng.permutation(p.n), np.argsort(p.release + p.least(p.seconds), kind="stable")
    many = np.diff(p.first)
    some = np.where(many > 0, p.first[:-1] + rng.integers(9, size=p.n) % np.maximum(many, 1), LEFT_OUT)
    wishes = np.full(p.n, CHEAPEST), np.full(p.n, EARLIEST), some, np.where(rng.random(p.n) < 0.3, LEFT_OUT, some)
    for order in orders:
        for wish, price in zip(wishes, (0.0, *PRICES[2:9:3]), strict=True):
            cost = decoder.decode(order, wish, price * unit(p))
            made = decoder.made
            yield told(cost, made.option, made.start, made.finish, made.rows[:, : decoder.used])
    yield told(0.0, [*decoder.parts(orders[0], few=max(1, p.n // 7))])


def annealed(run: Run, p: PreparedJobs) -> Iterator[str]:
    """Yield what annealings make of a list schedule, hot and cold, one after the other; nothing if there is none."""
    METHODS["lists"].run(run, p)
    if run.plan is None:
        return
    search, rng = _ListSearch(run, p), np.random.default_rng(0)
    best, cost = search.restart(), run.objective or 1.0
    for heat in (1.0, 0.01, 0.0001):
        best = search.step(best, np.full(600, heat * cost), rng.random((600, 5)))
        walk = search._walk
        yield told(best, walk.order, walk.wish, walk.cost, walk.last, walk.best_order, walk.best_wish)
    yield told(search.restart())


def priced(run: Run, p: PreparedJobs) -> Iterator[str]:
    """Yield what the volume algorithm comes to, with the means, and what a search over starts makes of that."""
    seen = list[BestPrices]()
    end = float(p.release.max() + p.least(-p.seconds).sum() * -1.0) + 1.0
    found = ascend(run, p, end, seen.append, ((24, 30), (96, 20)))
    assert found is not None
    for best in (*seen, found):
        yield told(best.bound, best.grid.pi, best.share, best.mean)
    search = StartSearch(run, p, found)
    yield told(0.0, search._rest)
    for width, steps in ((3, p.n), (40, 100_000 // (p.n * len(p.gpus) + 1))):
        layer, budget = search._root(), 1.2 * abs(found.bound) + 10.0
        for _ in range(min(p.n, steps)):
            layer, lost = search._next(layer.labels, width, budget)
            order = np.lexsort((layer.option, layer.parent))
            labels = [column[order] for column in layer.labels[:-2]]
            held = [x[i, : layer.labels.running[i]] for x in layer.labels[-2:] for i in order.tolist()]
            yield told(lost, layer.parent[order], layer.option[order], *labels, np.concatenate([*held, []]))


def short(lines: Iterable[str]) -> str:
    """Return the number of lines, and a digest."""
    found = [*lines]
    return f"{len(found)} {hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]}"


def outcome(problem: ScheduleProblem) -> dict[str, str]:
    """Return what all kernels make of a problem."""
    run, p = Run(problem, time_limit=3600.0), prepare(problem)
    if not len(p.gpus):
        return {}
    made = {"listed": short(listed(p)), "annealed": short(annealed(run, p) if p.n * p.nodes < 5000 else ())}
    made["priced"] = short(priced(Run(problem, time_limit=3600.0), p) if p.n <= 100 else ())
    return made if p.makespan else {**made, "squashed": told(squashed(p))}


def traces() -> Iterator[str]:
    """Yield bounds on traces."""
    for n in (1, 2, 30, 1000, 20_000):
        rng = np.random.default_rng(n)
        submit, duration = np.floor(np.cumsum(rng.exponential(30.0, n))), np.ceil(rng.lognormal(3, 1.2, n))
        work = Workload(tuple(map(str, range(n))), submit, rng.choice([1, 1, 2, 4, 8], n), duration)
        yield told(mean_jct_bound(work, 8))


@pytest.mark.parametrize(("name", "problem"), [*problems()])
def test_outcomes_are_those_recorded(name: str, problem: ScheduleProblem) -> None:
    """Lists, annealing, prices, the search over starts and the bound of one machine are what numba's kernels gave."""
    assert outcome(problem) == json.loads(GOLDEN.read_text())[name]


def test_bounds_of_traces_are_those_recorded() -> None:
    """Bounds on traces of 1 to 20,000 jobs are what numba's kernels gave."""
    assert [*traces()] == json.loads(GOLDEN.read_text())["traces"]


@pytest.mark.parametrize("seed", [1, 6, 11])
def test_the_source_does_what_is_compiled(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run from the source as plain Python, all kernels say the same of a tiny problem of each kind of capacity."""
    problem, patched = random_problem(seed, jobs=6), set[str]()
    expected = outcome(problem)
    priced = native, kernels, price_kernels
    for compiled in (priced[:2], (*priced[:2], annealing), priced, (*priced, run_kernels)):
        source = uncompiled(*compiled)
        for user in (bounds, decode, local_search, prices, starts):
            for name, found in vars(compiled[-1]).items():
                if vars(user).get(name) is found and getattr(found, "__module__", "") == source.__name__:
                    monkeypatch.setattr(user, name, getattr(source, name))
                    patched.add(name)
    assert patched >= {"serial", "restart", "anneal", "cheapest", "answer", "at_least", "extend", "dominated", "flows"}
    assert outcome(problem) == expected


def test_arrays_of_another_shape_are_refused() -> None:
    """What does not fit the problem is neither read nor written beyond its end."""
    p = prepare(random_problem(0, jobs=6))
    data, room, none, one = kernels.Data(p), kernels.Room(p), np.zeros(0), np.zeros(0, np.int64)
    made, order, penalty = kernels.Schedule(data, *decode.made_of(p)), np.arange(p.n), np.zeros(len(p.gpus))
    walk, grid = annealing.ListWalk(data, order, order * 0 - 1, 1), price_kernels.Grid(np.zeros(4), 0.0, 1.0)
    wish, table = np.full(p.n, CHEAPEST), np.zeros((p.n, 9))
    two, begun, ends = np.zeros(2), np.zeros((2, 1), np.uint64), np.zeros((2, 1))
    labels = starts.Labels(begun, two, order[:2], two, two, two, order[:2], ends, np.zeros((2, 1), np.int32))
    for call in (
        lambda: kernels.Schedule(data, none, one, none, one[None]),
        lambda: annealing.ListWalk(data, one, one, 1),
        lambda: kernels.serial(data, room, made, one, wish, penalty, 0, p.n, 0.0, 0.0, 0),
        lambda: kernels.serial(data, room, made, order, wish, none, 0, p.n, 0.0, 0.0, 0),
        lambda: kernels.serial(data, room, made, order + 1, wish, penalty, 0, p.n, 0.0, 0.0, 0),
        lambda: kernels.serial(data, room, made, order, wish + 99, penalty, 0, p.n, 0.0, 0.0, 0),
        lambda: kernels.settle(room, np.array([[p.nodes, 1]]), 0.0, 1.0, 9.0),
        lambda: annealing.anneal(data, room, made, walk, penalty, 0.0, none, np.zeros((1, 5))),
        lambda: run_kernels.cheapest(grid, data, p.total, none, none),
        lambda: run_kernels.answer(grid, data, penalty, penalty, 0.1, none, penalty, np.zeros(p.n)),
        lambda: price_kernels.at_least(grid, data, p.price, p.price, np.arange(4.0), 1.0, 0, p.n, table),
        lambda: run_kernels.flows([0.0], [1.0], [1.0], [1], True),
        lambda: price_kernels.dominated(np.arange(2) + 1, labels, 1, 0, 2, 0, np.zeros(2, np.uint8)),
    ):
        with pytest.raises(ValueError, match=r"not|no job|other jobs|no node"):
            call()
