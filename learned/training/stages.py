"""Stages one after the other, such as imitation and then RL, each from the best of the one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .checkpoint import Tensors, read_checkpoint
from .learner import Learner
from .loop import INTERRUPTED, Report, position, report, train


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a training.

    Attributes:
        name: of it and of its folder.
        make: returns the learner. It gets the tensors of the stage before at its best, None if it is the first.
        updates, validate_every, patience: see `train`.
    """

    name: str
    make: Callable[[Tensors | None], Learner]
    updates: int
    validate_every: int
    patience: int | None = None


@dataclass(frozen=True, slots=True)
class StageReport:
    """The report of one stage.

    Attributes:
        name: of the stage.
        report: what came of it.
    """

    name: str
    report: Report


def train_stages(
    stages: Sequence[Stage],
    folder: str | Path,
    *,
    minutes: float | None = None,
    resume: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> list[StageReport]:
    """Train stage after stage, each in a folder of its own; a stage that is done is not done again on resume.

    Args:
        stages: in their order.
        folder: gets a folder a stage.
        minutes: of wall-clock time at most for all of them; the stage under way is then the last.
        resume: see `train`.
        progress: is called with the share that is done; each stage is one part of it.

    Returns:
        The reports of the stages that were begun; after Ctrl-C or at the end of the time, not of all.
    """
    folder, found, spent, before = Path(folder), list[StageReport](), 0.0, None
    for i, stage in enumerate(stages):
        limit = None if minutes is None else minutes - spent / 60
        at = position(folder / stage.name) if resume else None
        reason = None if at is None else at.stop(stage.updates, limit, stage.patience)
        if at is not None and reason is not None:
            done = report(folder / stage.name, reason, at)
        elif limit is not None and limit <= 0 and found:
            break
        else:
            done = train(
                stage.make(before),
                folder / stage.name,
                updates=stage.updates,
                minutes=limit,
                validate_every=stage.validate_every,
                patience=stage.patience,
                resume=resume,
                progress=partial(_part, progress, i, len(stages)),
            )
        found.append(StageReport(stage.name, done))
        spent += done.seconds
        if done.reason == INTERRUPTED or (minutes is not None and spent >= 60 * minutes):
            break
        before = read_checkpoint(folder / stage.name)[0]
    return found


def _part(progress: Callable[[float], None], i: int, n: int, share: float) -> None:
    progress((i + min(share, 1.0)) / n)
