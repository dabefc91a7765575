"""Replicated stages: the problem refuses what it cannot mean, and the verifier's sums are those done by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import (
    Cluster,
    DeviceType,
    InstanceError,
    Level,
    OpGraph,
    StagesPlan,
    StagesProblem,
    TensorMenu,
    TreeTopology,
    dump,
    load,
    megatron,
    verify,
    with_objective,
)
from gangplan.instances.graph import with_backward
from gangplan.instances.verify.stages import nesting, totals


def chain(weights: tuple[float, ...] = (6, 0), outputs: tuple[float, ...] = (5, 2)) -> OpGraph:
    """Make a chain whose op i runs 1 + i seconds forward and 3 + i back."""
    n = len(weights)
    w, x = np.array(weights, dtype=float), np.array(outputs, dtype=float)
    forward = OpGraph(
        names=tuple("abcdef"[:n]),
        device_types=("gpu",),
        time=1.0 + np.arange(n)[None],
        memory=x + w,
        parameter_bytes=w,
        activation_bytes=x,
        source=np.arange(n - 1),
        target=np.arange(1, n),
        edge_bytes=x[:-1],
    )
    return with_backward(forward, 3.0 + np.arange(n)[None], x)


def cluster(*members: int, bandwidth: tuple[float, ...] = (2.0, 1.0, 1.0), memory: float | None = None) -> Cluster:
    """Make a tree with so many members of a group of each level, the innermost first."""
    levels = tuple(Level(f"level{i}", x) for i, x in enumerate(bandwidth[: len(members)]))
    tree = TreeTopology.regular(levels, members)
    return Cluster((DeviceType("gpu", memory=memory),), np.zeros(tree.n_devices, dtype=np.int32), tree)


def plan(problem: StagesProblem, stage: list[int], serves: list[int], degree: list[int] | None = None) -> StagesPlan:
    """Make a plan from the stages of the forward ops; backward ops follow."""
    own = degree if degree is not None else [1] * (max(stage) + 1)
    both = np.array([*stage, *stage[::-1]]) if problem.training else np.array(stage)
    return StagesPlan(problem.graph.names, both, np.array(serves), np.array(own))


def test_a_replicated_stage_shares_its_work_and_synchronises() -> None:
    """Stage 0: (4 + 4 1/2 6/2)/2 = 5; stage 1: 6; moving 2 x 5 bytes takes stage 1 five seconds."""
    problem = StagesProblem(chain(), cluster(3))
    verdict = verify(problem, plan(problem, [0, 1], [0, 0, 1]))
    assert verdict.ok
    assert verdict.objective == 6.0
    assert verdict.load.tolist() == [5.0, 5.0, 6.0]
    assert verdict.transfer.tolist() == [3.0, 3.0, 0.0]
    # a: 11 and 5 once, and one more sample with its 5 and a version of 6; b: 2 and 2
    assert verdict.memory.tolist() == [27.0, 27.0, 4.0]


def test_moving_activations_can_take_longest() -> None:
    """Over a link of half a byte a second 10 bytes take 20 s, shared by two replicas on one side only."""
    problem = StagesProblem(chain((0, 0)), cluster(3, bandwidth=(0.5,)))
    answer = plan(problem, [0, 1], [0, 0, 1])
    assert verify(problem, answer).objective == 20.0
    assert verify(replace(problem, activations=False), answer).objective == 6.0


def test_levels_synchronise_one_after_the_other() -> None:
    """One stage on 2 x 2: inside (4 + 6)/2 = 5, between servers each device half of the 6 bytes: (5 + 6)/2."""
    problem = StagesProblem(chain((6,), (5,)), cluster(2, 2))
    verdict = verify(problem, plan(problem, [0], [0, 0, 0, 0]))
    assert verdict.objective == 5.5
    assert verdict.transfer.tolist() == [1.5 + 3.0] * 4


def test_a_pipeline_inside_a_replica() -> None:
    """Both servers run a then b: inside max(4, 6), and servers agree on a's 6 bytes: (6 + 6)/2."""
    problem = StagesProblem(chain(outputs=(1, 1)), cluster(2, 2))
    answer = plan(problem, [0, 1], [0, 1, 1, 0])
    assert nesting(problem, answer) == (((2, ((1, 0), (1, 1))),), [])
    assert verify(problem, answer).objective == 6.0
    # two replicas of b wait for two of a
    assert verify(problem, answer).memory.tolist() == [2 + 6 + 7.0, 2.0, 2.0, 2 + 6 + 7.0]


