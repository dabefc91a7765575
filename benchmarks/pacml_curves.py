"""Learning curves of the PAC-ML policies, kept in benchmarks/pacml_curves.csv so that pictures can be drawn again."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from .ledger import ROOT

CURVES = ROOT / "benchmarks" / "pacml_curves.csv"
STAGES = ("imitation", "rl")
POINTS = 60
"""Of a curve over updates: each is the mean of as many updates as it takes."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a curve.

    Attributes:
        run: whose: the units of a shipped policy, or units and name of an ablation.
        stage: of the training.
        update, seconds: when; of wall-clock time in the loop of the stage, labels not included.
        name: ``score`` and rates by setting, on the validation seeds; ``accepted`` and ``loss`` in training.
        value: of it.
    """

    run: str
    stage: str
    update: int
    seconds: float
    name: str
    value: float


COLUMNS = tuple(f.name for f in fields(Point))


def collect(run: str, folder: Path) -> list[Point]:
    """Return the curves of a training's folder, empty if it holds none."""
    found: list[Point] = []
    for stage in STAGES:
        rows = _table(folder / stage / "validation.csv")
        for row in rows:
            at = int(row["update"]), float(row["seconds"])
            values = ((name, row[name]) for name in row if name not in ("update", "seconds") and row[name])
            found += [Point(run, stage, *at, name, round(float(value), 6)) for name, value in values]
        column, name = ("loss", "loss") if stage == "imitation" else ("reward", "accepted")
        for at, spent, value in _thin(_table(folder / stage / "updates.csv"), column):
            found.append(Point(run, stage, at, spent, name, value))
    return found


def read(path: Path = CURVES) -> list[Point]:
    """Return the points of a file, none if there is no file."""
    return [
        Point(x["run"], x["stage"], int(x["update"]), float(x["seconds"]), x["name"], float(x["value"]))
        for x in _table(path)
    ]


def replace_run(run: str, new: Sequence[Point], path: Path = CURVES) -> None:
    """Write the points of a run in place of those there were."""
    points = [x for x in read(path) if x.run != run] + list(new)
    part = path.with_name(path.name + ".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        lines.writerows(astuple(x) for x in points)
    os.replace(part, path)


def seconds(points: Sequence[Point], run: str) -> dict[str, float]:
    """Return the seconds of each stage of a run."""
    found: dict[str, float] = {}
    for x in points:
        if x.run == run:
            found[x.stage] = max(found.get(x.stage, 0.0), x.seconds)
    return found


def _thin(rows: Sequence[dict[str, str]], name: str) -> Iterator[tuple[int, float, float]]:
    """Yield update, seconds and mean value of some updates at a time."""
    whole = [row for row in rows if row.get(name)]
    for part in np.array_split(np.arange(len(whole)), min(POINTS, max(len(whole), 1))):
        if len(part):
            last, values = whole[part[-1]], [float(whole[i][name]) for i in part]
            yield int(last["update"]), float(last["seconds"]), round(float(np.mean(values)), 6)


def _table(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
