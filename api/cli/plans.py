"""`gangplan verify` and `plot`: plans that were made before, without any solver."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from gangplan.instances import InstanceError, content_hash, verify
from gangplan.instances.certificates import certifies, verify_bound
from gangplan.instances.errors import in_file
from gangplan.instances.kinds import GRAPHS
from gangplan.instances.outlet import write_whole
from gangplan.instances.quantities import counted
from gangplan.instances.verify import clock_cost

from ..units import amount, percent, words
from . import options
from .output import Told, note, tell
from .report import plan_blocks

LISTS = ("load", "transfer", "memory", "finish", "gpus")
"""What verdicts have for each device, job or node."""


def verify_plan(
    instance: options.Problem,
    plan: options.Plan,
    given: options.Given,
    bound: Annotated[str | None, "check this certificate of a bound too, see `solve --certificate`", "FILE"] = None,
) -> Told:
    """Check PLAN against every constraint of PROBLEM and recompute its objective.

    Give the options that the problem was solved with. Exit code: 0 if the plan is feasible, 1 if not, 2 for bad input.
    """
    problem, answer = options.answered(instance, plan, given)
    verdict = verify(problem, answer)
    with in_file(bound):
        proved = None if bound is None else float(verify_bound(problem, options.read_certificate(bound)))
    notes = [f"the plan {x}" for x in options.foreign(answer, content_hash(problem))]
    kind = f", {words(problem)}" if problem.objective in GRAPHS else ""
    lines, value, zero = [f"note: {x}" for x in notes], verdict.objective, clock_cost(problem)
    if not verdict.ok:
        lines += [f"infeasible{kind}: {counted(len(verdict.violations), 'violation')}", *verdict.violations]
    else:
        lines.append(f"feasible{kind}: objective {amount(problem, value)}")
        if proved is not None and certifies(proved, value, zero):
            lines.append("bound checked: OPTIMAL (certified)")
        elif proved is not None:
            gap = (value - proved) / (value - min(zero, proved))
            lines.append(f"bound checked: {amount(problem, proved)}, gap {percent(gap)}")
    blocks = plan_blocks(problem, answer, verdict) if verdict.ok else ()
    found = as_found(problem, verdict, proved) | {"notes": notes}
    return tell(found, "\n".join(lines), *blocks, code=0 if verdict.ok else 1)


def as_found(problem: Any, verdict: Any, proved: float | None = None) -> dict[str, Any]:
    """Return what the verifier says, and the checker of a bound if that is known, for JSON."""
    found = {"feasible": verdict.ok, "objective": verdict.objective, "violations": list(verdict.violations)}
    found |= {} if proved is None else {"bound": proved if isfinite(proved) else None}
    if problem.objective == "layout":
        rows = {name: {part: x.tolist() for part, x in of.items()} for name, of in verdict.parts.items()}
        return found | rows | {"tokens_per_second_per_gpu": verdict.tokens, "mfu": verdict.utilisation}
    arrays = {name: getattr(verdict, name) for name in LISTS if hasattr(verdict, name)}
    if problem.objective == "placement":
        arrays["slowdown"] = None if verdict.rates is None else verdict.rates.slowdown
    lists = {name: None if x is None else np.asarray(x).tolist() for name, x in arrays.items()}
    return found | {name: x and [y if isfinite(y) else None for y in x] for name, x in lists.items()}


def plot_plan(
    instance: options.Problem,
    plan: options.Plan,
    out: Annotated[str, "a .png, .svg or .html file", "PICTURE", options.DRAWN],
    given: options.Given,
    panel: options.Panel = None,
) -> None:
    """Draw PLAN, which answers PROBLEM, into PICTURE.

    Give the options that the problem was solved with. `solve`, `compare` and `simulate` draw with --plot.
    """
    from ..plot import check_panel, render

    problem, answer = options.answered(instance, plan, given)
    check_panel(panel, type(problem))
    try:
        content = render(out, problem, answer, name=Path(instance).stem, panel=panel)
    except InstanceError as error:
        raise error.of(plan) from None
    except ValueError as error:  # it breaks a constraint
        raise InstanceError("plan", str(error), plan) from None
    write_whole({out: content})
    note(*(f"the plan {x}" for x in options.foreign(answer, content_hash(problem))))
