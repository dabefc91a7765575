"""Which module of a model a plan puts where, and how to tell `torch.distributed.pipelining`."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances.torch_model.ops import Ops


@dataclass(frozen=True, slots=True)
class Place:
    """Where a module's ops are.

    Attributes:
        devices, stages: those that run one of its ops or of its submodules', in ascending order of stages.
    """

    devices: tuple[int, ...]
    stages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a stage begins.

    Attributes:
        stage: from 1.
        module: qualified name of the module before or after which it begins, None if none does.
        point: ``BEGINNING`` or ``END`` of that module: a name of `torch.distributed.pipelining.SplitPoint`.
        problem: why there is no such module.
    """

    stage: int
    module: str | None
    point: str | None
    problem: str | None


def places(ops: Ops, device: list[int], stage: list[int]) -> dict[str, Place]:
    """Return where each module with ops is, by qualified name in the order of calls; the model is the empty name."""
    members: dict[str, set[tuple[int, int]]] = {}
    stacks = _stacks(ops)
    for i, stack in enumerate(stacks):
        for module in ("", *stack):
            members.setdefault(module, set()).add((stage[i], device[i]))
    return {
        module: Place(tuple(d for _, d in sorted(found)), tuple(s for s, _ in sorted(found)))
        for module, found in members.items()
    }


def cuts(ops: Ops, stage: list[int]) -> list[Cut]:
    """Return where each stage but the first begins, in the order in which the model calls its modules."""
    stacks = _stacks(ops)
    names = [op.name for op in ops.ops]
    runs = _runs(stacks)
    used = sorted(set(stage))
    found = []
    for k, first in enumerate(used[1:], 1):
        here = next(i for i, s in enumerate(stage) if s >= first)
        back = next((i for i in range(here, len(stage)) if stage[i] < first), None)
        if back is not None:
            words = f"{names[here]} runs before {names[back]}, which belongs to an earlier stage"
            found.append(Cut(k, None, None, words))
            continue
        begins = [m for m, run in runs.items() if len(run) == 1 and run[0][0] == here]
        ends = [m for m, run in runs.items() if len(run) == 1 and run[0][1] == here - 1]
        if begins or ends:
            point = "BEGINNING" if begins else "END"
            found.append(Cut(k, min(begins or ends, key=lambda m: m.count(".")), point, None))
        else:
            where = stacks[here][-1] if stacks[here] else "the outermost module"
            words = f"it falls between {names[here - 1]} and {names[here]}, inside {where}"
            found.append(Cut(k, None, None, words))
    return found


def split_points(found: list[Cut]) -> dict[str, str]:
    """Return what `torch.distributed.pipelining.pipeline` takes as its `split_spec`, names of points for the points."""
    return {cut.module: cut.point for cut in found if cut.module is not None and cut.point is not None}


def _stacks(ops: Ops) -> list[tuple[str, ...]]:
    """Return the modules in whose call each op is made."""
    return [ops.nodes[ops.head(i)].stack for i in range(len(ops.ops))]


def _runs(stacks: list[tuple[str, ...]]) -> dict[str, list[tuple[int, int]]]:
    """Return for each module the stretches of ops, first and last, that its calls make."""
    runs: dict[str, list[tuple[int, int]]] = {}
    for i, stack in enumerate(stacks):
        for module in dict.fromkeys(stack):
            stretches = runs.setdefault(module, [])
            if stretches and stretches[-1][1] == i - 1:
                stretches[-1] = (stretches[-1][0], i)
            else:
                stretches.append((i, i))
    return runs
