"""Group the calls of a program into ops: what each computes and holds, which share a device, where stages may begin.

A stage of `torch.distributed.pipelining` begins or ends where a module does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import count, pairwise
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray, sums
from ..errors import InstanceError
from ..generators.builder import TRAINING_BYTES
from ..graph import components
from .cost import Kernel, Profile, footprint
from .load import LoadedModel
from .program import ProgramNode, storage, tensors, writes


@dataclass(frozen=True, slots=True)
class Op:
    """One op.

    Attributes:
        name: unique: the module that calls it, a slash, and the function.
        module: qualified name of that module, empty for the outermost.
        kind: the function.
        nodes: names of its calls, in their order.
        state: names of the parameters and buffers it reads.
    """

    name: str
    module: str
    kind: str
    nodes: tuple[str, ...]
    state: tuple[str, ...]


@dataclass(frozen=True)
class Ops:
    """The ops of a profile, in topological order.

    A view of a value belongs to the op that makes the value; a view of nothing but parameters, buffers and inputs
    belongs to none, and is made anew wherever it is read. A call that only updates a buffer belongs to the op that
    follows it in the same module.
    """

    profile: Profile

    @cached_property
    def nodes(self) -> dict[str, ProgramNode]:
        """The calls by name."""
        return {node.name: node for node in self.profile.program.nodes}

    @cached_property
    def local(self) -> dict[str, tuple[str, ...]]:
        """For each value that belongs to no op, the parameters and buffers it shows."""
        program = self.profile.program
        found: dict[str, tuple[str, ...]] = {name: (name,) for name in program.state}
        found |= dict.fromkeys(program.inputs, ())
        for node in program.nodes:
            if node.name in self._filled or not self.profile.is_free(node.name) or writes(node):
                continue
            if all(name in found for name in node.reads):
                found[node.name] = _union(found[name] for name in node.reads)
        return found

    @cached_property
    def home(self) -> dict[str, int]:
        """The index of the op of each call that belongs to one."""
        heads = {name: i for i, name in enumerate(self._heads)}
        home = dict(heads)
        for node in self.profile.program.nodes:
            if node.name in self.local or node.name in heads:
                continue
            if node.name in self._filled:
                home[node.name] = heads[self._filled[node.name]]
                continue
            before = [home[name] for name in node.reads if name in home]
            home[node.name] = heads[self._updates[node.name]] if node.name in self._updates else max(before)
        return home

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """The ops."""
        members: list[list[ProgramNode]] = [[] for _ in self._heads]
        for node in self.profile.program.nodes:
            if node.name in self.home:
                members[self.home[node.name]].append(node)
        taken: set[str] = set()
        found = []
        for head, nodes in zip(self._heads, members, strict=True):
            first = self.nodes[head]
            name = _fresh(f"{first.module}/{first.kind}" if first.module else first.kind, taken)
            state = _union(self.local.get(read, ()) for node in nodes for read in node.reads)
            found.append(Op(name, first.module, first.kind, tuple(node.name for node in nodes), state))
        return tuple(found)

    @cached_property
    def edges(self) -> dict[tuple[int, int], tuple[str, ...]]:
        """The values that pass from one op to another, by the two."""
        found: dict[tuple[int, int], dict[str, None]] = {}
        for node in self.profile.program.nodes:
            here = self.home.get(node.name)
            for read in node.reads:
                there = self.home.get(read)
                if here is not None and there is not None and there != here:
                    found.setdefault((there, here), {})[read] = None
        return {pair: tuple(values) for pair, values in sorted(found.items())}

    def head(self, op: int) -> str:
        """Return the name of the call that gives an op its name and kind."""
        return self._heads[op]

    def inputs(self, op: int) -> tuple[str, ...]:
        """Return the values that the first call of an op reads, parameters and buffers left out."""
        state = self.profile.program.state
        return tuple(name for name in self.nodes[self._heads[op]].reads if name not in state)

    def written(self) -> list[set[int]]:
        """Return sets of ops that share memory which one of them writes into, and so must share a device."""
        values, program = self.profile.values, self.profile.program
        changed = {storage(x) for node in program.nodes for name in writes(node) for x in tensors(values[name])}
        touching: dict[int, set[int]] = {}
        for node in program.nodes:
            if node.name in self.home:
                for name in (node.name, *node.reads):
                    for x in tensors(values[name]):
                        touching.setdefault(storage(x), set()).add(self.home[node.name])
        return [found for place, found in touching.items() if place in changed and len(found) > 1]

    @cached_property
    def _filled(self) -> dict[str, str]:
        """Calls that only allocate memory, which others write into, and the first of those."""
        values, program = self.profile.values, self.profile.program
        writer: dict[int, str] = {}
        for node in program.nodes:
            for x in (x for name in writes(node) for x in tensors(values[name])):
                writer.setdefault(storage(x), node.name)
        found: dict[str, str] = {}
        known = {storage(x) for name in (*program.state, *program.inputs) for x in tensors(values[name])}
        for node in program.nodes:
            places = {storage(x) for x in tensors(values[node.name])}
            if self.profile.is_free(node.name) and not places & known:
                for place in places & writer.keys():
                    found[node.name] = writer[place]
            known |= places
        return found

    @cached_property
    def _heads(self) -> list[str]:
        """The calls that make ops."""
        return [
            node.name
            for node in self.profile.program.nodes
            if not self.profile.is_free(node.name) and node.name not in self._updates
        ]

    @cached_property
    def _updates(self) -> dict[str, str]:
        """Calls that only update a buffer, and the head of the op that each belongs to."""
        program = self.profile.program
        read = {name for node in program.nodes for name in node.reads} | set(program.outputs)
        lone = {
            node.name
            for node in program.nodes
            if writes(node) and node.name not in read and all(name in self.local for name in node.reads)
        }
        found: dict[str, str] = {}
        follower: dict[str, str] = {}
        for node in reversed(program.nodes):
            if node.name in lone and node.module in follower:
                found[node.name] = follower[node.module]
            elif not self.profile.is_free(node.name):
                follower[node.module] = node.name
        return found


def _union(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in names for name in group))


def _fresh(name: str, taken: set[str]) -> str:
    fresh = name if name not in taken else next(x for i in count(1) if (x := f"{name}_{i}") not in taken)
    taken.add(fresh)
    return fresh


def op_flops(ops: Ops, backward: bool = False) -> FloatArray:
    """Return the FLOPs of each op, forward or backward, float64 (n,)."""
    return _per_op(ops, backward, lambda kernel: kernel.flops)


def op_moved(ops: Ops, backward: bool = False) -> FloatArray:
    """Return the bytes that the kernels of each op read and write, forward or backward, float64 (n,)."""
    return _per_op(ops, backward, lambda kernel: kernel.moved)


def parameters(ops: Ops, op: Op) -> float:
    """Return how many parameters an op reads."""
    program = ops.profile.program
    return float(sum(program.state[name].numel() for name in op.state if program.is_parameter(name)))


def _per_op(ops: Ops, backward: bool, of: Callable[[Kernel], float]) -> FloatArray:
    found, where = kernels(ops, backward)
    return sums(where, np.array([of(kernel) for kernel in found], dtype=float), len(ops.ops))


def kernels(ops: Ops, backward: bool) -> tuple[list[Kernel], IntArray]:
    """Return the kernels of all ops, forward or backward, and the op of each, int32."""
    found = ops.profile.backward if backward else ops.profile.forward
    pairs = [(kernel, i) for i, op in enumerate(ops.ops) for node in op.nodes for kernel in found[node]]
    return [kernel for kernel, _ in pairs], np.array([i for _, i in pairs], dtype=np.int32)


def weights(ops: Ops, tied: str, training: bool) -> tuple[FloatArray, FloatArray]:
    """Return the bytes of parameters that each op owns, a tied one counted at the first, and the bytes it holds."""
    program = ops.profile.program
    owned, held = np.zeros(len(ops.ops)), np.zeros(len(ops.ops))
    seen: set[str] = set()
    for i, op in enumerate(ops.ops):
        for name in op.state:
            tensor = program.state[name]
            size, parameter = tensor.numel() * tensor.element_size(), program.is_parameter(name)
            if parameter and name not in seen:
                owned[i] += size
            if name not in seen or tied == "copy" or not parameter:
                held[i] += tensor.numel() * TRAINING_BYTES if training and tensor.requires_grad else size
            seen.add(name)
    return owned, held


def output_bytes(ops: Ops, op: Op) -> float:
    """Return the bytes of the memory that an op fills with its results."""
    values = ops.profile.values
    read = {
        storage(x)
        for node in op.nodes
        for name in ops.nodes[node].reads
        if name not in op.nodes
        for x in tensors(values[name])
    }
    made = {storage(x): x for node in op.nodes for x in tensors(values[node])}
    return float(sum(x.untyped_storage().nbytes() for place, x in made.items() if place not in read))


def passed_bytes(ops: Ops, names: Sequence[str]) -> float:
    """Return the bytes of some values, counting memory that several show once."""
    by_place: dict[int, list[Any]] = {}
    for name in names:
        for x in tensors(ops.profile.values[name]):
            by_place.setdefault(storage(x), []).append(x)
    return float(sum(min(sum(map(footprint, xs)), xs[0].untyped_storage().nbytes()) for xs in by_place.values()))


def tied_ops(ops: Ops) -> list[set[int]]:
    """Return the ops that read one parameter, a set for each parameter that several read."""
    users: dict[str, set[int]] = {}
    for i, op in enumerate(ops.ops):
        for name in op.state:
            if ops.profile.program.is_parameter(name):
                users.setdefault(name, set()).add(i)
    return [found for found in users.values() if len(found) > 1]


def whole_modules(ops: Ops, model: LoadedModel, patterns: Sequence[str]) -> list[set[int]]:
    """Return the ops of each module whose qualified name matches a shell pattern."""
    groups = []
    for pattern in patterns:
        names = [name for name, _ in model.module.named_modules() if fnmatchcase(name, pattern)]
        if not names:
            raise InstanceError("whole", f"{pattern!r} matches no module")
        groups += [{i for i, op in enumerate(ops.ops) if f"{op.module}.".startswith(f"{name}.")} for name in names]
    return [group for group in groups if len(group) > 1]


def classes(n: int, groups: list[set[int]]) -> IntArray:
    """Return the colocation class of each of n ops: ops of one group share a class, and so do groups that overlap."""
    pairs = np.array([pair for group in groups for pair in pairwise(sorted(group))], dtype=int).reshape(-1, 2)
    label = components(pairs[:, 0], pairs[:, 1], n)
    shared = np.bincount(label) > 1
    return np.asarray(np.where(shared, np.cumsum(shared) - 1, -1)[label], dtype=np.int32)


Point = tuple[str, str]
"""A module's qualified name and ``BEGINNING`` or ``END``, names of `torch.distributed.pipelining.SplitPoint`."""


