"""The loop that trains any learner: logs, checkpoints, resuming to the same curve, stopping early."""

from __future__ import annotations

import csv
import io
import logging
import math
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.intake import csv_rows, read_text
from gangplan.instances.outlet import write_whole

from .checkpoint import read_checkpoint, read_plain, write_checkpoint
from .learner import Learner
from .lock import locked

KEYS = ("update", "seconds")
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)


class Table:
    """A CSV file with a row an update; figures that turn up later get columns of their own.

    Args:
        path: of the file.
        keep: rows of later updates are dropped, as are all rows if it is negative.
    """

    def __init__(self, path: Path, *, keep: int) -> None:
        self.path = path
        self._columns = list(KEYS)
        rows: list[dict[str, str]] = []
        if keep >= 0 and path.exists():
            self._columns, rows = _read(path)
        self._open([x for x in rows if int(x["update"]) <= keep])

    def add(self, update: int, seconds: float, figures: Mapping[str, float]) -> None:
        """Append a row, and have it on disk."""
        new = [name for name in figures if name not in self._columns]
        if new:
            self._widen(new)
        self._writer.writerow({"update": update, "seconds": round(seconds, 3), **figures})
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _widen(self, new: list[str]) -> None:
        self.close()
        rows = _read(self.path)[1]
        self._columns += new
        self._open(rows)

    def _open(self, rows: list[dict[str, str]]) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, self._columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_whole({self.path: text.getvalue().encode()}, durable=True)
        self._file = self.path.open("a", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, self._columns, lineterminator="\n")


def _read(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Return the columns and the whole rows; a run that was killed may have left half a line."""
    table = csv_rows(read_text(path, empty=True))
    columns = list(dict.fromkeys(next(table, (0, KEYS))[1]))
    if not set(KEYS) <= set(columns):
        raise InstanceError("header", f"{', '.join(columns)} lacks one of {', '.join(KEYS)}", str(path))
    rows = [dict(zip(columns, row, strict=True)) for _, row in table if len(row) == len(columns)]
    return columns, [row for row in rows if _NUMBER.fullmatch(row["update"])]


class Log:
    """``updates.csv`` and ``validation.csv`` in a folder, and the same for TensorBoard if that package is there.

    Args:
        folder: where they lie.
        update, validated: the last update and the last validation to keep, negative for none.
    """

    def __init__(self, folder: Path, *, update: int, validated: int) -> None:
        self._updates = Table(folder / "updates.csv", keep=update)
        self._validation = Table(folder / "validation.csv", keep=validated)
        self._board: Any = None
        if find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=update + 1)

    def updated(self, update: int, seconds: float, figures: Mapping[str, float]) -> None:
        """Log the figures of an update."""
        self._updates.add(update, seconds, figures)
        self._show("update", update, figures)

    def validated(self, update: int, seconds: float, figures: Mapping[str, float]) -> None:
        """Log the figures of a validation."""
        self._validation.add(update, seconds, figures)
        self._show("validation", update, figures)

    def close(self) -> None:
        """Close the files."""
        self._updates.close()
        self._validation.close()
        if self._board is not None:
            self._board.close()

    def _show(self, group: str, update: int, figures: Mapping[str, float]) -> None:
        if self._board is not None:
            for name, value in figures.items():
                self._board.add_scalar(f"{group}/{name}", value, update)


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
class Report:
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
) -> Report:
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
    with locked(folder):
        run = _Run(learner, folder, _begin(learner, folder, resume))
        try:
            with _Interrupt() as interrupt:
                reason = run.go(interrupt, updates, minutes, validate_every, patience, checkpoint_every, progress)
        finally:
            run.log.close()
    _LOG.info("ended by %s after %d updates, %.0f s", reason, run.at.update, run.at.seconds)
    return report(folder, reason, run.at)


def report(folder: Path, reason: str, at: Position) -> Report:
    """Return the report of a run whose checkpoints are in `folder`."""
    best = read_plain(folder, "best")
    if best is None:
        return Report(reason, at.update, at.seconds, None, 0, {})
    then = best["loop"]
    return Report(reason, at.update, at.seconds, then["best"], then["best_update"], best["validation"])


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


class _Run:
    def __init__(self, learner: Learner, folder: Path, at: Position) -> None:
        self.learner, self.folder, self.at = learner, folder, at
        fresh = at.validated < 0
        self.log = Log(folder, update=-1 if fresh else at.update, validated=at.validated)
        self._clock, self._before, self._saved = time.monotonic(), at.seconds, at.seconds

    def go(
        self,
        interrupt: _Interrupt,
        updates: int,
        minutes: float | None,
        validate_every: int,
        patience: int | None,
        checkpoint_every: float,
        progress: Callable[[float], None],
    ) -> str:
        """Train and return why it ended."""
        if self.at.validated < 0:
            self.validate()
        while True:
            self.tick()
            progress(max(self.at.update / max(updates, 1), self.at.seconds / (60 * minutes) if minutes else 0.0))
            reason = INTERRUPTED if interrupt.asked else self.at.stop(updates, minutes, patience)
            if reason is not None:
                break
            if self.at.seconds >= self._saved + checkpoint_every:
                self.save("last")
            figures = self.learner.update(self.at.update + 1)
            self.at = replace(self.at, update=self.at.update + 1)
            self.tick()
            self.log.updated(self.at.update, self.at.seconds, figures)
            if self.at.update % validate_every == 0:
                self.validate()
        self.save("last")
        if reason != INTERRUPTED and self.at.validated < self.at.update:
            # for the sake of ``best``; ``last`` knows nothing of it, since a longer run would not validate here
            self.validate(then_last=False)
        return reason

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
        self.log.validated(self.at.update, self.at.seconds, figures)
        words = "  ".join(f"{name} {value:.6g}" for name, value in figures.items())
        _LOG.info("%s %7d  %8.1f s  %s", "*" if better else " ", self.at.update, self.at.seconds, words)
        if better:
            self.save("best", validation=figures)
            if then_last:
                self.save("last")


class _Interrupt:
    """A context in which the first Ctrl-C only sets `asked`, and the second one interrupts as ever."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> _Interrupt:
        # only the main thread may say what a signal does; elsewhere none arrives
        self._ours = threading.current_thread() is threading.main_thread()
        if self._ours:
            self._before: Any = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, *error: object) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, self._before)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
