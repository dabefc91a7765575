"""Plans that torch.distributed.pipelining can run: where it may cut, what it cannot do, and that it does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from gangplan import solve  # noqa: E402
from gangplan.cli import main  # noqa: E402
from gangplan.instances import InstanceError  # noqa: E402
from gangplan.instances.torch_model.build import model_problem  # noqa: E402
from gangplan.instances.torch_model.load import LoadedModel, load_model  # noqa: E402
from gangplan.torch_split.equal_layers import equal_layers  # noqa: E402
from gangplan.torch_split.mapping import cuts, obstacles, split_points  # noqa: E402
from gangplan.torch_split.pieces import forward_part  # noqa: E402

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "gpt2.py"

pytestmark = pytest.mark.usefixtures("one_thread")


def test_only_plans_that_can_be_split() -> None:
    """Every stage of such a plan begins at a split point, in the order of the calls, and nothing is in its way."""
    made = model_problem(load_model(f"{EXAMPLE}:pipelined"), devices=3, pipelining=True, launch=0.0)
    result = solve(made.problem, time_limit=20, workers=1)
    assert result.plan is not None
    _, stage = forward_part(made.ops, result.plan)
    assert stage == sorted(stage) and len(set(stage)) == 3
    found = cuts(made.ops, stage)
    assert len(split_points(found)) == 2 and obstacles(made.ops, stage, found) == []


def test_a_loss_inside_the_model_is_refused() -> None:
    """Targets that only the last op reads keep the model from being split; the error says where they belong."""
    with pytest.raises(InstanceError, match=r"pipelining.*'targets'.*loss_fn"):
        model_problem(load_model(f"{EXAMPLE}:tiny"), devices=2, pipelining=True)


def test_an_early_output_is_an_obstacle() -> None:
    """Pipelines return what the last stage returns: an output of an earlier one is named, with the remedy."""

    class Two(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            y = self.a(x)
            return y, self.b(y)

    made = model_problem(LoadedModel("two", Two(), (torch.ones(2, 3),), {}), devices=2, training=False)
    (words,) = obstacles(made.ops, [0, 1], cuts(made.ops, [0, 1]))
    assert "a/linear" in words and "return only" in words
    assert obstacles(made.ops, [0, 0], []) == []


def test_one_name_says_one_place() -> None:
    """Two cuts around a module get names of their own: what follows it begins there if a function does, it ends."""

    class Between(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a = torch.nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return torch.tanh(self.a(torch.tanh(x)))

    made = model_problem(LoadedModel("between", Between(), (torch.ones(2, 3),), {}), devices=3, training=False)
    first, second = cuts(made.ops, [0, 1, 2])
    assert (first.module, first.point) == ("a", "BEGINNING")
    assert second.module is None and obstacles(made.ops, [0, 1, 2], [first, second])
    (only,) = cuts(made.ops, [0, 0, 1])
    assert (only.module, only.point) == ("a", "END")


def test_equal_layers() -> None:
    """Six blocks on three devices are two each; the embedding goes with the first, the head with the last."""
    ops = model_problem(load_model(f"{EXAMPLE}:pipelined"), devices=3).ops
    stage = equal_layers(ops, 3)
    for i, op in enumerate(ops.ops):
        found = re.search(r"blocks\.(\d)", op.name)
        assert found is None or stage[i] == int(found[1]) // 2
    assert stage[0] == 0 and stage[-1] == 2


def test_from_the_model_to_running_stages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that `split` prints runs as many processes as there are stages; they compute what the model does."""
    model, graph, plan, mapping = f"{EXAMPLE}:pipelined", tmp_path / "g.json", tmp_path / "p.json", tmp_path / "s.json"
    assert main(["profile", model, "--devices", "2", "--pipelining", "--out", str(graph)]) == 0
    assert main(["solve", str(graph), "--time-limit", "20", "--out", str(plan)]) == 0
    capsys.readouterr()
    assert main(["split", model, str(graph), str(plan), "--out", str(mapping)]) == 0
    said = capsys.readouterr().out
    assert "equal layers" in said and "per mini-batch" in said
    assert json.loads(mapping.read_text())["pipelining"] == {"obstacles": []}
    (command,) = re.findall(r"torchrun (.*)", said.replace("\\\n", ""))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for extra in ([], ["--equal-layers"]):
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", *command.split(), "--steps", "1", *extra],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        (difference,) = re.findall(r"whole model: (\S+)", done.stdout)
        assert float(difference) < 1e-5 and "2 stages" in done.stdout
