"""`gangplan pipeline`: order the passes of micro-batches, beside published schedules; memory against bubble."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar

import numpy as np

from gangplan.instances import InstanceError, dump, verify
from gangplan.instances.addons import offered
from gangplan.instances.arrays import sums
from gangplan.instances.errors import extra
from gangplan.instances.generators import defaults, generate
from gangplan.instances.outlet import write_whole
from gangplan.instances.pipeline import PipelineProblem, schedule_csv
from gangplan.instances.quantities import quantity
from gangplan.solvers.run import OPTIMAL_GAP

from ..units import percent
from . import options
from .output import Told, facts, listed, progress, table_of, tell

OURS = "gangplan"
"""What the plan that is found is called beside published schedules."""
POINTS = 64
"""Amounts of memory of a frontier at most."""
_COLUMNS = {
    "schedule": "{name}", "step": "{told[step]}", "bubble": "{told[bubble]}", "memory, B": "{memory:.4g}",
    "bound": "{told[bound]}", "gap": "{told[gap]}", "": "{told[words]}",
}  # fmt: skip
"""Of the table of schedules; what people are told of a row is left out of JSON."""


@dataclass(frozen=True)
class Made:
    """A pipeline of even stages, or of unequal ones that are drawn, by the options of the command."""

    section: ClassVar[str] = "The problem, without a file"

    devices: Annotated[int, "of the pipeline"] = 4
    micro_batches: Annotated[int, "of a step"] = 8
    memory: Annotated[float | None, "micro-batches that a device has room for  [default: any number]"] = None
    seconds: Annotated[Sequence[float], "of F, B and W of a micro-batch on a device", "F,B,W"] = (1.0, 1.0, 1.0)
    transfer: Annotated[float, "seconds between stages on different devices"] = 0.0
    chunks: Annotated[int, "stages a device, among which it divides these seconds"] = 1
    shape: Annotated[str, "loop, or v: stages go there and back"] = "loop"
    merged: Annotated[bool, "gradients of weights are part of backward passes"] = False
    no_barrier: Annotated[bool, "steps follow as soon as each device is free"] = False
    spread: Annotated[float, "unequal stages: factors from 1 - spread to 1 + spread"] = 0.0
    seed: Annotated[int, "of these factors"] = 0

    def problem(self) -> PipelineProblem:
        """Make it."""
        given = vars(self) | {"split": not self.merged, "barrier": not self.no_barrier}
        options.refuse(("seconds", len(self.seconds) != 3, f"{len(self.seconds)} numbers are not three, of F, B and W"))
        given |= dict(zip(("forward", "backward", "weight"), self.seconds, strict=True))
        given["chunks"] = 2 if self.shape == "v" and self.chunks == 1 else self.chunks
        known = defaults("micro_batches")
        made: PipelineProblem = generate("micro_batches", **{x: y for x, y in given.items() if x in known})
        return made

    def of(self, file: str) -> PipelineProblem:
        """Return the problem of a file, with which no option goes."""
        said = [f.name for f in fields(self) if getattr(self, f.name) != f.default]
        options.refuse(*((name, True, f"does not apply to the pipeline of {file}") for name in said))
        problem = options.problem(file, options.Given())
        options.refuse(("problem", not isinstance(problem, PipelineProblem), f"{file} holds no pipeline problem"))
        made: PipelineProblem = problem
        return made


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
    problem = made.problem() if file is None else made.of(file)
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


def _solved(problem: PipelineProblem, time_limit: float) -> Any:
    from gangplan.hybrid import solve

    return solve(problem, time_limit)


def _row(problem: PipelineProblem, name: str, plan: Any, bound: float | None) -> dict[str, Any]:
    """Return what a plan is worth, or why it is none."""
    verdict = verify(problem, plan)
    value, bubble = verdict.objective, verdict.bubble if verdict.ok else None
    gap = None if value is None or bound is None else max(0.0, (value - bound) / value) if value else 0.0
    proved = gap is not None and gap <= OPTIMAL_GAP
    words = "proved" if proved else "" if verdict.ok else "no room"
    told = {"step": quantity(value, "s"), "bubble": percent(bubble), "gap": percent(gap)}
    return {
        "name": name, "seconds": value, "bubble": bubble, "bound": bound, "gap": gap, "proved": proved,
        "memory": float(verdict.memory.max()), "violations": [*verdict.violations],
        "told": told | {"bound": quantity(bound, "s"), "words": words},
    }  # fmt: skip


def _data(row: dict[str, Any]) -> dict[str, Any]:
    return {name: x for name, x in row.items() if name != "told"}


def _published(problem: PipelineProblem, bound: float | None) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the rows of published schedules that are made for the problem, with their plans."""
    from gangplan.solvers.pipeline.published import PUBLISHED, plan_of

    for name in PUBLISHED:
        if (plan := plan_of(problem, name)) is not None:
            yield _row(problem, name, plan, bound), plan


