"""The cheapest set of gangs to leave: hand-sized cases, and enumeration."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from ortools.sat.python import cp_model

from gangplan.solvers.placement import eviction
from gangplan.solvers.placement.eviction import Eviction, Occupancy, cheapest_eviction


def occupancy(
    free: list[int],
    parts: list[tuple[int, int, int]],
    cost: list[float],
    domain: list[int] | None = None,
    size: int = 4,
) -> Occupancy:
    """Return nodes of `size` GPUs: (gang, node, GPUs) a part."""
    job, node, used = np.array(parts, np.int64).reshape(-1, 3).T
    m = len(free)
    where = np.zeros(m, np.int64) if domain is None else np.array(domain, np.int64)
    return Occupancy(
        np.array([free], np.int64),
        np.full(m, size, np.int64),
        where,
        job,
        node,
        used[None],
        np.zeros(len(job), bool),
        np.array(cost),
    )


def find(of: Occupancy, workers: int, gpus: int) -> Eviction | None:
    """Return the cheapest eviction for workers of so many GPUs each."""
    most = of.most // gpus
    of = replace(of, most=most)
    return cheapest_eviction(of, np.array([gpus]), workers, time_limit=10.0)


def test_eleven_full_nodes_and_a_gang_of_eleven() -> None:
    """Eleven nodes of four GPUs full of single-GPU jobs, a gang of 11 x 4: all 44 leave, whatever each costs."""
    parts = [(4 * n + i, n, 1) for n in range(11) for i in range(4)]
    cost = [float(1 + i) for i in range(44)]
    found = find(occupancy([0] * 11, parts, cost), 11, 4)
    assert found is not None and found.proved
    assert found.jobs == tuple(range(44)) and found.cost == sum(cost)


def test_the_wrong_nodes_are_not_freed() -> None:
    """Two cheap jobs on different nodes free two GPUs but no pair; one dearer job frees a pair on its node.

    Node 0 holds jobs of 1 and 3 GPUs, node 1 the same, costs 1 and 9; node 2 a job of 2 GPUs, cost 3, and one of 2
    that may not leave. A worker of two GPUs: jobs 0 and 1 free one GPU each on different nodes, which is no room, so
    that job 4 leaves.
    """
    parts = [(0, 0, 1), (1, 1, 1), (2, 0, 3), (3, 1, 3), (4, 2, 2), (5, 2, 2)]
    found = find(occupancy([0, 0, 0], parts, [1.0, 1.0, 9.0, 9.0, 3.0, np.inf]), 1, 2)
    assert found is not None and found.proved and found.jobs == (4,) and found.cost == 3.0


def test_all_in_one_domain() -> None:
    """Scattered GPUs of two racks do not help a gang that stays in one: the dearer pair of one rack leaves."""
    parts = [(0, 0, 4), (1, 1, 4), (2, 2, 4), (3, 3, 4)]
    cost = [1.0, 8.0, 2.0, 6.0]  # rack 0: 1 + 8, rack 1: 2 + 6; over both racks 1 + 2
    apart = find(occupancy([0] * 4, parts, cost, [0, 0, 1, 1]), 2, 4)
    anywhere = find(occupancy([0] * 4, parts, cost), 2, 4)
    assert apart is not None and anywhere is not None
    assert (apart.jobs, apart.cost, apart.proved) == ((2, 3), 8.0, True)
    assert (anywhere.jobs, anywhere.cost, anywhere.proved) == ((0, 2), 3.0, True)


def test_whoever_blocks_a_node() -> None:
    """A node half empty is of no use beside a part that blocks it: the gang there leaves, though it needs no room."""
    of = occupancy([2, 0], [(0, 0, 2), (1, 1, 4)], [3.0, 5.0])
    assert find(of, 1, 2) == Eviction((), 0.0, 0.0)
    blocked = find(replace(of, blocks=np.array([True, False])), 1, 2)
    assert blocked is not None and (blocked.jobs, blocked.proved) == ((0,), True)


def test_nobody_or_never() -> None:
    """A gang that has room needs nobody to leave; one that is larger than the cluster never fits."""
    of = occupancy([4, 0], [(0, 1, 4)], [1.0])
    assert find(of, 1, 4) == Eviction((), 0.0, 0.0)
    assert find(of, 3, 4) is None
    assert find(occupancy([0, 0], [(0, 0, 4), (1, 1, 4)], [np.inf, 1.0]), 2, 4) is None


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("way", ["whole", "fractions first"])
def test_enumeration(seed: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On small clusters with two resources it costs what the best of all sets costs, and the bound is that.

    Whether parts leave whole in the first bound or not.
    """
    if way == "fractions first":
        monkeypatch.setattr(eviction, "FEW", 0)
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 6)), int(rng.integers(2, 9))
    size = np.array([8, 20])
    room, parts = np.repeat(size[:, None], m, axis=1), []
    for job in range(n):
        for node in rng.choice(m, int(rng.integers(1, min(3, m) + 1)), replace=False).tolist():
            used = np.minimum(rng.integers(1, [5, 9]), room[:, node])
            if used[0]:
                parts.append((job, node, *used.tolist()))
                room[:, node] -= used
    job, node, *used = (np.array(x, np.int64) for x in zip(*parts, strict=True))
    cost = rng.integers(1, 12, n) * rng.choice([1.0, 0.37], n)
    cost[rng.random(n) < 0.15] = np.inf
    need, workers = np.array([int(rng.integers(1, 5)), int(rng.integers(0, 6))]), int(rng.integers(1, 6))
    domain = rng.integers(0, 2, m)
    blocks = rng.random(len(job)) < 0.2
    of = Occupancy(room, np.full(m, 8 // need[0]), domain, job, node, np.stack(used), blocks, cost)
    found = cheapest_eviction(of, need, workers, time_limit=10.0)
    movable = [j for j in range(n) if np.isfinite(cost[j])]
    sets = (np.array(s, np.int64) for k in range(len(movable) + 1) for s in combinations(movable, k))
    fits = [
        float(cost[s].sum())
        for s in sets
        if max(of.workers(need, s)[domain == d].sum() for d in np.unique(domain)) >= workers
    ]
    if not fits:
        assert found is None
        return
    assert found is not None and found.proved
    assert found.cost == pytest.approx(min(fits))
    assert found.bound == pytest.approx(min(fits), rel=1e-5)


def test_a_bound_without_time() -> None:
    """Without time to branch, gangs on several nodes leave a bound that is not above the optimum."""
    rng = np.random.default_rng(3)
    parts = [(job, node, 4) for job in range(40) for node in rng.choice(40, 2, replace=False).tolist()]
    held = np.bincount([node for _, node, _ in parts], minlength=40)
    of = occupancy((held.max() * 4 - 4 * held).tolist(), parts, rng.uniform(1, 9, 40).tolist(), size=4 * held.max())
    of = replace(of, most=np.ones(40, np.int64))
    need = np.array([4 * int(held.max())])
    quick = cheapest_eviction(of, need, 6, time_limit=0.0)
    best = cheapest_eviction(of, need, 6, time_limit=60.0)
    assert quick is not None and best is not None and best.proved
    assert quick.bound <= best.cost <= quick.cost and not quick.proved


@pytest.mark.parametrize("rack", [0, 16])
def test_three_thousand_nodes(rack: int) -> None:
    """On 3,000 full nodes the least cost is that of the cheapest nodes, one by one, as no job is on two.

    A worker of four GPUs beside another on a node of eight: a node of two jobs of four gives way at the cost of the
    cheaper, then of the other. Without racks the workers take the cheapest jobs, in racks those of the best rack.
    """
    rng = np.random.default_rng(1)
    parts = [(2 * n + i, n, 4) for n in range(3000) for i in range(2)]
    cost = rng.permutation(6000) + 1.0
    domain = (np.arange(3000) // rack if rack else np.zeros(3000, np.int64)).tolist()
    found = find(occupancy([0] * 3000, parts, cost.tolist(), domain, size=8), 20, 4)
    groups = np.split(cost, np.flatnonzero(np.diff(domain)) * 2 + 2)
    assert found is not None and found.proved
    assert found.cost == min(np.sort(each)[:20].sum() for each in groups if len(each) >= 20)
    assert found.cost == cost[list(found.jobs)].sum() and len(found.jobs) == 20


def test_no_time_is_an_answer() -> None:
    """With no time at all there is a set that makes room, and a bound that is not above its cost."""
    rng = np.random.default_rng(5)
    parts = [(int(rng.integers(0, 900)), n, 1) for n in range(300) for _ in range(4)]
    parts = [(job, node, 1) for job, node in {part[:2] for part in parts}]
    held = np.bincount([node for _, node, _ in parts], minlength=300)
    of = occupancy((4 - held).tolist(), parts, rng.uniform(1, 9, 900).tolist())
    quick = cheapest_eviction(replace(of, most=of.most // 4), np.array([4]), 9, time_limit=0.0)
    assert quick is not None and 0.0 < quick.bound <= quick.cost
    assert of.workers(np.array([4]), np.array(quick.jobs)).clip(0, 1).sum() >= 9


def plain(of: Occupancy, need: np.ndarray, workers: int) -> float:
    """Return the least cost by the model at the top of the module, in CP-SAT, with costs that are whole numbers."""
    model = cp_model.CpModel()
    leave = [model.new_bool_var("") for _ in of.cost]
    chosen = {d: model.new_bool_var("") for d in set(of.domain.tolist())}
    model.add_exactly_one(chosen.values())
    seats: dict[int, list[cp_model.IntVar]] = {d: [] for d in chosen}
    for n, d in enumerate(of.domain.tolist()):
        seats[d].append(y := model.new_int_var(0, int(of.most[n]), ""))
        here = np.flatnonzero(of.node == n).tolist()
        for row, asked in enumerate(need.tolist()):
            model.add(asked * y <= int(of.free[row, n]) + sum(int(of.used[row, i]) * leave[of.job[i]] for i in here))
    for d, x in chosen.items():
        model.add(sum(seats[d]) >= workers).only_enforce_if(x)
    model.minimize(sum(int(cost) * x for cost, x in zip(of.cost, leave, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return float(solver.objective_value)


@pytest.mark.parametrize("seed", range(40))
def test_a_plain_model(seed: int) -> None:
    """On 24 nodes, where greedy sets are seldom the best, it costs what the plain model says, in time or not."""
    rng = np.random.default_rng(seed)
    m, gangs, free, parts = 24, seed % 2, np.array([[8], [24]]).repeat(24, axis=1), []
    for job in range(80):
        for n in rng.choice(m, int(rng.integers(1, 2 + 2 * gangs)), replace=False).tolist():
            used = np.minimum(rng.integers(1, [6, 12]), free[:, n])
            if used[0]:
                parts.append((job, n, *used.tolist()))
                free[:, n] -= used
    job, node, *used = (np.array(x, np.int64) for x in zip(*parts, strict=True))
    rows, need = slice(0, 1 + seed // 2 % 2), np.array([int(rng.integers(2, 5)), 5])
    of = Occupancy(
        free[rows], np.full(m, 8 // need[0]), np.arange(m) // (12 if seed % 3 else 24), job, node, np.stack(used)[rows],
        np.zeros(len(job), bool), rng.integers(20, 90, 80).astype(float),
    )  # fmt: skip
    workers = int(rng.integers(5, 12))
    found, best = cheapest_eviction(of, need[rows], workers, time_limit=20.0), plain(of, need[rows], workers)
    assert found is not None and found.proved and found.cost == best
    quick = cheapest_eviction(of, need[rows], workers, time_limit=0.0)
    assert quick is not None and quick.bound <= best <= quick.cost
