"""Where each policy puts one gang, on fleets small enough to say why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import (
    Demand,
    Expected,
    Fleet,
    GangJob,
    PlacementPlan,
    PlacementProblem,
    Running,
    SpeedModel,
    Task,
)
from gangplan.instances.placement.rate import rates
from gangplan.solvers import Run
from gangplan.solvers.placement.bounds import impossible
from gangplan.solvers.placement.build import placements
from gangplan.solvers.placement.gpu_assignment import fewest, pack
from gangplan.solvers.placement.methods import BATCH_POLICIES, METHODS
from gangplan.solvers.placement.online import FreeState as OnlineState
from gangplan.solvers.placement.online import TaskMix, make_policy
from gangplan.solvers.placement.prepare import PreparedBatch
from gangplan.solvers.placement.quick import quick
from gangplan.solvers.placement.state import PlacementState

FLEET = Fleet.regular(racks=2, nodes=3, gpus=4, cpu=32.0, memory=100.0, link=10.0, nic=2.0)
SPEEDS = SpeedModel(
    models=("a", "b"),
    gpu_types=("A100",),
    compute=np.array([[1.0, 1.0]]),
    gradient=np.array([4.0, 4.0]),
    overlap=np.array([0.0, 0.0]),
    host=np.array([[0.1, 0.8], [0.8, 0.1]]),
    gpu=np.array([[1.0, 2.0], [2.0, 1.0]]),
)


def state_of(*jobs: GangJob, fleet: Fleet = FLEET, **placed: dict[int, int]) -> PlacementState:
    """Build a state of these jobs, some of them placed: name -> node -> workers."""
    batch = PreparedBatch(PlacementProblem(fleet, jobs, SPEEDS))
    state = PlacementState(batch)
    for j, job in enumerate(jobs):
        if job.name in placed:
            state.add(j, {node: (w, 0) for node, w in placed[job.name].items()})
    state.settle()
    return state


def place(state: PlacementState, policy: str, j: int = 0) -> dict[int, int]:
    """Return node -> workers of the first place the policy proposes for job j."""
    rows = next(placements(state, j, [BATCH_POLICIES[policy]]))
    return {node: w for node, (w, _) in rows.items()}


def fillers(*idle: int) -> tuple[tuple[GangJob, ...], dict[str, dict[int, int]]]:
    """Return jobs of model b that leave so many GPUs idle on each node."""
    jobs, placed = [], {}
    for node, free in enumerate(idle):
        if free < 4:
            jobs.append(GangJob(f"f{node}", "b", (4 - free,)))
            placed[f"f{node}"] = {node: 4 - free}
    return tuple(jobs), placed


@pytest.mark.parametrize(
    ("policy", "size", "idle", "expected"),
    [
        ("first_fit", 3, (1, 4, 2, 4, 4, 4), {0: 1, 1: 2}),
        # the node with the fewest idle GPUs that holds it
        ("best_fit", 2, (4, 3, 2, 4, 4, 1), {2: 2}),
        # the largest whole, and the rest where it fills a node
        ("best_fit", 6, (2, 3, 4, 1, 3, 2), {0: 2, 2: 4}),
        # most idle first, worker by worker
        ("load_balance", 3, (4, 1, 3, 2, 2, 1), {0: 2, 2: 1}),
        ("pack", 3, (4, 1, 3, 2, 2, 1), {0: 2, 2: 1}),
        # worker by worker where least is left: hundredths of 1 - (GPUs left / 4) (1 / 4) / 2
        ("dot_prod", 3, (4, 1, 3, 2, 2, 1), {1: 1, 5: 1, 3: 1}),
        # nodes in use before idle ones
        ("gpu_packing", 3, (4, 1, 3, 2, 2, 1), {1: 1, 2: 2}),
        # all tasks are of one GPU; the fullest nodes first
        ("gpu_clustering", 3, (4, 1, 3, 2, 2, 1), {1: 1, 5: 1, 3: 1}),
        # the second rack holds it, the first is tighter: seven idle there, eight here
        ("topology", 6, (4, 2, 1, 4, 4, 0), {0: 4, 1: 2}),
        # no rack holds it: the roomier one whole, the rest where it fits best in the other
        ("topology", 9, (4, 2, 1, 4, 4, 0), {2: 1, 3: 4, 4: 4}),
        # rack 1 is nearer to its first idle GPU than rack 0 is
        ("nearest", 4, (0, 0, 0, 1, 4, 2), {3: 1, 4: 3}),
        # one GPU: the emptiest node of the rack with the least
        ("nearest_by_size", 1, (3, 1, 0, 4, 4, 4), {0: 1}),
        # two to four: the node that it fills best
        ("nearest_by_size", 3, (3, 1, 0, 4, 4, 4), {0: 3}),
        # more: the emptiest of the rack with the most, then near it
        ("nearest_by_size", 6, (4, 4, 0, 3, 4, 4), {4: 4, 3: 2}),
        # rack 1 has 9 idle, the fifth of them is on node 4; then its neighbours
        ("nearest_to_centre", 4, (4, 1, 1, 4, 3, 2), {4: 3, 3: 1}),
    ],
)
def test_where(policy: str, size: int, idle: tuple[int, ...], expected: dict[int, int]) -> None:
    """Each policy takes the nodes that its rule says."""
    jobs, placed = fillers(*idle)
    assert place(state_of(GangJob("x", "a", (size,)), *jobs, **placed), policy) == expected


@pytest.mark.parametrize("policy", BATCH_POLICIES)
def test_nobody_has_what_nobody_needs(policy: str) -> None:
    """On nodes without cores, memory or GPUs a job that needs none of them is placed all the same."""
    fleet = replace(FLEET, cpu=np.zeros(6), memory=np.zeros(6), gpus=np.array([0, 0, 1, 1, 1, 1]))
    assert sum(place(state_of(GangJob("x", "a", (2,), Demand(0.5)), fleet=fleet), policy).values()) == 2


@pytest.mark.parametrize("policy", BATCH_POLICIES)
def test_who_runs_where_it_cannot_be_ends_nothing(policy: str) -> None:
    """A job that runs, may not move and cannot stay leaves a policy without a plan, not with an error."""
    running = (Running("x", ("r0n0",), (5,), (0,), False, 0.0),)
    fleet = replace(FLEET, names=("r0n0", *FLEET.names[1:]))
    problem = PlacementProblem(fleet, (GangJob("x", "a", (5,)), GangJob("y", "a", (1,))), SPEEDS, running)
    run = Run(problem, time_limit=10.0)
    METHODS[policy].run(run, PreparedBatch(problem))
    assert run.plan is None


def test_clustering_by_kind() -> None:
    """A worker of one GPU joins its like, then a mixed node, then an idle one, and tasks of two GPUs last."""
    twos, one = GangJob("t", "b", (2,), Demand(2)), GangJob("o", "b", (3,))
    x, fleet = (
        GangJob("x", "a", (3,)),
        replace(FLEET, gpus=[4, 4, 6, 4, 4, 4], usable=[True, True, True, True, False, False]),
    )
    state = state_of(x, twos, one, fleet=fleet, t={0: 1, 2: 1}, o={1: 2, 2: 1})
    # node 1 has two of its like and two GPUs left, node 2 one of each kind and three left
    assert place(state, "gpu_clustering") == {1: 2, 2: 1}
    full = state_of(x, twos, GangJob("o", "b", (4,)), fleet=fleet, t={0: 1, 2: 1}, o={1: 4})
    assert place(full, "gpu_clustering") == {3: 3}


def test_fgd_keeps_what_others_need() -> None:
    """With tasks of four GPUs to come, nodes that are broken into already go first."""
    jobs, placed = fillers(4, 1, 3, 2, 2, 1)
    mix = (Expected(Task(Demand(4)), 2.0), Expected(Task(Demand(0.5)), 1.0))
    batch = PreparedBatch(replace(state_of(GangJob("x", "a", (3,)), *jobs).batch.problem, mix=mix))
    state = PlacementState(batch)
    for j, job in enumerate(batch.jobs):
        if job.name in placed:
            state.add(j, {node: (w, 0) for node, w in placed[job.name].items()})
    assert place(state, "fgd") == {1: 1, 2: 2}


@pytest.mark.parametrize("policy", ["dot_prod", "gpu_packing", "gpu_clustering", "fgd"])
def test_scores_are_those_of_single_tasks(policy: str) -> None:
    """A gang of one worker goes where the online policy of the name puts the task, whatever is there."""
    for seed in range(40):
        problem = gangs(8, nodes=3, gpus=4, load=0.5, seed=seed, shares=0.5, collective="ring")
        x = GangJob("x", "vgg16", (1,), Demand(0.5 if seed % 2 else 1.0, cpu=3.0))
        mix = TaskMix.of([Task(Demand(2, cpu=8.0)), Task(Demand(0.5, cpu=1.0)), Task(x.worker)])
        expected = tuple(Expected(t) for t in (Task(Demand(2, cpu=8.0)), Task(Demand(0.5, cpu=1.0)), Task(x.worker)))
        problem = replace(problem, jobs=(x, *problem.jobs), mix=expected)
        state, online = PlacementState(PreparedBatch(problem)), OnlineState(problem.fleet, kinds=True)
        for j in range(1, len(problem.jobs)):
            state.add(j, next(placements(state, j, [BATCH_POLICIES["load_balance"]])))
        plan = state.plan()
        for r, (j, node) in enumerate(zip(plan.job.tolist(), plan.node.tolist(), strict=True)):
            task = Task(problem.jobs[j].worker)
            held = plan.grant_gpu[plan.grant_row == r].tolist()
            for gpu in held:
                online.add(node, task, (gpu,))
        chosen = make_policy(policy, mix).choose(online, Task(x.worker))
        assert chosen is not None and place(state, policy) == {chosen[0]: 1}, seed


def test_least_interference() -> None:
    """A gang of a joins its like rather than b, and an empty node rather than either."""
    like, other = GangJob("l", "a", (1,)), GangJob("o", "b", (1,))
    jobs = GangJob("x", "a", (4,)), like, other
    two = replace(FLEET, usable=[True, True, True, False, False, False])
    state = state_of(*jobs, fleet=two, l={0: 1}, o={1: 1})
    assert place(state, "least_interference") == {2: 4}
    full = state_of(*jobs, GangJob("f", "b", (4,)), fleet=two, l={0: 1}, o={1: 1}, f={2: 4})
    assert place(full, "least_interference") == {0: 3, 1: 1}


@pytest.mark.parametrize("policy", BATCH_POLICIES)
def test_nics_are_set_aside(policy: str) -> None:
    """Workers go where enough of the NIC is left, and what they set aside is gone for the next."""
    x, there = GangJob("x", "a", (6,), Demand(1, nic=0.75)), GangJob("y", "b", (1,), Demand(1, nic=1.0))
    # NICs of 2 B/s: two workers a node, one beside y
    found = place(state_of(x, there, y={1: 1}), policy)
    assert sum(found.values()) == 6 and max(found.values()) <= 2 and found.get(1, 0) <= 1


@pytest.mark.parametrize("policy", BATCH_POLICIES)
def test_constraints_hold(policy: str) -> None:
    """No policy breaks a selector, a spread, a whole node, a job apart, cores or memory."""
    fleet = replace(FLEET, labels=("ssd",), labelled=[[False, True, True, True, True, True]])
    x = GangJob(
        "x", "a", (3,), Demand(1, cpu=20.0), requires=("ssd",), most_per_node=2, whole_nodes=True, apart=("near",)
    )
    state = state_of(x, GangJob("near", "b", (1,)), fleet=fleet, near={1: 1})
    # 20 of 32 cores each: one a node; node 0 lacks the label, node 1 is taken
    found = place(state, policy)
    assert sum(found.values()) == 3 and set(found.values()) == {1} and not {0, 1} & set(found)


def test_parameter_servers() -> None:
    """Servers go beside the workers in proportion, and in a second proposal apart from them."""
    job = GangJob("x", "a", (8,), Demand(1, cpu=1.0), collective="ps", servers=2, server=Demand(0, cpu=1.0))
    beside, apart = placements(state_of(job), 0, [BATCH_POLICIES["best_fit"]])
    assert beside == {0: (4, 1), 1: (4, 1)}
    assert apart == {0: (4, 0), 1: (4, 0), 2: (0, 1), 3: (0, 1)}
    crowded = GangJob("x", "a", (8,), Demand(1, cpu=8.0), collective="ps", servers=2, server=Demand(0, cpu=1.0))
    # the workers take all cores of two nodes, so the servers go near: one node of the rack is left and holds both
    assert next(placements(state_of(crowded), 0, [BATCH_POLICIES["best_fit"]])) == {0: (4, 0), 1: (4, 0), 2: (0, 2)}


def test_several_degrees() -> None:
    """Of several degrees all that fit are proposed, most workers first."""
    found = placements(state_of(GangJob("x", "a", (2, 4, 100))), 0, [BATCH_POLICIES["first_fit"]])
    assert list(found) == [{0: (4, 0)}, {0: (2, 0)}]


def no_dislike(a: int, b: int) -> float:
    """Return that no job slows another down."""
    return 0.0


@pytest.mark.parametrize(
    ("items", "gpus", "fits"),
    [
        ([(0, 0.5, 4)], 2, True),
        ([(0, 0.6, 2)], 1, False),
        ([(0, 0.6, 2), (1, 0.4, 2)], 2, True),
        ([(0, 0.5, 1), (1, 0.3, 2), (2, 0.4, 1), (3, 0.5, 1)], 2, True),
        ([(0, 0.4, 4), (1, 0.3, 1)], 2, False),
        ([(0, 0.1, 10)], 1, True),
    ],
)
def test_shares_fit_or_not(items: list[Any], gpus: int, fits: bool) -> None:
    """Whether shares fit is found exactly, and the packing holds every task within its GPUs."""
    held = pack(items, gpus, no_dislike)
    assert (held is not None) is fits
    if held is not None:
        share = {j: x for j, x, _ in items}
        assert max(sum(share[j] * n for j, n in card.items()) for card in held) <= 1 + 1e-9
        assert {j: sum(card.get(j, 0) for card in held) for j in share} == {j: n for j, _, n in items}


def test_shares_meet_where_it_matters_least() -> None:
    """Jobs have GPUs to themselves while there are enough, then those meet that interfere least."""
    items = [(0, 0.5, 1), (1, 0.5, 1), (2, 0.5, 1)]
    assert pack(items, 3, no_dislike) == [{0: 1}, {1: 1}, {2: 1}]
    extra = {(0, 1): 5.0, (0, 2): 1.0, (1, 2): 3.0}
    held = pack(items, 2, lambda a, b: extra[a, b])
    assert held is not None and {0: 1, 2: 1} in held
    assert fewest(items, 3) == 2 and fewest(items, 1) is None


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([GangJob("x", "a", (25,))], "job x needs 25 workers, the nodes that it may use have room for 24"),
        ([GangJob("x", "a", (1,), Demand(8))], "job x needs 1 workers, the nodes that it may use have room for 0"),
        ([GangJob("x", "a", (13,)), GangJob("y", "b", (12,))], "2 jobs need 25 GPUs together, the fleet have 24"),
        (
            [GangJob(f"j{i}", "a", (2,), Demand(1, memory=55.0)) for i in range(6)],
            "6 jobs need 660 bytes of memory together, the fleet have 600",
        ),
        (
            [GangJob(f"j{i}", "a", (2,), Demand(1, nic=1.0)) for i in range(7)],
            "7 jobs need 14 bytes/s of NICs together, the fleet have 12",
        ),
        (
            [GangJob("x", "a", (1,), Demand(1, nic=2.1))],
            "job x needs 1 workers, the nodes that it may use have room for 0",
        ),
        (
            [GangJob("x", "a", (1,), collective="ps", servers=2, server=Demand(0, memory=101.0))],
            "job x needs 2 parameter servers, the nodes that it may use have room for 0",
        ),
    ],
)
def test_impossible(jobs: list[GangJob], words: str) -> None:
    """Batches that plainly have no placement are told so, with what is short."""
    assert impossible(PreparedBatch(PlacementProblem(FLEET, tuple(jobs), SPEEDS))) == words


@pytest.mark.parametrize("count", [80, 2_000])
def test_many_shares_are_packed(count: int) -> None:
    """Of more tasks than are searched through, those that fit are spread evenly, and as tight as need be."""
    items = [(j, 0.1, 1) for j in range(count)]
    held = pack(items, count // 10, lambda a, b: 1.0)
    assert held is not None and all(len(card) == 10 for card in held)
    assert pack(items, count // 10 - 1, lambda a, b: 1.0) is None and fewest(items, count) == count // 10
    assert fewest(items, count // 10 - 1) is None
    spread = pack(items, count - 1, lambda a, b: 1.0)
    assert spread is not None and max(map(len, spread)) == 2


def test_mixed_shares_that_only_fit_tight() -> None:
    """Spread evenly small tasks would take the room of others: large ones come first, each where least is left."""
    items = [(0, 0.6, 20), (1, 0.4, 20), (2, 0.2, 20)]
    held = pack(items, 24, lambda a, b: 1.0)
    assert held is not None
    assert all(sum(items[j][1] * n for j, n in card.items()) <= 1 + 1e-6 for card in held)
    assert [sum(card.get(j, 0) for card in held) for j in range(3)] == [20, 20, 20]


@pytest.mark.parametrize(("share", "count"), [(0.1, 80), (0.3, 20), (8 / 3_000, 3_000)])
def test_first_fit_puts_jobs_on_the_same_gpus(share: float, count: int) -> None:
    """A first plan has shares of several jobs on a GPU once none is idle, and whole GPUs still find room."""
    whole = [GangJob(f"w{i}", "a", (1,)) for i in range(2)]
    small = [GangJob(f"s{i}", "b", (1,), Demand(share)) for i in range(count)]
    problem = PlacementProblem(Fleet.regular(1, 1, 10), (*small, *whole), SPEEDS)
    run = Run(problem, time_limit=60.0)
    quick(run, PreparedBatch(problem))
    assert run.plan is not None and len(run.plan.grant_gpu) == count + 2


def test_first_fit_gives_gpus_back() -> None:
    """What a gang that fails for its servers had of GPUs, beside others too, the next ones get."""
    jobs = (
        GangJob("big", "a", (2,), Demand(0.5), servers=2, server=Demand(0, cpu=1e6), collective="ps", value=1.0),
        GangJob("a", "a", (1,), Demand(0.5)),
        GangJob("b", "b", (1,), Demand(0.5)),
    )
    problem = PlacementProblem(Fleet.regular(1, 1, 1), jobs, SPEEDS)
    run = Run(problem, time_limit=60.0)
    quick(run, PreparedBatch(problem))
    assert run.plan is not None and run.plan.job.tolist() == [1, 2]


def test_jobs_that_meet_on_several_gpus_slow_each_other_once() -> None:
    """Two gangs of half GPUs beside each other on four GPUs are slowed as on one, as the model says."""
    jobs = tuple(GangJob(name, name, (4,), Demand(0.5)) for name in "ab")
    problem = PlacementProblem(Fleet.regular(1, 1, 4), jobs, SPEEDS)
    grants = np.repeat([0, 1], 4), np.tile(np.arange(4), 2)
    plan = PlacementPlan(("a", "b"), np.arange(2), np.zeros(2, int), np.full(2, 4), np.zeros(2, int), *grants)
    assert rates(problem, plan).compute.tolist() == [3.0, 3.0]  # 1 + 2 on a GPU; on the node alone it were 1.8
