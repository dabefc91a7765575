"""Trace a model: `torch.export` first, `torch.fx` where that fails; there modules of torch stay whole."""

from __future__ import annotations

import inspect
import logging
import operator
import pickle
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import is_dataclass
from io import StringIO
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree

from ..errors import InstanceError
from .cost import Profile, profile
from .load import LoadedModel, said
from .program import (
    STATE,
    Aten,
    Leaf,
    MethodCall,
    Mode,
    Program,
    ProgramNode,
    Ref,
    called,
    repeated,
    state_names,
    substitute,
    tensors,
    without_inplace,
)

MODES = {"wrap_with_set_grad_enabled": ("grad", 1), "wrap_with_autocast": ("autocast", 4)}
"""Operators that run a graph in a mode: its kind, and how many arguments of theirs set it."""


def export(model: LoadedModel) -> Program:
    """Return the program that `torch.export` makes of a model."""
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
    nodes: list[ProgramNode] = []
    returned = _inline(exported.graph_module, alias, nodes, "", ())
    outputs = []
    for spec, value in zip(signature.output_specs, returned, strict=True):
        if spec.kind.name == "USER_OUTPUT" and isinstance(value, Ref):
            outputs.append(value.name)
    read = {*(name for node in nodes for name in node.reads), *outputs}
    state = {name: x for name, x in state.items() if name in read}
    graphs = [part.graph for part in exported.graph_module.modules() if isinstance(part, torch.fx.GraphModule)]
    often = repeated(model.module, (node.meta for graph in graphs for node in graph.nodes))
    return Program("torch.export", tuple(nodes), state, inputs, tuple(outputs), often)


def _inline(
    owner: Any, alias: dict[str, Any], nodes: list[ProgramNode], prefix: str, modes: tuple[Mode, ...]
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
            inside, deeper = dict(zip(names, operands, strict=True)), (*modes, Mode(kind, args[:count]))
            alias[node.name] = _inline(inner, inside, nodes, f"{prefix}{node.name}.", deeper)
            continue
        if node.target is operator.getitem and isinstance(args[0], tuple):
            alias[node.name] = args[0][args[1]]
            continue
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            raise NotImplementedError(f"the operator {node.target}")
        alias[node.name] = Ref(prefix + node.name)
        call = Aten(str(node.target)) if isinstance(node.target, torch._ops.OpOverload) else node.target
        kind = call.name.split(".")[1] if isinstance(call, Aten) else getattr(call, "__name__", str(call))
        nodes.append(ProgramNode(prefix + node.name, kind, called(node.meta), call, args, kwargs, modes))
    raise NotImplementedError("a graph without an output")


def _plain(value: Any, alias: dict[str, Any]) -> Any:
    return substitute(value, lambda node: alias[node.name], torch.fx.Node)


def symbolic(model: LoadedModel) -> Program:
    """Return the program that `torch.fx.symbolic_trace` makes of a model."""
    traced = torch.fx.symbolic_trace(model.module)
    known, own = state_names(model.module)
    bound = inspect.signature(model.module.forward).bind(*model.args, **model.kwargs)
    bound.apply_defaults()
    inputs: dict[str, Any] = {}
    state: dict[str, Any] = {}
    alias: dict[str, Any] = {}
    nodes: list[ProgramNode] = []

    def titled(name: str, tensor: Any) -> Ref:
        title = STATE + known.get(id(tensor), name)
        state[title] = tensor
        return Ref(title)

    returned: Any = ()
    for node in traced.graph.nodes:
        alias[node.name] = Ref(node.name)
        args, kwargs = _plain(node.args, alias), _plain(node.kwargs, alias)
        where = called(node.meta)
        if node.op == "placeholder":
            inputs[node.name] = bound.arguments[node.target.lstrip("*")]
        elif node.op == "output":
            returned = args[0]
        elif node.op == "get_attr":
            tensor = own.get(node.target, operator.attrgetter(node.target)(traced))
            alias[node.name] = titled(node.target, tensor)
        elif node.op == "call_module":
            part = model.module.get_submodule(node.target)
            held = [*part.named_parameters(remove_duplicate=False), *part.named_buffers(remove_duplicate=False)]
            owned = {name: titled(f"{node.target}.{name}", x) for name, x in (*held, *_packed(part, dict(held)))}
            kind = type(part).__name__.lower()
            nodes.append(ProgramNode(node.name, kind, where or (node.target,), Leaf(part), (owned, *args), kwargs))
        elif node.op == "call_function" and is_dataclass(node.target):
            alias[node.name] = [*args, *kwargs.values()]  # an output that holds several
        else:
            method = node.op == "call_method"
            kind = node.target if method else node.target.__name__
            nodes.append(ProgramNode(node.name, kind, where, MethodCall(kind) if method else node.target, args, kwargs))
    leaves = _pytree.tree_leaves(returned, is_leaf=lambda x: isinstance(x, Ref))
    outputs = tuple(x.name for x in leaves if isinstance(x, Ref))
    often = repeated(model.module, (node.meta for node in traced.graph.nodes))
    return Program("torch.fx", tuple(nodes), state, inputs, outputs, often)


def _packed(part: Any, held: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return what a module keeps packed, such as weights of 8 bits, as parameters that are not trained."""
    inside = {name: tensors(x) for name, x in part.state_dict().items() if name not in held}
    return [
        (f"{name}.{i}", torch.nn.Parameter(x.int_repr() if x.is_quantized else x.detach(), requires_grad=False))
        for name, found in inside.items()
        for i, x in enumerate(found)
        if x.dim()
    ]


HINTS = {"in output, which is": "return tensors in tuples, lists or dicts (transformers: config.use_cache = False)"}
"""What to change, by a part of torch's message."""
WAYS = {"torch.export": export, "torch.fx": symbolic}


def trace(model: LoadedModel) -> Profile:
    """Return the calls that a model makes on its example inputs, with what each computes and moves.

    Raises:
        InstanceError: with both reasons, if neither `torch.export` nor `torch.fx` can trace it.
    """
    reasons, hints = [], []
    with silent():
        before = _states(model.module)
        for name, way in WAYS.items():
            try:
                traced = _profiled(way(model))
                break
            except Exception as error:
                reasons.append(f"{name}: {short(said(error))}")
                hints += [hint for part, hint in HINTS.items() if part in str(error)]
        else:
            raise InstanceError("model", f"{model.name!r} cannot be traced; {'; '.join([*reasons, *hints[:1]])}")
    if _states(model.module) != before:
        words = "draws from Python's random or NumPy, so that no two traces agree: call .eval() on it, or draw by torch"
        raise InstanceError("model", f"{model.name!r} {words}")
    return traced


def _profiled(program: Program) -> Profile:
    first = profile(program)
    changed = without_inplace(program, first.values)
    try:
        return first if changed is program else profile(changed)
    except (RuntimeError, NotImplementedError):  # an operator without a gradient: leave the writes as they are
        return first


def _states(module: Any) -> bytes:
    """Return the states of the generators that Python, NumPy and the module's parts draw from."""
    kinds = (random.Random, np.random.Generator, np.random.RandomState)
    own = [x for part in module.modules() for x in vars(part).values() if isinstance(x, kinds)]
    return pickle.dumps((random.getstate(), np.random.get_state(), own))  # noqa: NPY002 - what users draw from


def short(text: str, most: int = 90) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


@contextmanager
def silent() -> Iterator[None]:
    """Keep to itself what torch says while it traces: warnings, and whole graphs when it fails."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
