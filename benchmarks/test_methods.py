"""Compare methods in one run: ``python -m pytest benchmarks`` (needs pytest-benchmark; a minute or two)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gangplan
from gangplan import PartitionProblem

ROOT = Path(__file__).parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.runner import Outcome, solve_case  # noqa: E402
from benchmarks.suites import published  # noqa: E402

pytest.importorskip("pytest_benchmark")
DATA = ROOT.parent / "shared" / "data"
LIMIT = 20.0
SMALL = ("msr/layer-bert24_inference", "msr/layer-gnmt_inference", "msr/operator-bert_l-3_inference")
METHODS = ("pipeline", "cpsat", "milp")
PAIRS = (("auto", "plain_cpsat"), ("cpsat", "plain_cpsat"), ("milp", "plain_milp"))


def problem(instance: str) -> PartitionProblem:
    """Return a published graph, or a generated one if the data is not there."""
    if instance == "generated":
        return gangplan.generate("gpt", layers=4, devices=4)
    if not DATA.is_dir():
        pytest.skip("../shared/data is absent")
    return next(case for case in published() if case.instance == instance).make(DATA)


def job(instance: str, method: str) -> Callable[[], Outcome]:
    """Return the solve to be timed."""
    return partial(solve_case, problem(instance), method, time_limit=LIMIT, seed=0, workers=2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("instance", (*SMALL, "generated"))
def test_methods(benchmark: Any, instance: str, method: str) -> None:
    """Time each exact method to its proof; the table groups them by instance."""
    benchmark.group = instance
    found = benchmark.pedantic(job(instance, method), rounds=3, warmup_rounds=1)
    benchmark.extra_info |= {"objective": found.objective, "bound": found.bound, "status": found.status}
    assert found.status == "OPTIMAL"


@pytest.mark.parametrize(("ours", "rival"), PAIRS)
@pytest.mark.parametrize("instance", SMALL)
def test_against_rival(
    benchmark: Any, record_property: Callable[[str, object], None], instance: str, ours: str, rival: str
) -> None:
    """Time a method and a plain formulation in turns, with the same problem, threads, seed and limit."""
    mine, other = job(instance, ours), job(instance, rival)
    seconds: dict[str, list[float]] = {ours: [], rival: []}
    found: dict[str, Outcome] = {}

    def in_turns() -> None:
        for name, solve in ((ours, mine), (rival, other)):
            before = time.perf_counter()
            found[name] = solve()
            seconds[name].append(time.perf_counter() - before)

    benchmark.group = f"{instance}: {ours} and {rival} together"
    benchmark.pedantic(in_turns, rounds=3, warmup_rounds=1)
    best = {name: min(times) for name, times in seconds.items()}
    ratio = best[rival] / best[ours]
    benchmark.extra_info |= {"ratio": ratio, **best}
    line = f"{instance:<36} {rival} {best[rival]:.3f} s / {ours} {best[ours]:.3f} s = {ratio:.2f}"
    record_property("ratio", line)
    assert found[ours].status == "OPTIMAL"
    # a rival may run out of time, but then it must not claim otherwise
    if found[rival].status == "OPTIMAL":
        assert found[rival].objective == pytest.approx(found[ours].objective, rel=2e-6)
