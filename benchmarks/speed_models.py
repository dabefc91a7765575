"""Judge models of speed on combinations of jobs held out: measured pairs, and logs of a simulated cluster by size."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from gangplan.instances.readers.measured import Pairs, read_measured
from gangplan.learned.training.interference.judge import LEVELS, hold_out, judge
from gangplan.learned.training.interference.measured import pair_samples
from gangplan.learned.training.interference.models import MODELS, fit
from gangplan.learned.training.interference.samples import Samples
from gangplan.simulator.metrics import interval
from gangplan.systems.interference.baselines import ScoreRule, load_balance
from gangplan.systems.interference.cases import TRAINING, poisson
from gangplan.systems.interference.samples import Log, log, log_samples

from .found import Found, table
from .rows import Task
from .study import Options, Study

PAIRS = {"k80": "Gavel, K80", "p100": "Gavel, P100", "v100": "Gavel, V100", "shared_thp_ratio": "DeepShare"}
"""Sets of measured pairs, and how the page names them."""
SIZES, SEEDS = (100, 300, 1000, 2000, 10_000), 5
NETWORKS = ("sequence", "graph")
"""`graph`, as `low rank`, is in the rows alone: neither is ahead of `trees`."""
SHOWN = ("ridge", "trees", *NETWORKS, "pressure")
WITHIN = tuple(f"in{x:.0%}" for x in LEVELS)
CASES, NOISE, HELD = 24, 0.03, 4000
"""Cases of 100 jobs that snapshots are drawn from, the deviation of what jobs report, and held-out speeds at most."""


def pool(cluster: int) -> tuple[Samples, Samples]:
    """Return snapshots of one cluster in random order, as reported and as they truly are.

    Half the cases balance the load, half put tasks anywhere.
    """
    rng = np.random.default_rng(cluster)
    parts = []
    for i in range(CASES):
        case = poisson(TRAINING + 1000 * cluster + i, jobs=100, load=0.6, cluster=cluster)
        rule = ScoreRule(load_balance if i % 2 else lambda env, job, kind: rng.random(len(env.free)))
        parts.append(log(case, rule))
    true = log_samples(case, Log.join(parts))
    true = true.take(rng.permutation(len(true.now)))
    noise = np.exp(NOISE * rng.standard_normal(len(true.speed)))
    return Samples(true.setting, true.now, true.speed * noise), true


@cache
def cell(case: str, seed: int, data: Path) -> tuple[Samples, Samples]:
    """Return what is fitted and what it is judged on."""
    name, _, size = case.partition(" ")
    if not size:
        return hold_out(_pairs(name, data), seed)
    reported, true = _pool(seed)
    return hold_out(reported, seed)[0].first(int(size)), hold_out(true, seed)[1].first(HELD)


_pool = cache(pool)


@cache
def _pairs(name: str, data: Path) -> Samples:
    files = data / "gavel" / "simulation_throughputs.json", data / "deepshare" / "shared_thp_ratio.csv"
    found = {x.name: x for path in files for x in read_measured(path) if isinstance(x, Pairs)}
    return pair_samples(found[name])


def tasks(options: Options) -> Iterator[Task]:
    """Yield what there is to run; of DeepShare, which is small, four times the seeds, but for networks."""
    logs = tuple(f"cluster {size}" for size in SIZES)
    for case, model in product(options.chosen((*PAIRS, *logs)), options.policies or MODELS):
        many = 4 if case == "shared_thp_ratio" and model not in NETWORKS else 1
        yield from (Task(case, model, seed) for seed in range(many * (options.seeds or SEEDS)))


def measure(task: Task, options: Options) -> Mapping[str, float]:
    """Fit a model and judge it on what is held out.

    Raises:
        InstanceError: if data or a package is not there.
    """
    start = time.process_time()
    fitted, held = cell(task.case, task.seed, options.data)
    score = judge(fit(fitted, task.seed, model=task.policy), fitted, held)
    spent = time.process_time() - start
    values = (score.held_out, score.mape, score.median, score.rank, *score.within, spent)
    return dict(zip(STUDY.figures, values, strict=True))


def pairs(found: Found) -> str:
    """Return mean errors on measured pairs, and by how much `trees` are behind `pressure`."""
    lines = []
    for case, name in PAIRS.items():
        ahead = found.apart(case, "trees", "pressure", "mape")
        lead = "" if ahead is None else f"{100 * ahead.mean:.1f}"
        lead += "" if ahead is None or ahead.margin is None else f" ± {100 * ahead.margin:.1f}"
        lines.append((name, *(_error(found, case, model) for model in SHOWN), lead))
    return table(("MAPE", *SHOWN, "ahead, points"), lines)


def _error(found: Found, case: str, model: str) -> str:
    values = np.array(list(found.of(case, model, "mape").values()))
    if not len(values):
        return ""
    mean, margin = interval(values)
    return f"{mean:.1%}" + ("" if margin is None else f" ± {margin:.1%}")


STUDY = Study(
    "speed-models",
    ("held_out", "mape", "median", "rank", *WITHIN, "s"),
    tasks,
    measure,
    {"speeds.md": {"pairs": pairs}},
)
"""How many are held out; mean and median error over the speed; rank correlation; shares inside of intervals; processor
seconds."""
