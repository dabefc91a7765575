"""The whole model beside the split one: buffers, outputs of every kind, and operators that other files register."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from gangplan.instances import InstanceError  # noqa: E402
from gangplan.instances.torch_model.load import LoadedModel, load_model  # noqa: E402
from gangplan.instances.torch_model.ops import Ops  # noqa: E402
from gangplan.instances.torch_model.program import tensors  # noqa: E402
from gangplan.instances.torch_model.trace import trace  # noqa: E402
from gangplan.torch_split.launch import run_split  # noqa: E402
from gangplan.torch_split.pieces import pieces  # noqa: E402
from gangplan.torch_split.reference import (  # noqa: E402
    WholeModel,
    differences,
    reference,
)

pytestmark = pytest.mark.usefixtures("one_thread")
X = torch.linspace(-1, 1, 24).reshape(4, 6)


@dataclass
class Output:
    """What some models return."""

    hidden: Any
    more: Any
    nothing: Any = None


class Result(nn.Module):  # type: ignore[misc]
    """A layer with a buffer, which a function makes outputs of."""

    def __init__(self, made: Any) -> None:
        super().__init__()
        self.layer, self.made = nn.Linear(6, 6), made
        self.register_buffer("scale", torch.full((6,), 2.0))
        self.register_buffer("unread", torch.ones(3))

    def forward(self, x: Any) -> Any:
        """Return what is made of the layer's result."""
        return self.made(self, self.layer(x))


def anew(self: Any, x: Any) -> Any:
    """Set a buffer anew, as the rotary embeddings of Llama do."""
    self.register_buffer("scale", self.scale * 1.5)
    return x * self.scale


def whole_of(module: nn.Module) -> tuple[Ops, WholeModel]:
    """Return the ops of a model and what the whole of it computes."""
    model = LoadedModel("mine", module, (X,), {})
    ops = Ops(trace(model))
    return ops, reference(model, ops, True, 0)


def replayed(ops: Ops) -> dict[str, Any]:
    """Return all values of the traced program, parameters and buffers as they are after it."""
    program = ops.profile.program
    values = program.inputs | {k: x if program.is_parameter(k) else x.clone() for k, x in program.state.items()}
    for node in program.nodes:
        values[node.name] = node.run(values)
    return values


@pytest.mark.parametrize(
    "made",
    [
        lambda self, x: Output(x, (x * self.scale, x.mean(0))),
        lambda self, x: {"hidden": x, "nothing": None, "number": 3},
        lambda self, x: (x, x),
        anew,
    ],
)
def test_outputs_and_buffers_of_the_trace_are_the_models(made: Any) -> None:
    """Outputs of every kind are found, and of the buffers those that are read, also where they are set anew."""
    ops, whole = whole_of(Result(made))
    values = replayed(ops)
    assert set(whole.outputs) == set(ops.profile.program.outputs) and whole.outputs
    assert {"%unread"}.isdisjoint(whole.buffers)
    for name, x in (*whole.outputs.items(), *whole.buffers.items()):
        torch.testing.assert_close(values[name], x)


def test_the_model_keeps_its_buffers() -> None:
    """A buffer that is set anew is in the end the tensor that it was, with its numbers; gradients are found."""
    module = Result(anew)
    before = module.scale
    _, whole = whole_of(module)
    assert module.scale is before and before.tolist() == [2.0] * 6
    assert whole.buffers["%scale"].tolist() == [3.0] * 6
    assert whole.gradients.keys() == {"%layer.weight", "%layer.bias"}


def test_a_buffer_that_only_the_model_changes_is_found() -> None:
    """What the trace loses is a difference: it has no such buffer."""

    class Lost(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 6)
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: Any) -> Any:
            self.count.data = self.count.data + 1  # torch records no write
            return self.layer(x)

    model = LoadedModel("lost", Lost(), (X,), {})
    try:
        ops = Ops(trace(model))
    except InstanceError:
        pytest.skip("this torch does not trace it")
    model.module.count.data = torch.zeros(1)
    assert "%count" in reference(model, ops, False, 0).buffers.keys() - replayed(ops).keys()


def test_data_parallel_models() -> None:
    """A model in DataParallel, which torch's stateless calls refuse, is run as it is."""
    ops, whole = whole_of(nn.DataParallel(nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6))))
    values = replayed(ops)
    for name, x in (*whole.outputs.items(), *whole.buffers.items()):
        torch.testing.assert_close(values[name], x)
    assert len(whole.buffers) == 3


def test_another_number_of_outputs_is_said() -> None:
    """A model that returns more tensors than its trace is refused in one line."""
    module = Result(lambda self, x: (x, x) if getattr(self, "more", False) else (x,))
    model = LoadedModel("more", module, (X,), {})
    ops = Ops(trace(model))
    module.more = True
    with pytest.raises(InstanceError, match="returns 2 tensors, and 1 when"):
        reference(model, ops, False, 0)


def test_weights_without_numbers_are_not_run() -> None:
    """A model on the meta device is refused before a process is started."""
    model = LoadedModel("meta", nn.Linear(6, 6).to("meta"), (X.to("meta"),), {})
    ops = Ops(trace(model))
    with pytest.raises(InstanceError, match="meta device"):
        run_split(model, ops, pieces(ops, [0], [0]), training=False)


OPERATOR = """
import torch
@torch.library.custom_op("gangplan_test::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2
double.register_fake(torch.empty_like)
double.register_autograd(lambda ctx, g: g * 2)
"""
MODEL = """
import doubled_operator
import torch
class Double(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norm = torch.nn.Linear(6, 6), torch.nn.BatchNorm1d(6)
    def forward(self, x):
        return doubled_operator.double(self.norm(self.layer(x)))
build = lambda: (Double().eval(), (torch.ones(4, 6),))
"""


def test_operators_of_other_files_and_norms_in_eval_mode(tmp_path: Path) -> None:
    """Processes import what registers the model's operators; a counter that no norm reads makes no difference."""
    (tmp_path / "doubled_operator.py").write_text(OPERATOR)
    (tmp_path / "doubling.py").write_text(MODEL)
    model = load_model(f"{tmp_path / 'doubling.py'}:build")
    ops = Ops(trace(model))
    run = run_split(model, ops, pieces(ops, [0] * len(ops.ops), [0] * len(ops.ops)), training=True)
    found = differences(run)
    assert {x.what for x in found} == {"outputs", "gradients", "buffers"} and all(x.same for x in found), found
    assert len(tensors(run.buffers)) == 2
