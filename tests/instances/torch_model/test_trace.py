"""Tracing: the program computes what the model computes, and its costs are those that torch itself counts."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from gangplan.instances import InstanceError  # noqa: E402
from gangplan.instances.torch_model.program import STATE, tensors  # noqa: E402
from gangplan.instances.torch_model.trace import trace  # noqa: E402

EXPORTED = ["resnet", "still_encoder", "explicit", "gpt2"]
BOTH = [(name, "export") for name in [*EXPORTED, "encoder", "writing", "modes"]] + [
    (name, "fx") for name in ("resnet", "still_encoder", "unknown")
]

pytestmark = pytest.mark.usefixtures("one_thread")


def products(ops: Any, backward: bool) -> float:
    """Return the FLOPs of all products."""
    found = ops.profile.backward if backward else ops.profile.forward
    return sum(kernel.flops for kernels in found.values() for kernel in kernels if kernel.product)


def fresh_buffers(module: Any) -> dict[str, Any]:
    """Return copies of the module's buffers by name, to be written into."""
    return {name: x.clone() for name, x in module.named_buffers()}


@pytest.mark.parametrize(("name", "way"), BOTH)
def test_program_computes_the_same(name: str, way: str, load: Any, traced: Any) -> None:
    """The calls of the trace, one after the other, give the model's outputs and leave its buffers as it does."""
    model = load(name)
    ops = traced(model, way)
    buffers = fresh_buffers(model.module)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        expected = tensors(torch.func.functional_call(model.module, buffers, model.args, model.kwargs))
        program = ops.profile.program
        state = {k: x if program.is_parameter(k) else x.clone() for k, x in program.state.items()}
        values = {**program.inputs, **state}
        torch.manual_seed(3)
        for node in program.nodes:
            values[node.name] = node.run(values)
    assert len(program.outputs) == len(expected) > 0
    for name_, x in zip(program.outputs, expected, strict=True):
        torch.testing.assert_close(values[name_], x, rtol=0, atol=0)
    for title, x in state.items():
        if title.removeprefix(STATE) in buffers:
            torch.testing.assert_close(x, buffers[title.removeprefix(STATE)], rtol=0, atol=0)


@pytest.mark.parametrize(("name", "way"), BOTH)
def test_values_have_the_shapes_they_have(name: str, way: str, load: Any, traced: Any) -> None:
    """Shape, type and gradient of every traced value are those of the value that comes out when it is run."""
    ops = traced(load(name), way)
    program = ops.profile.program
    values = {**program.inputs, **{k: x if program.is_parameter(k) else x.clone() for k, x in program.state.items()}}
    for node in program.nodes:
        values[node.name] = node.run(values)
        mine, real = tensors(ops.profile.values[node.name]), tensors(values[node.name])
        assert [(x.shape, x.dtype, x.requires_grad) for x in mine] == [
            (x.shape, x.dtype, x.requires_grad) for x in real
        ]


@pytest.mark.parametrize("way", ["export", "fx"])
@pytest.mark.parametrize("name", ["resnet", "explicit"])
def test_flops_of_products(name: str, way: str, load: Any, traced: Any) -> None:
    """Products have as many FLOPs, forward and backward, as torch's own counter counts."""
    model = load(name)
    ops = traced(model, way)
    count = FlopCounterMode(display=False)
    with count:
        result = torch.func.functional_call(model.module, fresh_buffers(model.module), model.args)
    forward = count.get_total_flops()
    with count:
        result.sum().backward()
    if name == "explicit":  # torch's counter knows no LSTM; its products: 2 matrices, 4 gates, 8 wide, for 2 x 5 tokens
        lstm = 2 * 10 * (32 * 12 + 32 * 8)
        counted_lstm = sum(
            k.flops for kernels in ops.profile.forward.values() for k in kernels if k.name == "mkldnn_rnn_layer"
        )
        assert counted_lstm in (0, lstm)
        assert products(ops, backward=False) == forward + counted_lstm
    else:
        assert products(ops, backward=False) == forward > 1e6
        assert products(ops, backward=True) == count.get_total_flops() > forward


@pytest.mark.parametrize("name", ["still_encoder", "gpt2"])
def test_flops_of_attention(name: str, load: Any, traced: Any) -> None:
    """A fused attention has the FLOPs of its two products forward, and of five backward: scores are computed anew."""
    model = load(name)
    ops = traced(model, "export")
    count = FlopCounterMode(display=False)
    with sdpa_kernel(SDPBackend.MATH), count:
        results = [x for x in tensors(model.module(*model.args)) if x.is_floating_point()]
    forward = count.get_total_flops()
    with sdpa_kernel(SDPBackend.MATH), count:
        results[-1].sum().backward()
    assert products(ops, backward=False) == forward
    attention = [k for kernels in ops.profile.forward.values() for k in kernels if k.name.startswith("_scaled_dot")]
    assert attention
    again = sum(k.flops for k in attention) / 2
    assert products(ops, backward=True) == count.get_total_flops() + again


@pytest.mark.parametrize("name", EXPORTED)
def test_parameters_are_all_there(name: str, load: Any, traced: Any) -> None:
    """The trace reads every parameter of the model, a tied one once, and names modules that the model has."""
    model = load(name)
    ops = traced(model, "export")
    program = ops.profile.program
    held = {k: x for k, x in program.state.items() if program.is_parameter(k)}
    assert sum(x.numel() for x in held.values()) == sum(p.numel() for p in model.module.parameters())
    assert {k.removeprefix(STATE) for k in held} == {k for k, _ in model.module.named_parameters()}
    modules = dict(model.module.named_modules())
    for op in ops.ops:
        assert op.module in modules
        assert op.name.startswith(f"{op.module}/") or not op.module


def test_ops_fold_views(load: Any, traced: Any) -> None:
    """A view belongs to the op whose result it shows: no op of GPT-2 is one, and each layer has ten."""
    ops = traced(load("gpt2"), "export")
    kinds = {op.kind for op in ops.ops}
    assert not kinds & {"view", "getitem", "transpose", "permute", "unbind", "flatten"}
    assert sum("blocks.2" in op.name for op in ops.ops) == 10
    assert len({op.name for op in ops.ops}) == len(ops.ops)


def test_in_place_becomes_functional(load: Any, traced: Any) -> None:
    """ResNet's ReLUs and sums in place become functional, and the counters of its norms no ops of their own."""
    ops = traced(load("resnet"), "export")
    assert {op.kind for op in ops.ops} == {
        *("conv2d", "batch_norm", "relu", "max_pool2d", "add", "adaptive_avg_pool2d", "linear")
    }
    assert ops.written() == []


def test_memory_written_into_stays_together(load: Any, traced: Any) -> None:
    """Ops that share memory which one writes into are found: the slice that is set, and the buffer."""
    ops = traced(load("writing"), "export")
    names = [{ops.ops[i].name for i in group} for group in ops.written()]
    assert any(any("copy_" in name or "fill_" in name for name in group) for group in names)
    seen = next(i for i, op in enumerate(ops.ops) if "%seen" in op.state)
    readers = {i for i, op in enumerate(ops.ops) if "%seen" in op.state}
    assert seen in readers and any(readers <= group for group in ops.written())


def test_fallback(load: Any) -> None:
    """What `torch.export` cannot take is traced by `torch.fx`; what neither can gives both reasons in one line."""
    assert trace(load("unknown")).program.how == "torch.fx"
    assert trace(load("resnet")).program.how == "torch.export"
    with pytest.raises(InstanceError, match=r"torch\.export: .*; torch\.fx: ") as caught:
        trace(load("untraceable"))
    assert "\n" not in str(caught.value)
