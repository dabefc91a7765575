"""The cost model of `layout` beside measured steps, and published layouts among all that fit: docs/layout-results.md.

Sailor's 18 runs with profiles and seven without, and 17 layouts of NVIDIA's summary. Constants are fitted to `SIX` of
the latter; to Sailor's with each group of runs (model, cluster, nodes) left out in turn.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path

import numpy as np

from gangplan.instances.layout.calibrate import MeasuredStep, refit
from gangplan.instances.layout.measured import MeasuredLayers
from gangplan.instances.layout.models import MODELS
from gangplan.instances.layout.problem import Calibration, LayoutPlan, LayoutProblem
from gangplan.instances.layout.transformer import Transformer
from gangplan.instances.readers.layouts import read_measured_layouts
from gangplan.instances.verify.layout import SECONDS, verify_layout
from gangplan.solvers.layout.family import LayoutFamily, Segment
from gangplan.solvers.layout.space import Space
from gangplan.solvers.layout.split import split

from .found import Found, number, table
from .rows import Task
from .sailor import read_sailor_layers, read_sailor_run
from .study import Options, Study

START = Calibration(0.65, 0.7, 0.6, 0.5, 2e-4, 0.5)
"""Round figures that fits begin with."""
WAITING = replace(START, overlap=0.05)
"""The same of an engine whose stages wait for each message, as Sailor's do."""
SIX = (2, 3, 5, 10, 12, 14)
"""Rows that constants are fitted to: two dense models, whole and shared by all GPUs, and four with experts."""
APART = 13
"""B200 Qwen3-30B, a third of what its neighbours reach."""
BROKEN = "clariden_GPT-NEO_N4_plan_config_N4_D4"
"""26 layers of 34, and its seconds are those of the reduction."""
UNEXPLAINED = "mit_N2"
"""Runs with less memory in use than weights, gradients and optimizer take with the runtime of the others."""
NEAR = 1.05
"""Times the best layout's seconds: as good as it."""
WITHIN = 0.05
"""Runs of which no figure is farther off are counted, not listed; so are layouts that the best is not farther ahead of,
if the model is within twice as much."""
FEW = 2.0
"""Times the seconds of published degrees: only layouts that may take less are counted."""
PATIENCE = 240.0
"""Seconds for a rank."""
_DEGREES = ("TP", "CP", "EP", "PP", "VP", "DP", "MBS", "ZeRO")
_SAVED = tuple(f"less {name}" for name in SECONDS)


@cache
def tuned(data: Path) -> tuple[MeasuredStep, ...]:
    """Return NVIDIA's layouts."""
    return read_measured_layouts(data / "layouts" / "tuned.csv")


@cache
def runs(data: Path, model: str) -> dict[str, MeasuredStep]:
    """Return Sailor's runs of a model by name."""
    root, neo = data / "sailor", model != "OPT-350"
    how: MeasuredLayers | Transformer = MODELS["gpt-neo-2.7b"] if neo else read_sailor_layers(root, model)
    files = [path for path in sorted((root / "measured").glob("*.json")) if ("GPT-NEO" in path.stem) == neo]
    return {path.stem: read_sailor_run(path, how) for path in files if path.stem != BROKEN}


def group(name: str) -> str:
    """Return model, cluster and nodes of a run."""
    return name.partition("_plan")[0]


@cache
def fitted(data: Path, model: str, out: str = "") -> Calibration:
    """Return the constants for a model of Sailor's without a group of runs, or for NVIDIA's layouts."""
    if not model:
        return refit([tuned(data)[i] for i in SIX], START)
    return refit([step for name, step in runs(data, model).items() if group(name) != out], WAITING)


def label(step: MeasuredStep) -> str:
    """Return a name of one of NVIDIA's layouts."""
    return f"{step.problem.pools[0].gpu} {step.problem.model.name}, {step.problem.precision}"


