"""The loop resumes to the same curve, keeps its promises, and the losses are what their formulas say."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gangplan.instances import InstanceError
from gangplan.learned.training import TrainingStage, read_checkpoint, train, train_stages
from gangplan.learned.training.learner import NetworkLearner


class Line(NetworkLearner):
    """Fits a line to noisy points drawn by numpy, shaken by noise drawn by torch, with Adam; `tells` may interfere."""

    def __init__(self, tells: Any = None, start: Any = None) -> None:
        self.rng, self.noise = np.random.default_rng(3), torch.Generator().manual_seed(4)
        network = torch.nn.ParameterDict({"weight": torch.zeros(2)})
        self.weight = network["weight"]
        if start is not None:
            self.weight.data = start["policy.weight"].clone()
        self.optimizer = torch.optim.Adam([self.weight], lr=0.1)
        self.networks, self.optimizers = {"policy": network}, {"adam": self.optimizer}
        self.generators = {"noise": self.noise, "rng": self.rng}
        self.tells = tells
        self.seen = 0

    def update(self, step: int) -> dict[str, float]:
        """Make one step of Adam; a figure appears at the third."""
        self.seen += 1
        x = torch.tensor(self.rng.normal(size=8), dtype=torch.float32)
        y = 2 * x + 1 + 0.1 * torch.randn(8, generator=self.noise)
        loss = (self.weight[0] * x + self.weight[1] - y).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.tells is not None:
            self.tells(step)
        return {"loss": float(loss.detach())} | ({"late": 1.0 / step} if step > 2 else {})

    def validate(self) -> dict[str, float]:
        """Return the squared distance to the true line, and draw a number as a rollout would."""
        away = self.weight.detach() - torch.tensor([2.0, 1.0])
        return {"score": float(away.square().sum()), "drawn": float(self.rng.random())}


def curve(folder: Path) -> list[list[dict[str, str]]]:
    """Return both logs without their clock."""
    found = []
    for name in ("updates.csv", "validation.csv"):
        with (folder / name).open(newline="") as file:
            found.append([{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)])
    return found


def interrupt(step: int) -> None:
    """Press Ctrl-C in the seventh update."""
    if step == 7:
        os.kill(os.getpid(), signal.SIGINT)


def test_resumed_curve_is_the_same(tmp_path: Path, listens_to_ctrl_c: None) -> None:
    """A run stopped by Ctrl-C, by its number of updates and by its time, then resumed, equals one never stopped."""
    options: dict[str, Any] = {"validate_every": 5}
    whole = Line()
    report = train(whole, tmp_path / "whole", updates=23, **options)
    first = Line(interrupt)
    stopped = train(first, tmp_path / "parts", updates=23, **options)
    assert (stopped.reason, stopped.updates, first.seen) == ("interrupted", 7, 7)
    train(Line(), tmp_path / "parts", updates=12, resume=True, **options)  # ends between two validations
    at_once = train(Line(), tmp_path / "parts", updates=23, minutes=0.0, resume=True, **options)
    assert (at_once.reason, at_once.updates) == ("minutes", 12)
    last = Line()
    resumed = train(last, tmp_path / "parts", updates=23, resume=True, **options)
    assert last.seen == 11
    assert curve(tmp_path / "parts") == curve(tmp_path / "whole")
    assert [len(rows) for rows in curve(tmp_path / "whole")] == [23, 6]  # validations at 0, 5, 10, 15, 20 and the end
    assert torch.equal(whole.weight, last.weight)
    assert (resumed.best, resumed.best_update) == (report.best, report.best_update)


def test_killed_run_resumes(tmp_path: Path) -> None:
    """What a killed run logged after its last checkpoint, half a line included, is cut off and made again."""
    train(Line(), tmp_path / "whole", updates=20, validate_every=4)
    train(Line(), tmp_path / "killed", updates=9, validate_every=4)
    with (tmp_path / "killed" / "updates.csv").open("a") as file:
        file.write("10,0.5,77.0,0.1\n11,0.")
    train(Line(), tmp_path / "killed", updates=20, validate_every=4, resume=True)
    assert curve(tmp_path / "killed") == curve(tmp_path / "whole")


def test_best_is_the_best(tmp_path: Path) -> None:
    """Checkpoint `best` holds the parameters whose score is the smallest in the log, `last` the last ones."""
    learner = Line()
    report = train(learner, tmp_path, updates=60, validate_every=5)
    scores = {int(row["update"]): float(row["score"]) for row in curve(tmp_path)[1]}
    assert report.best == min(scores.values()) == scores[report.best_update] == report.validation["score"]
    tensors, plain = read_checkpoint(tmp_path)
    again = Line()
    again.load(tensors, plain["learner"])
    assert again.validate()["score"] == report.best
    assert torch.equal(read_checkpoint(tmp_path, "last")[0]["policy.weight"], learner.weight)
    assert not list(tmp_path.glob("*.new")) and len(list(tmp_path.glob("*.safetensors"))) == 2


def test_start_is_validated(tmp_path: Path) -> None:
    """Where updates only do harm, the best is the start."""

    class Worse(Line):
        def validate(self) -> dict[str, float]:
            return {"score": float(self.seen)}

    report = train(Worse(), tmp_path, updates=100, validate_every=2, patience=3)
    assert (report.reason, report.updates, report.best, report.best_update) == ("patience", 6, 0.0, 0)


def test_not_a_number_is_no_improvement(tmp_path: Path) -> None:
    """Scores that are not numbers never become the best, and patience ends the run."""

    class Lost(Line):
        def validate(self) -> dict[str, float]:
            return {"score": math.nan}

    report = train(Lost(), tmp_path, updates=100, validate_every=1, patience=2)
    assert (report.reason, report.updates, report.best) == ("patience", 1, None)


def test_checkpoints_come_by_the_clock(tmp_path: Path) -> None:
    """Between validations `last` is written whenever its time has come."""
    steps: list[int] = []

    def look(step: int) -> None:
        steps.append(json.loads((tmp_path / "last.json").read_text())["loop"]["update"])

    train(Line(look), tmp_path, updates=4, validate_every=100, checkpoint_every=0.0)
    assert steps == [0, 1, 2, 3]


def test_shares_ascend(tmp_path: Path) -> None:
    """The share shown grows from 0 to 1."""
    shares: list[float] = []
    train(Line(), tmp_path, updates=5, validate_every=5, progress=shares.append)
    assert shares == sorted(shares) and (shares[0], shares[-1]) == (0.0, 1.0)


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    """A folder that holds a run is left alone unless it is to be resumed."""
    train(Line(), tmp_path, updates=3, validate_every=3)
    before = (tmp_path / "last.json").read_bytes()
    with pytest.raises(InstanceError, match="holds a run already"):
        train(Line(), tmp_path, updates=9, validate_every=3)
    assert (tmp_path / "last.json").read_bytes() == before


@pytest.mark.parametrize("damage", ["json", "format", "missing", "bytes"])
def test_broken_checkpoints_are_named(damage: str, tmp_path: Path) -> None:
    """Each way of being broken is an error that names the file."""
    train(Line(), tmp_path, updates=3, validate_every=3)
    plain, tensors = tmp_path / "last.json", next(tmp_path.glob("last-*.safetensors"))
    if damage == "json":
        plain.write_bytes(plain.read_bytes()[:40])
    elif damage == "format":
        plain.write_text("[]")
    elif damage == "missing":
        tensors.unlink()
    else:
        tensors.write_bytes(tensors.read_bytes()[:-1] + b"!")
    broken = plain if damage in ("json", "format") else tensors
    with pytest.raises(InstanceError) as found:
        train(Line(), tmp_path, updates=9, validate_every=3, resume=True)
    assert found.value.source == str(broken)


def test_stages_follow_one_another(tmp_path: Path, listens_to_ctrl_c: None) -> None:
    """The second stage starts from the best of the first; a resumed run does no stage twice, and ends alike."""
    made: list[str] = []

    def stages(tells: Any = None) -> list[TrainingStage]:
        def make(name: str) -> Any:
            return lambda before: made.append(name) or Line(tells if name == "rl" else None, before)

        return [TrainingStage("imitation", make("imitation"), 20, 5), TrainingStage("rl", make("rl"), 10, 5)]

    whole = train_stages(stages(), tmp_path / "whole")
    start = read_checkpoint(tmp_path / "whole" / "imitation")[0]["policy.weight"]
    assert Line(start={"policy.weight": start}).validate()["score"] == float(
        curve(tmp_path / "whole" / "rl")[1][0]["score"]
    )
    parts = train_stages(stages(interrupt), tmp_path / "parts")
    assert [x.reason for x in parts.values()] == ["updates", "interrupted"]
    made.clear()
    again = train_stages(stages(), tmp_path / "parts", resume=True)
    assert made == ["rl"]
    assert [x.best for x in again.values()] == [x.best for x in whole.values()]
    assert curve(tmp_path / "parts" / "rl") == curve(tmp_path / "whole" / "rl")


def test_killed_before_the_last_validation(tmp_path: Path) -> None:
    """A stage whose last update was saved, and whose validation was not made, makes up for it."""
    stages = [TrainingStage("a", lambda before: Line(), 4, 3)]
    whole = train_stages(stages, tmp_path)
    path = tmp_path / "a" / "validation.csv"
    before = curve(tmp_path / "a")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    again = train_stages(stages, tmp_path, resume=True)
    assert curve(tmp_path / "a") == before and again["a"].best == whole["a"].best


def test_time_of_all_stages(tmp_path: Path) -> None:
    """Where the time is up in the first stage the second does not begin."""
    stages = [TrainingStage("a", lambda before: Line(), 9, 3), TrainingStage("b", lambda before: Line(), 9, 3)]
    found = train_stages(stages, tmp_path, minutes=0.0)
    assert [(name, x.reason) for name, x in found.items()] == [("a", "minutes")]
