"""Loads of the policy's plans beside those of the heuristics, on the same instances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any

from gangplan.instances import verify
from gangplan.instances.generators.families import make, seed_of
from gangplan.solvers import Run
from gangplan.solvers.method import suite

from ..policy.means import above_best

HEURISTICS = ("greedy", "pipedream", "local_search")


def evaluate(
    policy: Any, seeds: Iterable[int], *, size: int, families: Sequence[str], samples: int
) -> list[dict[str, Any]]:
    """Return a row for each method and instance: seconds of load, None without a plan, milliseconds, how far from best.

    Args:
        policy: the learned one.
        seeds: indices into the split ``test``, families in turn.
        size: ops at most.
        families: of `gangplan.learned.labels.FAMILIES`.
        samples: of the sampled plan.
    """
    found = []
    for i, seed in enumerate(seeds):
        family = families[i % len(families)]
        problem: Any = make("throughput", family, seed_of("test", seed), size)
        about = {"family": family, "size": size, "seed": seed}
        for name, count in (("learned", 1), (f"learned, {samples} samples", samples)):
            begin = perf_counter()
            plan = policy.plan(problem, count)
            took = 1e3 * (perf_counter() - begin)
            load = None if plan is None else verify(problem, plan).objective
            found.append(about | {"method": name, "load": load, "milliseconds": took})
        for name in HEURISTICS:
            tools, run = suite("throughput"), Run(problem, time_limit=10)
            tools.methods[name].run(run, tools.prepare(run))
            found.append(about | {"method": name, "load": run.objective, "milliseconds": 1e3 * run.seconds()})
    return above_best(found, "load")
