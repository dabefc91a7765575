"""`gangplan profile` and `gangplan split`, from a model to a verified split run, and what they refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from gangplan.cli import main
from gangplan.instances import dump, load
from gangplan.instances.errors import extra

pytestmark = pytest.mark.usefixtures("one_thread")
TESTS = Path(__file__).parents[1]
NETWORKS = f"{TESTS / 'instances' / 'torch_model' / 'networks.py'}"
TINY = f"{TESTS.parent / 'docs' / 'examples' / 'gpt2.py'}:tiny"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Any:
    """Call the command line in this process; return exit code, stdout and stderr."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        code = main([str(x) for x in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def solved(call: Any, tmp_path: Path) -> tuple[Path, Path]:
    """Return a profile of the small GPT on two devices and a best plan."""
    graph, plan = tmp_path / "graph.json", tmp_path / "plan.json"
    assert call("profile", TINY, "--devices", "2", "--out", graph)[0] == 0
    assert call("solve", graph, "--time-limit", "20", "--out", plan, "--json")[0] == 0
    return graph, plan


def test_end_to_end(solved: tuple[Path, Path], call: Any, tmp_path: Path) -> None:
    """Profile, solve, split and run: outputs and gradients agree, and the mapping file holds the plan that was run."""
    graph, plan = solved
    out = tmp_path / "split.json"
    code, said, _ = call("split", TINY, graph, plan, "--run", "--out", out)
    assert code == 0
    assert "outputs: same in split and whole model" in said and "gradients: same" in said
    data = json.loads(out.read_text())
    assert data["run"]["same"] is True and set(data["run"]["differences"]) == {"outputs", "gradients"}
    assert data["run"]["compared_with"] == "the model" and set(data["run"]["seconds"]) == {"0", "1"}
    assert data["modules"]["tokens"] == {"device": 0, "stage": 0} and data["modules"]["head"]["stage"] == 1
    assert data["divided"][""] == {"devices": [0, 1], "stages": [0, 1]}
    assert data["stages"] == [{"stage": i, "devices": [i], "degree": 1} for i in (0, 1)]
    assert len(data["cuts"]) == 1 and len(data["split_points"]) == (data["cuts"][0]["module"] is not None)
    assert call("verify", graph, out)[0] == 0


def test_split_without_running(solved: tuple[Path, Path], call: Any) -> None:
    """Without --run the mapping alone is printed, as a table or as one JSON object, and a spread plan is no worse."""
    graph, plan = solved
    code, said, _ = call("split", TINY, graph, plan)
    assert code == 0 and "blocks.0" in said and "stage 1" in said and "same" not in said
    code, said, _ = call("split", TINY, graph, plan, "--json", "--spread")
    data = json.loads(said)
    assert code == 0 and "run" not in data
    assert {place["stage"] for place in data["modules"].values()} == {0, 1}


def test_split_of_other_objectives(call: Any, tmp_path: Path) -> None:
    """A plan for the step time of a model can be split as one for throughput can."""
    graph, plan = tmp_path / "graph.json", tmp_path / "plan.json"
    assert call("profile", f"{NETWORKS}:still_encoder", "--devices", "2", "--out", graph)[0] == 0
    problem = load(graph.read_text())
    from gangplan.instances import StepPlan

    n = problem.graph.n_ops
    starts = [float(i) for i in range(n)]
    plan.write_text(dump(StepPlan(problem.graph.names, [0] * n, starts)))
    code, said, _ = call("split", f"{NETWORKS}:still_encoder", graph, plan, "--json")
    assert code == 0 and json.loads(said)["modules"][""] == {"device": 0, "stage": 0}
    code, said, err = call("split", f"{NETWORKS}:still_encoder", graph, plan, "--spread")
    assert (code, said) == (2, "") and "spread" in err


