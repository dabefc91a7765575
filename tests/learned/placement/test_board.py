"""The board agrees with the cost model of the solvers wherever gangs come and go."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import PlacementProblem
from gangplan.learned.placement.board import Board, Gang
from gangplan.solvers.placement.gang import placements
from gangplan.solvers.placement.least_interference import least_interference
from gangplan.solvers.placement.prepare import Batch, Rows
from gangplan.solvers.placement.state import State
from gangplan.solvers.placement.topology import topology
from gangplan.solvers.placement.wide import one_a_rack


def gang(batch: Batch, j: int) -> Gang:
    """Return what decides the cost of a job."""
    return Gang(
        int(batch.model[j]), float(batch.weight[j]), float(batch.best[j]), batch.jobs[j].collective, int(batch.each[j])
    )


def arrays(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """Return nodes, workers and servers."""
    table = np.array([(node, w, p) for node, (w, p) in rows.items()], dtype=np.int64)
    return table[:, 0], table[:, 1], table[:, 2]


def crowded(seed: int, goal: str) -> PlacementProblem:
    """Return a batch in which most gangs meet others on nodes and links."""
    return gangs(jobs=24, racks=3, nodes=4, gpus=8, load=0.9, seed=seed, goal=goal)


@pytest.mark.parametrize("goal", ["slowdown", "throughput"])
@pytest.mark.parametrize("seed", range(4))
def test_prices_are_those_of_the_cost_model(seed: int, goal: str) -> None:
    """What a place is said to cost, with what it adds to others, is by how much the goal grows."""
    batch = Batch(crowded(seed, goal))
    state, board = State(batch), Board(batch.problem.fleet, batch.problem.speeds, goal)
    rng = np.random.default_rng(seed)
    checked = 0
    for j in rng.permutation(len(batch.jobs)).tolist():
        options = list(placements(state, j, [least_interference, topology, one_a_rack]))
        if not options:
            continue
        others = [i for i in range(len(batch.jobs)) if i != j]
        state.settle()
        before = sum(state.cost[i] for i in others)
        for rows in options:
            nodes, workers, servers = arrays(rows)
            own, harm, links, _ = board.price(
                gang(batch, j), nodes, workers, servers if batch.jobs[j].servers else None
            )
            state.add(j, rows)
            state.settle()
            assert own == pytest.approx(state.cost[j], rel=1e-9)
            more = sum(state.cost[i] for i in others) - before
            if len(rows) == 1:
                assert harm + links == pytest.approx(more, abs=1e-6)
                if not batch.jobs[j].servers:
                    assert board.single(gang(batch, j), nodes, workers)[0] == pytest.approx(own, rel=1e-9)
            else:  # a neighbour on two of the nodes, or on nodes and links, is counted twice
                assert harm + links >= more * 0.5 - 1e-6
            checked += 1
            state.remove(j)
            state.settle()
        rows = options[int(rng.integers(len(options)))]
        nodes, workers, servers = arrays(rows)
        state.add(j, rows)
        board.add(j, gang(batch, j), nodes, workers, servers if batch.jobs[j].servers else None)
    state.settle()
    assert checked > 30
    for j, placed in board.placed.items():
        assert placed.cost == pytest.approx(state.cost[int(j)], rel=1e-9)  # type: ignore[call-overload]


def test_a_board_forgets_gangs_that_go() -> None:
    """Once all gangs are taken off, in another order, nothing of them is left."""
    batch = Batch(crowded(1, "slowdown"))
    state, board = State(batch), Board(batch.problem.fleet, batch.problem.speeds)
    for j in range(len(batch.jobs)):
        rows = next(iter(placements(state, j, [one_a_rack])), None)
        if rows:
            state.add(j, rows)
            nodes, workers, servers = arrays(rows)
            board.add(j, gang(batch, j), nodes, workers, servers if batch.jobs[j].servers else None)
    assert board.suffer.any() and board.harm.any() and board.load[0].any() and board.crossing.any()
    for j in np.random.default_rng(0).permutation(sorted(int(x) for x in board.placed)).tolist():  # type: ignore[call-overload]
        board.remove(j, arrays(state.rows[j])[0])
    for left in (board.suffer, board.harm, *board.load, board.crossing, board.taken):
        assert abs(left).max() < 1e-9
