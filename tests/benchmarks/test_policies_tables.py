"""The table of policies: rows kept and not run again, bounds that no schedule beats, a page that agrees."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gangplan.instances.generators.jobs import arrivals
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import simulate_named
from gangplan.simulator.metrics import summary
from gangplan.simulator.options import DegreeOptions
from gangplan.simulator.rounds import RoundJobs, parse_cluster, simulate_rounds

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:  # a folder of the repository, not of the package
    sys.path.insert(0, str(ROOT))

from benchmarks import policies, policies_bounds, policies_rows, policies_tables  # noqa: E402
from benchmarks.policies_bounds import Bounds, elastic, typed  # noqa: E402
from benchmarks.policies_traces import RoundTrace, Trace  # noqa: E402
from benchmarks.records import append_records  # noqa: E402


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


def test_rows_are_kept_and_not_run_again(tmp_path: Path) -> None:
    """Rows read back are those that were written, a second run does nothing, and what is lost is run again alone."""
    path, said = tmp_path / "rows.csv", list[str]()
    rows = policies.run([SMALL], path, say=said.append)
    assert [(row.policy, row.seed) for row in rows] == [(p, s) for s in (0, 1) for p in ("fifo head", "srtf overtake")]
    assert policies_rows.read(path) == rows and len(said) == 4
    assert policies.run([SMALL], path, say=said.append) == [] and len(said) == 4
    path.unlink()
    append_records(rows[:2] + rows[3:], path)
    (again,) = policies.run([SMALL], path, say=said.append)
    assert replace(again, date="", seconds=0.0) == replace(rows[2], date="", seconds=0.0)
    assert [row.key for row in policies.run([replace(SMALL, nodes=3)], path, only="srtf", say=said.append)] == [
        (policies_rows.PROTOCOL, "small", "3x4", "srtf overtake", seed) for seed in (0, 1)
    ]


def test_figures_are_those_of_the_simulator(tmp_path: Path) -> None:
    """A row holds what the simulator says of the same jobs, cluster and policy."""
    row = policies.run([SMALL], tmp_path / "rows.csv", only="srtf", say=str)[1]
    found = summary(simulate_named(drawn(tmp_path, 1), 2, 4, "srtf", discipline="overtake", consolidate=True))
    assert (row.mean_jct, row.p99_jct, row.makespan) == (found.mean_jct, found.p99_jct, found.makespan)
    assert row.utilisation == found.utilisation and row.regret == found.mean_jct / row.jct_bound - 1


def test_who_stops_no_job_has_a_bound_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no less than that of any schedule, is not applied to policies that stop or share, and shows on the page."""
    names = ("fifo", "srtf", "tetris", "gandiva")
    monkeypatch.setattr(policies_bounds, "_LP_SECONDS", 1.0)
    one = replace(SMALL, policies=tuple((n, "overtake") for n in names), seeds=1, time_indexed=True)
    rows = policies.run([one], tmp_path / "rows.csv", say=str)
    assert [row.unstopped_bound is not None for row in rows] == [True, False, True, False]
    for row in rows[::2]:
        assert row.unstopped_bound >= row.jct_bound and 0 <= row.unstopped_regret <= row.regret
    assert policies_rows.read(tmp_path / "rows.csv") == rows


