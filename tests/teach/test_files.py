"""Exported models: other solvers read them and find the referee's optimum."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ortools.sat.python import cp_model

from gangplan import generate, solve, teach
from gangplan.instances import InstanceError, with_objective
from gangplan.instances.schedule import MoldableJob, NodePool, ScheduleProblem

from .tiny import OBJECTIVES, tiny


def highs(path: Path) -> float:
    """Return the optimum of a file by HiGHS."""
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getInfo().objective_function_value)


def glpk(path: Path) -> float:
    """Return the optimum of a file by GLPK."""
    form = "--lp" if path.suffix == ".lp" else "--freemps"
    said = run("glpsol", form, str(path), "--mipgap", "0", "-o", str(path.with_suffix(".sol")))
    text = path.with_suffix(".sol").read_text()
    assert "INTEGER OPTIMAL" in text, said
    return float(re.findall(r"^Objective: +\w+ = (\S+)", text, re.MULTILINE)[0])


def cbc(path: Path) -> float:
    """Return the optimum of a file by CBC."""
    said = run("cbc", str(path), "ratio", "0", "solve")
    return float(re.findall(r"^(?:Objective value:|Optimal - objective value) +(\S+)", said, re.MULTILINE)[-1])


def gecode(path: Path) -> float:
    """Return the optimum of a file by MiniZinc with Gecode."""
    options = ["--solver", "gecode", "--output-mode", "json", "--output-objective"]
    said = run("minizinc", *options, str(path))
    assert "==========" in said
    return float(re.findall(r'"_objective" : (-?\d+)', said)[-1])


def run(*words: str) -> str:
    """Return what a program says, or skip where it is not installed."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout


def textproto(path: Path) -> float:
    """Return the optimum of a file by CP-SAT."""
    model = cp_model.CpModel()
    assert model.proto.parse_text_format(path.read_text())
    return optimum(model)


def bits(path: Path) -> float:
    """Return the optimum of a pseudo-Boolean file, by a reader of its own."""
    lines = [line.replace(";", "").split() for line in path.read_text().splitlines() if not line.startswith("*")]
    model = cp_model.CpModel()
    names = sorted({word for line in lines for word in line if word.startswith("x")})
    value = {name: model.new_bool_var(name) for name in names}
    for line in lines:
        words = line[1:] if line[0] == "min:" else line[:-2]
        total = sum(int(a) * value[name] for a, name in zip(words[::2], words[1::2], strict=True))
        if line[0] == "min:":
            model.minimize(total)
        else:
            assert line[-2] == ">="
            model.add(total >= int(line[-1]))
    return optimum(model)


def optimum(model: Any) -> float:
    """Return the optimum of a model by CP-SAT."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return float(solver.objective_value)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("form", [".lp", ".mps"])
@pytest.mark.parametrize("other", [highs, glpk, cbc])
def test_milp(objective: str, form: str, other: Any, tmp_path: Path) -> None:
    """HiGHS, GLPK and CBC read the MILP of each objective and find the optimum."""
    for problem, best in tiny(objective, 2):
        made = teach.export(problem, tmp_path / f"m{form}")
        assert other(tmp_path / f"m{form}") * made.unit + made.offset == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("form", "other"), [(".pbtxt", textproto), (".opb", bits), (".mzn", gecode)])
def test_cpsat(objective: str, form: str, other: Any, tmp_path: Path) -> None:
    """CP-SAT, a reader of bits and Gecode find the optimum of the CP-SAT model, up to its rounding."""
    if (form, objective) in ((".opb", "schedule"), (".mzn", "stages"), (".mzn", "placement")):
        pytest.skip("a cumulative has no bits, and numbers of 2^29 and more are too large for Gecode")
    for problem, best in tiny(objective, 2):
        made = teach.export(problem, tmp_path / f"m{form}")
        assert other(tmp_path / f"m{form}") * made.unit + made.offset == pytest.approx(best, rel=1e-6)


def test_short_times(tmp_path: Path) -> None:
    """Times of microseconds are written in microseconds, so that solvers' tolerances do not matter."""
    problem = generate("layered", ops=5, layers=2, devices=2, training=False, variant="free")
    best = solve(problem, time_limit=20).objective
    made = teach.export(problem, tmp_path / "m.lp")
    assert made.unit < 1
    assert highs(tmp_path / "m.lp") * made.unit == pytest.approx(best, rel=1e-6)


def test_a_known_plan_makes_it_tight(tmp_path: Path) -> None:
    """Z may be no more than the objective of a known plan, and the optimum is the same; a mistyped one is refused."""
    problem, best = tiny("latency", 1)[0]
    wide, tight = teach.milp(problem), teach.milp(problem, best)
    assert tight.columns[0].high * tight.unit < 1.01 * best < wide.columns[0].high * wide.unit
    made = teach.export(problem, tmp_path / "m.lp", below=best)
    assert highs(tmp_path / "m.lp") * made.unit == pytest.approx(best, rel=1e-6)
    with pytest.raises(InstanceError, match="below: 0 is not"):
        teach.milp(problem, 0)


def test_names(tmp_path: Path) -> None:
    """Files name ops and devices, and what the formats do not allow is left out of names."""
    jobs = tuple(MoldableJob(name, (1,), (2.0,)) for name in ("a b/c", "d-e"))
    problem = ScheduleProblem(jobs, NodePool(1, 1))
    teach.export(problem, tmp_path / "m.lp")
    assert "\n A(d_e): + 1 out(d_e) + 1 x(d_e,1gpu,place0,tick0)" in (tmp_path / "m.lp").read_text()
    graph = tiny("throughput", 1)[0][0]
    teach.export(graph, tmp_path / "m.mzn")
    assert re.search(r"'x\[op3,\w+0\]'", (tmp_path / "m.mzn").read_text())
    teach.export(graph, tmp_path / "m.opb")
    assert re.search(r"^\* x\[op3,\w+0\] = x\d+$", (tmp_path / "m.opb").read_text(), re.MULTILINE)


def test_no_two_names_are_alike() -> None:
    """Each column and each row of every objective's programme has a name of its own."""
    for objective in OBJECTIVES:
        for problem, _ in tiny(objective, 3):
            programme = teach.milp(problem)
            names = [x.name for x in (*programme.columns, *programme.rows)]
            assert len({*names}) == len(names)


def test_refusals(tmp_path: Path) -> None:
    """What cannot be written is refused by field, and nothing is left behind."""
    problem = tiny("schedule", 1)[0][0]
    for name, model, words in (
        ("m.txt", None, r"path: '\.txt' is not one of"),
        ("m.lp", "lp", "model: 'lp' is not one of milp, cpsat"),
        ("m.lp", "cpsat", r"model: 'cpsat' cannot be written as \.lp"),
        ("m.opb", None, "path: M is a cumulative"),
    ):
        with pytest.raises(InstanceError, match=words):
            teach.export(problem, tmp_path / name, model)
    with pytest.raises(InstanceError, match="problem: str has no plain model"):
        teach.export("gpt", tmp_path / "m.lp")
    step = with_objective(generate("layered", ops=4, layers=2, devices=2, training=False), "step")
    with pytest.raises(InstanceError, match="problem: has no plain_milp model: contention"):
        teach.export(type(step)(step.graph, step.cluster, contention=True), tmp_path / "m.lp")
    with pytest.raises(InstanceError, match="path: None is not"):
        teach.export(problem, None)  # type: ignore[arg-type]
    with pytest.raises(InstanceError, match="file: "):
        teach.export(problem, tmp_path / "nowhere" / "m.mps")
    assert [*tmp_path.iterdir()] == []