def test_profile_as_json(call: Any, tmp_path: Path) -> None:
    """Each op is given with shapes, FLOPs, bytes, parameters and times, forward and backward."""
    out = tmp_path / "graph.json"
    code, said, _ = call("profile", f"{NETWORKS}:linear", "--device-type", "V100", "--json", "--out", out)
    data = json.loads(said)
    assert code == 0 and data["traced_by"] == "torch.export"
    (op,) = data["ops"]
    assert op["inputs"] == [{"shape": [2, 3], "dtype": "float32"}]
    assert op["outputs"] == [{"shape": [2, 5], "dtype": "float32"}]
    assert (op["parameters"], op["flops"], op["moved"], op["memory"]) == (20, 60, 144, 360)
    assert op["seconds"].keys() == op["backward"]["seconds"].keys() == {"V100"}
    assert call("show", out)[0] == 0


def test_profile_measured(call: Any, tmp_path: Path) -> None:
    """Measured here, without a backward pass: the devices are called here and the document says so."""
    out = tmp_path / "graph.json"
    code, said, _ = call("profile", f"{NETWORKS}:linear", "--measure", "--no-training", "--out", out)
    assert code == 0 and "this machine, measured" in said and "backward" not in said
    problem = load(out.read_text())
    assert problem.cluster.device_types[0].name == "here" and not problem.graph.backward.any()


def test_modules_are_found_where_python_is_started(call: Any, tmp_path: Path) -> None:
    """`my_module:build` in the current folder is found, what it prints stays off stdout, and a class will do too."""
    (tmp_path / "my_module.py").write_text(
        "import torch\n"
        "print('hello')\n"
        "class Net(torch.nn.Linear):\n"
        "    def __init__(self):\n"
        "        super().__init__(3, 2)\n"
        "    def example_inputs(self):\n"
        "        print('inputs')\n"
        "        return (torch.ones(4, 3),)\n"
        "build = lambda: (Net(), (torch.ones(4, 3),), {})\n"
        "net = Net()\n"
    )
    command = [sys.executable, "-m", "gangplan", "profile", "my_module:build", "--json"]
    surroundings = os.environ | {"PYTHONSAFEPATH": "1"}  # as the installed command, which has no folder of its own
    done = subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["ops"][0]["outputs"] == [{"shape": [4, 2], "dtype": "float32"}]
    assert "hello" in done.stderr
    for attribute in ("Net", "net"):
        code, said, _ = call("profile", f"{tmp_path / 'my_module.py'}:{attribute}", "--json")
        assert code == 0 and json.loads(said)["ops"][0]["outputs"] == [{"shape": [4, 2], "dtype": "float32"}]


DRIFTING = """
import torch
class Drifting(torch.nn.Linear):
    calls = 0
    def forward(self, x):
        self.calls += 1
        return super().forward(x) * self.calls
build = lambda: (Drifting(3, 2), (torch.ones(4, 3),))
"""


def test_a_difference_is_exit_code_1(call: Any, tmp_path: Path) -> None:
    """A model that computes something else when it is called again fails the comparison, and the exit code says so."""
    model, graph, plan = tmp_path / "drifting.py", tmp_path / "graph.json", tmp_path / "plan.json"
    model.write_text(DRIFTING)
    assert call("profile", f"{model}:build", "--no-training", "--out", graph)[0] == 0
    assert call("solve", graph, "--time-limit", "20", "--out", plan, "--json")[0] == 0
    code, said, _ = call("split", f"{model}:build", graph, plan, "--run", "--json")
    assert code == 1 and json.loads(said)["run"]["same"] is False


