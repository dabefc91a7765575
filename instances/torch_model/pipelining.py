"""What `torch.distributed.pipelining` can split: the calls in their order, where a module begins or ends."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InstanceError
from .ops import Ops

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
