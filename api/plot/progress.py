"""Objective and bound over the time or the steps of a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gangplan.instances.quantities import quantity, scale

from .colours import FEW, PALE
from .scene import LEFT, Axis, Dots, FloatArray, Key, Lines, Mark, Panel, Scene
from .simulation import area, steps

KEYS = Key("objective", (FEW[0],), "line"), Key("bound", (FEW[5],), "dash")
Curves = Mapping[str, Sequence[tuple[float, float]]]
"""Of objective and bound, when they came and what they were."""


def progress_panel(name: str, curves: Curves, now: float, x: Axis, y: Axis) -> Panel:
    """Return the panel of objective and bound up to `now`, what is between them shaded."""
    known = {key: np.array([*curves[key.label], (now, curves[key.label][-1][1])]) for key in KEYS if curves[key.label]}
    marks: list[Mark] = []
    first = max((points[0, 0] for points in known.values()), default=now)
    if len(known) == len(KEYS) and first < now:
        at = np.unique([first, now, *(t for points in known.values() for t in points[:, 0] if t > first)])
        high, low = (_values(points, at[:-1]) for points in known.values())
        told = [f"objective {a:.6g}, bound {b:.6g}" for a, b in zip(high, low, strict=True)]
        marks = [area(at, np.minimum(low, high), np.maximum(low, high), PALE, told)]
    for key, points in known.items():
        marks.append(Lines([steps(*points.T)], key.colours[0], 1.6, key.look == "dash", name=key.label))
        marks.append(Dots(points[-1:], key.colours[0], 6.0, name=key.label))
    return Panel(name, x, y, marks, KEYS, height=1.5)


def _values(points: FloatArray, at: FloatArray) -> FloatArray:
    """Return the last value at each time."""
    return np.asarray(points[np.searchsorted(points[:, 0], at, side="right") - 1, 1])


def progress_scene(rows: Sequence[Mapping[str, Any]], now: float, until: float, width: float, unit: str) -> Scene:
    """Return the picture of a solve from 0 to `until`, or to `now` if that is later.

    It shows what is around the gap: the first plans and bounds may be far off.

    Args:
        rows: seconds, objective and bound, null where there is none.
        now, until: seconds.
        width: of the picture, inches.
        unit: of objective and bound.
    """
    curves = {key.label: [(x["seconds"], x[key.label]) for x in rows if x.get(key.label) is not None] for key in KEYS}
    values = [value for points in curves.values() for _, value in points]
    best, bound = (points[-1][1] if points else values[-1] for points in curves.values())
    room = max(1.5 * abs(best - bound), 0.1 * abs(best)) or 1.0
    near = [value for value in values if bound - room < value < best + room]
    factor, name = scale(max(map(abs, near)), unit)
    edge = (0.15 * (max(near) - min(near)) or 0.05 * abs(best) or 1.0) / factor
    up = Axis(min(near) / factor - edge, max(near) / factor + edge, name, grid=True)
    shown = {key: [(t, value / factor) for t, value in points] for key, points in curves.items()}
    panel = progress_panel("progress", shown, now, Axis(0, max(now, until) or 1.0, "seconds", grid=True), up)
    panel = replace(panel, width=width - LEFT - 0.3)
    return Scene("Best plan and bound", f"after {quantity(now, 's', 3)}", [[panel]], width)
