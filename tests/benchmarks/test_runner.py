"""The benchmarks: a ledger that keeps what it is given, rivals that solve the same problem, a page that agrees."""

from __future__ import annotations

import multiprocessing
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gangplan
from gangplan import Cluster, DeviceType, PartitionProblem, Status
from gangplan.instances.placement import PlacementProblem
from gangplan.solvers.method import suite
from gangplan.solvers.placement.random_problem import random_problem
from gangplan.solvers.run import OPTIMAL_GAP

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:  # a folder of the repository, not of the package
    sys.path.insert(0, str(ROOT))

from benchmarks import ledger, report, runner, suites, tables  # noqa: E402
from benchmarks.__main__ import main  # noqa: E402
from benchmarks.rivals import RIVALS, solve_by_rival  # noqa: E402


def small(seed: int, variant: str) -> PartitionProblem:
    """Return a random graph of 7 to 9 ops, some with backward ones, some ops for hosts only, on two GPUs and hosts."""
    rng = np.random.default_rng(seed)
    graph = gangplan.generate(
        "layered", ops=int(rng.integers(7, 10)), layers=4, training=seed % 3 == 0, seed=seed
    ).graph
    scale = rng.uniform(1, 4, graph.n_ops)
    time = np.stack([graph.time[0], graph.time[0] * scale])
    time[0, rng.random(graph.n_ops) < 0.1] = np.inf
    kinds = (DeviceType("gpu", memory=float(graph.memory.sum()) * 0.4), 2), (DeviceType("cpu", host=True), seed % 2 + 1)
    bandwidth = float(graph.output_bytes().sum() / np.where(np.isfinite(time), time, 0).sum())
    return PartitionProblem(
        replace(graph, time=time, device_types=("gpu", "cpu")), Cluster.flat(*kinds, bandwidth=20 * bandwidth), variant
    )


def tiny(data: Path) -> PartitionProblem:
    """Return a problem solved in no time."""
    return gangplan.generate("layered", ops=5, layers=3, seed=1, devices=2)


CASES = [
    suites.Case("tiny", "contiguous", "auto", 5.0, tiny),
    suites.Case("tiny", "contiguous", "plain_cpsat", 5.0, tiny),
    suites.Case("tiny", "contiguous", "pipedream", 5.0, tiny),
]


def settings(path: Path, commit: str = "abc") -> runner.Settings:
    """Return settings that write to `path`, as if the code were at `commit`."""
    return runner.Settings(workers=1, ledger=path, commit=commit)


@pytest.fixture(autouse=True)
def own_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package under test count as the repository's, wherever it is installed."""
    monkeypatch.setattr(runner, "ROOT", Path(gangplan.__file__ or "").resolve().parent)


def row(**changes: object) -> ledger.Row:
    """Return a row with some fields changed."""
    base = ledger.Row(
        "2026-01-01T00:00:00+00:00", "abc", "s", "i", "sha256:0", "free", 3, 2, "auto", 0, 1, 5.0, 0.1, 0.25, "UNKNOWN",
        None, 1 / 3, None, 0.5, 'a "quoted", one',
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def test_rows_survive(tmp_path: Path) -> None:
    """What is appended is read back the same, in order, missing values and odd characters included."""
    path = tmp_path / "ledger.csv"
    rows = [row(), row(objective=0.1 + 0.2, gap=0.0, status="OPTIMAL"), row(instance="ü,\nx")]
    for r in rows:
        ledger.append(r, path)
    assert ledger.read(path) == rows
    assert ledger.read(tmp_path / "absent.csv") == []


def test_half_a_row_is_dropped(tmp_path: Path) -> None:
    """A row that a killed writer left unfinished is refused when read and replaced by the next."""
    path = tmp_path / "ledger.csv"
    ledger.append(row(), path)
    with path.open("a") as file:
        file.write("2026-01-02,abc,s,i")
    with pytest.raises(ValueError, match=r"ledger\.csv:3: 4 cells where 20 are expected"):
        ledger.read(path)
    ledger.append(row(seed=7), path)
    assert ledger.read(path) == [row(), row(seed=7)]


def test_other_columns_are_refused(tmp_path: Path) -> None:
    """A file with other columns is neither read nor written."""
    path = tmp_path / "ledger.csv"
    path.write_text("a,b\n1,2\n")
    for use in (lambda: ledger.read(path), lambda: ledger.append(row(), path)):
        with pytest.raises(ValueError, match="columns are a, b"):
            use()
    assert path.read_text() == "a,b\n1,2\n"


def _write(path: Path, seed: int) -> None:
    for i in range(20):
        ledger.append(row(seed=100 * seed + i), path)


def test_writers_at_the_same_time(tmp_path: Path) -> None:
    """Four processes appending at once lose no row and write one header."""
    path = tmp_path / "ledger.csv"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(path, seed)) for seed in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(r.seed for r in ledger.read(path)) == [100 * s + i for s in range(4) for i in range(20)]