def tasks(options: Options) -> Iterator[Task]:
    """Yield each run and each layout."""
    for model in options.chosen(("OPT-350", "GPT-NEO")):
        yield from (Task(model, name, 0) for name in runs(options.data, model))
    for i, step in enumerate(tuned(options.data)) if options.chosen(("tuned",)) else ():
        yield Task("tuned", label(step), i)


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Return what was measured, what the cost model says, and of a published layout how it ranks."""
    if task.case != "tuned":
        step = runs(options.data, task.policy and task.case)[task.policy]
        now = step.predict(fitted(options.data, task.case))
        held = step.predict(fitted(options.data, task.case, group(task.policy)))
        return {
            "measured": step.seconds,
            "seconds": now.objective,
            "held_out": held.objective,
            "measured_bytes": step.memory,
            "bytes": float(now.memory.sum(axis=0).max()),
        }
    step, constants = tuned(options.data)[task.seed], fitted(options.data, "")
    told = step.predict(constants).objective
    ranked = rank(replace(step.problem, calibration=constants), step.plan)
    return {"measured": step.seconds, "seconds": told, "fitted": float(task.seed in SIX), **ranked}


def rank(problem: LayoutProblem, plan: LayoutPlan) -> dict[str, float | None]:
    """Return how many layouts take less than a plan's degrees, how many are `NEAR` the best, and what is best.

    Layouts differ in degrees; each has its best stages, and computes again what makes it fit.
    """
    space, own, until = Space(problem), family(plan), time.perf_counter() + PATIENCE
    mine = _seconds(space, own)
    best, seconds, found, cut = own, inf if mine is None else mine, {own: mine}, 0.0
    heap: list[tuple[float, LayoutFamily]] = []
    layouts = 0
    for x in space.combinations():
        every = space.families(x, FEW * seconds) if space.bound(x) < FEW * seconds else []
        layouts += len(every)
        heap += [pair for pair in every if pair[0] <= seconds * NEAR]
    for least, other in sorted(heap, key=lambda pair: pair[0]):
        if least > max(NEAR * seconds, mine or inf):
            break
        if time.perf_counter() > until:
            cut = 1.0
            break
        if other != own and (value := _seconds(space, other)) is not None:
            found[other] = value
            if value < seconds:
                best, seconds = other, value
    values = np.array([x for x in found.values() if x is not None])
    return {
        "rank": 1.0 + (values < mine * (1 - 1e-9)).sum() if mine is not None else None,
        "layouts": float(layouts),
        "near": float((values <= NEAR * seconds).sum()),
        "cut": cut,
        "own": mine,
        "best": seconds,
        **dict(zip(_DEGREES, map(float, _degrees(best)), strict=True)),
        **_why(space, own, best),
    }


def family(plan: LayoutPlan) -> LayoutFamily:
    """Return the degrees of a plan on one pool."""
    segment = Segment(0, int(plan.tensor[0]), len(plan.pool))
    return LayoutFamily((segment,), plan.data, plan.context, plan.expert, plan.micro_batch, plan.virtual, plan.zero)


def _seconds(space: Space, which: LayoutFamily) -> float | None:
    plan = split(space, which)[0]
    return None if plan is None else verify_layout(space.problem, plan).objective


def _degrees(x: LayoutFamily) -> tuple[int, ...]:
    return x.segments[0].tensor, x.context, x.expert, x.stages, x.virtual, x.data, x.micro_batch, x.zero


def _why(space: Space, own: LayoutFamily, best: LayoutFamily) -> dict[str, float]:
    """Return by how much each part of a step is shorter in the best layout, in the mean of the stages."""
    parts = []
    for which in (own, best):
        plan = split(space, which)[0]
        if plan is None:
            return {}
        parts.append(verify_layout(space.problem, plan).seconds.mean(axis=1))
    return dict(zip(_SAVED, (parts[0] - parts[1]).tolist(), strict=True))


def errors(found: Found, model: str, *, memory: bool = True) -> str:
    """Return Sailor's runs of a model, each that is farther off than `WITHIN` in seconds or, if asked, `memory`."""
    lines, every, near = [], found.policies(model), 0
    for name in every:
        at = {
            key: found.one(model, name, key) for key in ("measured", "seconds", "held_out", "measured_bytes", "bytes")
        }
        pairs = ("seconds", "measured"), ("held_out", "measured"), ("bytes", "measured_bytes")
        if all(abs(at[told] / at[measured] - 1) <= WITHIN for told, measured in pairs[: 2 + memory]):
            near += 1
            continue
        most = [f"{at['measured_bytes'] / 1e9:.1f} GB", _error(at["bytes"], at["measured_bytes"])]
        lines.append([name.replace("_plan_config_", " "), number(at["measured"]), _error(at["seconds"], at["measured"]),
                      _error(at["held_out"], at["measured"]), *most])  # fmt: skip
    known = [name for name in every if not name.startswith(UNEXPLAINED)]
    means = [_mean(found, model, every, key, "measured") for key in ("seconds", "held_out")]
    lines.append(["mean of errors", "", *means, "", _mean(found, model, known, "bytes", "measured_bytes")])
    what = "all figures" if memory else "seconds"
    words = f"\n\nOf {near} others {what} are within {WITHIN:.0%}." if near else ""
    return table(("run", "seconds", "model", "group left out", "most memory", "model"), lines) + words


