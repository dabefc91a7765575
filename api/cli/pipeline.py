"""`gangplan pipeline`: order the passes of micro-batches, beside published schedules; memory against bubble."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, fields, make_dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import numpy as np

from gangplan.instances import InstanceError, dump, verify
from gangplan.instances.addons import offered
from gangplan.instances.arrays import sums
from gangplan.instances.errors import extra
from gangplan.instances.generators import defaults
from gangplan.instances.generators.pipelines import micro_batches
from gangplan.instances.pipeline import PipelinePlan, PipelineProblem, schedule_csv
from gangplan.instances.quantities import quantity, scale
from gangplan.solvers.run import OPTIMAL_GAP

from ..units import percent
from . import options
from .output import Told, facts, progress, table_of, tell, write

OURS = "gangplan"
"""What the plan that is found is called beside published schedules."""
POINTS = 64
"""Amounts of memory of a frontier at most."""
if TYPE_CHECKING:
    Made = Any
else:
    _HINTS = get_type_hints(micro_batches, include_extras=True)
    Made = make_dataclass(
        "Made",
        [(name, _HINTS[name], field(default=x)) for name, x in defaults("micro_batches").items()],
        namespace={"section": "The problem, without a file", "__doc__": "What the generator is told."},
    )


class Shown(NamedTuple):
    """A plan in the table: of which problem, and what it is worth as machines are told."""

    problem: PipelineProblem
    plan: PipelinePlan
    row: dict[str, Any]


def pipeline(
    made: Made,
    file: Annotated[str | None, "a pipeline problem, instead of options", "[PROBLEM]", options.READ] = None,
    time_limit: Annotated[float, "for a plan, or for each point of a frontier", "SECONDS"] = 10.0,
    out: Annotated[str | None, "write the plan here", "PLAN", options.Output()] = None,
    csv: Annotated[str | None, "write it for torch.distributed.pipelining", "FILE", options.Output(".csv")] = None,
    draw: options.Picture = None,
    run: Annotated[str | None, "run schedules by torch on a toy GPT, and draw that", "FILE", options.DRAWN] = None,
    frontier: Annotated[str | None, "solve for each amount of memory, and draw that", "FILE", options.DRAWN] = None,
) -> Told:
    """Order forward and backward passes so that a step takes least time, beside published schedules.

    Exit code: 0 with a plan, 1 without one, 2 for bad input.
    """
    options.require_positive(time_limit=time_limit)
    problem = micro_batches(**vars(made)) if file is None else _of(file, made)
    if run is not None:
        _rehearse()
    paths = {"out": out, "csv": csv, "draw": draw, "run": run}
    if frontier is None:
        return _plan(problem, time_limit, paths)
    words = "is of one plan, and a frontier has many: leave it out"
    options.refuse(
        *((name, path, words) for name, path in paths.items()),
        ("memory", not problem.activation.any(), "stages hold none, so there is no frontier"),
    )
    return _frontier(problem, time_limit, frontier)


def _of(file: str, made: Made) -> Any:
    """Return the problem of a file, with which no option goes."""
    told = [f.name for f in fields(made) if getattr(made, f.name) != f.default]
    options.refuse(*((name, True, f"does not apply to the pipeline of {file}") for name in told))
    problem = options.problem(file, options.Given())
    options.refuse(("problem", not isinstance(problem, PipelineProblem), f"{file} holds no pipeline problem"))
    return problem


def _solved(problem: PipelineProblem, time_limit: float) -> Any:
    from gangplan.hybrid import solve

    return solve(problem, time_limit)


def _shown(problem: PipelineProblem, name: str, plan: Any, bound: float | None, paper: float | None = None) -> Shown:
    """Return what a plan is worth, or why it is none."""
    verdict = verify(problem, plan)
    value = verdict.objective
    gap = None if value is None or bound is None else max(0.0, (value - bound) / value) if value else 0.0
    return Shown(problem, plan, {
        "name": name, "backward": "split" if problem.split else "whole", "seconds": value,
        "bubble": verdict.bubble if verdict.ok else None, "published_bubble": paper,
        "memory": float(verdict.memory.max()), "unit": problem.unit, "bound": bound, "gap": gap,
        "proved": gap is not None and gap <= OPTIMAL_GAP, "violations": [*verdict.violations],
    })  # fmt: skip


def _published(problem: PipelineProblem, bound: float | None) -> Iterator[Shown]:
    """Yield published schedules that are made for the problem, with backward passes as their papers have them."""
    from gangplan.solvers.pipeline.published import PUBLISHED, as_published, published_bubble

    for name in PUBLISHED:
        made, plan = as_published(problem, name)
        if plan is not None:
            yield _shown(made, name, plan, bound, published_bubble(made, name))


def _amounts(problem: PipelineProblem, memory: Sequence[float]) -> dict[str, list[str]]:
    """Return a column of memory, whose head names the unit."""
    factor, unit = scale(max(memory, default=0.0), problem.unit)
    return {unit if unit == "micro-batches" else f"memory, {unit}": [f"{x / factor:.4g}" for x in memory]}


def _gap(row: dict[str, Any]) -> str:
    return "proved" if row["proved"] else "no room" if row["violations"] else percent(row["gap"])


def _plan(problem: PipelineProblem, time_limit: float, paths: dict[str, str | None]) -> Told:
    result = _solved(problem, time_limit)
    shown, runs = list(_published(problem, result.bound)), list[dict[str, Any]]()
    picture: Any = None
    if (plan := result.plan) is not None:
        shown.append(_shown(problem, OURS, plan, result.bound))
        if paths["run"]:
            runs, picture = _run([x for x in shown if not x.row["violations"]])
        write(
            (paths["out"], lambda _: f"{dump(plan)}\n"),
            (paths["csv"], lambda _: schedule_csv(problem, plan)),
            (paths["draw"], lambda path: options.drawn(path, problem, result, name=f"{result.trace[-1].by}")),
            (paths["run"], picture),
        )
    rows = [x.row for x in shown]
    data = {
        "status": str(result.status), "standing": result.standing, "schedules": rows,
        "plan": None if result.plan is None else json.loads(dump(result.plan)), "conflict": [*result.conflict],
        "runs": runs,
    }  # fmt: skip
    by = result.trace[-1].by if result.trace else ""
    columns = {
        "schedule": [x["name"] for x in rows], "backward": [x["backward"] for x in rows],
        "step": [quantity(x["seconds"], "s") for x in rows], "bubble": [percent(x["bubble"]) for x in rows],
        "paper": [percent(x["published_bubble"]) for x in rows], **_amounts(problem, [x["memory"] for x in rows]),
        "gap": [_gap(x) for x in rows],
    }  # fmt: skip
    head = _head(problem, result.standing, by, result.bound, result.conflict)
    return tell(data, lambda: [head, table_of(columns, 2), _ran(runs)], code=0 if result.plan is not None else 1)


def _rehearse() -> Any:
    """Return what runs plans by torch; refuse if it cannot be had."""
    found = offered("rehearse") if find_spec("torch") else None
    if found is None:
        raise InstanceError("run", f"needs torch; {extra('torch')}")
    return found


def _run(shown: Sequence[Shown]) -> tuple[list[dict[str, Any]], Any]:
    """Run plans by torch; return what was found, and what draws it."""
    from ..plot.pipeline import TimedPasses, timed_scene

    rows, pictures = list[dict[str, Any]](), list[TimedPasses]()
    of = {x.row["name"]: x for x in shown}
    runs: dict[str, Any] = {}
    for split in sorted({x.problem.split for x in shown}):
        some = [x for x in shown if x.problem.split == split]
        runs |= _rehearse()(some[0].problem, {x.row["name"]: x.plan for x in some})
    for name, ran in runs.items():
        problem, verdict = of[name].problem, verify(of[name].problem, of[name].plan)
        for what, start, finish in (("planned", verdict.start, verdict.finish), ("run", ran.start, ran.finish)):
            last = float(finish.max())
            idle = last - sums(problem.passes().device, finish - start, problem.devices)
            pictures.append(TimedPasses(problem, start, finish, last, verdict.memory, f"{name}, {what}"))
            row = {"schedule": name, "what": what, "seconds": last, "idle": idle.tolist()}
            rows.append(row | ({"outputs": ran.outputs, "gradients": ran.gradients} if what == "run" else {}))
    return rows, timed_scene(pictures).render


def _ran(rows: list[dict[str, Any]]) -> Any:
    """Return the table of what has run; nothing if nothing has."""
    apart = [f"{x['outputs']:.0e}, {x['gradients']:.0e}" if "outputs" in x else "" for x in rows]
    cells = {
        "schedule": [x["schedule"] for x in rows],
        "": [x["what"] for x in rows],
        "step": [quantity(x["seconds"], "s") for x in rows],
        "idle by device, s": [" ".join(f"{y:.3g}" for y in x["idle"]) for x in rows],
        "outputs, gradients differ by": apart,
    }
    return table_of(cells, 2)


def _head(
    problem: PipelineProblem, standing: str, by: str = "", bound: float | None = None, conflict: Iterable[str] = ()
) -> str:
    step = "from the first start to the last end" if problem.barrier else "from one to the next, without a barrier"
    rows = [("pipeline", problem.words), ("step", step), ("status", standing), ("found by", by)]
    rows.append(("bound", "" if bound is None else f"{quantity(bound, 's')}, whatever the order"))
    return facts([*rows, *(("conflict", words) for words in conflict)])


def _frontier(problem: PipelineProblem, time_limit: float, path: str) -> Told:
    """Solve for each amount of memory, until more of it gains nothing."""
    from gangplan.instances.certificates.windows import MOST, WindowsCertificate

    from ..plot.pipeline import frontier_scene
    from ..plot.scene import check

    check(path)
    unit = float(np.bincount(problem.device, weights=problem.activation).max())
    ideal = float(problem.load().sum()) / problem.devices
    free = replace(problem, capacity=np.zeros(0))
    ample = float(WindowsCertificate(MOST).bound(free)) * (1 + OPTIMAL_GAP)
    rows, most = list[dict[str, Any]](), min(problem.micro_batches, POINTS)
    with progress("memory") as bar:
        for room in (unit * count for count in range(1, most + 1)):
            bar(room / unit / most)
            limited = replace(problem, capacity=np.full(problem.devices, room))
            result = _solved(limited, time_limit)
            if result.plan is None:
                raise InstanceError("time_limit", f"{time_limit:g} s gave no plan for {quantity(room, problem.unit)}")
            row = _shown(limited, f"{room:g}", result.plan, result.bound).row | {"standing": result.standing}
            least = max(0.0, 1 - ideal / row["bound"])
            rows.append(row | {"capacity": room, "by": result.trace[-1].by, "least_bubble": least})
            if row["seconds"] <= ample:
                break
    known = [x.row for x in _published(free, None) if x.row["bubble"] is not None]
    near = [x for x in known if x["memory"] <= 2 * rows[-1]["capacity"]]
    write((path, frontier_scene(rows, f"Memory against bubble: {problem.words}", near).render))
    words = f"{sum(x['proved'] for x in rows)} of {len(rows)} amounts of memory optimal"
    claimed = sum("claimed" in x["standing"] for x in rows)
    columns = {
        **_amounts(problem, [x["capacity"] for x in rows]),
        "step": [quantity(x["seconds"], "s") for x in rows], "bubble": [percent(x["bubble"]) for x in rows],
        "bound": [quantity(x["bound"], "s") for x in rows], "gap": [_gap(x) for x in rows],
        "status": [x["standing"] for x in rows], "found by": [x["by"] for x in rows],
    }  # fmt: skip
    words += f", {claimed} of them on the word of one solver" * (claimed > 0)
    return tell({"frontier": rows}, lambda: [_head(problem, words), table_of(columns, 0)])
