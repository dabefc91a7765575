"""`gangplan split`: a plan written back to the PyTorch model it is for, and tried."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

from gangplan.instances import GraphProblem, InstanceError, Plan, dump, verify
from gangplan.instances.errors import in_file
from gangplan.instances.quantities import quantity
from gangplan.instances.torch_model.load import load_model

from ..torch_split.spread import spread as with_idle
from ..units import time_unit
from . import options
from .output import Told, facts, table, tell, write

if TYPE_CHECKING:
    from ..torch_split.mapping import Cut, ModulePlace
    from ..torch_split.reference import Difference

UNTRIED = "torch.distributed cannot be tried here: this torch lacks it, or the model's file initializes it"
ROWS = 64
"""Modules shown."""


def split(
    model: options.Model,
    graph: Annotated[str, "what `gangplan profile` wrote of it", "GRAPH", options.READ],
    plan: Annotated[str, "a plan for GRAPH", "PLAN", options.READ],
    given: options.Given,
    spread: Annotated[bool, "first cut stages for idle devices, where that costs nothing"] = False,
    run: Annotated[bool, "run the stages as processes here and compare with the whole model"] = False,
    out: Annotated[str | None, "write the mapping here, as JSON", "FILE", options.Output()] = None,
) -> Told:
    """Say which module of MODEL goes where by PLAN, and where torch.distributed.pipelining is to split it.

    Needs the extra torch. Give the options that the problem was solved with. Exit code: 0, or 1 if --run finds a
    difference, 2 for bad input.
    """
    problem, answer = options.answered(graph, plan, given, Plan)
    verdict = verify(problem, answer)
    if not verdict.ok:
        raise InstanceError("plan", f"is not feasible: {verdict.violations[0]}", plan)
    loaded = load_model(model)
    from gangplan.instances.torch_model.ops import Ops
    from gangplan.instances.torch_model.trace import trace

    from ..torch_split import mapping
    from ..torch_split.equal_layers import reasons, rivals
    from ..torch_split.pieces import forward_part, pieces, stage_devices

    ops = Ops(trace(loaded))
    with in_file(plan):
        answer = with_idle(problem, answer) if spread else answer
        device, stage = forward_part(ops, answer)
    places, why = mapping.places(ops, device, stage), reasons(problem, answer, ops, stage)
    cuts = [replace(cut, why=words) for cut, words in zip(mapping.cuts(ops, stage), why, strict=True)]
    points, obstacles = mapping.split_points(cuts), mapping.obstacles(ops, stage, cuts)
    if cuts and not obstacles:  # then it is tried
        from torch import distributed

        obstacles = [UNTRIED]
        if distributed.is_available() and not distributed.is_initialized():
            from ..torch_split.rehearsal import rehearse

            obstacles = rehearse(loaded, ops, stage, points)
    single = {name: x for name, x in places.items() if len(x.stages) == 1}
    data: dict[str, Any] = {
        "model": model,
        "modules": {name: {"device": x.devices[0], "stage": x.stages[0]} for name, x in single.items()},
        "divided": {name: asdict(x) for name, x in places.items() if name not in single},
        "split_points": points,
        "cuts": [asdict(cut) for cut in cuts],
        "plan": json.loads(dump(answer)),
        "stages": stage_devices(answer, device, stage),
        "pipelining": {"obstacles": obstacles},
    }
    if equal := rivals(problem, answer, ops):
        choices = (mapping.cuts(ops, x.stage) for x in equal)
        named = (mapping.split_points(cuts) for cuts in choices if all(cut.module for cut in cuts))
        best = {"by": equal[0].by, "objective": equal[0].objective, "problem": equal[0].problem or None}
        # with the split points of the best that has one for each cut
        data["equal_layers"] = best | {"all": {x.by: x.objective for x in equal}, "split_points": next(named, {})}
    blocks, same = _blocks(single, cuts), True
    if run:
        from ..torch_split.launch import run_split
        from ..torch_split.reference import differences

        done = run_split(loaded, ops, pieces(ops, device, stage), len(answer.ops) > len(ops.ops))
        found, seconds = differences(done), sorted(done.seconds.items())
        same = all(x.same for x in found)
        told = [{key: None if y in (float("inf"), "") else y for key, y in asdict(x).items()} for x in found]
        data["run"] = {
            "same": same,
            "compared_with": "the traced program" if done.whole.traced else "the model",
            "differences": {x.pop("what"): x for x in told},
            "seconds": {str(device): times for device, times in seconds},
        }
        times = [(f"{of}", quantity(x["forward"], "s"), quantity(x["backward"], "s")) for of, x in seconds]
        blocks += [table(("process of device", "forward", "backward"), times)] if found else []
        blocks.append("\n".join(map(_words, found)))
    write((out, lambda _: f"{json.dumps(data, allow_nan=False)}\n"))
    return tell(data, *blocks, _advice(model, data, problem, verdict.objective, out), code=0 if same else 1)


def _blocks(single: dict[str, ModulePlace], cuts: list[Cut]) -> list[Any]:
    """Return the table of the modules on one stage that lie in no other such, by stages, and where stages begin."""
    rows = []
    for name, x in sorted(single.items(), key=lambda pair: pair[1].stages[0]):
        parts = name.split(".")
        around = {"", *(".".join(parts[:i]) for i in range(1, len(parts)))} - {name}
        if single.keys().isdisjoint(around):
            rows.append((name or "(the model)", f"{x.stages[0]}", f"{x.devices[0]}"))
    more = f"{len(rows) - ROWS} more modules are not shown; --json gives all" * (len(rows) > ROWS)
    points = (f"SplitPoint.{x.point} of {x.module}" if x.module else f"no point: {x.problem}" for x in cuts)
    lines = [(f"stage {cut.stage}", f"{point}; {cut.why}") for cut, point in zip(cuts, points, strict=True)]
    return [table(("module", "stage", "device"), rows[:ROWS], left=3), more, facts(lines)]


def _advice(model: str, data: dict[str, Any], problem: GraphProblem, objective: float | None, out: str | None) -> str:
    """Return what the plan gains over equal layers, and how to run it or why torch.distributed.pipelining cannot."""
    lines = []
    unit = time_unit(problem)
    if objective is not None and "equal_layers" in data:
        equal = data["equal_layers"]
        words = f"this plan {quantity(objective, unit)} per mini-batch; equal layers "
        if equal["objective"] is None:
            lines.append(f"{words}break a limit: {equal['problem']}")
        else:
            share = {by: x and round((x / objective - 1) * 100, 1) + 0.0 for by, x in equal["all"].items()}
            more = {by: "break a limit" if x is None else f"{x:g}% more" for by, x in share.items()}
            others = ", ".join(f"equal {by} {x}" for by, x in more.items() if by != equal["by"])
            best = quantity(equal["objective"], unit)
            lines.append(f"{words}{best}, {more[equal['by']]} (equal {equal['by']}; {others})")
    if data["pipelining"]["obstacles"]:
        lines += [f"torch.distributed.pipelining cannot run it: {x}" for x in data["pipelining"]["obstacles"]]
    elif out is not None and len(data["stages"]) > 1:
        count = len(data["stages"])
        run = (f"torchrun --nproc-per-node {count}", "-m gangplan.torch_split.run_pipeline", model, out)
        lines.append(" \\\n  ".join(run))  # a line of its own each: a command that is folded cannot be pasted
    return "\n".join(lines)


def _words(x: Difference) -> str:
    if x.missing:
        return f"{x.what}: DIFFERENT: only one of the two runs has {', '.join(x.missing[:4])}"
    numbers = f"largest difference {x.absolute:.3g}, relative {x.relative:.3g}{f' ({x.worst})' if x.worst else ''}"
    return f"{x.what}: {'same' if x.same else 'DIFFERENT'} in split and whole model, {x.tensors} tensors, {numbers}"
