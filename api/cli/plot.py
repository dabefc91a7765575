"""`gangplan plot`: a picture of a plan that was made before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gangplan.instances import InstanceError, content_hash
from gangplan.instances.outlet import write_whole

from . import options
from .options import check_picture, foreign, read_answer


@options.with_problem
def plot(
    instance: options.Problem,
    plan: options.Plan,
    out: Annotated[str, typer.Argument(metavar="PICTURE", help="a .png, .svg or .html file")],
    given: dict[str, Any],
    panel: options.Panel = None,
) -> None:
    """Draw PLAN, which answers PROBLEM, into PICTURE.

    Give the options that the problem was solved with. `solve`, `compare` and `simulate` draw with --plot.
    """
    from ..plot import render

    check_picture(out, None, None, instance, plan)
    answer = read_answer(plan)
    problem = options.problem_for(answer, instance, given)
    check_picture(None, panel, type(problem))
    try:
        content = render(out, problem, answer, name=Path(instance).stem, panel=panel)
    except InstanceError as error:
        raise error.of(plan) from None
    except ValueError as error:  # it breaks a constraint
        raise InstanceError("plan", str(error), plan) from None
    write_whole({out: content})
    for note in foreign(answer, content_hash(problem)):
        typer.echo(f"note: the plan {note}", err=True)
