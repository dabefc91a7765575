"""Read models from files: ONNX, with times by the roofline from the shapes that it infers, and `torch.export`'s."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from math import prod
from typing import Any, NamedTuple
from zipfile import is_zipfile

from ..devices import server
from ..errors import InstanceError, extra
from ..generators.builder import GraphBuilder
from ..graph import OpGraph
from ..intake import read_bytes

_HINT = "export the model with fixed sizes (torch.onnx.export without dynamic_shapes), or use gangplan profile"
_UNKNOWN = ("Einsum", "LSTM", "GRU", "RNN", "Attention", "QLinearMatMul", "QLinearConv", "MatMulInteger", "ConvInteger")
"""Ops whose products are not counted here."""


class Loaded(NamedTuple):
    """A model, what its format is called, and what builds a problem of it with the options of that format."""

    model: Any
    name: str
    build: Callable[..., Any]


def load_onnx(path: str) -> Loaded:
    """Load a model with the shapes of its tensors; weights in files of their own are not needed."""
    if find_spec("onnx") is None:
        raise InstanceError("onnx", f"is not installed; {extra('onnx')}")
    onnx, content = import_module("onnx"), read_bytes(path)
    try:
        graph = onnx.shape_inference.infer_shapes(onnx.load_from_string(content)).graph
    except Exception as error:
        raise InstanceError("content", f"is no ONNX model: {str(error).splitlines()[0]}") from None
    return Loaded(graph, "an ONNX model", from_onnx)


def load_exported(path: str) -> Loaded:
    """Load a program that `torch.export.save` wrote, to be traced as `gangplan profile` does."""
    from ..torch_model.load import Model, require_torch

    require_torch()
    from torch import export

    from ..torch_model.build import model_problem

    archive = BytesIO(read_bytes(path))
    if not is_zipfile(archive):
        raise InstanceError("content", "is no exported program: it is not a zip archive")
    archive.seek(0)
    try:
        program = export.load(archive)
        args, kwargs = program.example_inputs or ((), {})
        model = Model(path, program.module(), args, kwargs)
        return Loaded(model, "an exported program", model_problem)
    except Exception as error:
        raise InstanceError("content", f"is no exported program: {str(error).splitlines()[0]}") from None


LOADERS = {".onnx": load_onnx, ".pt2": load_exported}
"""By the endings of files: a model has no first bytes that tell."""


def from_onnx(graph: Any, *, device_type: str = "A100", training: bool = False) -> OpGraph:
    """Build the graph of an ONNX graph, its shapes inferred; numbers count 16 bits, as in generated graphs."""
    weights = {x.name: tuple(x.dims) for x in graph.initializer}
    sizes = {x.name: _sizes(x) for x in (*graph.input, *graph.value_info, *graph.output)} | weights
    made: dict[str, str] = {}
    builder = GraphBuilder()
    for i, node in enumerate(graph.node):
        name = node.name or f"{node.op_type}_{i}"
        inside, outside = ([sizes.get(x) for x in names if x] for names in (node.input, node.output))
        inner = any(x.HasField("g") or x.graphs for x in node.attribute)
        if None in inside or None in outside or inner or node.op_type in _UNKNOWN:
            raise InstanceError(name, f"is a {node.op_type} whose sizes or products are not known: {_HINT}")
        output = float(sum(prod(x) for x in outside if x is not None))
        parameters = float(sum(prod(weights[x]) for x in node.input if x in weights))
        sources = dict.fromkeys(made[x] for x in node.input if x in made)
        builder.op(name, *sources, flops=_flops(node, inside, output), output=output, parameters=parameters)
        made |= dict.fromkeys(node.output, name)
    return builder.graph(*server(1, device_type).device_types, training=training)


def _sizes(value: Any) -> tuple[int, ...] | None:
    """Return the size of each dimension, None if one is not known."""
    if not value.type.tensor_type.HasField("shape"):
        return None
    sizes = value.type.tensor_type.shape.dim
    return tuple(x.dim_value for x in sizes) if all(x.HasField("dim_value") for x in sizes) else None


def _flops(node: Any, inside: list[tuple[int, ...] | None], output: float) -> float:
    """Return the operations of a node: of products two for each number that is multiplied, else one for each output."""
    first, second = (*inside, None, None)[:2]
    if node.op_type in ("Conv", "ConvTranspose") and first and second:
        return 2.0 * prod(second[1:]) * (output if node.op_type == "Conv" else prod(first))
    if node.op_type in ("MatMul", "Gemm") and first:
        across = any(x.name == "transA" and x.i for x in node.attribute)
        return 2 * output * (first[-2] if across else first[-1])
    return output