def test_runs_are_resumed(tmp_path: Path) -> None:
    """A second run does only what is missing; another commit, seed or limit does everything anew."""
    path = tmp_path / "ledger.csv"
    first = runner.run_suite("s", CASES[:2], settings(path))
    assert [r.method for r in first] == ["auto", "plain_cpsat"]
    assert first[0].objective == pytest.approx(first[1].objective, rel=1e-6)
    assert {r.status for r in first} == {"OPTIMAL"}
    assert [r.method for r in runner.run_suite("s", CASES, settings(path))] == ["pipedream"]
    assert runner.run_suite("s", CASES, settings(path)) == []
    for other in (settings(path, "def"), replace(settings(path), seed=1), replace(settings(path), most_seconds=4.0)):
        assert len(runner.run_suite("s", CASES[2:], other)) == 1
    assert [r.key for r in ledger.read(path)][:3] == [("abc", "tiny", "contiguous", c.method, 0, 1, 5.0) for c in CASES]


def test_interrupt_leaves_whole_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C within a solve leaves the rows before it and none of its own, and the next run goes on there."""
    path = tmp_path / "ledger.csv"
    solve = gangplan.solve

    def interrupted(problem: PartitionProblem, **options: object) -> gangplan.Result:
        if options["method"] == "pipedream":
            return replace(solve(problem, **options), stop_reason="interrupted")  # type: ignore[arg-type]
        return solve(problem, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(gangplan, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runner.run_suite("s", CASES, settings(path))
    assert [r.method for r in ledger.read(path)] == ["auto", "plain_cpsat"]
    monkeypatch.undo()
    monkeypatch.setattr(runner, "ROOT", Path(gangplan.__file__ or "").resolve().parent)
    assert [r.method for r in runner.run_suite("s", CASES, settings(path))] == ["pipedream"]


def test_another_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are not written for a package whose commit is not the repository's."""
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="its commit is unknown"):
        runner.run_suite("s", CASES, settings(tmp_path / "ledger.csv"))


@pytest.mark.parametrize("rival", [name for name in RIVALS if "throughput" in RIVALS[name]])
@pytest.mark.parametrize("variant", ["contiguous", "free"])
@pytest.mark.parametrize("seed", range(6))
def test_rivals_agree(seed: int, variant: str, rival: str) -> None:
    """A plain formulation and the package prove the same optimum, or both that there is no plan."""
    problem = small(seed, variant)
    ours = gangplan.solve(problem, time_limit=20, workers=1)
    theirs = solve_by_rival(problem, rival, time_limit=20, workers=1)
    assert ours.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert theirs.infeasible == (ours.status == Status.INFEASIBLE)
    if ours.objective is not None:
        assert theirs.objective == pytest.approx(ours.objective, rel=2 * OPTIMAL_GAP)
        assert theirs.gap is not None and theirs.gap <= OPTIMAL_GAP


@pytest.mark.parametrize("rival", [name for name in RIVALS if "throughput" in RIVALS[name]])
def test_rivals_prove_infeasibility(rival: str) -> None:
    """A plain formulation says so if memory is too small for any plan."""
    graph = tiny(ROOT).graph
    room = float(graph.memory.sum()) * 0.4
    problem = PartitionProblem(graph, Cluster.flat((DeviceType("A100", memory=room), 2), bandwidth=1e9))
    assert solve_by_rival(problem, rival, time_limit=5).infeasible


def test_small_problems_differ() -> None:
    """The problems above have plans, and contiguity changes the optimum of some: the comparison can fail."""
    values = {
        (s, v): gangplan.solve(small(s, v), time_limit=20).objective for s in range(6) for v in ("contiguous", "free")
    }
    both = [(values[s, "contiguous"], values[s, "free"]) for s in range(6)]
    assert sum(a is not None for a, _ in both) >= 4
    assert any(a is not None and b is not None and a > b * 1.001 for a, b in both)


def test_rivals_leave_convex_out() -> None:
    """A plain formulation says that it has none for the convex variant."""
    with pytest.raises(ValueError, match="convex"):
        solve_by_rival(small(0, "convex"), "plain_cpsat", time_limit=5)


def test_page_agrees_with_the_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every table of docs/benchmarks.md is what the ledger's rows make; a changed figure is found."""
    assert report.write_page(check=True) == 0
    page = tmp_path / "page.md"
    text = report.PAGE.read_text()
    page.write_text(text.replace("41.7458", "41.7457", 1))
    assert page.read_text() != text
    assert report.write_page(page=page, check=True) == 1
    assert report.write_page(page=page) == 0
    assert page.read_text() == text


