"""Layouts of known models on 64 to 16,384 H100, beside rivals under the same cost model: docs/layout-results.md.

Each method has `LIMIT` seconds and one worker; `branch` ends as soon as its gap is at most `GAP`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gangplan import solve
from gangplan.instances.layout.models import MODELS
from gangplan.instances.layout.pool import gpu_pool
from gangplan.instances.layout.problem import LayoutProblem

from .found import Found, number, table
from .rows import Task
from .study import Options, Study

LIMIT, GAP = 30.0, 0.01
_PER_NODE = 8
CASES = (
    ("llama-3-8b", 64, 512, 8192),
    ("llama-3-8b", 1024, 1024, 8192),
    ("llama-3-70b", 64, 256, 8192),
    ("llama-3-70b", 1024, 1024, 8192),
    ("llama-3.1-405b", 1024, 512, 8192),
    ("llama-3.1-405b", 16384, 2048, 8192),
    ("mixtral-8x22b", 256, 1024, 4096),
    ("mixtral-8x22b", 1024, 1024, 4096),
    ("deepseek-v3", 256, 4096, 4096),
    ("deepseek-v3", 2048, 8192, 4096),
    ("deepseek-v3", 16384, 16384, 4096),
)
"""Model, GPUs, sequences of a step, tokens of each."""
RIVALS = ("megatron_rule", "equal_layers", "annealing")


def tasks(options: Options) -> Iterator[Task]:
    """Yield each model on each cluster, for each method."""
    for i, (model, gpus, _, _) in enumerate(CASES):
        for name in options.chosen((f"{model} on {gpus:,}",)):
            yield from (Task(name, method, i) for method in ("branch", *RIVALS))


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Return seconds a step, the gap, and the seconds that it took."""
    model, gpus, batch, sequence = CASES[task.seed]
    problem = LayoutProblem(MODELS[model], (gpu_pool("H100", gpus // _PER_NODE),), batch, sequence)
    result = solve(problem, time_limit=LIMIT, gap=GAP, method=task.policy, workers=1, seed=0)
    return {"step": result.objective, "gap": result.gap, "seconds": result.wall_seconds}


def solved(found: Found) -> str:
    """Return seconds, gap, and by how much each rival's step is longer."""
    lines = []
    for name in found.cases:
        step, gap, took = (found.one(name, "branch", figure) for figure in ("step", "gap", "seconds"))
        longer = [f"{found.one(name, rival, 'step') / step - 1:+.1%}" for rival in RIVALS]
        lines.append([name, number(step), f"{gap:.1%}", number(took), *longer])
    return table(("model, H100", "s a step", "gap", "solved in s", *RIVALS), lines)


STUDY = Study("layouts", ("step", "gap", "seconds"), tasks, measure, {"layout-results.md": {"solved": solved}})
"""Seconds a step of the layout found, its gap, and seconds until then."""
