"""A plan written back: pieces, modules, split points, idle devices, and the split model run as processes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.distributed import pipelining  # noqa: E402

from gangplan import solve, verify  # noqa: E402
from gangplan.instances import InstanceError, LatencyPlan, PartitionPlan, PartitionProblem, StagesPlan  # noqa: E402
from gangplan.instances.torch_model.build import Modelled, model_problem  # noqa: E402
from gangplan.instances.torch_model.program import tensors  # noqa: E402
from gangplan.torch_split.launch import (  # noqa: E402
    pack,
    run_split,
    unpack,
)
from gangplan.torch_split.mapping import cuts, places, split_points  # noqa: E402
from gangplan.torch_split.pieces import forward_part, pieces, stage_devices  # noqa: E402
from gangplan.torch_split.reference import differences  # noqa: E402
from gangplan.torch_split.spread import spread  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


def balanced(made: Modelled) -> PartitionPlan:
    """Return the best plan with no device left idle that can take something over."""
    result = solve(made.problem, time_limit=20)
    assert result.plan is not None
    return spread(made.problem, result.plan)


def scattered(made: Modelled, seed: int) -> PartitionPlan:
    """Return a plan that puts each class of ops on a random device."""
    graph, cluster = made.problem.graph, made.problem.cluster
    n = graph.n_ops
    place = np.random.default_rng(seed).integers(cluster.n_devices, size=n)
    group = np.where(graph.colocation >= 0, graph.colocation, n + np.arange(n))
    device = place[np.unique(group, return_inverse=True)[1]]
    return PartitionPlan(graph.names, device, np.unique(device, return_inverse=True)[1])


def run_pieces(made: Modelled, plan: PartitionPlan) -> dict[str, Any]:
    """Run the pieces of a plan here, each on nothing but what it says it needs; return the outputs."""
    program = made.ops.profile.program
    passed: dict[str, Any] = {}
    outputs = {}
    for i, piece in enumerate(pieces(made.ops, *forward_part(made.ops, plan))):
        values = {name: passed[name, i] for name in piece.receives}
        values |= {name: program.inputs[name] for name in piece.inputs}
        values |= {
            name: x if program.is_parameter(name) else x.clone() for name in piece.state for x in [program.state[name]]
        }
        for node in piece.nodes:
            values[node.name] = node.run(values)
        passed |= {(name, user): unpack(pack(values[name])) for name, users in piece.sends.items() for user in users}
        outputs |= {name: values[name] for name in piece.outputs}
    return outputs


@pytest.mark.parametrize("name", ["resnet", "still_encoder", "explicit", "gpt2", "writing", "modes", "unknown"])
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_pieces_compute_the_whole(name: str, seed: int | None, load: Any) -> None:
    """Pieces that see only what they receive compute the model's outputs, for a best plan and for scattered ops."""
    model = load(name)
    made = model_problem(model, devices=3, variant="contiguous" if seed is None else "free")
    plan = balanced(made) if seed is None else scattered(made, seed)
    buffers = {k: x.clone() for k, x in model.module.named_buffers()}
    expected = tensors(torch.func.functional_call(model.module, buffers, model.args, model.kwargs))
    outputs = run_pieces(made, plan)
    for title, x in zip(made.ops.profile.program.outputs, expected, strict=True):
        torch.testing.assert_close(outputs[title], x, rtol=1e-6, atol=1e-7)


def test_memory_that_is_filled_later(load: Any) -> None:
    """Memory that is allocated first and filled by several ops is made once, where it is filled."""
    model = load("filling")
    made = model_problem(model, devices=2)
    outputs = run_pieces(made, balanced(made))
    program = made.ops.profile.program
    assert outputs.keys() == set(program.outputs)  # an output that no piece makes would be taken from the whole model
    for title, x in zip(program.outputs, model.module(*model.args), strict=True):
        torch.testing.assert_close(outputs[title], x)


