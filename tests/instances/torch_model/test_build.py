"""From a model to a partition problem: bytes, times, gradients, ties, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gangplan.instances import (  # noqa: E402
    InstanceError,
    documents,
    dump,
)
from gangplan.instances.devices import catalogue  # noqa: E402
from gangplan.instances.graph import with_backward  # noqa: E402
from gangplan.instances.torch_model import build as building  # noqa: E402
from gangplan.instances.torch_model.build import model_problem  # noqa: E402
from gangplan.instances.torch_model.cost import measure  # noqa: E402
from gangplan.instances.torch_model.load import LoadedModel  # noqa: E402
from gangplan.instances.torch_model.ops import op_flops, op_moved  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


def op(graph: Any, name: str) -> int:
    """Return the index of an op."""
    return int(graph.names.index(name))


def test_one_layer_by_hand(load: Any) -> None:
    """A linear layer of 15 + 5 parameters for 2 samples has the bytes, FLOPs and times that paper and pencil give."""
    made = model_problem(load("linear"), device_type="V100", efficiency=0.5, launch=0.0)
    graph, kind = made.problem.graph, catalogue["V100"]
    assert graph.names == ("linear", "linear/backward")
    # 20 parameters of 4 bytes, 16 while training; output 2 x 5 floats
    assert graph.parameter_bytes.tolist() == [80, 0]
    assert graph.memory.tolist() == [20 * 16 + 40, 0]
    assert graph.activation_bytes.tolist() == [40, 40]
    # forward: input 2 x 3, weight 15, bias 5 and output 10 floats; 2 * 2 * 3 * 5 FLOPs
    assert op_flops(made.ops).tolist() == [60]
    assert op_moved(made.ops).tolist() == [4 * (6 + 15 + 5 + 10)]
    assert graph.time[0, 0] == pytest.approx(4 * 36 / kind.memory_bandwidth)
    # backward: the input wants no gradient; weight = product of 10 and 6 floats to 15, bias = sum of 10 floats to 5
    assert op_flops(made.ops, backward=True).tolist() == [60 + 10]
    assert op_moved(made.ops, backward=True).tolist() == [4 * (10 + 6 + 15) + 4 * (10 + 5)]
    assert graph.time[0, 1] == pytest.approx(4 * (31 + 15) / kind.memory_bandwidth)
    inference = model_problem(load("linear"), training=False).problem.graph
    assert inference.names == ("linear",)
    assert inference.memory.tolist() == [80 + 40]


@pytest.mark.parametrize("name", ["resnet", "encoder", "gpt2", "writing", "unknown"])
@pytest.mark.parametrize("training", [True, False])
def test_problem_survives_its_document(name: str, training: bool, load: Any) -> None:
    """The problem of a model is a document like any other, with a twin for each op of a training step."""
    model = load(name)
    problem = model_problem(model, training=training, devices=2).problem
    assert dump(documents.load(dump(problem))) == dump(problem)
    graph = problem.graph
    assert graph.backward.any() == training
    assert graph.parameter_bytes.sum() == sum(p.numel() * 4 for p in model.module.parameters())
    assert np.isfinite(graph.time).all() and graph.time.sum() > 0
    n = graph.n_ops // 2 if training else graph.n_ops
    assert (graph.source[: graph.n_edges // 2] < graph.target[: graph.n_edges // 2]).all()
    if training:
        assert graph.twin[:n].tolist() == list(range(2 * n - 1, n - 1, -1))


def test_training_graph_is_mirrored(load: Any) -> None:
    """The training graph is `with_backward` of the forward graph but for gradients that do not exist."""
    model = load("gpt2")
    forward = model_problem(model, training=False).problem.graph
    graph = model_problem(model).problem.graph
    mirrored = with_backward(forward, np.zeros_like(forward.time), np.zeros(forward.n_ops))
    for field in ("source", "target", "twin", "backward", "parameter_bytes"):
        assert np.array_equal(getattr(graph, field), getattr(mirrored, field)), field
    changed = np.flatnonzero(graph.edge_bytes != mirrored.edge_bytes).tolist()
    ends = {(graph.names[graph.source[e]], graph.names[graph.target[e]]) for e in changed}
    assert ends == {("positions/embedding/backward", "arange/backward")}  # positions are whole numbers
    assert (graph.edge_bytes[changed] == 0).all()


def test_saved_for_backward_counts(load: Any) -> None:
    """A training op keeps what torch saves for its gradient: the loss its log-probabilities, the attention its sums."""
    made = model_problem(load("gpt2"))
    graph = made.problem.graph
    loss = op(graph, "cross_entropy_loss")
    logits = 16 * 101 * 4
    assert graph.activation_bytes[loss] == 4
    assert logits + 4 <= graph.memory[loss] <= logits + 64
    attention = op(graph, "blocks.0.attention/scaled_dot_product_attention")
    output, sums = 16 * 32 * 4, 4 * 16 * 4  # a logarithm of a sum for each of 4 heads and 16 tokens
    assert graph.memory[attention] == output + sums
    still = model_problem(load("gpt2"), training=False).problem.graph
    assert still.memory[attention] == output


def test_tied_parameters(load: Any) -> None:
    """GPT-2's embedding and head each keep a copy of the matrix they share, or share a device, where it is once."""
    copied = model_problem(load("gpt2")).problem.graph
    embedding, head = op(copied, "tokens/embedding"), op(copied, "head/linear")
    matrix, output = 101 * 32, 16 * 101 * 4
    assert copied.colocation[embedding] != copied.colocation[head]
    assert copied.memory[head] == matrix * 16 + output
    assert copied.parameter_bytes[[embedding, head]].tolist() == [matrix * 4, 0]
    together = model_problem(load("gpt2"), tied="colocate").problem.graph
    assert together.colocation[embedding] == together.colocation[head] >= 0
    assert together.memory[head] == output
    assert together.memory[embedding] == copied.memory[embedding]