def test_memory_models() -> None:
    """PipeDream counts what further samples add; without stashing there is one version; recomputation keeps inputs."""
    problem = StagesProblem(chain((6, 3)), cluster(3))
    answer = plan(problem, [0, 1], [0, 1, 1])

    def memory(**fields: Any) -> list[float]:
        return verify(replace(problem, **fields), answer).memory.tolist()[:2]

    # a has two samples more under way
    assert memory() == [16 + 2 * 11.0, 7.0]
    assert memory(memory_model="pipedream") == [22.0, 0.0]
    assert memory(memory_model="none") == [0.0, 0.0]
    assert memory(stashing=False) == [16 + 2 * 5.0, 7.0]
    assert memory(recompute=True) == [16 + 2 * 6.0, 7.0]
    other = plan(problem, [0, 1], [0, 0, 1])
    assert verify(replace(problem, recompute=True), other).load.tolist() == [(4 + 1 + 6) / 2.0] * 2 + [6 + 2.0]


def test_recomputation_keeps_the_inputs_of_a_stage() -> None:
    """The middle stage keeps, for the sample it waits for, the 5 bytes that a hands it and its weights."""
    problem = StagesProblem(chain((0, 6, 0), (5, 4, 1)), cluster(3), recompute=True)
    verdict = verify(problem, plan(problem, [0, 1, 2], [0, 1, 2]))
    assert verdict.memory.tolist() == [10.0, 10 + 4 + 5 + 6.0, 2.0]


def test_too_little_memory_is_said_of_the_stage() -> None:
    """A device of stage 0 needs 27 bytes and has 26."""
    problem = StagesProblem(chain(), cluster(3, memory=26.0))
    verdict = verify(problem, plan(problem, [0, 1], [0, 0, 1]))
    assert verdict.violations == ("memory: a device of stage 0 needs 27 B, it has 26 B",)
    assert verdict.objective is None


def test_tensor_parallel_stage() -> None:
    """On two devices a takes half its 4 s and moves 2 1/2 5 bytes forward and back; two such replicas share that."""
    graph = chain((6,), (5,))
    problem = StagesProblem(graph, cluster(4), menu=megatron(graph, "gpu", (1, 2)))
    verdict = verify(problem, plan(problem, [0], [0, 0, 0, 0], [2]))
    assert problem.seconds().tolist() == [[1.0, 3.0], [0.5 + 2.5, 1.5 + 2.5]]
    # (7 + 4 1/2 3/2)/2, with 3 of the 6 bytes of weights on each device
    assert verdict.objective == 5.0
    assert verdict.memory.tolist() == [(11 + 5) / 2] * 4


def test_latency_of_links_counts() -> None:
    """Two rounds of a ring of two devices and both ways of a move pay the latency of the link."""
    problem = StagesProblem(chain(), Cluster.flat((DeviceType("gpu"), 3), bandwidth=2.0, latency=10.0))
    verdict = verify(problem, plan(problem, [0, 1], [0, 0, 1]))
    assert verdict.load.tolist() == [15.0, 15.0, 6.0]
    assert verdict.objective == 25.0


def test_a_forward_pass_neither_synchronises_nor_keeps() -> None:
    """Without a backward pass replicas share the work and nothing else, and moves go one way."""
    whole = chain()
    forward = replace(
        whole,
        names=whole.names[:2],
        time=whole.time[:, :2],
        **{
            f: getattr(whole, f)[:2]
            for f in ("memory", "parameter_bytes", "activation_bytes", "colocation", "backward")
        },
        twin=[-1, -1],
        source=[0],
        target=[1],
        edge_bytes=[5.0],
    )
    problem = StagesProblem(forward, cluster(3))
    verdict = verify(problem, plan(problem, [0, 1], [0, 0, 1]))
    assert verdict.objective == 2.5
    assert verdict.memory.tolist() == [11.0, 11.0, 2.0]


