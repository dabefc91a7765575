"""Pictures of plans: what is where, what each device or link carries, what runs when. Needs the extra ``plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from gangplan.instances import GraphProblem, InstanceError, PartitionPlan, PartitionProblem, Plan
from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.simulator.trace import Outcome

from .cluster import ClusterPicture, compose_cluster
from .gantt import Entry, Gantt, compose_gantt
from .picture import Picture, compose
from .simulation import SimulationPicture, compose_simulation

__all__ = [
    "ClusterPicture",
    "Entry",
    "Gantt",
    "Picture",
    "SimulationPicture",
    "check",
    "compose",
    "compose_cluster",
    "compose_gantt",
    "compose_simulation",
    "render",
    "render_cluster",
    "render_gantt",
    "render_simulation",
]

PACKAGES = {".png": "matplotlib", ".html": "plotly"}
"""What draws each kind of file."""


def check(path: str) -> None:
    """Refuse a file name that says no known kind of picture, or one whose package is absent.

    Raises:
        InstanceError: naming the file and what to do.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in PACKAGES:
        raise InstanceError("plot", f"{suffix!r} is not one of {', '.join(PACKAGES)}", path)
    if find_spec(PACKAGES[suffix]) is None:
        raise InstanceError("plot", f'needs {PACKAGES[suffix]}: pip install "gangplan[plot]"', path)


def render(
    path: str,
    problem: GraphProblem | PlacementProblem,
    plan: Plan | PlacementPlan,
    *,
    name: str = "",
    status: str | None = None,
    bound: float | None = None,
) -> bytes:
    """Return the content of a picture of `plan`: PNG or self-contained HTML, as the ending of `path` says.

    A throughput plan is drawn as the graph coloured by device and what each device carries, a placement of gangs as the
    cluster with GPUs coloured by job and links by load, any other as a Gantt chart.

    Args:
        path: where it will be written; nothing is written here.
        problem, plan, name, status, bound: see `compose` and `compose_cluster`.

    Raises:
        InstanceError: see `check`; if one of plan and problem is of gangs, the other of ops.
        ValueError: if the plan is infeasible.
    """
    check(path)
    if isinstance(problem, PlacementProblem) and isinstance(plan, PlacementPlan):
        return render_cluster(path, problem, plan, name=name, status=status, bound=bound)
    if isinstance(problem, PlacementProblem) or isinstance(plan, PlacementPlan):
        raise InstanceError("plan", f"a {type(plan).__name__} does not answer a {type(problem).__name__}")
    if not (isinstance(problem, PartitionProblem) and isinstance(plan, PartitionPlan)):
        return render_gantt(path, [Entry(problem, plan, status=status, bound=bound)], name=name)
    picture = compose(problem, plan, name=name, status=status, bound=bound)
    if Path(path).suffix.lower() == ".png":
        from .png import draw as draw_png

        return draw_png(picture)
    from .html import draw as draw_html

    return draw_html(picture)


def render_gantt(path: str, entries: Sequence[Entry], *, name: str = "") -> bytes:
    """Return the content of a Gantt chart of each plan, all on one axis of time.

    Args:
        path: where it will be written; nothing is written here.
        entries, name: see `compose_gantt`.

    Raises:
        InstanceError: see `check`.
        ValueError: if a plan is infeasible.
    """
    check(path)
    picture = compose_gantt(entries, name=name)
    if Path(path).suffix.lower() == ".png":
        from .gantt_png import draw_gantt as draw_png

        return draw_png(picture)
    from .gantt_html import draw_gantt as draw_html

    return draw_html(picture)


def render_cluster(
    path: str,
    problem: PlacementProblem,
    plan: PlacementPlan,
    *,
    name: str = "",
    status: str | None = None,
    bound: float | None = None,
) -> bytes:
    """Return the content of a picture of a cluster under a placement.

    Args:
        path: where it will be written; nothing is written here.
        problem, plan, name, status, bound: see `compose_cluster`.

    Raises:
        InstanceError: see `check`.
        ValueError: if the plan is infeasible.
    """
    check(path)
    picture = compose_cluster(problem, plan, name=name, status=status, bound=bound)
    if Path(path).suffix.lower() == ".png":
        from .cluster_png import draw_cluster as draw_png

        return draw_png(picture)
    from .cluster_html import draw_cluster as draw_html

    return draw_html(picture)


def render_simulation(path: str, outcomes: Mapping[str, Outcome], *, name: str = "") -> bytes:
    """Return the content of a picture of schedules of one workload, by the name of their policy.

    Completion times of all in one chart; for each, jobs on nodes over time (GPUs in use over time if there are too
    many), the queue, and how full the nodes are.

    Args:
        path: where it will be written; nothing is written here.
        outcomes, name: see `compose_simulation`.

    Raises:
        InstanceError: see `check`.
    """
    check(path)
    picture = compose_simulation(outcomes, name=name)
    if Path(path).suffix.lower() == ".png":
        from .simulation_png import draw_simulation as draw_png

        return draw_png(picture)
    from .simulation_html import draw_simulation as draw_html

    return draw_html(picture)
