"""The table of policies: bounds that no schedule beats, runs that are cut off, regrets by trace."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from benchmarks import policies, policies_bounds, policies_tables
from benchmarks.found import Found
from benchmarks.policies import STUDY, CutOffError, cut_off, measure
from benchmarks.policies_bounds import Bounds, elastic, rigid, typed
from benchmarks.policies_traces import RoundTrace, Trace
from benchmarks.rows import ROOT, Row, Task, read
from benchmarks.study import Options
from gangplan.instances import InstanceError
from gangplan.instances.generators.jobs import arrivals
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import simulate_named
from gangplan.simulator.metrics import summary
from gangplan.simulator.options import DegreeOptions
from gangplan.simulator.rounds import RoundJobs, parse_cluster, simulate_rounds


def drawn(data: Path, seed: int) -> Workload:
    """Return 40 crowded jobs."""
    return arrivals(40, 0.01, seed, gpus="1:3,2:2,4:1")


SMALL = Trace("small", "synthetic", drawn, "", 2, 4, policies=(("fifo", "head"), ("srtf", "overtake")), seeds=2)


def jobs_of_types(seed: int) -> RoundJobs:
    """Return 30 jobs on three types, some of which cannot run on the last."""
    rng = np.random.default_rng(seed)
    speed = rng.uniform(1.0, 10.0, (30, 3))
    speed[rng.random(30) < 0.3, 2] = 0.0
    return RoundJobs(
        tuple(map(str, range(30))),
        2 ** rng.integers(0, 2, 30),
        rng.integers(1_000, 50_000, 30),
        speed,
        np.ones(30),
        np.cumsum(rng.exponential(500.0, 30)),
    )


def run(monkeypatch: pytest.MonkeyPatch, trace: Trace | RoundTrace, policy: str, seed: int = 0) -> Mapping[str, object]:
    """Measure a policy on a trace of the test."""
    monkeypatch.setattr(policies, "TRACES", (trace,))
    policies._ready.cache_clear()
    return measure(Task(trace.case, policy, seed), Options(data=ROOT))


def test_figures_are_those_of_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row holds what the simulator says of the same jobs, cluster and policy."""
    row = run(monkeypatch, SMALL, "srtf overtake", 1)
    found = summary(simulate_named(drawn(ROOT, 1), 2, 4, "srtf", discipline="overtake", consolidate=True))
    for name in ("mean_jct", "p99_jct", "makespan", "utilisation"):
        assert row[name] == getattr(found, name)
    assert [x.policy for x in policies.tasks(Options())] == ["fifo head", "srtf overtake"] * 2


def test_who_stops_no_job_has_a_bound_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no less than that of any schedule, and is not applied to policies that stop or share."""
    names = ("fifo overtake", "srtf overtake", "tetris overtake", "gandiva overtake")
    monkeypatch.setattr(policies_bounds, "_LP_SECONDS", 1.0)
    rows = [run(monkeypatch, replace(SMALL, time_indexed=True), name) for name in names]
    assert [row["unstopped_bound"] is not None for row in rows] == [True, False, True, False]
    for row in rows[::2]:
        assert row["jct_bound"] <= row["unstopped_bound"] <= row["mean_jct"]  # type: ignore[operator]


def test_a_bound_above_a_schedule_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong bound stops the run."""
    monkeypatch.setattr(policies, "rigid", lambda work, gpus: Bounds(1e9, 1.0))
    with pytest.raises(AssertionError, match=r"jct_bound 1000000000\.0 is above a schedule"):
        run(monkeypatch, SMALL, "fifo head")


def test_a_long_run_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation beyond the limit leaves a row with bounds only; other errors are raised."""
    many = replace(SMALL, make=lambda data, seed: arrivals(20_000, 0.1, seed))
    run(monkeypatch, SMALL, "tetris overtake")  # compiles it
    monkeypatch.setattr(policies, "LIMIT", 0.2)
    row = run(monkeypatch, many, "tetris overtake")
    assert "mean_jct" not in row and row["jct_bound"]
    inner = SystemError()
    inner.__cause__ = CutOffError()

    def fail(error: Exception) -> None:
        raise error

    assert cut_off(lambda: fail(inner), 9.0) is None
    with pytest.raises(SystemError):
        cut_off(lambda: fail(SystemError()), 9.0)


def test_a_run_is_cut_off_though_the_error_is_lost() -> None:
    """Numba's dispatcher clears an error that the signal raises while it looks at arguments: another one follows."""

    def busy() -> None:
        until = process_time() + 5.0
        while process_time() < until:
            pass

    def lost() -> bool:
        with suppress(CutOffError):
            busy()
        busy()
        return True

    assert cut_off(lost, 0.05) is None