@pytest.mark.parametrize(
    ("stage", "serves", "degree", "words"),
    [
        ([1, 0], [0, 1, 1, 0], [1, 1], "pipeline: op a (stage 1) comes before op b (stage 0) in the graph"),
        ([0, 0], [0, 1, 1, 0], [1, 1], "stage 1 has no op"),
        ([0, 1], [0, 0, 0, 0], [1, 1], "stage 1 is served by no device"),
        ([0, 1], [0, 1, 0, 0], [1, 1], "level1 0: its level0s share stage 0, but not in the same way"),
        ([0, 1], [0, 0, -1, 1], [2, 2], "level0 1: 1 devices serve stage 1, a replica of it takes 2"),
        ([0, 1], [0, 1, 0, 1], [1, 3], "stage 1 shares its ops among 3 devices, the menu has 1, 2"),
        ([0, 1], [0, 1, 0], [1, 1], "the plan says what 3 devices serve, the cluster has 4"),
    ],
)
def test_violations_in_words(stage: list[int], serves: list[int], degree: list[int], words: str) -> None:
    """What is wrong with a plan is said of the stage or the group it is wrong in."""
    graph = chain()
    problem = StagesProblem(graph, cluster(2, 2), menu=megatron(graph, "gpu", (1, 2)))
    verdict = verify(problem, plan(problem, stage, serves, degree))
    assert words in verdict.violations
    assert verdict.objective is None


def test_side_by_side_and_apart() -> None:
    """A server with the first and the last of three stages does not run a pipeline of its own."""
    problem = StagesProblem(chain((0, 0, 0), (1, 1, 1)), cluster(2, 2))
    verdict = verify(problem, plan(problem, [0, 1, 2], [0, 2, 1, 1]))
    assert "level0 0: it serves the stages 0 and 2, but none between" in verdict.violations


def test_colocated_ops_are_in_one_stage() -> None:
    """A backward op is where its forward op is."""
    problem = StagesProblem(chain(), cluster(3))
    answer = StagesPlan(problem.graph.names, [0, 1, 1, 1], [0, 0, 1], [1, 1])
    words = "colocation: op a/backward is in stage 1, op a of its class in stage 0"
    assert verify(problem, answer).violations == (words,)


def test_ops_without_the_degree() -> None:
    """An op that has no such degree cannot run, nor one whose replica is larger than an innermost group."""
    graph = chain()
    menu = megatron(graph, "gpu", (1, 2, 4))
    time = menu.time.copy()
    time[1, 0] = np.inf
    problem = StagesProblem(graph, cluster(2, 2), menu=replace(menu, time=time))
    wide = verify(problem, plan(problem, [0, 0], [0, 0, 0, 0], [4]))
    assert wide.violations[0] == "op a cannot run on 4 devices of one level0 of 2"
    barred = verify(problem, plan(problem, [0, 0], [0, 0, 0, 0], [2]))
    assert barred.violations == ("op a cannot run on 2 devices of one level0 of 2",)


def test_replicas_are_counted_over_all_levels() -> None:
    """Two of three servers run a twice each; the third runs b on one device and idles the other."""
    problem = StagesProblem(chain(), cluster(2, 3))
    nest, words = nesting(problem, plan(problem, [0, 1], [0, 0, 1, -1, 0, 0]))
    assert not words
    assert totals(nest) == {0: 4, 1: 1}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"activations": 1}, "activations"),
        ({"recompute": "yes"}, "recompute"),
        ({"stashing": None}, "stashing"),
        ({"memory_model": "gpipe"}, "memory_model"),
        ({"menu": megatron(chain((1,), (1,)), "gpu", (1,))}, "menu"),
        ({"cluster": Cluster.flat((DeviceType("gpu", host=True), 2), bandwidth=1.0)}, "cluster.type_of"),
    ],
)
def test_bad_fields(change: dict[str, Any], field: str) -> None:
    """A field that makes no sense is named."""
    problem = StagesProblem(chain(), cluster(3))
    with pytest.raises(InstanceError) as caught:
        replace(problem, **change)
    assert caught.value.field == field


def test_groups_of_different_sizes_are_refused() -> None:
    """A server of two and one of one are no regular tree."""
    tree = TreeTopology((Level("server", 1.0), Level("rack", 1.0)), [[0, 0, 1], [0, 0, 0]])
    with pytest.raises(InstanceError, match="servers of 1 and of 2 devices; all must be of one size"):
        StagesProblem(chain(), Cluster((DeviceType("gpu"),), [0, 0, 0], tree))


