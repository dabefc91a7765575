"""What is free on the nodes: never too little, and removing a task undoes adding it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.instances import InstanceError
from gangplan.instances.cluster import Level, TreeTopology
from gangplan.instances.placement import Demand, Fleet
from gangplan.instances.placement.job import Task
from gangplan.solvers.placement.online import TASK_POLICIES, FreeState, TaskMix, make_policy
from gangplan.solvers.placement.online.state import GPU, need


def fleet(*nodes: tuple[int, float, float, str], usable: tuple[bool, ...] | None = None) -> Fleet:
    """Return nodes of (GPUs, cores, bytes, GPU type)."""
    kinds = tuple(dict.fromkeys(kind for *_, kind in nodes))
    return Fleet(
        names=tuple(f"n{i}" for i in range(len(nodes))),
        gpu_types=kinds,
        gpu_type=np.array([kinds.index(kind) for *_, kind in nodes], dtype=np.int32),
        gpus=np.array([gpus for gpus, *_ in nodes], dtype=np.int32),
        cpu=np.array([cpu for _, cpu, *_ in nodes], dtype=np.float64),
        memory=np.array([memory for _, _, memory, _ in nodes], dtype=np.float64),
        link=np.full(len(nodes), 1e9),
        topology=TreeTopology.regular((Level("cluster", 1e9),), (len(nodes),)),
        usable=None if usable is None else np.array(usable),
    )


SHARES = (0.0, 0.05, 0.16, 0.19, 1 / 3, 0.47, 0.81, 1.0, 2.0, 4.0)
TASKS = st.builds(
    Task,
    st.builds(
        Demand, st.sampled_from(SHARES), st.sampled_from((0.0, 1.5, 4.0, 12.0)), st.sampled_from((0.0, 3e9, 2e10))
    ),
    st.sampled_from(((), ("A",), ("A", "B"), ("C",))),
)
NODES = st.tuples(
    st.integers(0, 4), st.sampled_from((0.0, 8.0, 32.0)), st.sampled_from((0.0, 1e10, 6e10)), st.sampled_from("AB")
)


def held(state: FreeState, placed: list[tuple[int, Task, tuple[int, ...]]]) -> None:
    """Check what is free against what is placed, node by node, from the demands alone."""
    m = state.fleet.n_nodes
    share, cpu, memory = np.zeros((m, 5)), np.zeros(m), np.zeros(m)
    for node, task, gpus in placed:
        assert len(gpus) == task.demand.grants
        for j in gpus:
            share[node, j] += min(task.demand.gpu, 1.0)
        cpu[node] += task.demand.cpu
        memory[node] += task.demand.memory
        kind = state.fleet.gpu_types[state.fleet.gpu_type[node]]
        assert not gpus or not task.gpu_types or kind in task.gpu_types
    assert (share <= 1 + 1e-5).all()
    assert (share[np.arange(5) >= state.fleet.gpus[:, None]] == 0).all()
    assert (cpu <= state.fleet.cpu + 1e-9).all()
    assert (memory <= state.fleet.memory).all()
    there = state.share >= 0
    assert state.share[there] / GPU == pytest.approx(1 - share[:, : state.share.shape[1]][there], abs=1e-5)
    assert state.allocated / GPU == pytest.approx(sum(task.demand.gpu for _, task, _ in placed), abs=1e-4)
    for slot, nodes in enumerate(state.members):
        assert all(state.slot_of[node] == slot for node in nodes)
        for node in nodes:
            assert sorted(state.share[node], reverse=True) == state.free[slot].tolist()
    assert sum(map(len, state.members)) == m


@given(
    nodes=st.lists(NODES, min_size=1, max_size=4),
    tasks=st.lists(TASKS, max_size=25),
    name=st.sampled_from([*TASK_POLICIES]),
)
def test_never_over_capacity_and_removal_undoes(
    nodes: list[tuple[int, float, float, str]], tasks: list[Task], name: str
) -> None:
    """Whatever a policy places fits, what it refuses fits nowhere, and removing all leaves the cluster as it was."""
    state = FreeState(fleet(*nodes), kinds=name == "gpu_clustering")
    policy = make_policy(name, TaskMix.of(tasks))
    placed: list[tuple[int, Task, tuple[int, ...]]] = []
    keys = [state.key()]
    for task in tasks:
        choice = policy.choose(state, task)
        if choice is None:
            assert not any(fits(state, node, task) for node in range(len(nodes)))
            continue
        state.add(choice[0], task, choice[1])
        placed.append((choice[0], task, choice[1]))
        held(state, placed)
        keys.append(state.key())
    for node, task, gpus in reversed(placed):
        assert state.key() == keys.pop()
        state.remove(node, task, gpus)
    assert state.key() == keys.pop()
    assert state.allocated == 0


def fits(state: FreeState, node: int, task: Task) -> bool:
    """Return whether a task fits a node, by trying all it could take."""
    wanted = need(task)
    gpus = np.argsort(-state.share[node], kind="stable")[: wanted.grants].tolist()
    try:
        state.copy().add(node, task, gpus)
    except InstanceError:
        return False
    return True


@given(tasks=st.lists(TASKS, max_size=30), seed=st.integers(0, 9))
def test_scores_kept_are_scores_computed(tasks: list[Task], seed: int) -> None:
    """A policy that has watched the cluster change scores as one that sees it for the first time."""
    rng = np.random.default_rng(seed)
    state = FreeState(fleet((4, 32.0, 6e10, "A"), (4, 32.0, 6e10, "A"), (2, 8.0, 6e10, "B"), (4, 32.0, 6e10, "B")))
    mix = TaskMix.of(tasks)
    watching = [make_policy(name, mix) for name in ("best_fit", "fgd", "stranding")]
    placed: list[tuple[int, Task, tuple[int, ...]]] = []
    for task in tasks:
        choices = [policy.choose(state, task) for policy in watching]
        assert choices == [make_policy(name, mix).choose(state, task) for name in ("best_fit", "fgd", "stranding")]
        if placed and rng.random() < 0.4:
            state.remove(*placed.pop(int(rng.integers(len(placed)))))
        elif (choice := choices[int(rng.integers(3))]) is not None:
            state.add(choice[0], task, choice[1])
            placed.append((choice[0], task, choice[1]))


def test_equal_nodes_are_one_slot() -> None:
    """Nodes of equal hardware share a slot until their loads differ, whichever GPU the load is on."""
    state = FreeState(fleet(*[(2, 8.0, 1e10, "A")] * 3))
    assert len(set(state.slot_of.tolist())) == 1
    task = Task(Demand(0.5, 1.0, 1e9))
    state.add(0, task, (0,))
    assert len(set(state.slot_of.tolist())) == 2
    state.add(2, task, (1,))
    assert len(set(state.slot_of.tolist())) == 2
    assert state.members[state.slot_of[0]] == [0, 2]


def test_shares_of_a_third_fill_a_gpu() -> None:
    """Three thirds fit one GPU, a fourth does not."""
    state = FreeState(fleet((1, 8.0, 1e10, "A")))
    third = Task(Demand(1 / 3))
    for _ in range(3):
        state.add(0, third, (0,))
    with pytest.raises(InstanceError, match="not free enough"):
        state.add(0, third, (0,))


@pytest.mark.parametrize(
    ("node", "task", "gpus", "words"),
    [
        (0, Task(Demand(1.0)), (), "are not 1 different GPUs"),
        (0, Task(Demand(2.0)), (0, 0), "are not 2 different GPUs"),
        (0, Task(Demand(1.0)), (2,), "is not free enough"),
        (0, Task(Demand(1.0)), (-1,), "is not free enough"),
        (0, Task(Demand(1.0, cpu=9.0)), (0,), "cpu: node 'n0' has too little"),
        (0, Task(Demand(1.0, memory=2e10)), (0,), "memory: node 'n0' has too little"),
        (0, Task(Demand(1.0), ("B",)), (0,), "has none of"),
        (1, Task(Demand(1.0)), (0,), "is not usable"),
    ],
)
def test_what_does_not_fit_is_refused(node: int, task: Task, gpus: tuple[int, ...], words: str) -> None:
    """Adding what does not fit says what is missing and changes nothing."""
    state = FreeState(fleet((2, 8.0, 1e10, "A"), (2, 8.0, 1e10, "A"), usable=(True, False)))
    before = state.key()
    with pytest.raises(InstanceError, match=words):
        state.add(node, task, gpus)
    assert state.key() == before


def test_amounts_beyond_64_bits() -> None:
    """Amounts that no machine has are held as the largest there is."""
    state = FreeState(fleet((1, 1e300, 1e300, "A")))
    state.add(0, Task(Demand(0.5, 1e290, 1e290)), (0,))
    with pytest.raises(InstanceError, match="too little"):
        state.add(0, Task(Demand(0.5, 1e290, 0.0)), (0,))


def test_removing_what_is_not_there_is_refused() -> None:
    """A node never has more free than it has."""
    state = FreeState(fleet((2, 8.0, 1e10, "A")))
    with pytest.raises(InstanceError, match="holds no such task"):
        state.remove(0, Task(Demand(1.0)), (0,))


def test_old_logs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that slept while the log was cut still sees what is free now."""
    monkeypatch.setattr("gangplan.solvers.placement.online.state.LOG", 10)
    state = FreeState(fleet((1, 80.0, 1e10, "A"), (1, 80.0, 1e10, "A")))
    task, other = Task(Demand(1.0)), Task(Demand(0.0, cpu=1.0))
    policy: Callable[[FreeState, Task], object] = make_policy("first_fit", TaskMix.of([task])).choose
    assert policy(state, task) == (0, (0,))
    for _ in range(30):
        state.add(0, other, ())
    state.add(0, task, (0,))
    assert state.log.since(0) is None
    assert policy(state, task) == (1, (0,))