@pytest.mark.parametrize("seed", range(5))
def test_elastic_bound(seed: int) -> None:
    """No schedule beats the elastic bound, be degrees chosen or kept; a lone job that may take all GPUs meets it."""
    work = drawn(ROOT, seed)
    found = elastic(work, DegreeOptions.scaling(work, (1, 2, 4, 8)), 8)
    for policy, degrees in (("optimus", (1, 2, 4, 8)), ("srtf", ())):
        done = summary(simulate_named(work, 2, 4, policy, discipline="overtake", degrees=degrees))
        assert done.mean_jct >= found.mean_jct and done.makespan >= found.makespan
    one = work.take(np.array([0]))
    assert elastic(one, DegreeOptions.scaling(one, (8,), 0.1), 8).mean_jct == pytest.approx(
        float(one.duration[0]) * 1.7 / 8 / ((1 + 0.1 * (one.gpus[0] - 1)) / one.gpus[0])
    )


@pytest.mark.parametrize("seed", range(5))
def test_typed_bound(seed: int) -> None:
    """No policy of rounds beats the bound; of one type it is that of equal GPUs."""
    jobs, cluster = jobs_of_types(seed), parse_cluster("4xV100+4xP100+4xK80")
    found = typed(jobs, cluster)
    for policy in ("fifo_perf", "max_min_fairness_perf", "min_total_duration"):
        done = summary(simulate_rounds(jobs, cluster, policy))
        assert done.mean_jct >= found.mean_jct and done.makespan >= found.makespan
    alike = replace(jobs, speed=np.repeat(jobs.speed[:, :1], 3, axis=1))
    plain = Workload(jobs.names, jobs.submit, jobs.gpus, jobs.steps / jobs.speed[:, 0])
    one = typed(alike, parse_cluster("12xV100+12xP100+12xK80"))
    assert one.mean_jct <= rigid(plain, 36).mean_jct * (1 + 1e-9)
    least = typed(replace(jobs, speed=jobs.speed[:, :1]), parse_cluster("12xV100"))
    assert least.mean_jct == pytest.approx(rigid(plain, 12).mean_jct)


def test_data_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace without its file is left out, in words."""
    trace = RoundTrace("other", lambda data: jobs_of_types(0), "nowhere.trace", "4xV100")
    with pytest.raises(InstanceError, match=r"there is no nowhere\.trace"):
        run(monkeypatch, trace, "fifo_perf")


def test_tables_from_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table has a line for each policy and a column for each trace; over seeds means and intervals."""
    monkeypatch.setattr(policies_tables, "TRACES", (SMALL,))

    def row(policy: str, seed: int, jct: float | None, **more: float) -> Row:
        figures = {"jobs": 40.0, "load": 0.5, "jct_bound": 8.0, **({} if jct is None else {"mean_jct": jct}), **more}
        return Row(Task(SMALL.case, policy, seed), figures)

    def told(*rows: Row, rounds: bool = False) -> str:
        return policies_tables.compared(Found(rows, STUDY.alike), rounds=rounds)

    lines = told(row("srtf overtake", 0, 10.0), row("fifo head", 0, 12.0)).splitlines()
    assert lines[0] == "1. small: 40 jobs on 2x4, load 50%, bound 8 s"
    assert lines[4:] == ["| `fifo head` | 50.0 |", "| `srtf overtake` | 25.0 |"]
    assert told(row("srtf overtake", 0, 10.0), rounds=True) == ""
    assert "cut off" in told(row("srtf overtake", 0, None))
    strict = told(row("fifo head", 0, 12.0, unstopped_bound=10.0), row("srtf overtake", 0, 10.0))
    assert "bound 8 s, 10 s without stops" in strict.splitlines()[0]
    rows = [row(p, s, j + s) for p, j in (("fifo head", 12.0), ("srtf overtake", 10.0)) for s in (0, 1)]
    seeded = told(*rows).splitlines()
    assert seeded[0] == "1. small: 40 jobs on 2x4, 2 seeds"
    assert seeded[4].startswith("| `fifo head` | 56.2 ± ") and seeded[5].startswith("| `srtf overtake` | 31.2 ± ")


def test_no_schedule_is_better_than_its_bound() -> None:
    """In the rows that there are, nine digits each, no mean is below a bound."""
    for row in read(STUDY.path):
        for name in ("jct_bound", "unstopped_bound"):
            least = row.figures.get(name, 0.0)
            assert row.figures.get("mean_jct", np.inf) >= least * (1 - 1e-8), row
