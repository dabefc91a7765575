"""A traced model: calls of functions in the order they ran, over named values, and none that writes into its input.

A stage on another device holds a copy, so a write into a shared value would be lost there: calls that write become
calls that return a new value, where nobody can tell the difference.
"""

from __future__ import annotations

import contextlib
import copy
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import torch
from torch.utils import _pytree

STATE = "%"
"""Names of parameters and buffers begin with this, as those of other values never do."""


@dataclass(frozen=True, slots=True)
class Ref:
    """Stands for a value among the arguments of a call."""

    name: str


class Aten:
    """An operator of torch by its name, e.g. ``aten.linear.default``; unlike the operator it can be pickled."""

    def __init__(self, name: str) -> None:
        self.name = name

    def resolve(self) -> Any:
        """Return the operator."""
        return operator.attrgetter(self.name)(torch.ops)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator."""
        return self.resolve()(*args, **kwargs)


class Leaf:
    """Call a module with parameters and buffers from outside."""

    def __init__(self, module: Any) -> None:
        self.module = copy.deepcopy(module).to("meta")
        for part in self.module.modules():
            if getattr(part, "inplace", False):
                part.inplace = False
        self.names = set(state_names(module)[1])

    def __call__(self, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        held = {name: x for name, x in state.items() if name in self.names}  # packed weights are in the module
        return torch.func.functional_call(self.module, held, args, kwargs)


class MethodCall:
    """Call a method of the first argument."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        return getattr(value, self.name)(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Mode:
    """Gradients or automatic types switched on or off."""

    kind: str
    settings: tuple[Any, ...]

    def enter(self) -> Any:
        """Return the context in which it holds."""
        if self.kind == "grad":
            return torch.set_grad_enabled(*self.settings)
        return torch.autocast(*self.settings)