def test_a_pipeline_has_a_piece_for_each_stage(load: Any) -> None:
    """A contiguous plan gives one piece a stage, and a stage receives from earlier ones only."""
    made = model_problem(load("gpt2"), devices=4)
    plan = balanced(made)
    device, stage = forward_part(made.ops, plan)
    parts = pieces(made.ops, device, stage)
    assert len(parts) == len(set(stage)) == 4
    assert [part.device for part in parts] == list(dict.fromkeys(d for _, d in sorted(zip(stage, device, strict=True))))
    assert all(user > i for i, part in enumerate(parts) for users in part.sends.values() for user in users)


@pytest.mark.parametrize(
    ("name", "whole"), [("gpt2", "blocks.?"), ("resnet", "layers.?"), ("still_encoder", "layers.?")]
)
def test_split_points_are_those_of_pipelining(name: str, whole: str, load: Any) -> None:
    """`torch.distributed.pipelining` takes the split points, makes as many stages, and computes the same."""
    model = load(name)
    made = model_problem(model, devices=3, whole=[whole])
    plan = balanced(made)
    _, stage = forward_part(made.ops, plan)
    found = cuts(made.ops, stage)
    points = split_points(found)
    assert len(points) == len(set(stage)) - 1 > 0
    spec = {module: getattr(pipelining.SplitPoint, point) for module, point in points.items()}
    buffers = {k: x.clone() for k, x in model.module.named_buffers()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe = pipelining.pipeline(model.module, model.args, split_spec=spec)
    assert pipe.num_stages == len(set(stage))
    expected = torch.func.functional_call(model.module, buffers, model.args)
    for mine, real in zip(tensors(pipe(*model.args)), tensors(expected), strict=True):
        torch.testing.assert_close(mine, real)
    where = places(made.ops, stage, stage)
    for i in range(pipe.num_stages):
        for module, _ in pipe.get_stage_module(i).named_modules():
            # the head shares its matrix with the embedding, so that torch shows it in both stages
            if module != "head" and any(op.module == module for op in made.ops.ops):
                assert i in where[module].stages, module


def test_cuts_that_no_module_begins(load: Any) -> None:
    """A cut between two ops of one module, and one across parallel branches, have no split point and say so."""
    made = model_problem(load("gpt2"), training=False)
    names = [op.name for op in made.ops.ops]
    middle = names.index("blocks.1/add")  # follows attention: the end of that is a point
    (cut,) = cuts(made.ops, [int(i >= middle) for i in range(len(names))])
    assert (cut.module, cut.point, cut.problem) == ("blocks.1.attention", "END", None)
    begin = names.index("blocks.2.norm1/layer_norm")
    (cut,) = cuts(made.ops, [int(i >= begin) for i in range(len(names))])
    assert (cut.module, cut.point) == ("blocks.2", "BEGINNING")
    arange = names.index("arange")
    (cut,) = cuts(made.ops, [int(i > 0 and i != arange + 1) for i in range(len(names))])
    assert cut.module is None and "positions/embedding" in str(cut.problem)
    explicit = model_problem(load("explicit"), training=False)
    kinds = [op.kind for op in explicit.ops.ops]
    (cut,) = cuts(explicit.ops, [int(i > kinds.index("div")) for i in range(len(kinds))])
    assert cut.module is None and "softmax" in str(cut.problem) and "inside the outermost module" in str(cut.problem)


def test_places_name_every_module(load: Any) -> None:
    """Each module with ops is somewhere, and a module that a stage boundary cuts is on both sides."""
    made = model_problem(load("resnet"), devices=2)
    plan = balanced(made)
    device, stage = forward_part(made.ops, plan)
    where = places(made.ops, device, stage)
    assert where[""].stages == (0, 1)
    for op, d, s in zip(made.ops.ops, device, stage, strict=True):
        assert (s, d) in zip(where[op.module].stages, where[op.module].devices, strict=True)
    assert {"stem.0", "layers.0.0.conv1", "head"} <= where.keys()


@pytest.mark.parametrize("devices", [2, 5, 8])
def test_spread_costs_nothing(devices: int, load: Any) -> None:
    """Spreading keeps the objective and the constraints, and uses at least as many devices."""
    made = model_problem(load("gpt2"), devices=devices)
    result = solve(made.problem, time_limit=20)
    assert result.plan is not None and result.objective is not None
    wider = spread(made.problem, result.plan)
    verdict = verify(made.problem, wider)
    assert verdict.ok, verdict.violations
    assert verdict.objective is not None and verdict.objective <= result.objective * (1 + 1e-9)
    assert len(set(wider.device.tolist())) >= len(set(result.plan.device.tolist()))


def test_spread_uses_idle_devices() -> None:
    """A chain of 1, 1, 1, 1 and 4 s on five devices, solved by two stages, is cut into five."""
    from gangplan.instances import Cluster, DeviceType, OpGraph

    zero, none = np.zeros(5), np.full(5, -1)
    seconds = [[1.0, 1.0, 1.0, 1.0, 4.0]]
    graph = OpGraph(
        tuple("abcde"), ("gpu",), seconds, zero, zero, zero, [0, 1, 2, 3], [1, 2, 3, 4], zero[:4], none, none, zero > 0
    )
    problem = PartitionProblem(graph, Cluster.flat((DeviceType("gpu"), 5), bandwidth=1.0))
    plan = PartitionPlan(graph.names, [3, 3, 3, 3, 1], [0, 0, 0, 0, 1])
    wider = spread(problem, plan)
    assert wider.stage.tolist() == [0, 1, 2, 3, 4] and sorted(wider.device.tolist()) == [0, 1, 2, 3, 4]
    assert verify(problem, wider).objective == 4.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda plan: replace(plan, ops=("other", *plan.ops[1:])), "ops[0]"),
        (lambda plan: PartitionPlan(plan.ops[:5], plan.device[:5], plan.stage[:5]), "ops"),
    ],
)
def test_plans_for_other_models(change: Callable[[Any], Any], words: str, load: Any) -> None:
    """A plan whose ops are not the model's is refused."""
    made = model_problem(load("gpt2"), devices=2)
    plan = PartitionPlan(
        made.problem.graph.names, np.zeros(made.problem.graph.n_ops, int), np.zeros(made.problem.graph.n_ops, int)
    )
    with pytest.raises(InstanceError) as caught:
        forward_part(made.ops, change(plan))
    assert words in str(caught.value)


