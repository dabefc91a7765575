"""`gangplan layout`: a model's configuration and GPUs in, the best layout out, with what others lose by, and flags."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gangplan.instances import dump, verify
from gangplan.instances.errors import InstanceError, in_file
from gangplan.instances.intake import cluster_sizes
from gangplan.instances.layout import LayoutPlan, LayoutProblem, Transformer, gpu_pool
from gangplan.instances.layout.calibrate import refit
from gangplan.instances.layout.flags import READ_BY
from gangplan.instances.layout.models import MODELS
from gangplan.instances.layout.problem import OPTIMIZERS, PRECISIONS
from gangplan.instances.quantities import quantity
from gangplan.instances.readers import read_transformer
from gangplan.instances.readers.layouts import read_measured_layouts
from gangplan.solvers.result import relative_gap

from ..units import amount, percent
from . import options
from .output import Told, facts, progress, table, tell, write

if TYPE_CHECKING:
    from gangplan.solvers.layout.explain import Best, Rival

_GPUS, _RESULTS = options.Section("The GPUs"), options.Section("What comes out besides")
_POOL = "others beside or instead of these; may be repeated"
_FRONTIER = "draw the fastest layouts for less and less memory here, up to half of SECONDS each"
_FRONTIER_STEP = 0.85
"""Of the memory that a layout needs, what the next one may need."""
_EXPLAIN = "price this layout; of TP, PP, CP, EP, VP, DP, MB, ZERO what is left out is chosen best"


@dataclass(frozen=True)
class LayoutQuestion:
    """The problem that is asked for."""

    batch: Annotated[int, "sequences of a step, over all replicas", "--batch"]
    sequence: Annotated[int, "tokens of each"] = 8192
    precision: Annotated[str, f"of matrix products: {', '.join(PRECISIONS)}"] = "bf16"
    optimizer: Annotated[str, ", ".join(OPTIMIZERS)] = "adam"
    zero_bubble: Annotated[bool, "backward passes may be cut in two (ZB-H1)"] = False
    cluster: Annotated[str | None, "nodes, and GPUs of each", "NxM", _GPUS] = None
    gpu: Annotated[str | None, "their type: H100, B200, ...", "TYPE", _GPUS] = None
    pool: Annotated[list[str] | None, _POOL, "NxM:TYPE", _GPUS] = None
    gpu_memory: Annotated[float | None, "of each, instead of the data sheet's", "BYTES", _GPUS] = None
    network: Annotated[float | None, "of each between nodes, instead of its vendor's", "BYTES/S", _GPUS] = None

    def problem(self, model: Transformer) -> LayoutProblem:
        """Return the problem of a model."""
        parts = [] if self.cluster is None else [(self.cluster, self.gpu)]
        options.refuse(
            ("cluster", not parts and not self.pool, "is missing: nodes x GPUs, like 128x8"),
            ("gpu", bool(parts) and self.gpu is None, f"is missing: the type of the GPUs of {self.cluster}"),
        )
        for text in self.pool or ():
            size, _, gpu = text.partition(":")
            options.refuse(("pool", not gpu, f"{text!r} is not nodes x GPUs and their type, like 16x8:A100"))
            parts.append((size, gpu))
        sizes = [cluster_sizes(size, "nodes x GPUs of each", "128x8", 1_000_000) for size, _ in parts]
        how: Any = {"memory": self.gpu_memory, "network": self.network}
        pools = tuple(gpu_pool(gpu or "", *size, **how) for size, (_, gpu) in zip(sizes, parts, strict=True))
        what: Any = {"optimizer": self.optimizer, "zero_bubble": self.zero_bubble}
        return LayoutProblem(model, pools, self.batch, self.sequence, self.precision, **what)


@dataclass(frozen=True)
class LayoutResults:
    """What is printed, written and drawn besides."""

    section = _RESULTS
    flags: Annotated[str | None, f"of {' or '.join(READ_BY)}", "FRAMEWORK"] = None
    draw: Annotated[str | None, "draw pipeline, memory and seconds of a step here", "FILE", options.DRAWN] = None
    frontier: Annotated[str | None, _FRONTIER, "FILE", options.DRAWN] = None
    out: Annotated[str | None, "write the plan here", "PLAN", options.Output()] = None
    problem: Annotated[str | None, "write the problem here, for `verify`", "PROBLEM", options.Output()] = None


def layout(
    config: Annotated[str, f"a Hugging Face config.json, or of {', '.join(MODELS)}", "CONFIG", options.READ],
    training: LayoutQuestion,
    results: LayoutResults,
    measured: Annotated[str | None, "steps of your own, which the cost model is fitted to", "CSV", options.READ] = None,
    seconds: Annotated[float, "to search, and as long again to compare", "SECONDS"] = 10.0,
    explain: Annotated[str | None, _EXPLAIN, "TP=8,PP=8"] = None,
) -> Told:
    """Split the training of a large model over GPUs so that a step takes least time, and say what others lose by.

    Exit code: 0 with a layout, 1 if none was found in time, 2 for bad input and for a model that fits nowhere.
    """
    from gangplan.hybrid import solve
    from gangplan.solvers.layout.explain import best_flags, refusal
    from gangplan.solvers.layout.explain import explain as compare
    from gangplan.solvers.layout.wish import wish

    from .plans import as_found
    from .report import as_data, plan_blocks

    options.require_positive(seconds=seconds)
    degrees = options.by_name(explain, "explain")
    wanted: dict[str, Any] = {name: int(x) if x.is_integer() else x for name, x in degrees.items()}
    wish(wanted)
    options.refuse(
        ("flags", results.flags not in (None, *READ_BY), f"{results.flags!r} is not one of {', '.join(READ_BY)}")
    )
    model = _model(config)
    problem = training.problem(model)
    if measured is not None:
        with in_file(measured):
            steps = read_measured_layouts(measured, {**MODELS, model.name: model})
            problem = replace(problem, calibration=refit(steps))
    with progress("searching") as bar:
        result = solve(problem, seconds)
        bar(0.5)
        if result.plan is None and result.status == "INFEASIBLE":
            raise refusal(problem)
        if result.plan is None:
            return tell(as_data(result), f"no layout found in {quantity(seconds, 's')}: give more --seconds", code=1)
        told = results.flags and best_flags(problem, results.flags, seconds, **wanted)
        if told and (told[1].objective or 0.0) < float(result.objective or 0.0):
            result = replace(result, plan=told[1].plan, objective=told[1].objective)
        assert result.plan is not None, "there was one"
        rivals = compare(problem, result.plan, seconds, **wanted)
        for x in rivals:
            if wanted and x.plan is None and x.proved:
                raise refusal(problem, x.wish)
            if x.objective is not None and x.objective < float(result.objective or 0.0):
                result = replace(result, plan=x.plan, objective=x.objective)
    verdict = verify(problem, result.plan)
    data: dict[str, Any] = as_data(result) | as_found(problem, verdict)
    data["instead"] = [
        x._asdict() | {"wish": f"{x.wish}", "plan": _told(x.plan), "nearest": _told(x.nearest)} for x in rivals
    ]
    blocks = [_summary(problem, result, verdict), *plan_blocks(problem, result.plan, verdict), _rivals(problem, rivals)]
    if told:
        (text, words), found = told
        data["flags"] = {"text": text, "words": words, **found._asdict(), "plan": json.loads(dump(found.plan))}
        blocks += [text, "\n".join([*words, *_flags(problem, results.flags, found, result)])]
    write(
        (results.out, lambda _: f"{dump(result.plan)}\n"),
        (results.problem, lambda _: f"{dump(problem)}\n"),
        (results.draw, lambda path: options.drawn(path, problem, result)),
        (results.frontier, lambda path: _frontier(problem, seconds).render(path)),
    )
    return tell(data, *blocks)


def _model(config: str) -> Transformer:
    """Return the model in a file, or the known one of a name."""
    if Path(config).exists() or Path(config).suffix == ".json":
        return read_transformer(config)
    if config not in MODELS:
        near = " or ".join(get_close_matches(config.lower(), MODELS))
        more = f"; did you mean {near}?" if near else ""
        raise InstanceError("model", f"{config!r} is no file, nor one of {', '.join(MODELS)}{more}")
    return MODELS[config]


def _frontier(problem: LayoutProblem, seconds: float) -> Any:
    from gangplan.solvers.layout.frontier import frontier

    from ..plot.layout import frontier_scene

    return frontier_scene(problem, list(frontier(problem, seconds / 2, _FRONTIER_STEP)))


def _summary(problem: LayoutProblem, result: Any, verdict: Any) -> str:
    from .report import standing

    model, plan = problem.model, result.plan
    assert isinstance(model, Transformer), "measured layers have no config"
    used, total = plan.gpus, sum(pool.count for pool in problem.pools)
    active = f", {model.active_parameters / 1e9:.3g}B active" * (model.experts > 0)
    held = f" of {total:,}" * (used < total)
    idle = f" in use, {verdict.tokens * used / total:,.0f} a GPU of all" * (used < total)
    rate = f"{verdict.tokens:,.0f} tokens/s a GPU{idle}, MFU {percent(verdict.utilisation)} of the peak in 16 bits"
    withheld = [note for note in result.notes if note.startswith("bound withheld")]
    proved = "none was proved in time" if result.bound is None else "no layout takes less, by this cost model"
    space = (*withheld, proved)[0]
    return facts(
        [
            ("model", f"{model.name}, {model.parameters / 1e9:.4g}B parameters{active}"),
            ("layout", f"{plan.summary()}; {used:,}{held} GPUs"),
            ("step", f"{amount(problem, result.objective)}, {rate}"),
            ("bound", f"{amount(problem, result.bound)}, gap {percent(result.gap)}: {space}"),
            ("status", f"{standing(result)} after {quantity(result.wall_seconds, 's', 3)}"),
        ]
    )


def _told(plan: LayoutPlan | None) -> str | None:
    return None if plan is None else plan.summary()


def _rivals(problem: LayoutProblem, rivals: Sequence[Rival]) -> Any:
    """Return the table of the best layouts with other degrees."""
    cells = []
    for x in rivals:
        best = _told(x.plan) or "no layout fits" * x.proved
        best += ", not proved" * (not x.proved and x.plan is not None)
        cells.append((f"{x.wish}", best, "; ".join(x.why), amount(problem, x.objective)))
    return table(("with", "the best is", "it loses by", "step"), cells, left=3)


def _flags(problem: LayoutProblem, framework: str | None, found: Best, result: Any) -> list[str]:
    """Return what the layout of flags takes and needs, and how it stands beside the best of all."""
    assert found.plan is not None and found.objective is not None, "flags are of a layout"
    most = quantity(float(verify(problem, found.plan).memory.sum(axis=0).max()), "B", 3)
    limit = f"no such layout takes less{'' if found.proved else f' than {amount(problem, found.bound)}'}"
    limit = "no bound was proved in time" if found.bound is None else limit
    longer = f"{percent(found.objective / result.objective - 1)} longer than the best found of all"
    gap = percent(relative_gap(found.objective, result.bound))
    return [
        f"{framework}: {READ_BY[framework or '']}.",
        f"The flags run {found.plan.summary()}: {amount(problem, found.objective)} a step, at most {most} on a GPU.",
        f"Within what {framework} runs {limit}. It takes {longer}; gap to the bound of all: {gap}.",
    ]
