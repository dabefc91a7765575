"""`gangplan learn`: train, eval and list, with a toy policy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch

from gangplan.cli.learn import means
from gangplan.learned.policy import load, read_card
from gangplan.learned.training import TrainingStage
from gangplan.learned.training.recipe import RECIPES, Recipe
from gangplan.simulator.ground import Figure, Ground, setting


@dataclass(frozen=True)
class Settings:
    """What the toy may be told."""

    updates: int = 4
    interrupted: bool = False


class Toy:
    """Comes nearer to 1 with each update, and may press Ctrl-C in the second."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.x = settings, torch.zeros(1)

    def update(self, step: int) -> dict[str, float]:
        """Go half of the way."""
        if self.settings.interrupted and step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        self.x = (self.x + 1) / 2
        return {"loss": float(1 - self.x[0])}

    def validate(self) -> dict[str, float]:
        """Return what is left of the way."""
        return {"score": float(1 - self.x[0])}

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return where it is."""
        return {"policy.x": self.x}, {}

    def load(self, tensors: dict[str, Any], plain: Any) -> None:
        """Go there."""
        self.x = tensors["policy.x"]


@dataclass(frozen=True)
class Blocking(Ground):
    """A ground that blocks more the larger the seed is."""

    figures: ClassVar[dict[str, Figure]] = {"blocked": Figure("blocked")}

    load: float = setting(1.0, "of it")
    case: str = setting("a", "its name")

    def draw(self, seed: int) -> int:
        """Return the seed."""
        return seed

    def play(self, policy: Any, drawn: int) -> dict[str, float]:
        """Return by how much the policy is below the next seed."""
        return {"blocked": self.load * (drawn + 1 - float(policy))}

    arrays = policy = bound = draw  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter the toy's recipe."""
    recipe = Recipe(
        "toy",
        "goes to 1",
        Settings,
        lambda settings, seed: [TrainingStage("walk", lambda start: Toy(settings), settings.updates, 2)],
        lambda path: load(path)[0]["x"],
        lambda policy: ([Blocking()], ()),
    )
    monkeypatch.setitem(sys.modules, "toy_recipe", SimpleNamespace(RECIPE=recipe))  # type: ignore[arg-type]
    monkeypatch.setitem(RECIPES, "toy", "toy_recipe:RECIPE")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return the toy's configuration."""
    path = tmp_path / "toy.toml"
    path.write_text('policy = "toy"\n')
    return path


def test_train_and_eval(config: Path, tmp_path: Path, cli: Any) -> None:
    """Training says what came of each stage and leaves weights, which eval judges with its own options."""
    done = cli("learn", "train", config, "--out", tmp_path / "run", "--seed", "3")
    assert done.code == 0
    row = next(line.split() for line in done.out.splitlines() if line.startswith("walk"))
    assert row[:3] == ["walk", "updates", "4"] and row[4:] == ["0.0625", "4"]
    assert "*       4" in done.err  # a new best
    weights = tmp_path / "run" / "toy.safetensors"
    assert str(weights) in done.out and read_card(weights).seeds["run"] == 3
    judged = cli("learn", "eval", weights, "--seeds", "2", "--option", "load=2", "--option", "case=b", "--json")
    rows = json.loads(judged.out)
    assert rows == [{"policy": "learned", "case": "b", "seed": i, "blocked": 2 * (i + 0.0625)} for i in range(2)]
    text = cli("learn", "eval", weights)
    assert text.code == 0 and len(text.out.splitlines()) == 13 and "0.0625" in text.out
    # five seeds, 1.96 on either side by Student's t
    assert "2.0625 ± 2" in text.out


def test_interrupted_and_resumed(config: Path, tmp_path: Path, cli: Any, listens_to_ctrl_c: None) -> None:
    """Ctrl-C gives exit code 130 and weights; the same command resumes, and without --resume refuses."""
    config.write_text('policy = "toy"\ninterrupted = true\n')
    call = ("learn", "train", config, "--out", tmp_path / "run", "--json")
    first = cli(*call)
    assert (first.code, first.err) == (130, "")
    assert json.loads(first.out)["interrupted"] and json.loads(first.out)["stages"][0]["updates"] == 2
    assert json.loads(first.out)["weights"] == str(tmp_path / "run" / "toy.safetensors")
    assert cli(*call).code == 2
    again = cli(*call, "--resume")
    assert (again.code, json.loads(again.out)["stages"][0]["updates"]) == (0, 4)


