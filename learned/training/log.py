"""The figures of a run as they come: CSV files that a resumed run cuts back, TensorBoard where it is installed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.intake import csv_rows, read_text
from gangplan.instances.outlet import write_whole

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