def test_two_types_of_devices_are_refused() -> None:
    """Replicas on unlike devices are no part of the model, and the error says so."""
    graph = replace(chain(), device_types=("gpu", "old"), time=np.repeat(chain().time, 2, axis=0))
    mixed = Cluster.flat((DeviceType("gpu"), 1), (DeviceType("old"), 1), bandwidth=1.0)
    with pytest.raises(InstanceError, match="gpu, old are 2 types of devices"):
        StagesProblem(graph, mixed)


def test_recomputation_needs_a_backward_pass() -> None:
    """There is nothing to compute again in a forward pass."""
    single = replace(chain((1,), (1,)), backward=[False, False])
    with pytest.raises(InstanceError, match="recompute"):
        StagesProblem(single, cluster(2), recompute=True)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"degree": [2, 1]}, "degree[1]"),
        ({"degree": [0, 1]}, "degree[0]"),
        ({"time": [[1.0, np.nan]] * 2}, "time[0][1]"),
        ({"memory": [[1.0, -1.0]] * 2}, "memory[0][1]"),
        ({"sync_bytes": [[np.inf, 1.0]] * 2}, "sync_bytes[0][0]"),
        ({"parameter_bytes": [[1.0]]}, "parameter_bytes"),
    ],
)
def test_bad_menus(change: dict[str, Any], field: str) -> None:
    """An entry of a menu that makes no sense is named."""
    menu = megatron(chain((1,), (1,)), "gpu", (1, 2))
    with pytest.raises(InstanceError) as caught:
        replace(menu, **change)
    assert caught.value.field == field


def test_megatron_refuses_a_degree_of_zero() -> None:
    """Nothing runs on no device."""
    with pytest.raises(InstanceError, match=r"degrees\[1\]: 0 is not a positive whole number"):
        megatron(chain(), "gpu", (1, 0))


@pytest.mark.parametrize("with_menu", [False, True])
def test_documents(with_menu: bool) -> None:
    """A problem and a plan come back from JSON as they were, a menu with degrees some ops lack included."""
    graph = chain()
    menu = megatron(graph, "gpu", (1, 2))
    time = menu.time.copy()
    time[1, 1] = np.inf
    problem = StagesProblem(
        graph, cluster(2, 2, memory=1e3), stashing=False, menu=replace(menu, time=time) if with_menu else None
    )
    answer = plan(problem, [0, 1], [0, 1, 0, 1])
    again = load(dump(problem))
    assert dump(again) == dump(problem)
    assert isinstance(again, StagesProblem)
    assert (again.menu is None) is not with_menu
    assert verify(again, load(dump(answer))).objective == verify(problem, answer).objective


def test_another_option_keeps_the_others() -> None:
    """Asking a stages problem for one option leaves its other fields alone."""
    problem = StagesProblem(chain(), cluster(3), memory_model="none")
    changed = with_objective(problem, "stages", recompute=True)
    assert (changed.memory_model, changed.recompute) == ("none", True)


def test_devices_are_in_any_order() -> None:
    """A tree that numbers its servers' devices alternately means the same cluster."""
    tree = TreeTopology((Level("server", 2.0), Level("rack", 1.0)), [[0, 1, 0, 1], [0, 0, 0, 0]])
    problem = StagesProblem(chain(), Cluster((DeviceType("gpu"),), np.zeros(4, dtype=int), tree))
    straight = StagesProblem(chain(), cluster(2, 2))
    mine = verify(problem, plan(problem, [0, 1], [0, 1, 0, 1]))
    assert mine.objective == verify(straight, plan(straight, [0, 1], [0, 0, 1, 1])).objective
    assert mine.ok


def test_a_menu_is_a_menu() -> None:
    """The menu of one degree is the graph itself."""
    graph = chain()
    alone = StagesProblem(graph, cluster(2)).options()
    assert isinstance(alone, TensorMenu)
    assert alone.time.tolist() == graph.time.tolist()
    assert megatron(graph, "gpu", (1,)).time.tolist() == graph.time.tolist()


def test_megatron_is_deprecated() -> None:
    """Who makes a menu is told what replaces it."""
    graph = chain()
    with pytest.warns(DeprecationWarning, match="LayoutProblem"):
        megatron(graph, "gpu", (1, 2))
