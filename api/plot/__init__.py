"""Pictures of plans: what is where, what each device or link carries, what runs when. PNG needs the extra ``plot``.

The package can be called: ``gangplan.plot(problem, plan)`` is `picture`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike, fspath
from types import ModuleType
from typing import Any

from gangplan.instances import GraphProblem, InstanceError, PartitionProblem
from gangplan.instances.kinds import PLANS
from gangplan.instances.layout import LayoutProblem
from gangplan.instances.pipeline import PipelineProblem
from gangplan.instances.placement import Fleet, PlacementProblem
from gangplan.instances.schedule import ScheduleProblem
from gangplan.simulator.trace import Outcome

from .cluster import cluster_scene, fleet_scene
from .gantt import gantt_scene
from .layout import layout_scene
from .partition import Drawn, partition_scene
from .pipeline import pipeline_scene
from .scene import Scene, check
from .schedule import schedule_scene
from .simulation import simulation_scene

__all__ = ["Drawn", "Scene", "check", "check_panel", "picture", "plot", "render"]

PANELS: dict[type, tuple[str, ...]] = {
    PartitionProblem: ("graph", "load", "memory"),
    GraphProblem: ("gantt",),
    PlacementProblem: ("cluster", "jobs"),
    ScheduleProblem: ("jobs", "load", "queue"),
    LayoutProblem: ("pipeline", "memory", "seconds"),
    PipelineProblem: ("passes",),
    Outcome: ("jct", "jobs", "load", "queue", "nodes"),
}
"""The panels that a picture of each may have."""
SCENES: dict[type, Callable[..., Scene]] = {ScheduleProblem: schedule_scene, PipelineProblem: pipeline_scene}
"""What draws plans beside each other, where that is no Gantt chart of a graph."""


def picture(
    of: Any,
    plan: Any = None,
    path: str | PathLike[str] | None = None,
    *,
    name: str = "",
    panel: str | None = None,
    status: str | None = None,
    bound: float | None = None,
    epoch: float | None = None,
) -> Scene:
    """Return a picture, which a notebook shows and ``save`` writes.

    A throughput plan is the graph coloured by device and what each device carries; a placement the cluster with GPUs
    coloured by job and links by load; a layout its pipeline, and its memory and seconds by stage; a schedule of jobs,
    like any other plan, a Gantt chart; outcomes of simulations their completion times, and who held what when.

    Args:
        of: a problem of any objective; a list of `Drawn`; a `Fleet`; an outcome, or several by the name of a policy.
        plan: its plan, or the result of `solve`, whose status and bound are then told; of a fleet a `Decision`, or by
            job what it holds: GPUs by name of the node. Outcomes need none.
        path: where to write it too: .png, .svg or .html.
        name: for the title.
        panel: of several panels only those of this name.
        status: of the result, for the title.
        bound: no plan is better than this.
        epoch: of outcomes, what the calendar shows at time 0, seconds from 1970.

    Raises:
        InstanceError: if the plan is for another problem, there is no such panel, the ending of `path` is none that can
            be drawn, a package is missing, or the file cannot be written.
        ValueError: if the plan is infeasible.
    """
    if path is not None:
        check(fspath(path))
    if hasattr(plan, "plan") and hasattr(plan, "bound"):
        plan, status, bound = plan.plan, status or str(plan.status), plan.bound if bound is None else bound
        if plan is None:
            raise InstanceError("plan", f"there is none: the result is {status}")
    scene = _scene(of, plan, status, bound, epoch).only(panel)
    if name:
        scene = replace(scene, title=f"{name}: {scene.title}")
    if path is not None:
        scene.save(fspath(path))
    return scene


def _scene(of: Any, plan: Any, status: str | None, bound: float | None, epoch: float | None) -> Scene:
    if isinstance(of, Outcome) or (isinstance(of, Mapping) and of and all(isinstance(x, Outcome) for x in of.values())):
        return simulation_scene({"": of} if isinstance(of, Outcome) else of, epoch)
    if isinstance(of, list):  # plans beside one another, of graphs or of jobs, on one axis of time
        return SCENES.get(type(of[0].problem), gantt_scene)(of)
    if isinstance(of, Fleet):
        held = {start.job: start.nodes for start in plan.starts} if hasattr(plan, "starts") else plan
        return fleet_scene(of, held)
    if not isinstance(of, GraphProblem | PlacementProblem | ScheduleProblem | LayoutProblem | PipelineProblem):
        raise InstanceError("problem", f"a {type(of).__name__} is no problem, fleet or outcome")
    if not isinstance(plan, PLANS[of.objective]):
        raise InstanceError("plan", f"a {type(plan).__name__} does not answer a {type(of).__name__}")
    entry = Drawn(of, plan, "", status, bound)
    if isinstance(of, PlacementProblem | LayoutProblem):
        return cluster_scene(entry) if isinstance(of, PlacementProblem) else layout_scene(entry)
    return partition_scene(entry) if isinstance(of, PartitionProblem) else _scene([entry], None, None, None, None)


def check_panel(panel: str | None, kind: type) -> None:
    """Refuse, before any work is done, a panel that no picture of this kind of problem, or outcome, has."""
    names = next(names for of, names in PANELS.items() if issubclass(kind, of))
    if panel is not None and panel not in names:
        raise InstanceError("panel", f"{panel!r} is not one of {', '.join(names)}")


def render(path: str, problem: Any, plan: Any, **more: Any) -> bytes:
    """Return the content of a file of the kind that the ending of `path` says; see `picture`. Nothing is written."""
    check(path)
    return picture(problem, plan, **more).render(path)


class _Callable(ModuleType):
    def __call__(self, *given: Any, **more: Any) -> Scene:
        return picture(*given, **more)


plot = picture  # for type checkers; it is the package, which can be called
globals()["plot"] = sys.modules[__name__]
sys.modules[__name__].__class__ = _Callable
