"""The loop that trains any learner, stage by stage: logs, checkpoints, resuming to the same curve, stopping early."""

from __future__ import annotations

import csv
import io
import logging
import math
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.intake import csv_rows, read_text
from gangplan.instances.outlet import write_whole

from ..policy.weights import Tensors
from .checkpoint import locked, read_checkpoint, read_plain, write_checkpoint
from .learner import Learner

KEYS = ("update", "seconds")
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)


class CsvTable:
    """A CSV file with a row an update; figures that turn up later get columns of their own.

    Args:
        path: of the file.
        keep: rows of later updates are dropped, as are all rows if it is negative.
    """

    def __init__(self, path: Path, *, keep: int) -> None:
        self.path = path
        self._columns, rows = _read(path) if keep >= 0 and path.exists() else (list(KEYS), [])
        self._write([x for x in rows if int(x["update"]) <= keep])

    def add(self, update: int, seconds: float, figures: Mapping[str, float]) -> None:
        """Append a row, and have it on disk."""
        if new := [name for name in figures if name not in self._columns]:
            rows = _read(self.path)[1]
            self._columns += new
            self._write(rows)
        with self.path.open("a", newline="", encoding="utf-8") as file:
            row = {"update": update, "seconds": round(seconds, 3), **figures}
            csv.DictWriter(file, self._columns, lineterminator="\n").writerow(row)

    def _write(self, rows: list[dict[str, str]]) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, self._columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_whole({self.path: text.getvalue().encode()}, durable=True)