def test_evolve(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search prints the rule in words and what it comes to on each ground, goes on, and refuses what is wrong."""
    from gangplan.learned.training.online import evolve

    monkeypatch.setattr(evolve, "TRAIN", evolve.TRAIN[:1])
    monkeypatch.setattr(evolve, "VALIDATE", evolve.VALIDATE[:1])
    call = ("learn", "evolve", "--out", tmp_path / "run", "--updates")
    text = cli(*call, "1")
    assert text.code == 0 and "powers-48" in text.out and "key = log seconds" in text.out
    again = json.loads(cli(*call, "2", "--resume", "--json").out)
    assert (
        again["updates"] == 2 and not again["interrupted"] and [x["ground"] for x in again["grounds"]] == ["powers-48"]
    )
    assert "holds a run" in cli(*call, "2").err
    assert "minutes: -1.0 is not" in cli("learn", "evolve", "--out", tmp_path / "x", "--minutes", "-1").err


def test_list(cli: Any) -> None:
    """The list names policies, weights and configurations, in words and as JSON."""
    found = json.loads(cli("learn", "list", "--json").out)
    assert {"policy": "toy", "about": "goes to 1"} in found["policies"]
    assert set(found) == {"policies", "weights", "configs"}
    assert "goes to 1" in cli("learn", "list").out


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (["train", "nothing.toml", "--out", "run"], "nothing.toml: config: is no file"),
        (["train", "CONFIG", "--out", "run", "--minutes", "-1"], "minutes: -1.0 is not"),
        (["train", "CONFIG", "--out", "run", "--minutes", "nan"], "minutes: nan is not"),
        (["train", "CONFIG", "--out", "run", "--seed", "x"], "--seed: 'x' is not a whole number"),
        (["train", "CONFIG", "--out", "CONFIG"], "out: "),
        (["eval", "nothing"], "weights: 'nothing' is no file"),
        (["eval", "WEIGHTS", "--seeds", "0"], "seeds: 0 is not"),
        (["eval", "WEIGHTS", "--option", "loda=1"], "option: 'loda=1' is not NAME=VALUE with a name of load, case"),
        (["eval", "WEIGHTS", "--option", "load"], "option: 'load' is not NAME=VALUE"),
    ],
)
def test_bad_input(call: list[str], words: str, config: Path, tmp_path: Path, cli: Any) -> None:
    """Bad input is exit code 2 and one line that says what is wrong; nothing is written."""
    cli("learn", "train", config, "--out", tmp_path / "made", "--json")
    places = {"CONFIG": config, "WEIGHTS": tmp_path / "made" / "toy.json", "run": tmp_path / "run"}
    done = cli("learn", *(places.get(x, x) for x in call))
    assert (done.code, done.out) == (2, "")
    assert words in done.err and len(done.err.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_light() -> None:
    """Listing and help load neither torch nor what stands on it."""
    program = (
        "import sys\nfrom gangplan.cli import main\ncode = main(sys.argv[1:])\n"
        "print(code, *sorted({m.split('.')[0] for m in sys.modules} & {'torch', 'torch_geometric', 'torchrl', 'numba', "
        "'tensordict', 'safetensors', 'pyarrow', 'ortools', 'joblib', 'ray', 'scipy', 'pandas',"
        " 'onnx'}), file=sys.stderr)"
    )
    for call in (["learn", "list"], ["learn", "--help"], ["learn", "train", "--help"]):
        done = subprocess.run([sys.executable, "-c", program, *call], capture_output=True, text=True, check=True)
        assert done.stderr.split() == ["0"]


ROWS = [
    {"method": "a", "family": "x", "seed": 0, "cost": 2.0, "proved": True},
    {"method": "b", "family": "x", "seed": 0, "cost": 1.0, "proved": True},
    {"method": "a", "family": "y", "seed": 1, "cost": 4.0, "proved": False},
    {"method": "b", "family": "y", "seed": 1, "cost": None, "proved": False},
]


def test_a_mean_and_its_interval_for_each_method() -> None:
    """Numbers are averaged by method over all families, with Student's interval where there are two values."""
    a, b = means(ROWS)
    assert (a["method"], a["rows"], b["rows"]) == ("a", 2, 2) and "seed" not in a and "family" not in a
    # half the width for two values: 12.706 times their distance by two
    assert a["cost"] == (3.0, pytest.approx(12.706, rel=1e-3)) and b["cost"] == (1.0, None)
    assert "proved" not in a