def stacks(ops: Ops) -> list[tuple[str, ...]]:
    """Return the modules in whose call each op is made, the outermost first."""
    return [ops.nodes[ops.head(i)].stack for i in range(len(ops.ops))]


def boundaries(ops: Ops) -> dict[int, list[Point]]:
    """Return by the op that a stage may begin with the points that say so, those of outer modules first.

    A module that is called more than once has none: its name would say several places.
    """
    runs: dict[str, list[tuple[int, int]]] = {}
    for i, stack in enumerate(stacks(ops)):
        for module in dict.fromkeys(stack):
            stretches = runs.setdefault(module, [])
            if stretches and stretches[-1][1] == i - 1:
                stretches[-1] = (stretches[-1][0], i)
            else:
                stretches.append((i, i))
    often = ops.profile.program.repeated
    single = {module: found[0] for module, found in runs.items() if len(found) == 1 and module not in often}
    points: dict[int, list[Point]] = {}
    for kind, shift in (("BEGINNING", 0), ("END", 1)):
        for module in sorted(single, key=lambda name: name.count(".")):
            here = single[module][shift] + shift
            if 0 < here < len(ops.ops):
                points.setdefault(here, []).append((module, kind))
    return points


def segments(ops: Ops) -> list[list[int]]:
    """Return the ops in their order, cut wherever a stage may begin."""
    n = len(ops.ops)
    first = max((i for i, _ in _late_inputs(ops)), default=0)
    last = min((i for i, _ in _early_outputs(ops)), default=n - 1)
    cuts = [i for i in sorted(boundaries(ops)) if first < i <= last]
    if not cuts:
        found = obstacles(ops, list(range(n)))
        raise InstanceError("pipelining", found[0] if found else "the model calls no modules one after the other")
    return [list(range(a, b)) for a, b in zip([0, *cuts], [*cuts, n], strict=True)]


