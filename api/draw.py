"""Pictures of plans in files."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any


def draw(problem: Any, plan: Any, path: str | PathLike[str], *, name: str = "") -> None:
    """Draw a plan into a file, as PNG or as an HTML page, which the ending says. Needs the extra ``plot``.

    Args:
        problem: of any objective.
        plan: for it, or the result of `solve`, whose bound is then in the picture.
        path: of the picture.
        name: in its title, by default that of the file.

    Raises:
        InstanceError: if the ending is none that can be drawn, a package is missing or the file cannot be written.
        ValueError: if the plan is infeasible.
    """
    from gangplan.instances.outlet import write_whole
    from gangplan.solvers import Result

    from .plot import render

    words: dict[str, Any] = {"name": name or Path(path).stem}
    if isinstance(plan, Result):
        words |= {"status": str(plan.status), "bound": plan.bound}
        plan = plan.plan
    write_whole({path: render(str(fspath(path)), problem, plan, **words)})