def published(found: Found) -> str:
    """Return NVIDIA's layouts: measured, told, and their rank; those that decide nothing (`WITHIN`) are counted."""
    lines, rest, near = [], [], 0
    for name in found.policies("tuned"):
        (seed,) = found.of("tuned", name, "measured") or (0,)
        at = {key: found.one("tuned", name, key) for key in STUDY.figures}
        error = at["seconds"] / at["measured"] - 1
        if seed not in (*SIX, APART):
            rest.append(abs(error))
        lead = 1 - at["best"] / at["own"]
        if abs(error) <= 2 * WITHIN and lead <= WITHIN:
            near += 1
            continue
        best = ", ".join(f"{name} {at[name]:.0f}" for name in _DEGREES if at[name] > (name not in ("MBS", "ZeRO")))
        part = max(SECONDS, key=lambda name: at[f"less {name}"])
        why = f"{part} {at[f'less {part}'] / at['own']:.0%}" if at["rank"] > 1 else ""
        note = " (fitted)" * (seed in SIX) + " (apart)" * (seed == APART)
        cut = "at least " * bool(at["cut"])
        place, close = f"{cut}{at['rank']:,.0f}", f"{cut}{at['near']:.0f} of {at['layouts']:,.0f}"
        lines.append([name + note, number(at["measured"]), f"{error:+.0%}", place, close, best, f"{lead:.0%}", why])
    words = f"{near} others are at most {2 * WITHIN:.0%} off, and the best at most {WITHIN:.0%} ahead. " if near else ""
    if rest:
        words += f"Of those neither fitted nor apart: {np.median(rest):.0%} in the median, {max(rest):.0%} at worst."
    head = ("layout", "seconds", "model", "rank", "within 5%", "best by the model", "shorter by", "most of it")
    return f"{table(head, lines)}\n\n{words}"


def _error(told: float, measured: float) -> str:
    return f"{told / measured - 1:+.0%}"


def _mean(found: Found, model: str, names: list[str], told: str, measured: str) -> str:
    every = [abs(found.one(model, x, told) / found.one(model, x, measured) - 1) for x in names]
    return f"{np.mean(every):.1%}" if every else ""


STUDY = Study(
    "layout",
    ("measured", "seconds", "held_out", "measured_bytes", "bytes", "fitted", "rank", "layouts", "near", "cut", "own",
     "best", *_DEGREES, *_SAVED),
    tasks,
    measure,
    {
        "layout-results.md": {
            "runs": lambda found: errors(found, "OPT-350"),
            "analytic": lambda found: errors(found, "GPT-NEO", memory=False),
            "published": published,
        }
    },
)  # fmt: skip
"""Seconds of a step measured, by the model, with its group left out; most bytes on a GPU; whether it was fitted; rank
among so many layouts that may take up to `FEW` times as long, how many are near the best, whether time was up before;
seconds of its own degrees and of the best, these, and by how much each part of a step is shorter there."""
