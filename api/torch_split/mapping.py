"""Which module of a model a plan puts where, and how to tell `torch.distributed.pipelining`."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances.torch_model.ops import Ops, Point, boundaries, stacks
from gangplan.instances.torch_model.ops import obstacles as model_obstacles


@dataclass(frozen=True, slots=True)
class ModulePlace:
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
        why: what passes there, and what a cut beside it costs; see `reasons`.
    """

    stage: int
    module: str | None
    point: str | None
    problem: str | None
    why: str = ""


def places(ops: Ops, device: list[int], stage: list[int]) -> dict[str, ModulePlace]:
    """Return where each module with ops is, by qualified name in the order of calls; the model is the empty name."""
    members: dict[str, set[tuple[int, int]]] = {}
    for i, stack in enumerate(stacks(ops)):
        for module in ("", *stack):
            members.setdefault(module, set()).add((stage[i], device[i]))
    return {
        module: ModulePlace(tuple(d for _, d in sorted(found)), tuple(s for s, _ in sorted(found)))
        for module, found in members.items()
    }


def cuts(ops: Ops, stage: list[int]) -> list[Cut]:
    """Return where each stage but the first begins, in the order in which the model calls its modules."""
    points, where = boundaries(ops), stacks(ops)
    names = [op.name for op in ops.ops]
    firsts = sorted(set(stage))[1:]
    begin = [next(i for i, s in enumerate(stage) if s >= first) for first in firsts]
    both = zip(begin, firsts, strict=True)
    back = [next((i for i in range(i, len(stage)) if stage[i] < first), None) for i, first in both]
    chosen = _match([points.get(i, []) if j is None else [] for i, j in zip(begin, back, strict=True)])
    result = []
    for k, (i, j) in enumerate(zip(begin, back, strict=True)):
        words = None
        if j is not None:
            words = f"{names[i]} runs before {names[j]}, which belongs to an earlier stage"
        elif chosen[k] is None:
            inside = where[i][-1] if where[i] else "the outermost module"
            words = f"it falls between {names[i - 1]} and {names[i]}, inside {inside}"
            if i in points:
                other = points[i][0][0]
                words = f"{other} alone could name it, but names another: make a module of what is between"
        module, point = chosen[k] or (None, None)
        result.append(Cut(k + 1, module, point, words))
    return result


def _match(options: list[list[Point]]) -> list[Point | None]:
    """Return for each cut one of its points such that no module names two, for as many as can be (Kuhn 1955)."""
    owner: dict[str, int] = {}
    chosen: list[Point | None] = [None] * len(options)

    def place(k: int, seen: set[str]) -> bool:
        for point in options[k]:
            if point[0] not in seen:
                seen.add(point[0])
                if point[0] not in owner or place(owner[point[0]], seen):
                    owner[point[0]], chosen[k] = k, point
                    return True
        return False

    for k in range(len(options)):
        place(k, set())
    return chosen


def obstacles(ops: Ops, stage: list[int], found: list[Cut]) -> list[str]:
    """Return why `torch.distributed.pipelining` cannot run the stages, each with its remedy; none if it can."""
    where = [f"stage {cut.stage}: {cut.problem}" for cut in found if cut.problem]
    where = [words if words.count(":") > 1 else f"{words}: profile the model with --pipelining" for words in where]
    return [*where, *model_obstacles(ops, stage)]


def split_points(found: list[Cut]) -> dict[str, str]:
    """Return what `torch.distributed.pipelining.pipeline` takes as its `split_spec`, names of points for the points."""
    return {cut.module: cut.point for cut in found if cut.module is not None and cut.point is not None}
