"""The verifier of orders of passes: times, memory, the long run, and what is wrong with a plan in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan import verify
from gangplan.instances.generators import generate
from gangplan.instances.pipeline import PipelinePlan, PipelineProblem
from gangplan.instances.verify.pipeline import finishes
from gangplan.solvers.pipeline.published import plan_of

TWO = generate("micro_batches", devices=2, micro_batches=2, memory=2)
ORDERS = [[0, 1, 4, 8, 5, 9], [2, 6, 3, 7, 10, 11]]


def plan_of_one(*one: int) -> PipelinePlan:
    """Return the plan of one pass."""
    return PipelinePlan(*(np.array([x], dtype=np.int32) for x in one))


def test_times_by_hand() -> None:
    """Two micro-batches through two devices take 7 s; the first device holds both, and waits for a second."""
    verdict = verify(TWO, TWO.plan(ORDERS))
    assert verdict.objective == 7 and verdict.memory.tolist() == [2, 2] and verdict.load.tolist() == [6, 6]
    assert verdict.bubble == pytest.approx(1 / 7)
    # F: 0, 1 and 1, 3; B: 3, 5 and 2, 4; W: 4, 6 and 5, 6
    assert verdict.start.tolist() == [0, 1, 1, 3, 3, 5, 2, 4, 4, 6, 5, 6]
    assert (verdict.finish - verdict.start == 1).all()


def test_transfers_and_unequal_stages() -> None:
    """A transfer delays the next device, and gradients on their way back."""
    problem = replace(TWO, transfer=np.array([0.5, 7.0]), backward=np.array([1.0, 2.0]))
    verdict = verify(problem, problem.plan(ORDERS))
    assert verdict.start[[2, 6, 4]].tolist() == [1.5, 2.5, 5.0] and verdict.objective == 10.0


def steps(problem: PipelineProblem, orders: list[list[int]], count: int) -> list[float]:
    """Return when each of so many steps in a row ends, simulated pass by pass, without a barrier."""
    passes, end = problem.passes(), dict[tuple[int, int], float]()
    queue = [[(k, x) for k in range(count) for x in order] for order in orders]
    free, at = [0.0] * len(orders), [0] * len(orders)
    while any(i < len(q) for i, q in zip(at, queue, strict=True)):
        for d, mine in enumerate(queue):
            while at[d] < len(mine):
                k, x = mine[at[d]]
                u = int(passes.before[x])
                if u >= 0 and (k, u) not in end:
                    break
                start = max(free[d], end[k, u] + passes.lag[x] if u >= 0 else 0.0)
                end[k, x] = free[d] = start + passes.seconds[x]
                at[d] += 1
    return [max(at for (k, _), at in end.items() if k == step) for step in range(count)]


@pytest.mark.parametrize("seed", range(8))
def test_the_long_run(seed: int) -> None:
    """Without a barrier the value is how far apart steps come to be when many of them are simulated."""
    more = {"spread": 0.5, "transfer": 0.3, "seed": seed, "barrier": False}
    problem = generate("micro_batches", devices=3, micro_batches=4, memory=4, **more)
    plan = plan_of(problem, ("GPipe", "1F1B", "ZB-H1", "ZB-H2")[seed % 4])
    assert plan is not None
    verdict, orders = verify(problem, plan), problem.orders(plan)
    ends = steps(problem, orders, 61)
    assert verdict.objective == pytest.approx((ends[60] - ends[54]) / 6, rel=1e-9)
    # the times that are told are those of such a step: no device takes longer than one from its first to its last pass
    for order in orders:
        own = verdict.finish[order].max() - verdict.start[order].min()
        assert own <= verdict.objective * (1 + 1e-9)


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        ([[0, 4, 1, 8, 5, 9], [3, 2, 6, 7, 10, 11]], "deadlock: devices wait for one another: device 0 with B of "
         "micro-batch 0 in stage 0 for B of micro-batch 0 in stage 1; device 1 with F of micro-batch 1 in stage 1"),
        ([[0, 1, 4, 8, 5, 9], [2, 6, 3, 7, 10, 10]], "passes: W of micro-batch 0 in stage 1 is in the plan 2 times"),
        ([[0, 1, 4, 8, 5, 9], [2, 6, 3, 7, 10]], "passes: W of micro-batch 1 in stage 1 is in the plan 0 times"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(orders: list[list[int]], words: str) -> None:
    """Devices that wait for one another, and passes that are missing or there twice, are named."""
    verdict = verify(TWO, TWO.plan(orders))
    assert not verdict.ok and verdict.objective is None
    assert any(words in x for x in verdict.violations), verdict.violations


def test_memory_is_told() -> None:
    """The pass at which a device holds more than it has is named, with both amounts."""
    tight = replace(TWO, capacity=np.array([2.0, 1.0]))
    (words,) = verify(tight, tight.plan(ORDERS)).violations
    assert (
        words == "memory: device 1 holds 2 micro-batches during F of micro-batch 1 in stage 1, it has 1 micro-batches"
    )
    part = replace(tight, kept=np.array([0.0, 0.0]))  # all is let go after B
    assert verify(part, part.plan(ORDERS)).ok


def test_a_plan_of_another_problem() -> None:
    """Stages, micro-batches and kinds that the problem does not have are named."""
    for plan, words in (
        (plan_of_one(0, 2, 0), "is of stage 2, the problem has 2"),
        (plan_of_one(0, 0, 2), "is of micro-batch 2, the problem has 2"),
    ):
        assert words in verify(TWO, plan).violations[0]
    whole = replace(TWO, split=False)
    assert "is W, which the backward passes" in verify(whole, TWO.plan(ORDERS)).violations[0]
    assert finishes(TWO, TWO.passes(), ORDERS)[1] == []