def test_a_bound_above_a_schedule_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong bound stops the run and leaves no row."""
    monkeypatch.setattr(policies, "rigid", lambda work, gpus: Bounds(1e9, 1.0))
    with pytest.raises(AssertionError, match="small, fifo head: regret is -"):
        policies.run([SMALL], tmp_path / "rows.csv", say=str)
    assert policies_rows.read(tmp_path / "rows.csv") == []


def test_a_long_run_is_cut_off(tmp_path: Path) -> None:
    """A simulation beyond the limit leaves a row without figures, and is run again only if it is given longer."""
    path = tmp_path / "rows.csv"
    many = replace(
        SMALL, make=lambda data, seed: arrivals(20_000, 0.1, seed), policies=(("tetris", "overtake"),), seeds=1
    )
    (row,) = policies.run([many], path, limit=0.2, say=str)
    assert row.mean_jct is None and row.regret is None
    assert policies_rows.read(path) == [row]
    assert policies.run([many], path, limit=0.2, say=str) == []
    assert [again.key for again in policies.run([many], path, limit=2 * row.seconds, say=str)] == [row.key]
    inner = SystemError()
    inner.__cause__ = policies.CutOffError()
    assert policies._cut_off(inner) and not policies._cut_off(SystemError())


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
    assert one.mean_jct <= policies.rigid(plain, 36).mean_jct * (1 + 1e-9)
    least = typed(replace(jobs, speed=jobs.speed[:, :1]), parse_cluster("12xV100"))
    assert least.mean_jct == pytest.approx(policies.rigid(plain, 12).mean_jct)


def test_data_that_is_not_there(tmp_path: Path) -> None:
    """A trace without its file is left out, in words."""
    said = list[str]()
    trace = RoundTrace("other", lambda data: jobs_of_types(0), "nowhere.trace", "4xV100")
    assert policies.run([trace], tmp_path / "rows.csv", data=tmp_path, say=said.append) == []
    assert said == ["other: left out, there is no nowhere.trace in the data folder"]


def test_half_a_row_is_an_error(tmp_path: Path) -> None:
    """A file that was cut or has other columns is refused, by line."""
    path = tmp_path / "rows.csv"
    policies.run([SMALL], path, say=str)
    text = path.read_text()
    path.write_text(text[: text.rindex(",")])
    with pytest.raises(ValueError, match=r"rows.csv:5: 17 cells where 18 are expected"):
        policies_rows.read(path)
    path.write_text(text.replace("jct_bound", "bound", 1))
    with pytest.raises(ValueError, match=r"columns are .* expected"):
        policies_rows.read(path)


def test_tables_from_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table has a line for each policy and a column for each trace; over seeds means and intervals."""
    monkeypatch.setattr(policies_tables, "TRACES", (SMALL,))
    usual = {"date": "", "commit": "", "protocol": policies_rows.PROTOCOL, "trace": "small", "cluster": "2x4"}
    sizes = {"jobs": 40, "gpus": 8, "load": 0.5, "p99_jct": 9.0, "utilisation": 0.25, "seconds": 1.0}

    def row(policy: str, seed: int, jct: float | None) -> policies_rows.PolicyRow:
        ends = {"mean_jct": jct, "makespan": 30.0, "jct_bound": 8.0, "makespan_bound": 20.0, "unstopped_bound": None}
        return policies_rows.PolicyRow(policy=policy, seed=seed, **usual, **sizes, **ends)  # type: ignore[arg-type]

    single = policies_tables.section("nodes", [row("srtf overtake", 0, 10.0), row("fifo head", 0, 12.0)])
    lines = single.splitlines()
    assert lines[0] == "1. small: 40 jobs on 2x4, load 50%; the bound on the mean JCT is 8 s"
    assert lines[4:] == ["| `fifo head` | 50.0 |", "| `srtf overtake` | 25.0 |"]
    assert policies_tables.section("rounds", [row("srtf overtake", 0, 10.0)]) == ""
    assert "cut off" in policies_tables.section("nodes", [row("srtf overtake", 0, None)])
    strict = [replace(row("fifo head", 0, 12.0), unstopped_bound=10.0), row("srtf overtake", 0, 10.0)]
    assert "JCT is 8 s, 10 s if no job is stopped" in policies_tables.section("nodes", strict).splitlines()[0]
    rows = [row(p, s, j + s) for p, j in (("fifo overtake", 12.0), ("srtf overtake", 10.0)) for s in (0, 1)]
    seeded = policies_tables.section("nodes", rows).splitlines()
    assert seeded[0] == "1. small: 40 jobs on 2x4, 2 seeds"
    assert seeded[-1].startswith("| `fifo overtake` | 56.2 ± ") and "| `srtf overtake` | 31.2 ± " in "".join(seeded)
    assert policies_tables.section("nodes", [replace(r, protocol=0) for r in rows]) == ""


def test_the_page_agrees_with_the_rows(tmp_path: Path) -> None:
    """docs/policies.md holds the tables of benchmarks/policies.csv, and no regret in it is negative."""
    assert policies_tables.write_page(check=True) == 0
    rows = policies_rows.read()
    assert rows and all(row.regret is None or row.regret >= -1e-9 for row in rows)
    page = tmp_path / "policies.md"
    page.write_text(policies_tables.PAGE.read_text().replace("| `fifo head` |", "| `fifo heed` |"))
    assert policies_tables.write_page(page=page, check=True) == 1
    assert policies_tables.write_page(page=page) == 0 and page.read_text() == policies_tables.PAGE.read_text()