def test_ledger_agrees_with_what_is_published() -> None:
    """Every optimum in the ledger is the published one to its digits, and no published plan is better."""
    rows = ledger.Rows(ledger.read())
    others = tables._others()
    assert set(others) == set(suites.PUBLISHED)
    for name, other in others.items():
        found = rows.find("published", f"msr/{name}")
        assert found is not None and found.status == "OPTIMAL" and found.objective is not None
        if other["optimum"]:
            assert float(f"{found.objective:.6g}") == float(other["optimum"]), name
        for rival in ("pipedream", "expert"):
            assert not other[rival] or found.objective <= float(other[rival]) * (1 + 1e-5), (name, rival)


def test_another_ledger_has_its_page_beside_it(tmp_path: Path) -> None:
    """The report of a ledger that is not the project's is written beside it, and docs/ is left alone."""
    other, before = tmp_path / "ledger.csv", report.PAGE.read_bytes()
    other.write_bytes(ledger.LEDGER.read_bytes())
    assert main(["report", "--ledger", str(other)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"ledger.csv", report.PAGE.name}
    assert main(["report", "--ledger", str(other), "--out", str(tmp_path / "x.md")]) == 0
    assert (tmp_path / "x.md").exists() and report.PAGE.read_bytes() == before


def test_cases_are_distinct() -> None:
    """No suite holds two cases that the ledger could not tell apart."""
    for name, cases in suites.SUITES.items():
        keys = [(c.instance, c.variant, c.method, c.time_limit) for c in cases()]
        assert len(keys) == len(set(keys)), name


@pytest.mark.parametrize("objective", ["latency", "step"])
@pytest.mark.parametrize("rival", ["plain_cpsat", "plain_milp"])
def test_rivals_of_other_objectives(rival: str, objective: str) -> None:
    """A rival proves the optimum that enumeration finds, or that there is no plan."""
    tools = suite(objective)
    seen = 0
    for seed in range(30):
        problem = tools.random_problem(seed, "")
        if getattr(problem, "contention", False):
            continue  # the plain models have no links
        best = tools.optimum(problem)
        run = solve_by_rival(problem, rival, time_limit=20)
        if best is None:
            assert run.infeasible, seed
        else:
            assert run.objective == pytest.approx(best, rel=2e-6), seed
            assert run.bound is None or run.bound <= best * (1 + 2e-6), seed
            seen += 1
    assert seen > 8


def rigid(seed: int) -> PlacementProblem:
    """Return a tiny batch of what the plain formulations of placement know: rigid gangs of whole GPUs."""
    problem = random_problem(seed)
    jobs = [
        replace(
            job, workers=job.workers[-1:], value=None, worker=replace(job.worker, gpu=float(np.ceil(job.worker.gpu)))
        )
        for job in problem.jobs
    ]
    return replace(problem, jobs=tuple(jobs), goal="slowdown", running=())


@pytest.mark.parametrize("rival", ["plain_cpsat", "plain_milp"])
def test_rivals_of_placement(rival: str) -> None:
    """A rival proves the optimum that enumeration finds, or that there is no placement."""
    tools, values = suite("placement"), []
    for seed in range(40):
        problem = rigid(seed)
        best = tools.optimum(problem)
        run = solve_by_rival(problem, rival, time_limit=20)
        if best is None:
            assert run.infeasible, seed
        else:
            assert run.objective == pytest.approx(best, rel=2e-6), seed
            assert run.gap is not None and run.gap <= 2e-6, seed
            values.append(round(best, 6))
    assert len(values) > 15 and len(set(values)) > 12


def test_rivals_of_placement_leave_the_rest_out() -> None:
    """A plain formulation names what it does not model."""
    problem = rigid(0)
    jobs = (replace(problem.jobs[0], value=1.0), *problem.jobs[1:])
    for broken, words in ((replace(problem, goal="throughput"), "goal"), (replace(problem, jobs=jobs), r"jobs\[0\]")):
        with pytest.raises(ValueError, match=words):
            solve_by_rival(broken, "plain_milp", time_limit=5)


def test_batches_in_the_ledger(tmp_path: Path) -> None:
    """A batch leaves a row with its jobs and GPUs, and its tables show the row."""
    cases = [suites.placement()[0], *suites.gang_rivals()[:1]]
    own = replace(settings(tmp_path / "ledger.csv"), most_seconds=0.5)
    rows = [
        runner.run_suite(name, [case], own)[0] for name, case in zip(("placement", "gang_rivals"), cases, strict=True)
    ]
    assert [(row.ops, row.devices, row.variant) for row in rows] == [(16, 128, "placement")] * 2
    for row in rows:
        assert "| 16@16x8 |" in tables.TABLES[row.suite](ledger.Rows(rows))


def test_plain_stages() -> None:
    """Plain loops come to what the package proves."""
    problem = gangplan.with_objective(gangplan.generate("vgg", depth=11, devices=3), "stages")
    run = solve_by_rival(problem, "plain_dp", time_limit=20)
    assert run.objective == pytest.approx(gangplan.solve(problem, time_limit=20).objective, rel=1e-9)