def obstacles(ops: Ops, stage: Sequence[int]) -> list[str]:
    """Return why inputs and outputs keep `torch.distributed.pipelining` from running these stages, with the remedy.

    It gives the model's inputs to the first stage alone, and returns what the last stage returns.
    """
    names = [op.name for op in ops.ops]
    read = {name: i for i, name in _late_inputs(ops) if stage[i] > min(stage)}
    made = {name: i for i, name in _early_outputs(ops) if stage[i] < max(stage)}
    return [
        *(
            f"input {name!r} is read by {names[i]}, behind the first stage: pass it on from module to module, or, "
            "if it is for the loss, leave the loss out of the model and give it to the schedule as loss_fn"
            for name, i in read.items()
        ),
        *(
            f"{names[i]}, before the last stage, makes an output of the model: return only what the last module makes"
            for i in made.values()
        ),
    ]


def _late_inputs(ops: Ops) -> list[tuple[int, str]]:
    """Return the ops that read an input of the model or a view of one, with the input's name, in their order."""
    program = ops.profile.program
    origin = {name: {name} for name in program.inputs}
    for node in program.nodes:
        if node.name in ops.local:
            origin[node.name] = set().union(*(origin.get(read, set()) for read in node.reads))
    found = {
        (ops.home[node.name], name)
        for node in program.nodes
        if node.name in ops.home
        for read in node.reads
        for name in origin.get(read, ())
    }
    return sorted(found)


def _early_outputs(ops: Ops) -> list[tuple[int, str]]:
    """Return the ops that make the model's outputs, with the name of the value."""
    return sorted((ops.home[name], name) for name in ops.profile.program.outputs if name in ops.home)