def test_whole_modules(load: Any) -> None:
    """The ops of a module that is to stay whole share a class, those of two such modules do not."""
    graph = model_problem(load("gpt2"), whole=["blocks.?"], training=False).problem.graph
    classes = [
        {int(graph.colocation[i]) for i, x in enumerate(graph.names) if x.startswith(f"blocks.{k}")} for k in (0, 1)
    ]
    assert [len(x) for x in classes] == [1, 1] and classes[0] != classes[1] and -1 not in classes[0] | classes[1]
    assert graph.colocation[op(graph, "head/linear")] == -1


def test_written_memory_is_colocated(load: Any) -> None:
    """What shares memory that is written into shares a device in the problem."""
    made = model_problem(load("writing"), training=False)
    colocation = made.problem.graph.colocation
    assert made.ops.written()
    for group in made.ops.written():
        assert len({int(colocation[i]) for i in group}) == 1 and colocation[min(group)] >= 0


def test_frozen_parameters_need_no_optimizer() -> None:
    """A parameter that is not trained takes its own bytes, and its op computes no gradient of it."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Linear(5, 2))
    module[0].requires_grad_(False)
    made = model_problem(LoadedModel("frozen", module, (torch.ones(2, 3),), {}))
    assert made.problem.graph.memory[:2].tolist() == [20 * 4 + 40, 12 * 16 + 16]
    assert op_flops(made.ops, backward=True)[0] == 0


def test_half_precision_counts_its_bytes() -> None:
    """Activations and parameters are counted in the model's own type."""
    module = torch.nn.Linear(3, 5).to(torch.bfloat16)
    graph = model_problem(
        LoadedModel("half", module, (torch.ones(2, 3, dtype=torch.bfloat16),), {}), training=False
    ).problem.graph
    assert (graph.parameter_bytes[0], graph.activation_bytes[0], graph.memory[0]) == (40, 20, 60)