def _read(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Return the columns and the whole rows; a run that was killed may have left half a line."""
    table = csv_rows(read_text(path, empty=True))
    columns = list(dict.fromkeys(next(table, (0, KEYS))[1]))
    if not set(KEYS) <= set(columns):
        raise InstanceError("header", f"{', '.join(columns)} lacks one of {', '.join(KEYS)}", str(path))
    rows = [dict(zip(columns, row, strict=True)) for _, row in table if len(row) == len(columns)]
    return columns, [row for row in rows if _NUMBER.fullmatch(row["update"])]


class TrainingLog:
    """``updates.csv`` and ``validation.csv`` in a folder, and the same for TensorBoard if that package is there.

    Args:
        folder: where they lie.
        update, validated: the last update and the last validation to keep, negative for none.
    """

    def __init__(self, folder: Path, *, update: int, validated: int) -> None:
        keep = {"updates": update, "validation": validated}
        self._tables = {name: CsvTable(folder / f"{name}.csv", keep=last) for name, last in keep.items()}
        self._board: Any = None
        if find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=update + 1)

    def add(self, table: str, update: int, seconds: float, figures: Mapping[str, float]) -> None:
        """Log the figures of an update in ``updates``, or of a validation in ``validation``."""
        self._tables[table].add(update, seconds, figures)
        if self._board is not None:
            for name, value in figures.items():
                self._board.add_scalar(f"{table.removesuffix('s')}/{name}", value, update)

    def close(self) -> None:
        """Close the files of TensorBoard."""
        if self._board is not None:
            self._board.close()


_LOG = logging.getLogger("gangplan.learned")
UPDATES, PATIENCE, MINUTES, INTERRUPTED = "updates", "patience", "minutes", "interrupted"


@dataclass(frozen=True, slots=True)
class Position:
    """How far a run has come.

    Attributes:
        update: the last one made.
        validated: the update of the last validation, -1 before the first.
        seconds: of wall-clock time, those of interrupted runs included.
        best: the smallest score so far, None before the first that is a number.
        best_update: after how many updates it was found.
        stale: validations since then.
    """

    update: int = 0
    validated: int = -1
    seconds: float = 0.0
    best: float | None = None
    best_update: int = 0
    stale: int = 0

    def scored(self, score: float) -> Position:
        """Return the position after a validation with that score."""
        if math.isfinite(score) and (self.best is None or score < self.best):
            return replace(self, validated=self.update, best=score, best_update=self.update, stale=0)
        return replace(self, validated=self.update, stale=self.stale + 1)

    def stop(self, updates: int, minutes: float | None, patience: int | None) -> str | None:
        """Return why a run that has come so far is at its end, None if it is not."""
        if self.update >= updates:
            return UPDATES
        if patience is not None and self.stale >= patience:
            return PATIENCE
        return MINUTES if minutes is not None and self.seconds >= 60 * minutes else None


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What came of a run.

    Attributes:
        reason: why it ended: ``updates``, ``patience``, ``minutes`` or ``interrupted``.
        updates: how many were made.
        seconds: it took, those of interrupted runs included.
        best: the score of checkpoint ``best``, None if no validation gave a number.
        best_update: after how many updates that was.
        validation: the figures of that validation.
    """

    reason: str
    updates: int
    seconds: float
    best: float | None
    best_update: int
    validation: dict[str, float]


def train(
    learner: Learner,
    folder: str | Path,
    *,
    updates: int,
    minutes: float | None = None,
    validate_every: int,
    patience: int | None = None,
    checkpoint_every: float = 120.0,
    resume: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> TrainingReport:
    """Train until the updates are made, time is up, or validation has stopped improving; keep ``last`` and ``best``.

    It validates before the first update, so that ``best`` is never worse than the start. A resumed run goes on from
    ``last`` and gives the same figures as one that was never interrupted. Ctrl-C ends a run after the update under
    way; the second one at once, and then ``last`` is the checkpoint before.

    Args:
        learner: what is trained; it ends in the state of the last update.
        folder: gets ``last`` and ``best``, ``updates.csv`` and ``validation.csv``.
        updates: how many at most.
        minutes: of wall-clock time at most, those of interrupted runs included.
        validate_every: updates from one validation to the next.
        patience: validations without improvement after which it stops; None for any number.
        checkpoint_every: seconds from one checkpoint to the next.
        resume: go on with what is in the folder, if anything is.
        progress: is called with the share that is done, 0 to 1.

    Raises:
        InstanceError: if the folder holds a run that is not to be resumed, or a broken one.
    """
    folder = Path(folder)
    with locked(folder), _interruptible() as interrupted:
        run = _TrainingRun(learner, folder, _begin(learner, folder, resume))
        with closing(run.log):
            reason = None
            if run.at.validated < 0:
                run.validate()
            while reason is None:
                run.tick()
                spent = run.at.seconds / (60 * minutes) if minutes else 0.0
                progress(max(run.at.update / max(updates, 1), spent))
                reason = INTERRUPTED if interrupted.is_set() else run.at.stop(updates, minutes, patience)
                if reason is None:
                    run.update(validate_every, checkpoint_every)
            run.end(validate=reason != INTERRUPTED)
    _LOG.info("ended by %s after %d updates, %.0f s", reason, run.at.update, run.at.seconds)
    return report(folder, reason, run.at)


def report(folder: Path, reason: str, at: Position) -> TrainingReport:
    """Return the report of a run whose checkpoints are in `folder`."""
    best = read_plain(folder, "best")
    if best is None:
        return TrainingReport(reason, at.update, at.seconds, None, 0, {})
    then = best["loop"]
    return TrainingReport(reason, at.update, at.seconds, then["best"], then["best_update"], best["validation"])


def position(folder: Path) -> Position | None:
    """Return how far the run in `folder` has come by its last checkpoint, None if there is none."""
    plain = read_plain(folder, "last")
    return None if plain is None else Position(**plain["loop"])


def _begin(learner: Learner, folder: Path, resume: bool) -> Position:
    at = position(folder)
    if at is None:
        return Position()
    if not resume:
        raise InstanceError("folder", f"{folder} holds a run already; resume it, or choose another")
    tensors, plain = read_checkpoint(folder, "last")
    learner.load(tensors, plain["learner"])
    return at


class _TrainingRun:
    def __init__(self, learner: Learner, folder: Path, at: Position) -> None:
        self.learner, self.folder, self.at = learner, folder, at
        fresh = at.validated < 0
        self.log = TrainingLog(folder, update=-1 if fresh else at.update, validated=at.validated)
        self._clock, self._before, self._saved = time.monotonic(), at.seconds, at.seconds

    def update(self, validate_every: int, checkpoint_every: float) -> None:
        """Write a checkpoint if it is time, make an update, and validate if it is its turn."""
        if self.at.seconds >= self._saved + checkpoint_every:
            self.save("last")
        figures = self.learner.update(self.at.update + 1)
        self.at = replace(self.at, update=self.at.update + 1)
        self.tick()
        self.log.add("updates", self.at.update, self.at.seconds, figures)
        if self.at.update % validate_every == 0:
            self.validate()

    def end(self, *, validate: bool) -> None:
        """Write the last checkpoint, and validate for the sake of ``best``.

        ``last`` knows nothing of that validation, since a longer run would not validate here.
        """
        self.save("last")
        if validate and self.at.validated < self.at.update:
            self.validate(then_last=False)

    def tick(self) -> None:
        """Bring the clock up to date."""
        self.at = replace(self.at, seconds=self._before + time.monotonic() - self._clock)

    def save(self, name: str, **more: Mapping[str, float]) -> None:
        """Write a checkpoint."""
        tensors, plain = self.learner.state()
        write_checkpoint(self.folder, name, tensors, {"loop": asdict(self.at), "learner": plain, **more})
        self._saved = self.at.seconds

    def validate(self, then_last: bool = True) -> None:
        """Validate, and keep what is better than all before."""
        figures: dict[str, Any] = self.learner.validate()
        self.tick()
        self.at = self.at.scored(float(figures["score"]))
        better = self.at.stale == 0
        if better:
            self.save("best", validation=figures)  # before the row that says so, whenever it is killed
        self.log.add("validation", self.at.update, self.at.seconds, figures)
        words = "  ".join(f"{name} {value:.6g}" for name, value in figures.items())
        _LOG.info("%s %7d  %8.1f s  %s", "*" if better else " ", self.at.update, self.at.seconds, words)
        if better and then_last:
            self.save("last")


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Give an event that the first Ctrl-C sets; the second one interrupts as ever."""
    asked = threading.Event()

    def hear(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():  # only that one may say what a signal does
        yield asked
        return
    before = signal.signal(signal.SIGINT, hear)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True, slots=True)
class TrainingStage:
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


StageReports = dict[str, TrainingReport]
"""By the name of the stage."""


def _validated(folder: Path, at: Position) -> bool:
    """Return whether the last update of a run was validated: killed before, it has that left to do."""
    rows = _read(folder / "validation.csv")[1]
    return at.validated >= at.update or bool(rows and int(rows[-1]["update"]) >= at.update)


def train_stages(
    stages: Sequence[TrainingStage],
    folder: str | Path,
    *,
    minutes: float | None = None,
    resume: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> StageReports:
    """Train stage after stage, each in a folder of its own; a stage that is done is not done again on resume.

    Args:
        minutes: of wall-clock time at most for all of them; the stage under way is then the last.
        progress: is called with the share that is done; each stage is one part of it.

    Returns:
        The reports of the stages that were begun, by name; after Ctrl-C or at the end of the time, not of all.
    """
    folder, found, spent, before = Path(folder), StageReports(), 0.0, None
    for i, stage in enumerate(stages):
        limit = None if minutes is None else minutes - spent / 60
        at = position(folder / stage.name) if resume else None
        reason = None if at is None else at.stop(stage.updates, limit, stage.patience)
        if at is not None and reason is not None and _validated(folder / stage.name, at):
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
                progress=lambda share, i=i: progress((i + min(share, 1.0)) / len(stages)),  # type: ignore[misc]
            )
        found[stage.name] = done
        spent += done.seconds
        if done.reason == INTERRUPTED or (minutes is not None and spent >= 60 * minutes):
            break
        before = read_checkpoint(folder / stage.name)[0]
    return found