BROKEN = {
    "raises.py": "raise ValueError('no\\nluck')",
    "exits.py": "raise SystemExit(3)",
    "needs.py": "import nothing_of_that_name",
    "syntax.py": "def",
    "odd.py": (
        "import torch\n"
        "number = 5\n"
        "def fails(): raise RuntimeError('out of luck')\n"
        "def gives_number(): return 7\n"
        "def gives_four(): return torch.nn.ReLU(), (), {}, 1\n"
        "def gives_nothing(): return ()\n"
        "def bare(): return torch.nn.ReLU()\n"
        "def bad_inputs(): return torch.nn.ReLU(), 5\n"
        "def bad_kwargs(): return torch.nn.ReLU(), (), 5\n"
        "def wrong_shape(): return torch.nn.Linear(3, 4), (torch.ones(2, 2),)\n"
    ),
}


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("no_such_module_here:build", "no Python module 'no_such_module_here'"),
        ("no/such/file.py:build", "no file 'no/such/file.py'"),
        ("build", "'build' is not of the form"),
        (":build", "is not of the form"),
        ("{}/raises.py:build", "ValueError: no"),
        ("{}/exits.py:build", "SystemExit: 3"),
        ("{}/needs.py:build", "nothing_of_that_name"),
        ("{}/syntax.py:build", "SyntaxError"),
        ("{}/odd.py:missing", "has no attribute 'missing'"),
        ("{}/odd.py:number", "is a int, neither callable nor"),
        ("{}/odd.py:fails", "RuntimeError: out of luck"),
        ("{}/odd.py:gives_number", "gives a int, not a torch.nn.Module"),
        ("{}/odd.py:gives_four", "gives 4 values"),
        ("{}/odd.py:gives_nothing", "not a torch.nn.Module"),
        ("{}/odd.py:bare", "without inputs"),
        ("{}/odd.py:bad_inputs", "a int as its inputs"),
        ("{}/odd.py:bad_kwargs", "a int as its keyword inputs"),
        ("{}/odd.py:wrong_shape", "cannot be traced; torch.export: "),
        (f"{NETWORKS}:untraceable", "torch.fx: "),
    ],
)
def test_bad_models(model: str, words: str, call: Any, tmp_path: Path) -> None:
    """Whatever is wrong with a model: exit code 2 and one line that says so."""
    for name, text in BROKEN.items():
        (tmp_path / name).write_text(text)
    code, said, err = call("profile", model.format(tmp_path))
    assert (code, said) == (2, "")
    assert err.startswith("error: ") and err.endswith("\n") and err.count("\n") == 1
    assert words in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--device-type", "TPU"], "'TPU'"),
        (["--devices", "none"], "'none'"),
        (["--tied", "knotted"], "'knotted'"),
        (["--whole", "x.*"], "'x.*'"),
        (["--out", "no/such/folder/x.json"], "does not exist"),
    ],
)
def test_bad_options(options: list[str], words: str, call: Any) -> None:
    """An option that makes no sense is refused in one line."""
    code, said, err = call("profile", f"{NETWORKS}:linear", *options)
    assert (code, said) == (2, "") and words in err and err.count("\n") == 1


def test_bad_plans(solved: tuple[Path, Path], call: Any, tmp_path: Path) -> None:
    """A plan for another model, an infeasible one, and an output over an input are refused."""
    graph, plan = solved
    code, _, err = call("split", f"{NETWORKS}:linear", graph, plan)
    assert code == 2 and "another model" in err and str(plan) in err
    data = json.loads(plan.read_text())
    data.pop("content_hash")
    data["device"][0] = 1
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(data))
    code, _, err = call("split", TINY, graph, broken)
    assert code == 2 and "not feasible" in err
    code, _, err = call("split", TINY, graph, plan, "--out", plan)
    assert code == 2 and "would be overwritten" in err


def test_without_torch(call: Any, monkeypatch: pytest.MonkeyPatch, solved: tuple[Path, Path]) -> None:
    """Without torch both commands say how to install it."""
    from gangplan.instances.torch_model import load as loading

    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    for command in (["profile", TINY], ["split", TINY, *solved]):
        code, said, err = call(*command)
        assert (code, said) == (2, "") and err == f"error: torch: is not installed; {extra('torch')}\n"


def test_commands_without_torch_are_light() -> None:
    """The command line imports torch for no other command."""
    program = "import sys; from gangplan.cli import main; main(['versions']); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
