"""Turn calls that write into their input into calls that return a new value, where nobody can tell the difference.

A stage on another device holds a copy, so a write into a shared value would be lost there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import torch

from .kernels import storage
from .program import Aten, Leaf, Method, Node, Program, Ref, refs, substitute, tensors

OPERATORS = {operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul}


def writes(node: Node) -> tuple[str, ...]:
    """Return the names of the values that a call writes into."""
    call, args = node.call, node.args
    if isinstance(call, Aten):
        schema = call.resolve()._schema.arguments
        written = [x for a, x in zip(schema, args, strict=False) if a.alias_info is not None and a.alias_info.is_write]
        if node.kind == "batch_norm" and args[5]:
            written += args[3:5]
    elif isinstance(call, Leaf):
        buffers = {name for name, _ in call.module.named_buffers()} if call.module.training else set()
        written = [ref for name, ref in args[0].items() if name in buffers]
    else:
        by_name = isinstance(call, Method) and call.name.endswith("_") and not call.name.endswith("__")
        written = [args[0]] if by_name or call in OPERATORS or node.kwargs.get("inplace") is True else []
    return tuple(dict.fromkeys(ref.name for ref in refs(written)))


def without_inplace(program: Program, values: dict[str, Any]) -> Program:
    """Return the program with ``op_(x)`` as ``op(x)``, later readers of x reading its result, where that is the same.

    Left as they are: calls that write into a parameter, a buffer or an input, and those that write into memory which
    is later read by another name. `OpGraph` classes keep the readers of such memory on one device.
    """
    sharing: dict[int, set[str]] = {}
    for name, value in values.items():
        for x in tensors(value):
            sharing.setdefault(storage(x), set()).add(name)
    last = {name: float(i) for i, node in enumerate(program.nodes) for name in node.reads}
    last |= dict.fromkeys(program.outputs, inf)
    outer = program.state.keys() | program.inputs.keys()
    current: dict[str, str] = {}
    nodes: list[Node] = []
    made = set(outer)
    for i, node in enumerate(program.nodes):
        latest = replace(node, args=_renamed(node.args, current), kwargs=_renamed(node.kwargs, current))
        call, written = _functional(latest), writes(node)
        if call is not None and len(written) == 1 and _keeps_type(node, values):
            others = set().union(*(sharing[storage(x)] for x in tensors(values[written[0]])))
            seen = (others & made) - {written[0]} - current.keys()
            if not others & outer and all(last.get(name, -1) <= i for name in seen):
                kwargs = {key: x for key, x in latest.kwargs.items() if key != "inplace"}
                latest = replace(latest, call=call, kwargs=kwargs, kind=node.kind.removesuffix("_"))
                past = [name for name, now in current.items() if now == refs_to(latest.args[0])]
                current |= dict.fromkeys([written[0], *past], node.name)
        made.add(node.name)
        nodes.append(latest)
    outputs = tuple(current.get(name, name) for name in program.outputs)
    return replace(program, nodes=tuple(nodes), outputs=outputs) if current else program


def refs_to(value: Any) -> str | None:
    """Return the name that a `Ref` stands for, None for anything else."""
    return value.name if isinstance(value, Ref) else None


def _renamed(value: Any, current: dict[str, str]) -> Any:
    return substitute(value, lambda ref: Ref(current.get(ref.name, ref.name)))


def _functional(node: Node) -> Callable[..., Any] | None:
    """Return the function that does the same without writing, None if there is none or it writes nothing."""
    call = node.call
    if isinstance(call, Aten):
        space, name, overload = call.name.split(".")
        if call.name == "aten.copy_.default":
            return overwritten  # aten.copy has no gradient
        packet = getattr(getattr(torch.ops, space), name[:-1], None) if name.endswith("_") else None
        return Aten(f"{space}.{name[:-1]}.{overload}") if packet is not None and hasattr(packet, overload) else None
    if isinstance(call, Method):
        name = call.name[:-1]
        return Method(name) if call.name.endswith("_") and hasattr(torch.Tensor, name) else None
    return call if node.kwargs.get("inplace") is True else OPERATORS.get(call)


def overwritten(target: Any, source: Any, non_blocking: bool = False) -> Any:
    """Return a tensor like `target` that holds what `source` does."""
    return torch.empty_like(target).copy_(source, non_blocking)


def _keeps_type(node: Node, values: dict[str, Any]) -> bool:
    """Say whether the value written into has the type that the function without writing would return."""
    target = values[node.args[0].name] if isinstance(node.args[0], Ref) else None
    others = [x for ref in refs(node.args[1:]) for x in tensors(values[ref.name])]
    if isinstance(node.call, Aten) and node.call.name == "aten.copy_.default":
        return True
    return isinstance(target, torch.Tensor) and all(torch.result_type(target, x) == target.dtype for x in others)
