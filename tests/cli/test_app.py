"""`gangplan show`, `verify`, `generate`, `schema`, `versions`, `methods`, and the program itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.cli.show import critical_path
from gangplan.instances import (
    Cluster,
    DeviceType,
    OpGraph,
    PartitionPlan,
    PartitionProblem,
    content_hash,
    dump,
    json_schema,
    load,
)
from gangplan.instances.generators import GENERATORS, defaults, generate
from gangplan.instances.kinds import DOCUMENTS
from gangplan.solvers.method import OBJECTIVES
from gangplan.solvers.partition.throughput.methods import METHODS

COMMAND = [sys.executable, "-m", "gangplan"]


def chain() -> PartitionProblem:
    """Return a -> b -> c with a -> c, of 1, 2 and 4 ms, 1 GB each, on two devices of 2 GB."""
    none, size = np.full(3, -1), np.full(3, 1e9)
    graph = OpGraph(
        ("a", "[b]", "c"),
        ("gpu",),
        [[0.001, 0.002, 0.004]],
        size,
        size / 4,
        size / 8,
        [0, 1, 0],
        [1, 2, 2],
        np.full(3, 1e6),
        none,
        none,
        np.zeros(3, dtype=bool),
    )
    return PartitionProblem(graph, Cluster.flat((DeviceType("gpu", memory=2e9), 2), bandwidth=1e10))


@pytest.fixture
def chain_file(tmp_path: Path) -> Path:
    """Return the file of `chain`."""
    path = tmp_path / "chain.json"
    path.write_text(dump(chain()))
    return path


def test_show(chain_file: Path, cli: Any) -> None:
    """The figures shown are those of the hand-made chain."""
    done = cli("show", chain_file)
    assert (done.code, done.err) == (0, "")
    lines = {line.split("  ")[0]: line for line in done.out.splitlines()}
    assert "3 forward, 0 backward" in lines["ops"]
    assert "3, outputs of 2 MB" in lines["edges"]  # a sends once, c nothing
    assert "3 GB" in lines["memory"]
    assert "750 MB" in lines["parameters"]
    assert "7 ms" in lines["critical path"] and "3 ops" in lines["critical path"]
    assert content_hash(chain()) in done.out
    assert "[b]" in lines and "28.6%" in lines["[b]"]  # 2 of 7 ms


def test_show_overrides(chain_file: Path, cli: Any) -> None:
    """Options change what is shown."""
    done = cli("show", chain_file, "--devices", "5", "--variant", "free", "--memory", "3e9")
    assert "a partition problem: throughput, free" in done.out
    row = next(line.split() for line in done.out.splitlines() if line.startswith("gpu"))
    assert row[1] == "5" and row[5:7] == ["3", "GB"]


def test_show_op_without_device(tmp_path: Path, cli: Any) -> None:
    """An op that no device of the cluster runs is pointed out."""
    graph = chain().graph
    times = [[0.001, np.inf, 0.004], [1.0, 1.0, 1.0]]
    values = {f: getattr(graph, f) for f in OpGraph.__dataclass_fields__} | {"device_types": ("gpu", "cpu")}
    path = tmp_path / "stuck.json"
    path.write_text(dump(PartitionProblem(OpGraph(**values | {"time": times}), chain().cluster)))
    assert "1 ops run on no device, first [b]" in cli("show", path).out


def test_critical_path() -> None:
    """The longest path goes through b: 1 + 2 + 4, and without b's time it is as long as a and c."""
    assert critical_path(chain().graph, np.array([1.0, 2.0, 4.0])) == 7.0
    assert critical_path(chain().graph, np.array([1.0, 0.0, 4.0])) == 5.0


def test_show_plan(problem: Path, plan: Path, cli: Any) -> None:
    """A plan is shown with its instance and a row a stage."""
    done = cli("show", plan)
    assert done.code == 0
    assert content_hash(load(problem.read_text())) in done.out
    stages = set(json.loads(plan.read_text())["stage"])
    assert sum(line[:1].isdigit() for line in done.out.splitlines()) == len(stages)


def test_show_json(problem: Path, plan: Path, cli: Any) -> None:
    """The same for machines: what the file holds, its content hash, and which instance a plan is for."""
    first, second = (json.loads(cli("show", file, "--json").out) for file in (problem, plan))
    assert (first["type"], first["objective"], first["instance"]) == ("PartitionProblem", "throughput", None)
    assert second["instance"] == first["content_hash"] and second["holds"].startswith("24 ops on ")


def test_verify(problem: Path, plan: Path, cli: Any) -> None:
    """A feasible plan has exit code 0 and the objective that the solver reported."""
    done = cli("verify", problem, plan, "--json")
    found = json.loads(done.out)
    solved = json.loads(cli("solve", problem, "--json").out)
    assert done.code == 0
    assert (found["feasible"], found["violations"], found["notes"]) == (True, [], [])
    assert found["objective"] == max(found["load"]) == solved["objective"]
    text = cli("verify", problem, plan)
    assert text.code == 0 and text.out.startswith("feasible, throughput, contiguous: objective ")


def test_verify_output_of_solve(problem: Path, cli: Any, tmp_path: Path) -> None:
    """What `solve --json` printed is taken for a plan; where it has none, that is said."""
    path = tmp_path / "result.json"
    path.write_text(cli("solve", problem, "--json").out)
    assert cli("verify", problem, path).code == 0
    path.write_text(cli("solve", problem, "--json", "--memory", "1").out)
    done = cli("verify", problem, path)
    assert done.code == 2 and "plan: is null" in done.err