@dataclass(frozen=True, slots=True)
class ProgramNode:
    """One call.

    Attributes:
        name: of the value it returns.
        kind: of the function, e.g. ``linear``.
        stack: qualified names of the modules in whose call it was made, from the outermost (not named) inwards.
        call: the function.
        args, kwargs: its arguments, a `Ref` for each that is a value.
        modes: what the model has switched on or off around it, from the outermost inwards.
    """

    name: str
    kind: str
    stack: tuple[str, ...]
    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    modes: tuple[Mode, ...] = ()

    @property
    def module(self) -> str:
        """Qualified name of the innermost module in whose call it was made, empty for the outermost."""
        return self.stack[-1] if self.stack else ""

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the values among its arguments, each once, in their order."""
        return tuple(dict.fromkeys(ref.name for ref in refs((self.args, self.kwargs))))

    def run(self, values: Mapping[str, Any]) -> Any:
        """Call the function on these values."""
        args = substitute(self.args, lambda ref: values[ref.name])
        kwargs = substitute(self.kwargs, lambda ref: values[ref.name])
        with contextlib.ExitStack() as stack:
            for mode in self.modes:
                stack.enter_context(mode.enter())
            return self.call(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Program:
    """A model as a list of calls.

    Attributes:
        how: ``torch.export`` or ``torch.fx``.
        nodes: in an order in which every value is there before it is read.
        state: parameters, buffers and constants that are read, by ``%`` and qualified name; a tied one is there once.
        inputs: the example inputs, by name.
        outputs: names of the values that are the tensors among the model's outputs, in their order.
        repeated: qualified names of the modules that are called more than once.
    """

    how: str
    nodes: tuple[ProgramNode, ...]
    state: dict[str, Any]
    inputs: dict[str, Any]
    outputs: tuple[str, ...]
    repeated: frozenset[str] = frozenset()

    def is_parameter(self, name: str) -> bool:
        """Say whether the value of this name is a parameter."""
        return isinstance(self.state.get(name), torch.nn.Parameter)

    def last_readers(self) -> dict[str, list[str]]:
        """Return for each node the values that nobody reads after it, itself included if nobody does."""
        last: dict[str, str] = {}
        for node in self.nodes:
            last |= dict.fromkeys((node.name, *node.reads), node.name)
        done: dict[str, list[str]] = {node.name: [] for node in self.nodes}
        for value, reader in last.items():
            if value not in self.state and value not in self.outputs:
                done[reader].append(value)
        return done


def state_names(module: Any) -> tuple[dict[int, str], dict[str, Any]]:
    """Return the first qualified name of each tensor of `module` by its id, and the tensors by all their names."""
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    first: dict[int, str] = {}
    for name, tensor in named:
        first.setdefault(id(tensor), name)
    return first, dict(named)


def called(meta: dict[str, Any]) -> tuple[str, ...]:
    """Return the qualified names of the modules in whose call a node of a graph of torch was made."""
    stack = (str(path).split("@")[0] for path, _ in (meta.get("nn_module_stack") or {}).values())
    return tuple(path for path in stack if path)


def repeated(module: Any, metas: Iterable[dict[str, Any]]) -> frozenset[str]:
    """Return the modules that the nodes of a graph, given by what torch notes of each, call more than once."""
    calls: dict[str, set[str]] = {}
    for meta in metas:
        for call, (path, _) in (meta.get("nn_module_stack") or {}).items():
            calls.setdefault(str(path).split("@")[0], set()).add(str(call))
    names: dict[int, list[str]] = {}
    for name, part in module.named_modules(remove_duplicate=False):
        names.setdefault(id(part), []).append(name)
    groups = [[name for name in group if name in calls] for group in names.values()]
    return frozenset(
        name for group in groups for name in group if name and sum(len(calls[other]) for other in group) > 1
    )


def refs(value: Any) -> list[Ref]:
    """Return every `Ref` in nested arguments."""
    found: list[Ref] = []
    substitute(value, lambda ref: found.append(ref) or ref)  # type: ignore[func-returns-value]
    return found


def substitute(value: Any, replacement: Callable[[Any], Any], kind: type = Ref) -> Any:
    """Return nested arguments, as tuples, lists and dicts of their own, with every item of one kind replaced."""

    def inside(item: Any) -> Any:
        return substitute(item, replacement, kind)

    if isinstance(value, kind):
        return replacement(value)
    if isinstance(value, slice):
        return slice(inside(value.start), inside(value.stop), inside(value.step))
    if isinstance(value, dict):
        return {key: inside(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [inside(item) for item in value]
        return items if isinstance(value, list) else type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def on_tensors(change: Callable[[Any], Any], value: Any) -> Any:
    """Return a value, which may be nested, with every tensor changed."""
    return _pytree.tree_map(lambda x: change(x) if isinstance(x, torch.Tensor) else x, value)


def tensors(value: Any) -> list[Any]:
    """Return the tensors in a value, which may be nested."""
    return [x for x in _pytree.tree_leaves(value) if isinstance(x, torch.Tensor)]


def storage(tensor: Any) -> int:
    """Return a number for the memory a tensor lies in."""
    return int(tensor.untyped_storage()._cdata)


OPERATORS = {operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul}


def writes(node: ProgramNode) -> tuple[str, ...]:
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
        by_name = isinstance(call, MethodCall) and call.name.endswith("_") and not call.name.endswith("__")
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
    nodes: list[ProgramNode] = []
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


def _functional(node: ProgramNode) -> Callable[..., Any] | None:
    """Return the function that does the same without writing, None if there is none or it writes nothing."""
    call = node.call
    if isinstance(call, Aten):
        space, name, overload = call.name.split(".")
        if call.name == "aten.copy_.default":
            return overwritten  # aten.copy has no gradient
        packet = getattr(getattr(torch.ops, space), name[:-1], None) if name.endswith("_") else None
        return Aten(f"{space}.{name[:-1]}.{overload}") if packet is not None and hasattr(packet, overload) else None
    if isinstance(call, MethodCall):
        name = call.name[:-1]
        return MethodCall(name) if call.name.endswith("_") and hasattr(torch.Tensor, name) else None
    return call if node.kwargs.get("inplace") is True else OPERATORS.get(call)


def overwritten(target: Any, source: Any, non_blocking: bool = False) -> Any:
    """Return a tensor like `target` that holds what `source` does."""
    return torch.empty_like(target).copy_(source, non_blocking)


def _keeps_type(node: ProgramNode, values: dict[str, Any]) -> bool:
    """Say whether the value written into has the type that the function without writing would return."""
    target = values[node.args[0].name] if isinstance(node.args[0], Ref) else None
    others = [x for ref in refs(node.args[1:]) for x in tensors(values[ref.name])]
    if isinstance(node.call, Aten) and node.call.name == "aten.copy_.default":
        return True
    return isinstance(target, torch.Tensor) and all(torch.result_type(target, x) == target.dtype for x in others)