def _plan(problem: PipelineProblem, time_limit: float, paths: dict[str, str | None]) -> Told:
    result = _solved(problem, time_limit)
    rows, runs = list(_published(problem, result.bound)), list[dict[str, Any]]()
    files: dict[str, bytes] = {}
    if result.plan is not None:
        rows.append((_row(problem, OURS, result.plan, result.bound), result.plan))
        if paths["out"]:
            files[paths["out"]] = f"{dump(result.plan)}\n".encode()
        if paths["csv"]:
            files[paths["csv"]] = schedule_csv(problem, result.plan).encode()
        if paths["draw"]:
            from ..plot import render

            files[paths["draw"]] = render(paths["draw"], problem, result, name=f"{result.trace[-1].by}")
        if paths["run"]:
            plans = {x["name"]: plan for x, plan in rows if not x["violations"]}
            runs, scene = _run(problem, plans)
            files[paths["run"]] = scene.render(paths["run"])
    write_whole(files)
    data = {
        "status": str(result.status), "standing": result.standing, "schedules": [_data(row) for row, _ in rows],
        "plan": None if result.plan is None else json.loads(dump(result.plan)), "conflict": [*result.conflict],
        "runs": runs,
    }  # fmt: skip
    by = result.trace[-1].by if result.trace else ""
    head, table = _head(problem, result.standing, by, result.conflict), listed([row for row, _ in rows], _COLUMNS)
    return tell(data, lambda: [head, table, _ran(runs)], code=0 if result.plan is not None else 1)


def _rehearse() -> Any:
    """Return what runs plans by torch; refuse if it cannot be had."""
    found = offered("rehearse") if find_spec("torch") else None
    if found is None:
        raise InstanceError("run", f"needs torch; {extra('torch')}")
    return found


def _run(problem: PipelineProblem, plans: dict[str, Any]) -> tuple[list[dict[str, Any]], Any]:
    """Run plans by torch; return what was found, and the picture."""
    from ..plot.pipeline import Timed, timed_scene

    device, rows, pictures = problem.passes().device, list[dict[str, Any]](), list[Timed]()
    for name, ran in _rehearse()(problem, plans).items():
        verdict = verify(problem, plans[name])
        for what, start, finish in (("planned", verdict.start, verdict.finish), ("run", ran.start, ran.finish)):
            last = float(finish.max())
            idle = last - sums(device, finish - start, problem.devices)
            pictures.append(Timed(problem, start, finish, last, verdict.memory, f"{name}, {what}"))
            row = {"schedule": name, "what": what, "seconds": last, "idle": idle.tolist()}
            rows.append(row | ({"outputs": ran.outputs, "gradients": ran.gradients} if what == "run" else {}))
    return rows, timed_scene(pictures)


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


def _head(problem: PipelineProblem, standing: str, by: str, conflict: Sequence[str] = ()) -> str:
    step = "from the first start to the last end" if problem.barrier else "from one to the next, without a barrier"
    what = repr(problem)[len("PipelineProblem(") : -1]
    rows = [("pipeline", what), ("step", step), ("status", standing), ("found by", by)]
    return facts([*rows, *(("conflict", words) for words in conflict)])


def _frontier(problem: PipelineProblem, time_limit: float, path: str) -> Told:
    """Solve for each amount of memory, until more of it gains nothing."""
    from gangplan.instances.certificates.windows import MOST, Windows

    from ..plot.pipeline import Point, frontier_scene
    from ..plot.scene import check

    check(path)
    unit = float(np.bincount(problem.device, weights=problem.activation).max())
    ideal = float(problem.load().sum()) / problem.devices
    free = replace(problem, capacity=np.zeros(0))
    ample = float(Windows(MOST).bound(free)) * (1 + OPTIMAL_GAP)
    rows, points, most = list[dict[str, Any]](), list[Point](), min(problem.micro_batches, POINTS)
    with progress("memory") as bar:
        for room in (unit * count for count in range(1, most + 1)):
            bar(room / unit / most)
            limited = replace(problem, capacity=np.full(problem.devices, room))
            result = _solved(limited, time_limit)
            if result.plan is None:
                raise InstanceError("time_limit", f"{time_limit:g} s gave no plan for {room:g} B")
            by, row = result.trace[-1].by, _row(limited, f"{room:g}", result.plan, result.bound)
            rows.append(row | {"capacity": room, "by": by})
            least = max(0.0, 1 - ideal / row["bound"])
            points.append(Point(room, row["seconds"], row["bound"], row["bubble"], least, by))
            if row["seconds"] <= ample:
                break
    known = [(x["name"], x["memory"], x["bubble"]) for x, _ in _published(free, None) if x["bubble"] is not None]
    shown = [x for x in known if x[1] <= 2 * points[-1].memory]
    scene = frontier_scene(points, f"Memory against bubble: {repr(problem)[len('PipelineProblem(') : -1]}", shown)
    write_whole({path: scene.render(path)})
    proved = f"{sum(x['proved'] for x in rows)} of {len(rows)} amounts of memory proved"
    columns = {"room, B": "{name}"} | {x: y for x, y in _COLUMNS.items() if x != "schedule"} | {"found by": "{by}"}
    data = {"frontier": [_data(row) for row in rows]}
    return tell(data, lambda: [_head(problem, proved, ""), listed(rows, columns, 0)])
