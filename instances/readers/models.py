"""Read models from files: ONNX, with times by the roofline from the shapes that it infers, and `torch.export`'s."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from math import prod
from typing import Any, NamedTuple
from zipfile import is_zipfile

from ..arrays import require_number
from ..devices import server
from ..errors import InstanceError, did_you_mean, extra
from ..generators.builder import GraphBuilder
from ..graph import OpGraph
from ..intake import read_bytes

_HINT = "give open dimensions a size (NAME=8), export the model with fixed sizes, or use gangplan profile"
_UNKNOWN = ("Einsum", "LSTM", "GRU", "RNN", "Attention", "QLinearMatMul", "QLinearConv", "MatMulInteger", "ConvInteger")
"""Ops whose products are not counted here."""


class Loaded(NamedTuple):
    """A model, what its format is called, and what builds a problem of it with the options of that format."""

    model: Any
    name: str
    build: Callable[..., Any]


def load_onnx(path: str) -> Loaded:
    """Load a model; weights in files of their own are not needed."""
    if find_spec("onnx") is None:
        raise InstanceError("onnx", f"is not installed; {extra('onnx')}")
    onnx, content = import_module("onnx"), read_bytes(path)
    with _as_errors("ONNX model"):
        return Loaded(onnx.load_from_string(content), "an ONNX model", from_onnx)


def load_exported(path: str) -> Loaded:
    """Load a program that `torch.export.save` wrote, to be traced as `gangplan profile` does."""
    from ..torch_model.load import LoadedModel, require_torch

    require_torch()
    from torch import export

    from ..torch_model.build import model_problem

    archive = BytesIO(read_bytes(path))
    if not is_zipfile(archive):
        raise InstanceError("content", "is no exported program: it is not a zip archive")
    archive.seek(0)
    with _as_errors("exported program"):
        program = export.load(archive)
        args, kwargs = program.example_inputs or ((), {})
        model = LoadedModel(path, program.module(), args, kwargs)
        return Loaded(model, "an exported program", model_problem)


@contextmanager
def _as_errors(kind: str) -> Iterator[None]:
    """Have what a library says of a broken file be an `InstanceError` of one line."""
    try:
        yield
    except Exception as error:
        raise InstanceError("content", f"is no {kind}: {(str(error).splitlines() or [''])[0]}") from None


LOADERS = {".onnx": load_onnx, ".pt2": load_exported}
"""By the endings of files: a model has no first bytes that tell."""


def from_onnx(
    model: Any, *, device_type: str = "A100", training: bool = False, size: Mapping[str, int] | None = None
) -> OpGraph:
    """Build the graph of an ONNX model by the shapes that it infers; numbers count 16 bits, as in generated graphs.

    Nodes may be in any order and have any names. Of a weight that several read, each after the first keeps a copy.

    Args:
        model: as `onnx` loads it.
        device_type: what times are for.
        training: add the backward ops.
        size: of open dimensions, by name.

    Raises:
        InstanceError: naming the node whose sizes are not known, or whose input nobody makes.
    """
    graph = _inferred(model, size or {})
    weights = {x.name: tuple(x.dims) for x in graph.initializer}
    sizes = {x.name: _sizes(x) for x in (*graph.input, *graph.value_info, *graph.output)} | weights
    maker: dict[str, str] = {}
    owned: set[str] = set()
    builder = GraphBuilder()
    for node, name in zip(graph.node, _names(graph.node), strict=True):
        inside, outside = ([sizes.get(x) for x in of if x] for of in (node.input, node.output))
        inner = any(x.HasField("g") or x.graphs for x in node.attribute)
        if None in inside or None in outside or inner or node.op_type in _UNKNOWN:
            raise InstanceError(name, f"is a {node.op_type} whose sizes or products are not known: {_HINT}")
        output = float(sum(prod(x) for x in outside if x is not None))
        read = {x: float(prod(weights[x])) for x in node.input if x in weights}
        parameters = sum(read[x] for x in read if x not in owned)
        sources = dict.fromkeys(maker[x] for x in node.input if x in maker)
        shared = sum(read.values()) - parameters
        flops = _flops(node, inside, output)
        builder.op(name, *sources, flops=flops, output=output, parameters=parameters, shared=shared)
        maker |= dict.fromkeys(node.output, name)
        owned |= read.keys()
    return builder.graph(*server(1, device_type).device_types, training=training)


def _inferred(model: Any, size: Mapping[str, int]) -> Any:
    """Return the graph of a model in order, open dimensions of its inputs filled in, with the shapes of its tensors."""
    onnx, filled = import_module("onnx"), type(model)()
    filled.CopyFrom(model)
    shapes = (x.type.tensor_type.shape for x in filled.graph.input)
    open_sizes = [dim for shape in shapes for dim in shape.dim if dim.dim_param]
    for name, value in size.items():
        require_number(value, f"size.{name}", positive=True, whole=True)
        if name not in (known := {dim.dim_param for dim in open_sizes}):
            raise InstanceError("size", f"{name!r} is no open dimension of the model{did_you_mean(name, known)}")
    for dim in open_sizes:
        if dim.dim_param in size:
            dim.dim_value = size[dim.dim_param]
    nodes = _in_order(filled.graph)
    del filled.graph.node[:]
    filled.graph.node.extend(nodes)
    with _as_errors("ONNX model"):
        return onnx.shape_inference.infer_shapes(filled).graph


def _in_order(graph: Any) -> list[Any]:
    """Return copies of the nodes, each after those that it reads."""
    given = {x.name for x in (*graph.input, *graph.initializer)}
    maker = {x: i for i, node in enumerate(graph.node) for x in node.output}
    names, reads = _names(graph.node), dict[int, list[int]]()
    for i, node in enumerate(graph.node):
        for x in node.input:
            if x and x not in maker and x not in given:
                raise InstanceError(names[i], f"reads {x!r}, which no node makes and the graph is not given")
        reads[i] = [maker[x] for x in node.input if x in maker]
    order = list(reads)
    if any(max(own, default=-1) >= i for i, own in reads.items()):
        try:
            order = list(TopologicalSorter(reads).static_order())
        except CycleError as error:
            raise InstanceError(names[error.args[1][0]], "is on a cycle of nodes") from None
    copies = [type(node)() for node in graph.node]
    for copy, i in zip(copies, order, strict=True):
        copy.CopyFrom(graph.node[i])
    return copies


def _names(nodes: Any) -> list[str]:
    """Return a name for each node: ONNX wants neither that they have one nor that it is theirs alone."""
    count = Counter(node.name for node in nodes)
    return [x.name if x.name and count[x.name] == 1 else f"{x.name or x.op_type}_{i}" for i, x in enumerate(nodes)]


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