def test_verify_violations(chain_file: Path, tmp_path: Path, cli: Any) -> None:
    """Every violation of a hand-made plan is listed: three ops of 1 GB on a device of 2 GB, c before b."""
    plans = {
        "memory: the ops on device 0 need 3 GB, it has 2 GB": PartitionPlan(("a", "[b]", "c"), [0, 0, 0], [0, 0, 0]),
        "op [b] (stage 1) comes before op c (stage 0)": PartitionPlan(("a", "[b]", "c"), [0, 1, 0], [0, 1, 0]),
        "the plan places 1 ops, the graph has 3": PartitionPlan(("a",), [0], [0]),
    }
    for word, plan in plans.items():
        path = tmp_path / "plan.json"
        path.write_text(dump(plan))
        done = cli("verify", chain_file, path)
        assert done.code == 1 and done.err == ""
        assert word in done.out and "infeasible" in done.out
        found = json.loads(cli("verify", chain_file, path, "--json").out)
        assert (found["feasible"], found["objective"]) == (False, None)
        assert len(found["violations"]) == 1 and word in found["violations"][0]


def test_verify_other_instance(problem: Path, plan: Path, cli: Any) -> None:
    """A plan made for another problem is pointed out, and judged by what it is worth here."""
    done = cli("verify", problem, plan, "--bandwidth", "1e9")
    assert done.code == 0
    assert "note: the plan was made for another problem" in done.out
    assert "another problem" in json.loads(cli("verify", problem, plan, "--devices", "9", "--json").out)["notes"][0]


@pytest.mark.parametrize("kind", GENERATORS)
def test_generate(kind: str, tmp_path: Path, cli: Any) -> None:
    """Each generator has a command that writes and prints what the function makes, options included."""
    path = tmp_path / "made.json"
    done = cli("generate", kind, "--no-training", "--devices", "2", "--variant", "free", "--out", path)
    assert done.code == 0 and done.out.startswith(f"{path}: ")
    expected = dump(generate(kind, training=False, devices=2, variant="free"))
    assert path.read_text() == f"{expected}\n"
    assert cli("generate", kind, "--no-training", "--devices", "2", "--variant", "free").out == f"{expected}\n"


@pytest.mark.parametrize("kind", GENERATORS)
def test_generate_help(kind: str, cli: Any) -> None:
    """The help and the list name every option of the kind."""
    text, table = cli("generate", kind, "--help"), cli("generate", "--list")
    assert text.code == table.code == 0
    for name in defaults(kind):
        assert f"--{name.replace('_', '-')} " in text.out
        assert f"{name}=" in table.out
    assert kind in table.out


def test_generate_seed(cli: Any) -> None:
    """The seed decides a random graph and changes nothing about a network."""
    made = [cli("generate", "layered", "--ops", "20", "--layers", "4", "--seed", s).out for s in ("1", "1", "2")]
    assert made[0] == made[1] != made[2]
    networks = [cli("generate", "gpt", "--layers", "1", "--seed", s).out for s in ("1", "2")]
    assert networks[0] == networks[1]


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_schema(kind: str, cli: Any) -> None:
    """The schema printed is the schema published."""
    assert json.loads(cli("schema", kind).out) == json_schema(kind)


def test_versions_and_methods(cli: Any) -> None:
    """Both list what there is, as a table and as JSON."""
    found = json.loads(cli("versions", "--json").out)
    assert {"gangplan", "python", "numpy", "ortools", "highspy", "platform"} <= set(found)
    assert all(f"{name} " in cli("versions").out for name in found)
    methods = json.loads(cli("methods", "--json").out)
    assert [name for name in methods["throughput"] if name != "gnn"] == [*METHODS] and "gnn" not in methods["step"]
    assert set(methods) == set(OBJECTIVES)
    assert all(name in cli("methods").out for name in ["auto", *METHODS])


def test_help(cli: Any) -> None:
    """Help is exit code 0; nothing asked for is help with exit code 2."""
    assert cli("--help").code == 0
    done = cli()
    assert (done.code, done.out) == (2, "") and "Usage:" in done.err
    for command in ("solve", "show", "verify", "schema", "versions", "methods"):
        assert "Usage: gangplan" in cli(command, "--help").out


def test_broken_pipe(problem: Path, tmp_path: Path) -> None:
    """A reader that goes away causes no noise."""
    big = tmp_path / "big.json"
    big.write_text(dump(generate("gpt")))
    for call in (["generate", "gpt"], ["show", str(big)]):
        with subprocess.Popen([*COMMAND, *call], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stderr is not None
            process.stdout.close()
            errors = process.stderr.read()
        assert errors == b""
        assert process.returncode == 0


def test_light(tmp_path: Path, problem: Path) -> None:
    """Commands that solve nothing load no solver, and no command but a drawing one loads a plotting package."""
    program = (
        "import sys\nfrom gangplan.cli import main\ncode = main(sys.argv[1:])\n"
        "print(code, *sorted({m.split('.')[0] for m in sys.modules} & "
        "{'ortools', 'highspy', 'pulp', 'matplotlib', 'networkx', 'pandas', 'scipy'}), file=sys.stderr)"
    )
    heavy = {"versions": "", "show": "", "generate": "", "solve": None}
    calls = {"versions": [], "show": [problem], "generate": ["--list"], "solve": [problem, "--json"]}
    for command, loaded in heavy.items():
        call = [sys.executable, "-c", program, command, *calls[command]]
        done = subprocess.run(call, capture_output=True, text=True, check=True)
        code, *modules = done.stderr.split()
        assert code == "0"
        assert "matplotlib" not in modules
        if loaded is not None:
            assert modules == []
