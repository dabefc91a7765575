"""Pictures of plans: the graph coloured by device, what each device carries. Needs the extra ``plot``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from gangplan.instances import InstanceError, PartitionPlan, PartitionProblem

from .picture import Picture, compose

__all__ = ["Picture", "check", "compose", "render"]

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
    problem: PartitionProblem,
    plan: PartitionPlan,
    *,
    name: str = "",
    status: str | None = None,
    bound: float | None = None,
) -> bytes:
    """Return the content of a picture of `plan`: PNG or self-contained HTML, as the ending of `path` says.

    Args:
        path: where it will be written; nothing is written here.
        problem, plan, name, status, bound: see `compose`.

    Raises:
        InstanceError: see `check`.
        ValueError: if the plan is infeasible.
    """
    check(path)
    picture = compose(problem, plan, name=name, status=status, bound=bound)
    if Path(path).suffix.lower() == ".png":
        from .png import draw as draw_png

        return draw_png(picture)
    from .html import draw as draw_html

    return draw_html(picture)