def test_time_to_start_kernels(load: Any) -> None:
    """A kernel takes no less than its start: once for a product, once for each step of a recurrent layer."""
    made = model_problem(load("linear"), launch=1.0, training=False)
    assert made.problem.graph.time.tolist() == [[1.0]]
    lstm = LoadedModel("lstm", torch.nn.LSTM(12, 8), (torch.ones(32, 2, 12),), {})
    made = model_problem(lstm, launch=1.0, training=False)
    kernels = made.ops.profile.forward["lstm"]
    times = dict(zip(made.problem.graph.names, made.problem.graph.time[0].tolist(), strict=True))
    assert times["lstm"] == 32 + len(kernels) - 1 and sorted(kernel.launches for kernel in kernels)[-2:] == [1, 32]


@pytest.mark.parametrize(("kind", "peak"), [("bfloat16", 312e12), ("float32", 19.5e12), ("float64", 9.75e12)])
def test_precision_of_the_model(kind: str, peak: float) -> None:
    """A product takes as long as the data sheet says for the numbers that the model computes with."""
    module = torch.nn.Linear(4096, 4096, bias=False, dtype=getattr(torch, kind))
    large = torch.ones(4096, 4096, dtype=getattr(torch, kind))
    graph = model_problem(LoadedModel("large", module, (large,), {}), training=False, efficiency=1.0).problem.graph
    assert graph.time[0, 0] == pytest.approx(2 * 4096**3 / peak)


def test_measured_times(load: Any) -> None:
    """Measured devices are called here, every kernel takes some time, and a named type adds its own row."""
    made = model_problem(load("gpt2"), measured="cpu", device_type="H100", devices=3, memory=1e9)
    graph, cluster = made.problem.graph, made.problem.cluster
    assert graph.device_types == ("H100", "here")
    assert [kind.name for kind in cluster.device_types] == ["here"] and cluster.n_devices == 3
    assert cluster.device_types[0].memory == 1e9
    n = len(made.ops.ops)
    assert (graph.time[1, :n] > 0).all()
    works = np.array([any(made.ops.profile.backward[node] for node in x.nodes) for x in made.ops.ops])
    assert ((graph.time[1, n:][::-1] > 0) == works).all() and works.any() and not works.all()
    alone = model_problem(load("linear"), measured="cpu", training=False).problem.graph
    assert alone.device_types == ("here",)


def test_measured_times_follow_the_work() -> None:
    """A product a thousand times as large takes longer, forward and backward."""
    module = torch.nn.Sequential(torch.nn.Linear(8, 512), torch.nn.Linear(512, 512), torch.nn.Linear(512, 8))
    made = model_problem(LoadedModel("three", module, (torch.ones(256, 8),), {}), training=True)
    for seconds in measure(made.ops.profile):
        assert seconds["linear_1"] > 2 * max(seconds["linear"], seconds["linear_2"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device_type": "TPU"}, "'TPU'"),
        ({"devices": 0}, "devices"),
        ({"devices": 2.5}, "2.5"),
        ({"memory": -1.0}, "-1.0"),
        ({"bandwidth": 0.0, "measured": "cpu"}, "bandwidth"),
        ({"measured": True}, "True"),
        ({"measured": "cuda:77"}, "cuda:77"),
        ({"launch": -1.0}, "launch"),
        ({"pipelining": True}, "no modules"),
        ({"efficiency": 2.0}, "efficiency"),
        ({"variant": "bent"}, "'bent'"),
        ({"tied": "knotted"}, "'knotted'"),
        ({"whole": ["nothing.*"]}, "'nothing.*'"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str, load: Any) -> None:
    """An option that makes no sense is refused by name and value."""
    with pytest.raises(InstanceError, match=re.escape(words)):
        model_problem(load("linear"), **options)


def test_a_model_without_ops_is_refused() -> None:
    """A model that computes nothing is no problem."""
    with pytest.raises(InstanceError, match="computes nothing"):
        model_problem(LoadedModel("idle", torch.nn.Identity(), (torch.ones(2),), {}))


def test_here_is_no_type_of_the_catalogue() -> None:
    """The measured device's name is free."""
    assert building.HERE not in catalogue