def test_plans_without_stages(load: Any) -> None:
    """A plan for latency gets its stages from the order in which the model comes to the devices."""
    made = model_problem(load("linear"), training=False)
    plan = LatencyPlan(made.problem.graph.names, [3])
    assert forward_part(made.ops, plan) == ([3], [0])


def test_plans_with_replicated_stages(load: Any) -> None:
    """A plan with replicated stages runs one replica of each, and the mapping has all their devices."""
    made = model_problem(load("gpt2"), devices=4)
    n = made.problem.graph.n_ops
    half = np.concatenate([np.arange(n // 2) > 9, np.arange(n // 2)[::-1] > 9]).astype(int)
    plan = StagesPlan(made.problem.graph.names, half, [1, 0, 1, 1], [1, 1])
    device, stage = forward_part(made.ops, plan)
    assert (device[0], stage[0], device[-1], stage[-1]) == (1, 0, 0, 1)
    assert stage_devices(plan, device, stage) == [
        {"stage": 0, "devices": [1], "degree": 1},
        {"stage": 1, "devices": [0, 2, 3], "degree": 1},
    ]
    assert [part.device for part in pieces(made.ops, device, stage)] == [1, 0]


def test_wire() -> None:
    """Tensors of every kind survive their way between processes."""
    values = [
        torch.arange(6.0).reshape(2, 3).t().requires_grad_(),
        torch.tensor(3),
        torch.zeros(0, 4),
        torch.tensor([True, False]),
        torch.ones(3, dtype=torch.bfloat16),
        torch.tensor([1 + 2j]).conj(),
        {"nested": (torch.ones(2), None, 7)},
    ]
    for value, back in zip(values, unpack(pack(values)), strict=True):
        for mine, whole in zip(tensors(back), tensors(value), strict=True):
            assert (mine.dtype, mine.shape, mine.requires_grad) == (whole.dtype, whole.shape, whole.requires_grad)
            assert torch.equal(mine, whole)
    assert unpack(pack(values[0])).stride() == values[0].stride()
    assert unpack(pack(values))[-1]["nested"][1:] == (None, 7)


def test_split_run_of_a_resnet(load: Any) -> None:
    """A ResNet in training mode, over three processes, has the outputs, gradients and buffers of the whole one."""
    model = load("resnet")
    before = {k: x.clone() for k, x in model.module.state_dict().items()}
    made = model_problem(model, devices=3)
    parts = pieces(made.ops, *forward_part(made.ops, balanced(made)))
    assert len(parts) == 3
    run = run_split(model, made.ops, parts, training=True)
    found = {x.what: x for x in differences(run)}
    assert found.keys() == {"outputs", "gradients", "buffers"} and not run.whole.traced
    assert all(x.same for x in found.values()), found
    assert found["gradients"].tensors == len(list(model.module.parameters()))
    model.module(*model.args)  # the buffers it ends with are those that the split run ended with
    for name, x in model.module.named_buffers():
        torch.testing.assert_close(run.buffers[f"%{name}"], x)
    assert any(not torch.equal(before[k], x) for k, x in model.module.named_buffers())


def test_split_run_of_what_writes_and_of_frozen_parameters(load: Any) -> None:
    """Writes in place, and parameters that want no gradient, change nothing in the comparison."""
    model = load("writing")
    model.module.second.requires_grad_(False)
    made = model_problem(model, devices=2)
    half = len(made.ops.ops) - 2
    parts = pieces(made.ops, *(2 * [[int(i >= half) for i in range(len(made.ops.ops))]]))
    assert len(parts) == 2
    run = run_split(model, made.ops, parts, training=True)
    found = differences(run)
    assert all(x.same for x in found), found
    assert run.gradients.keys() == {"%first.weight", "%first.bias"} and run.buffers["%seen"] != 0


def test_split_run_of_scattered_ops_with_dropout(load: Any) -> None:
    """Ops scattered at random, with dropout, still compute what the traced model computes, gradients included."""
    model = load("encoder")
    made = model_problem(model, devices=2, variant="free")
    parts = pieces(made.ops, *forward_part(made.ops, scattered(made, 2)))
    assert len(parts) > 4
    run = run_split(model, made.ops, parts, training=True, seed=5)
    found = differences(run)
    assert run.whole.traced and all(x.same for x in found), found
    assert {x.what for x in found} >= {"outputs", "gradients"}


def test_a_difference_is_found(load: Any) -> None:
    """A split run of other parameters than the model's is told from the model, and one that lacks a result too."""
    model = load("gpt2")
    made = model_problem(model, devices=1)
    parts = pieces(made.ops, *forward_part(made.ops, balanced(made)))
    program = made.ops.profile.program
    title = "%blocks.1.feed.0.bias"
    program.state[title] = torch.nn.Parameter(program.state[title] + 0.1)
    run = run_split(model, made.ops, parts, training=False)
    (outputs,) = differences(run)
    assert not outputs.same and outputs.relative > 1e-5 and outputs.worst in program.outputs
    lost = replace(run, outputs={})
    assert not differences(lost)[0].same and differences(lost)[0].missing == tuple(sorted(program.outputs))
    broken = replace(run, outputs={k: x * float("nan") for k, x in run.outputs.items()})
    assert not differences(broken)[0].same


def test_a_process_that_dies_is_reported(load: Any) -> None:
    """A process that is killed, as for lack of memory, does not leave the caller waiting."""
    model = load("linear")
    made = model_problem(model, devices=1, training=False)
    (part,) = pieces(made.ops, [0], [0])
    bad = replace(part, nodes=tuple(replace(node, call=os._exit, args=(3,), kwargs={}) for node in part.nodes))
    with pytest.raises(InstanceError, match="the process of device 0 ended early"):
        run_split(model, made.ops, (bad,), training=False)


def test_a_failing_process_is_reported(load: Any) -> None:
    """An error in a process reaches the caller in one line, with the device it happened on."""
    model = load("linear")
    made = model_problem(model, devices=1, training=False)
    (part,) = pieces(made.ops, [0], [0])
    bad = replace(
        part, nodes=tuple(replace(node, args=(*node.args, "too", "many", "arguments")) for node in part.nodes)
    )
    with pytest.raises(InstanceError, match="device 0: "):
        run_split(model, made.ops, (bad,), training=False)
