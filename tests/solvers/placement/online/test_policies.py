"""What each policy chooses, on clusters small enough to argue about."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.cluster import Level, TreeTopology
from gangplan.instances.placement import Demand, Fleet
from gangplan.instances.placement.job import Task
from gangplan.solvers.placement.online import TASK_POLICIES, Choice, FreeState, TaskMix, make_policy
from gangplan.solvers.placement.online.fgd import FGD, NodeFragments
from gangplan.solvers.placement.online.state import GPU, need
from gangplan.solvers.placement.online.stranding import GRID, Cuts, Shortage


def cluster(*nodes: tuple[int, float]) -> Fleet:
    """Return nodes of (GPUs, cores) with ample memory."""
    m = len(nodes)
    return Fleet(
        names=tuple(f"n{i}" for i in range(m)),
        gpu_types=("A",),
        gpu_type=np.zeros(m, dtype=np.int32),
        gpus=np.array([gpus for gpus, _ in nodes], dtype=np.int32),
        cpu=np.array([cpu for _, cpu in nodes], dtype=np.float64),
        memory=np.full(m, 1e12),
        link=np.full(m, 1e9),
        topology=TreeTopology.regular((Level("cluster", 1e9),), (m,)),
    )


def choice(
    name: str, fleet: Fleet, placed: list[tuple[int, Task, tuple[int, ...]]], task: Task, mix: list[Task] | None = None
) -> Choice | None:
    """Return what a policy chooses for `task` after others were placed."""
    state = FreeState(fleet, kinds=True)
    for node, other, gpus in placed:
        state.add(node, other, gpus)
    return make_policy(name, TaskMix.of(mix or [task])).choose(state, task)


HALF, ONE = Task(Demand(0.5, 1.0)), Task(Demand(1.0, 1.0))


def test_first_fit() -> None:
    """Node 0 is full of GPUs, node 1 has the first that is free."""
    assert choice("first_fit", cluster((1, 8), (2, 8), (2, 8)), [(0, ONE, (0,)), (1, ONE, (0,))], HALF) == (1, (1,))


def test_best_fit_and_least_loaded() -> None:
    """Of 2 GPUs and 1, the one GPU leaves less; of GPUs half and wholly free, the tight one goes first, or last."""
    fleet = cluster((2, 8), (1, 8))
    assert choice("best_fit", fleet, [], ONE) == (1, (0,))
    assert choice("least_loaded", fleet, [], ONE) == (0, (0,))
    # node 0 keeps 1.5 GPUs and 7 cores, which is still more than node 1 has
    assert choice("least_loaded", fleet, [(0, HALF, (0,))], HALF) == (0, (1,))
    assert choice("best_fit", fleet, [(0, HALF, (0,)), (1, ONE, (0,))], HALF) == (0, (0,))


def test_dot_prod_and_tetris() -> None:
    """A task of many cores goes, by the least product, where cores are few, by the greatest where they are many."""
    fleet = cluster((2, 16), (2, 64))
    heavy = Task(Demand(1.0, 12.0))
    assert choice("dot_prod", fleet, [], heavy) == (0, (0,))
    assert choice("tetris", fleet, [], heavy) == (1, (0,))


def test_gpu_packing() -> None:
    """A share goes to a GPU in use, a whole GPU to a node in use, and only then the smallest idle node is taken."""
    fleet = cluster((4, 8), (2, 8), (1, 8))
    assert choice("gpu_packing", fleet, [(1, HALF, (1,))], HALF) == (1, (1,))
    assert choice("gpu_packing", fleet, [(1, HALF, (1,))], ONE) == (1, (0,))
    assert choice("gpu_packing", fleet, [], ONE) == (2, (0,))
    assert choice("gpu_packing", fleet, [(1, HALF, (1,)), (2, Task(Demand(0.3, 1.0)), (0,))], HALF) == (1, (1,))


def test_gpu_clustering() -> None:
    """A share goes to the node of shares alone, before the mixed node, before the idle, before the node of others."""
    fleet = cluster((4, 8), (4, 8), (4, 8), (4, 8))
    others, mixed, own = (0, ONE, (0,)), [(1, ONE, (0,)), (1, HALF, (1,))], (2, HALF, (0,))
    assert choice("gpu_clustering", fleet, [others, *mixed, own], HALF) == (2, (0,))
    assert choice("gpu_clustering", fleet, [others, *mixed], HALF) == (1, (1,))
    assert choice("gpu_clustering", fleet, [others], HALF) == (1, (0,))
    assert choice("gpu_clustering", cluster((4, 8)), [others], HALF) == (0, (1,))


def test_fgd_keeps_gpus_whole() -> None:
    """With tasks of one GPU to come, a share goes where a share is, though another node would be left with less."""
    fleet = cluster((2, 8), (1, 8))
    assert choice("fgd", fleet, [(0, HALF, (1,))], HALF, [HALF, ONE]) == (0, (1,))
    # best fit looks at sums only: 0.5 GPU left on node 1 against 1 GPU on node 0
    assert choice("best_fit", fleet, [(0, HALF, (1,))], HALF) == (1, (0,))


def test_typical_tasks() -> None:
    """The fewest kinds that make up 95% count, by GPUs and cores: memory does not tell them apart."""
    common = [Task(Demand(1.0, 4.0, memory)) for memory in (1e9, 2e9)] * 9
    mix = TaskMix.of([*common, Task(Demand(0.0, 2.0)), Task(Demand(0.5, 1.0))]).typical(0.95)
    assert [(k.grants, k.cpu, k.memory) for k in mix.needs] == [(1, 4_000_000, 0), (0, 2_000_000, 0)]
    assert mix.share.tolist() == pytest.approx([18 / 19, 1 / 19])
    assert len(TaskMix.of(common).typical(0.95).needs) == 1
    assert not TaskMix.of([]).typical(0.95).needs


def test_fgd_expects_typical_tasks() -> None:
    """Cores go to the first node if only a task that comes once in thirty would miss them there."""
    fleet, cores = cluster((1, 8), (1, 20)), Task(Demand(0.0, 4.0))
    hungry = Task(Demand(1.0, 8.0))
    assert choice("fgd", fleet, [], cores, [ONE] * 10 + [hungry]) == (1, ())
    assert choice("fgd", fleet, [], cores, [ONE] * 29 + [hungry]) == (0, ())


def test_fgd_counts_tasks_without_gpus() -> None:
    """To half the tasks all free GPUs are fragments, so taking one is worth half a GPU: 1 / (1 + exp(-0.5))."""
    state, policy = FreeState(cluster((1, 8))), FGD(TaskMix.of([ONE, Task(Demand(0.0, 1.0))]))
    score, _ = policy.score(state, need(ONE), state.slot_of)
    assert score.tolist() == [-62.0]


def test_fragmentation_by_hand() -> None:
    """Half the tasks need a GPU and 4 cores, a quarter 0.6 of one and 1 core, a quarter none."""
    mix = TaskMix.of([Task(Demand(1.0, 4.0)), Task(Demand(1.0, 4.0)), Task(Demand(0.6, 1.0)), Task(Demand(0.0, 1.0))])
    state = FreeState(cluster((3, 8)))
    fragmentation = NodeFragments(mix, state)
    free = np.array([[GPU, GPU * 7 // 10, GPU * 4 // 10]] * 3)
    found = fragmentation(*(np.array(x) for x in ([0] * 3, [4_000_000, 3_999_999, 999_999], [10**12] * 3)), free)
    # 2.1 GPUs are free. With 4 cores: 0.7 + 0.4 fail the whole, 0.4 the share. With fewer the whole does not fit: all
    # is a fragment to it. With less than one core, to both.
    assert found.tolist() == pytest.approx([0.5 * 1.1 + 0.25 * 0.4, 0.5 * 2.1 + 0.25 * 0.4, 0.75 * 2.1])


def test_worth_of_shares() -> None:
    """Where tasks of 0.81 leave more of 0.19 than tasks of 0.19 need, a free 0.19 is worth nothing; else its share."""
    big, small = Task(Demand(0.81)), Task(Demand(0.19))
    rare = Cuts(TaskMix.of([big] * 3 + [small])).worth
    assert rare[[190, 500, 809, 810, GRID]].tolist() == pytest.approx([0.0, 0.0, 0.0, 1.0, 1.0])
    # four of five tasks of 0.19 share GPUs, five to each: a fifth each; 0.81 leaves room for one and costs the rest
    many = Cuts(TaskMix.of([big] + [small] * 5)).worth
    assert many[[190, 380, 810, GRID]].tolist() == pytest.approx([0.2, 0.4, 0.8, 1.0])
    assert Cuts(TaskMix.of([ONE])).worth[[500, GRID]].tolist() == [0.0, 1.0]


def test_shortage_by_hand() -> None:
    """Tasks of one GPU and always 4 cores leave no doubt: cores for 2 of 3 GPUs are one GPU short."""
    state = FreeState(cluster((3, 8)))
    sure = Shortage(TaskMix.of([Task(Demand(1.0, 4.0)), Task(Demand(0.0, 9.0))]), state, "cpu")
    left, gpus = np.array([8_000_000, 16_000_000]), np.array([3.0, 3.0])
    assert sure(np.zeros(2, dtype=np.int64), left, gpus).tolist() == pytest.approx([1.0, 0.0])
    # 2 or 6 cores: the mean is 4, the variance 4, a quarter of it in GPUs squared, so (1 + sqrt(1 + 0.25 * 3)) / 2
    unsure = Shortage(TaskMix.of([Task(Demand(1.0, 2.0)), Task(Demand(1.0, 6.0))]), state, "cpu")
    assert unsure(np.zeros(1, dtype=np.int64), left[:1], gpus[:1]).tolist() == pytest.approx([(1 + 1.75**0.5) / 2])
    free = Shortage(TaskMix.of([Task(Demand(1.0))]), state, "cpu")
    assert free(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), gpus[:1]).tolist() == [0.0]


def test_stranding_saves_cores() -> None:
    """A task of cores alone goes where cores are plenty; FGD, for which one more task still fits, takes the first."""
    fleet, cores = cluster((8, 16), (2, 64)), Task(Demand(0.0, 8.0))
    mix = [Task(Demand(1.0, 2.0))]
    assert choice("fgd", fleet, [], cores, mix) == (0, ())
    assert choice("stranding", fleet, [], cores, mix) == (1, ())


def test_random_is_repeated_by_its_seed() -> None:
    """The same seed draws the same nodes, and in 60 draws every node and GPU that fits."""
    state = FreeState(cluster((2, 8), (2, 8), (2, 0)))
    policies = make_policy("random", TaskMix.of([]), 3), make_policy("random", TaskMix.of([]), 3)
    runs = [[policy.choose(state, HALF) for _ in range(60)] for policy in policies]
    assert runs[0] == runs[1]
    assert set(runs[0]) == {(0, (0,)), (0, (1,)), (1, (0,)), (1, (1,))}


@pytest.mark.parametrize("name", TASK_POLICIES)
def test_nothing_fits(name: str) -> None:
    """Each policy says so if a task fits nowhere: too many GPUs, too many cores, another type."""
    state = FreeState(cluster((2, 8)), kinds=True)
    tasks = [Task(Demand(3.0)), Task(Demand(0.0, 9.0)), Task(Demand(1.0), ("B",))]
    assert [make_policy(name, TaskMix.of(tasks)).choose(state, task) for task in tasks] == [None] * 3


def test_unknown_policy() -> None:
    """A name that no policy has is refused with the names there are."""
    with pytest.raises(InstanceError, match="'best' is not one of random, "):
        make_policy("best", TaskMix.of([]))
