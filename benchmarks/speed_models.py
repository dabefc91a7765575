"""Judge models of speed on combinations of jobs held out: measured pairs, and logs of a simulated cluster by size.

``python -m benchmarks speed-models`` runs what speed_models.csv does not have yet and prints the tables of
docs/speed-models.md.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from gangplan.instances.readers.measured import Pairs, read_measured
from gangplan.learned.interference.judge import LEVELS, hold_out, judge
from gangplan.learned.interference.models import MODELS, fit
from gangplan.learned.interference.samples import Samples
from gangplan.learned.interference.sources import log_samples, pair_samples
from gangplan.simulator.interference.baselines import Rule, load_balance
from gangplan.simulator.interference.cases import TRAINING, poisson
from gangplan.simulator.interference.samples import Log, log
from gangplan.simulator.metrics.compare import interval

ROOT = Path(__file__).parent
ROWS = ROOT / "speed_models.csv"
DATA = ROOT.parents[1] / "shared" / "data"
COLUMNS = ("data", "seed", "size", "model", "held_out", "mape", "median", "rank", *(f"in{x:.0%}" for x in LEVELS), "s")
SIZES = (100, 300, 1000, 2000, 10_000)
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
        rule = Rule(load_balance if i % 2 else lambda env, job, kind: rng.random(len(env.free)))
        parts.append(log(case, rule))
    true = log_samples(case, Log.join(parts))
    true = true.take(rng.permutation(len(true.now)))
    noise = np.exp(NOISE * rng.standard_normal(len(true.speed)))
    return Samples(true.setting, true.now, true.speed * noise), true


@cache
def cell(data: str, seed: int, size: int) -> tuple[Samples, Samples]:
    """Return what is fitted and what it is judged on."""
    if data != "cluster":
        return hold_out(_pairs(data), seed)
    reported, true = _pool(seed)
    return hold_out(reported, seed)[0].first(size), hold_out(true, seed)[1].first(HELD)


_pool = cache(pool)


@cache
def _pairs(data: str) -> Samples:
    files = DATA / "gavel" / "simulation_throughputs.json", DATA / "deepshare" / "shared_thp_ratio.csv"
    found = {x.name: x for path in files for x in read_measured(path) if isinstance(x, Pairs)}
    return pair_samples(found[data])


def cells(seeds: int) -> Iterator[tuple[str, int, int, str]]:
    """Yield what there is to run, what is quick first."""
    names = ("k80", "p100", "v100", "shared_thp_ratio")
    for model in ("mean ratio", "low rank", "pressure", "trees", "ridge"):
        yield from ((name, seed, 0, model) for name in names for seed in range(seeds))
        yield from (("cluster", seed, 2000, model) for seed in range(seeds))
    for size in (300, 10_000, 1000, 100):
        for model in ("mean ratio", "low rank", "pressure", "trees", "ridge"):
            yield from (("cluster", seed, size, model) for seed in range(seeds))
    for size in (2000, 300, 10_000, 1000, 100):
        yield from (("cluster", seed, size, model) for seed in range(seeds) for model in ("graph", "sequence"))
    yield from ((name, seed, 0, model) for name in names for seed in range(seeds) for model in ("graph", "sequence"))


def run(options: argparse.Namespace) -> int:
    """Run what is missing, for so many minutes, and print the tables."""
    begin = time.perf_counter()
    have = {(x["data"], int(x["seed"]), int(x["size"]), x["model"]) for x in read()}
    for key in cells(options.seeds):
        if (
            key in have
            or time.perf_counter() - begin > 60 * options.minutes
            or options.only not in " ".join(map(str, key))
        ):
            continue
        start = time.process_time()
        fitted, held = cell(*key[:3])
        score = judge(fit(fitted, key[1], model=key[3]), fitted, held)
        spent = time.process_time() - start
        figures = (score.mape, score.median, score.rank, *score.within, spent)
        new = not ROWS.exists()
        with ROWS.open("a", newline="") as file:
            rows = csv.writer(file)
            if new:
                rows.writerow(COLUMNS)
            rows.writerow([*key, score.held_out, *(f"{x:.4f}" for x in figures)])
    print("\n".join(table()))
    return 0


def read() -> list[dict[str, str]]:
    """Return the rows that there are."""
    return list(csv.DictReader(ROWS.open())) if ROWS.exists() else []


def table() -> Iterator[str]:
    """Yield the lines of a table of means with half their 95% intervals over the seeds."""
    groups: dict[tuple[str, int, str], list[list[float]]] = defaultdict(list)
    for row in read():
        key = row["data"], int(row["size"]), row["model"]
        groups[key].append([float(row[x]) for x in ("mape", "rank", *COLUMNS[8:11], "s")])
    yield "| data | log | model | MAPE | rank correlation | in 50 / 80 / 95% | s |"
    yield "|---|---:|---|---:|---:|---:|---:|"
    order = list(MODELS)
    for data, size, model in sorted(groups, key=lambda x: (x[0], x[1], order.index(x[2]))):
        values = np.array(groups[data, size, model])
        (mape, margin), (rank, other) = interval(values[:, 0]), interval(values[:, 1])
        cover = " / ".join(f"{x:.0%}" for x in values[:, 2:5].mean(axis=0))
        wide = "" if margin is None else f" ± {margin:.1%}"
        also = "" if other is None else f" ± {other:.3f}"
        name = f"{model} ({len(values)})" if len(values) < 5 else model
        cells = (
            data,
            str(size or ""),
            name,
            f"{mape:.1%}{wide}",
            f"{rank:.3f}{also}",
            cover,
            f"{values[:, 5].mean():.1f}",
        )
        yield f"| {' | '.join(cells)} |"


def command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``speed-models``."""
    found = commands.add_parser("speed-models", help="judge models of speed on combinations held out; print the tables")
    found.add_argument("--seeds", type=int, default=5)
    found.add_argument("--minutes", type=float, default=1e9, help="begin nothing after so many")
    found.add_argument("--only", default="", help="only runs with this in 'data seed size model'")
    found.set_defaults(act=run)
