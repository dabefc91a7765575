"""Trace a model with `torch.export`."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.utils import _pytree

from .load import Model
from .program import STATE, Aten, Mode, Node, Program, Ref, called, state_names, substitute_kind

MODES = {"wrap_with_set_grad_enabled": ("grad", 1), "wrap_with_autocast": ("autocast", 4)}
"""Operators that run a graph in a mode: its kind, and how many arguments of theirs set it."""


def export(model: Model) -> Program:
    """Return the program that `torch.export` makes of a model.

    Raises:
        Exception: whatever torch raises where it cannot.
    """
    exported = torch.export.export(model.module, model.args, model.kwargs, strict=False)
    known, own = state_names(model.module)
    signature = exported.graph_signature
    values = _pytree.tree_leaves(exported.example_inputs or (model.args, model.kwargs))
    alias: dict[str, Any] = {}  # what a node of the graph stands for
    state: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    for spec in signature.input_specs:
        kind, name = spec.kind.name, spec.arg.name
        if kind == "USER_INPUT":
            inputs[name] = values[len(inputs)]
            alias[name] = Ref(name)
        elif kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            tensor = own.get(spec.target)
            if tensor is None:
                tensor = exported.constants.get(spec.target, exported.state_dict.get(spec.target))
            title = STATE + known.get(id(tensor), spec.target)
            state[title] = tensor
            alias[name] = Ref(title)
        else:
            raise NotImplementedError(f"an input of the kind {kind}")
    nodes: list[Node] = []
    returned = _inline(exported.graph_module, alias, nodes, "", ())
    outputs = []
    for spec, value in zip(signature.output_specs, returned, strict=True):
        if spec.kind.name == "USER_OUTPUT" and isinstance(value, Ref):
            outputs.append(value.name)
    return Program("torch.export", tuple(nodes), state, inputs, tuple(outputs))


def _inline(
    owner: Any, alias: dict[str, Any], nodes: list[Node], prefix: str, modes: tuple[Mode, ...]
) -> tuple[Any, ...]:
    """Append the calls of a graph, and of graphs inside it that only switch modes; return its outputs."""
    for node in owner.graph.nodes:
        if node.op in ("placeholder", "output"):
            if node.op == "output":
                return tuple(_pytree.tree_leaves(_plain(node.args[0], alias), is_leaf=lambda x: isinstance(x, Ref)))
            continue
        if node.op == "get_attr":
            alias[node.name] = getattr(owner, node.target)
            continue
        args, kwargs = _plain(node.args, alias), _plain(node.kwargs, alias)
        if str(node.target) in MODES:
            kind, count = MODES[str(node.target)]
            inner, *operands = args[count:]
            names = [x.name for x in inner.graph.nodes if x.op == "placeholder"]
            inside = dict(zip(names, operands, strict=True))
            alias[node.name] = _inline(
                inner, inside, nodes, f"{prefix}{node.name}.", (*modes, Mode(kind, args[:count]))
            )
            continue
        if node.target is operator.getitem and isinstance(args[0], tuple):
            alias[node.name] = args[0][args[1]]
            continue
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            raise NotImplementedError(f"the operator {node.target}")
        alias[node.name] = Ref(prefix + node.name)
        call = Aten(str(node.target)) if isinstance(node.target, torch._ops.OpOverload) else node.target
        kind = call.name.split(".")[1] if isinstance(call, Aten) else getattr(call, "__name__", str(call))
        nodes.append(Node(prefix + node.name, kind, called(node.meta), call, args, kwargs, modes))
    raise NotImplementedError("a graph without an output")


def _plain(value: Any, alias: dict[str, Any]) -> Any:
    return substitute_kind(value, torch.fx.Node, lambda node: alias[node.name])
