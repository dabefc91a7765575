"""Tracing: the program computes what the model computes, and its costs are those that torch itself counts."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from gangplan.instances import InstanceError  # noqa: E402
from gangplan.instances.torch_model.load import LoadedModel  # noqa: E402
from gangplan.instances.torch_model.ops import Ops, op_flops, op_moved, weights  # noqa: E402
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


@pytest.mark.parametrize(("name", "way"), [*BOTH, ("filling", "export")])
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


@pytest.mark.filterwarnings("ignore")
def test_packed_weights_cost_what_they_are() -> None:
    """Weights of 8 bits that a quantized layer keeps packed are held, read and multiplied like others."""
    plain = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))
    module = torch.ao.quantization.quantize_dynamic(plain, {torch.nn.Linear})
    ops = Ops(trace(LoadedModel("packed", module, (torch.ones(4, 16),), {})))
    owned, held = weights(ops, "copy", training=True)
    # a byte a weight and four a bias, neither of which is trained
    assert owned.tolist() == held.tolist() == [16 * 8 + 8 * 4, 0, 8 * 8 + 8 * 4]
    assert op_flops(ops)[[0, 2]].tolist() == [2 * 4 * 16 * 8, 2 * 4 * 8 * 8]
    assert op_moved(ops)[0] == 4 * 4 * (16 + 8) + 16 * 8


def test_products_of_whole_numbers_are_products() -> None:
    """A product of matrices of 8 bits has its FLOPs, although what it returns is whole."""

    class Small(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.ones(16, 8, dtype=torch.int8))

        def forward(self, x: Any) -> Any:
            return torch._int_mm(x, self.weight)

    ops = Ops(trace(LoadedModel("small", Small(), (torch.ones(32, 16, dtype=torch.int8),), {})))
    assert op_flops(ops).tolist() == [2 * 32 * 16 * 8]
    assert weights(ops, "copy", training=False)[1].tolist() == [16 * 8]


class Skipping(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Layers that are left out by chance while training."""

    def __init__(self, draw: Any) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
        self.draw = draw

    def forward(self, x: Any) -> Any:
        """Map (batch, 4) to (batch, 4)."""
        for layer in self.layers:
            if not (self.training and self.draw() < 0.5):
                x = layer(x)
        return x


@pytest.mark.parametrize("way", ["python", "own", "numpy"])
def test_a_graph_that_chance_decides_is_refused(way: str) -> None:
    """A forward pass that draws from Python's or NumPy's generators is refused, and taken whole by .eval()."""
    held = np.random.default_rng(0)
    draw = {"python": random.random, "own": random.Random(0).random, "numpy": held.random}[way]
    module = Skipping(draw)
    module.generator = {"own": getattr(draw, "__self__", None), "numpy": held}.get(way)
    model = LoadedModel("skipping", module, (torch.ones(2, 4),), {})
    with pytest.raises(InstanceError, match=r"random or NumPy.*\.eval\(\)"):
        trace(model)
    module.eval()
    assert len(Ops(trace(model)).ops) == 3


class DynamicCache:
    """As transformers' cache: an object that holds tensors and that torch does not know."""

    def __init__(self) -> None:
        self.keys: list[Any] = []


class Caching(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A layer that returns its cache too, if it is to use one."""

    def __init__(self, use_cache: bool) -> None:
        super().__init__()
        self.layer, self.use_cache = torch.nn.Linear(4, 4), use_cache

    def forward(self, **kwargs: Any) -> Any:
        """Map ``hidden`` (batch, 4) to a dictionary."""
        x = self.layer(kwargs["hidden"])
        cache = DynamicCache()
        cache.keys.append(x)
        return {"logits": x, "past_key_values": cache} if self.use_cache else {"logits": x}


def test_a_cache_among_the_outputs() -> None:
    """A model that returns an object torch does not know says what to set; without it the model is traced."""
    inputs = {"hidden": torch.ones(2, 4)}
    with pytest.raises(InstanceError, match="use_cache = False"):
        trace(LoadedModel("caching", Caching(True), (), inputs))
    assert trace(LoadedModel("caching", Caching(False), (), inputs)).program.how == "torch.export"
