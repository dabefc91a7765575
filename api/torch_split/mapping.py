"""Which module of a model a plan puts where, and how to tell `torch.distributed.pipelining`."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances.torch_model import pipelining
from gangplan.instances.torch_model.ops import Ops
from gangplan.instances.torch_model.pipelining import boundaries, stacks


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
    for i, stack in enumerate(stacks(ops)):
        for module in ("", *stack):
            members.setdefault(module, set()).add((stage[i], device[i]))
    return {
        module: Place(tuple(d for _, d in sorted(found)), tuple(s for s, _ in sorted(found)))
        for module, found in members.items()
    }


def cuts(ops: Ops, stage: list[int]) -> list[Cut]:
    """Return where each stage but the first begins, in the order in which the model calls its modules."""
    points = boundaries(ops)
    where = stacks(ops)
    names = [op.name for op in ops.ops]
    taken: set[str] = set()
    found = []
    for k, first in enumerate(sorted(set(stage))[1:], 1):
        here = next(i for i, s in enumerate(stage) if s >= first)
        back = next((i for i in range(here, len(stage)) if stage[i] < first), None)
        free = [point for point in points.get(here, ()) if point[0] not in taken]
        if back is not None:
            words = f"{names[here]} runs before {names[back]}, which belongs to an earlier stage"
            found.append(Cut(k, None, None, words))
        elif free:
            taken.add(free[0][0])
            found.append(Cut(k, *free[0], None))
        else:
            inside = where[here][-1] if where[here] else "the outermost module"
            words = f"it falls between {names[here - 1]} and {names[here]}, inside {inside}"
            found.append(Cut(k, None, None, words))
    return found


def obstacles(ops: Ops, stage: list[int], found: list[Cut]) -> list[str]:
    """Return why `torch.distributed.pipelining` cannot run the stages, each with its remedy; none if it can."""
    where = [f"stage {cut.stage}: {cut.problem}: profile the model with --pipelining" for cut in found if cut.problem]
    return [*where, *pipelining.obstacles(ops, stage)]


def split_points(found: list[Cut]) -> dict[str, str]:
    """Return what `torch.distributed.pipelining.pipeline` takes as its `split_spec`, names of points for the points."""
    return {cut.module: cut.point for cut in found if cut.module is not None and cut.point is not None}
