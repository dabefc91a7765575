"""Models in files: ONNX, and what `torch.export.save` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnx import TensorProto, helper

from gangplan.instances import InstanceError
from gangplan.instances.readers import models, read


def model(tmp_path: Path, nodes: list[Any], batch: int | str = 8) -> Path:
    """Return the file of nodes that take x to y, with weights of 64 x 128 and of 16 x 3 x 3 x 3."""
    floats = TensorProto.FLOAT
    weights = [helper.make_tensor(n, floats, d, b"\0" * 4 * k, raw=True) for n, d, k in
               (("w", (64, 128), 8192), ("c", (16, 3, 3, 3), 432))]  # fmt: skip
    inputs = [helper.make_tensor_value_info(n, floats, d) for n, d in (("x", (batch, 64)), ("i", (1, 3, 8, 8)))]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], weights)
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph), path)
    return path


def test_onnx(tmp_path: Path) -> None:
    """Products and memory take what the roofline says, edges carry what goes from op to op."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
        helper.make_node("Relu", ["h"], ["y"]),
        helper.make_node("Conv", ["i", "c"], ["z"], pads=[1, 1, 1, 1]),
    ]
    path = model(tmp_path, nodes)
    graph = read(path, device_type="A100").graph
    assert graph.names == ("product", "Relu_1", "Conv_2")
    assert (graph.source.tolist(), graph.target.tolist(), graph.edge_bytes.tolist()) == ([0], [1], [8 * 128 * 2])
    assert graph.parameter_bytes.tolist() == [8192 * 2, 0, 432 * 2]
    # all are bound by memory: the weights and the output, and what comes from other ops, at 2,039 GB/s
    moved = [8192 + 8 * 128, 2 * 8 * 128, 432 + 16 * 64]
    assert graph.time[0].tolist() == pytest.approx([2 * x / 2039e9 for x in moved])
    assert models._flops(nodes[2], [(1, 3, 8, 8), (16, 3, 3, 3)], 1024) == 2 * 1024 * 27
    assert models._flops(helper.make_node("Gemm", ["a", "b"], ["y"], transA=1), [(5, 2), (5, 7)], 14) == 2 * 14 * 5
    assert read(path, training=True, devices=2).graph.n_ops == 6
    with pytest.raises(InstanceError, match="keep_inputs: True does not apply to an ONNX model"):
        read(path, keep_inputs=True)


@pytest.mark.parametrize(
    ("node", "batch", "words"),
    [
        (("MatMul", ["x", "w"]), "b", "MatMul_0: is a MatMul whose sizes or products are not known: give open dim"),
        (("NoSuchOp", ["x"]), 8, "NoSuchOp_0: is a NoSuchOp whose sizes or products are not known"),
        (("Einsum", ["x", "w"]), 8, "Einsum_0: is a Einsum whose"),
    ],
)
def test_onnx_that_says_too_little(tmp_path: Path, node: Any, batch: Any, words: str) -> None:
    """Where a time cannot be told it is said which op that is, and what to do."""
    kind, inputs = node
    more = {"equation": "bi,ij->bj"} if kind == "Einsum" else {}
    with pytest.raises(InstanceError, match=words):
        read(model(tmp_path, [helper.make_node(kind, inputs, ["y"], **more)], batch))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_nodes_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    """A node follows those that it reads wherever the file has it, and names may repeat."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="a"),
        helper.make_node("Relu", ["h"], ["g"], name="n"),
        helper.make_node("Relu", ["g"], ["y"], name="n"),
    ]
    graph = read(model(tmp_path, [nodes[i] for i in order])).graph
    assert graph.names == ("a", "n_1", "n_2") and graph.source.tolist() == [0, 1]
    assert graph.parameter_bytes.sum() == 8192 * 2


def test_open_dimensions_and_ties(tmp_path: Path) -> None:
    """A size closes an open dimension; a weight that two ops read is one parameter, of which each keeps a copy."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = model(tmp_path, nodes, "batch")
    graph = read(path, size={"batch": 16}).graph
    assert graph.parameter_bytes.tolist() == [8192 * 2, 0]
    assert graph.memory[0] == graph.memory[1] > 8192 * 2
    with pytest.raises(InstanceError, match="size: 'bach' is no open dimension of the model; did you mean batch"):
        read(path, size={"bach": 16})
    with pytest.raises(InstanceError, match=r"Relu_0: reads 'q', which no node makes"):
        read(model(tmp_path, [helper.make_node("Relu", ["q"], ["y"])]))
    rings = [helper.make_node("Relu", ["b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    with pytest.raises(InstanceError, match=r"Relu_\d: is on a cycle"):
        read(model(tmp_path, rings))


def test_exported_program(tmp_path: Path) -> None:
    """An archive of torch.export is traced as `gangplan profile` traces the module."""
    path = tmp_path / "m.pt2"
    net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU())
    torch.export.save(torch.export.export(net, (torch.ones(2, 4),)), path)
    problem = read(path, device_type="H100", devices=2)
    assert (problem.graph.n_ops, problem.cluster.n_devices) == (4, 2)
    assert problem.graph.parameter_bytes[0] == 4 * (4 * 6 + 6)
    assert not read(path, objective="latency").graph.backward.any()


@pytest.mark.parametrize("ending", [".onnx", ".pt2"])
def test_files_that_are_none(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no model, not there, or wants an option that it has not, is told in a line."""
    path = tmp_path / f"m{ending}"
    with pytest.raises(InstanceError, match="file: no such file"):
        read(path)
    path.write_bytes(b"junk")
    with pytest.raises(InstanceError, match=r"content: is no (ONNX model|exported program): "):
        read(path)
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    if ending == ".onnx":
        with pytest.raises(InstanceError, match=r'onnx: is not installed; .* pip install "\.\[onnx\]"'):
            read(path)
