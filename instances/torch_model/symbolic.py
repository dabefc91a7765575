"""Trace a model with `torch.fx.symbolic_trace`: what `torch.export` cannot take. Modules of torch stay whole."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
from torch.utils import _pytree

from .load import Model
from .program import STATE, Node, Program, Ref, called, state_names, substitute_kind


class Leaf:
    """Call a module with parameters and buffers from outside."""

    def __init__(self, module: Any) -> None:
        self.module = copy.deepcopy(module).to("meta")
        for part in self.module.modules():
            if getattr(part, "inplace", False):
                part.inplace = False

    def __call__(self, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return torch.func.functional_call(self.module, state, args, kwargs)


class Method:
    """Call a method of the first argument."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        return getattr(value, self.name)(*args, **kwargs)


def symbolic(model: Model) -> Program:
    """Return the program that `torch.fx.symbolic_trace` makes of a model.

    Raises:
        Exception: whatever torch raises where it cannot.
    """
    traced = torch.fx.symbolic_trace(model.module)
    known, own = state_names(model.module)
    bound = inspect.signature(model.module.forward).bind(*model.args, **model.kwargs)
    bound.apply_defaults()
    inputs: dict[str, Any] = {}
    state: dict[str, Any] = {}
    alias: dict[str, Any] = {}
    nodes: list[Node] = []

    def titled(name: str, tensor: Any) -> Ref:
        title = STATE + known.get(id(tensor), name)
        state[title] = tensor
        return Ref(title)

    def plain(value: Any) -> Any:
        return substitute_kind(value, torch.fx.Node, lambda node: alias[node.name])

    returned: Any = ()
    for node in traced.graph.nodes:
        alias[node.name] = Ref(node.name)
        args, kwargs = plain(node.args), plain(node.kwargs)
        where = called(node.meta)
        if node.op == "placeholder":
            inputs[node.name] = bound.arguments[node.target.lstrip("*")]
        elif node.op == "output":
            returned = args[0]
        elif node.op == "get_attr":
            tensor = own.get(node.target, _attribute(traced, node.target))
            alias[node.name] = titled(node.target, tensor)
        elif node.op == "call_module":
            part = model.module.get_submodule(node.target)
            held = [*part.named_parameters(remove_duplicate=False), *part.named_buffers(remove_duplicate=False)]
            owned = {name: titled(f"{node.target}.{name}", tensor) for name, tensor in held}
            kind = type(part).__name__.lower()
            nodes.append(Node(node.name, kind, where or (node.target,), Leaf(part), (owned, *args), kwargs))
        else:
            method = node.op == "call_method"
            kind = node.target if method else node.target.__name__
            nodes.append(Node(node.name, kind, where, Method(kind) if method else node.target, args, kwargs))
    leaves = _pytree.tree_leaves(returned, is_leaf=lambda x: isinstance(x, Ref))
    outputs = tuple(x.name for x in leaves if isinstance(x, Ref))
    return Program("torch.fx", tuple(nodes), state, inputs, outputs)


def _attribute(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = getattr(value, part)
    return value
