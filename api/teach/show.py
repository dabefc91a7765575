"""Pictures of steps: a figure, a film, and a page to click through that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.outlet import write_whole
from gangplan.instances.quantities import STEPS
from gangplan.instances.schedule import ScheduleProblem

from ..plot import html, picture, svg
from ..plot.colours import FEW
from ..plot.progress import KEYS, progress_panel
from ..plot.scene import Axis, Boxes, Dots, Panel, Scene, check
from .step import Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 300
"""Steps of a film or a page."""


def scene(step: Step, last: Step | None = None) -> Scene:
    """Return the picture of a step: its plan, its prices, and objective and bound from step to step up to `last`."""
    last = last or step
    rows: list[list[Panel]] = []
    if step.plan is not None:
        rows = [[_plain(panel) for panel in row] for row in picture(step.problem, step.plan).rows]
        if isinstance(step.problem, ScheduleProblem):  # who waits is seen in the rows of the jobs
            rows = [row for row in rows if row[0].name != "queue"]
    if any(other.prices for other in last.steps()):
        timed = isinstance(step.problem, ScheduleProblem) and rows
        rows.append([_prices(step, last, rows[-1][0].x if timed else None)])
    rows.append([_trail(step, last)])
    known = (("objective", step.objective), ("bound", step.bound))
    numbers = ", ".join(f"{name} {value:.6g}" for name, value in known if value is not None)
    return Scene(f"{step.method}, step {step.number}" + f": {numbers}" * bool(numbers), step.text, rows)


def _plain(panel: Panel) -> Panel:
    """Return the panel without what only pointers are told, which a page of many pictures would have many times."""
    marks = [mark for mark in panel.marks if not (isinstance(mark, Dots) and not mark.shape)]
    return replace(panel, marks=marks, keys=[replace(k, label=_LABELS.get(k.label, k.label)) for k in panel.keys])


_LABELS = {"left out": "left out, or not placed yet"}


def _trail(step: Step, last: Step) -> Panel:
    known = [x for s in last.steps() for x in (s.objective, s.bound) if x is not None] or [0.0, 1.0]
    low, high, wide = min(known), max(known), max(1, last.number)
    pad = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    ticks = [(float(i), str(i)) for i in range(0, last.number + 1, -(-wide // 20))]
    x, y = Axis(-0.01 * wide, 1.01 * wide, "step", ticks), Axis(low - pad, high + pad, "value", grid=True)
    values = ((key.label, [(s.number, getattr(s, key.label)) for s in step.steps()]) for key in KEYS)
    curves = {name: [(number, value) for number, value in points if value is not None] for name, points in values}
    return progress_panel("trail", curves, step.number, x, y)


def _prices(step: Step, last: Step, time: Axis | None) -> Panel:
    """Return the panel of prices, over the axis of time where they are of times."""
    every = [s.prices for s in last.steps() if s.prices]
    high = max(max(prices.values()) for prices in every) or 1.0
    names = list(step.prices or every[-1])
    values = [step.prices.get(name, 0.0) for name in names]
    if time is not None:
        at = [float(name) / _seconds(time) for name in names]
        width = at[1] - at[0] if len(at) > 1 else 1.0
        axis = time
    else:
        at, width = [float(i) for i in range(len(names))], 1.0
        skip = -(-len(names) // 24)
        ticks = [(i + 0.5, name) for i, name in enumerate(names) if i % skip == 0]
        axis = Axis(0, max(1, len(names)), "what each pays", ticks)
        high = max(step.prices.values(), default=0.0) or high  # the first ones are out of all proportion
    label = "price" if time is None else "price of 1 GPU-s"
    boxes = np.array([(x + 0.04 * width, 0.0, 0.92 * width, value) for x, value in zip(at, values, strict=True)])
    texts = [f"{name}: {value:.6g}" for name, value in zip(names, values, strict=True)]
    up = Axis(1.05 * min(0.0, *values), 1.05 * high, label, grid=True)  # those of equations may be negative
    return Panel("prices", axis, up, [Boxes(boxes, FEW[2], texts)], height=1.2)


def _seconds(axis: Axis) -> float:
    """Return the seconds of the unit of an axis of time."""
    return next((factor for _, factor, name in STEPS["s"] if axis.label.endswith(f", {name}")), 1.0)


def draw(step: Step) -> Figure:
    """Return the picture of a step as a figure of matplotlib.

    Raises:
        InstanceError: if matplotlib is missing.
    """
    check("step.png")
    from ..plot.image import figure_of

    return figure_of(scene(step))


def _scenes(steps: Iterable[Step]) -> tuple[list[Step], list[Scene]]:
    every = list(steps)
    if not every:
        raise InstanceError("steps", "there is none")
    if len(every) > _MOST:
        raise InstanceError("steps", f"{len(every)} are more than {_MOST}")
    scenes = [scene(step, every[-1]) for step in every]
    if not isinstance(every[0].problem, ScheduleProblem):
        return every, scenes
    # the axis of time stays as it is from step to step
    last = max((p.x.high * _seconds(p.x) for one in scenes for p in one.panels if p.x.link), default=1.0)

    def still(panel: Panel) -> Panel:
        return replace(panel, x=replace(panel.x, high=last / _seconds(panel.x))) if panel.x.link else panel

    return every, [Scene(s.title, s.subtitle, [[still(p) for p in row] for row in s.rows]) for s in scenes]


def gif(steps: Iterable[Step], path: str | PathLike[str], *, seconds: float = 1.2) -> None:
    """Write the steps as a film that repeats.

    Args:
        steps: of one method, up to 300.
        path: a file that ends in ``.gif``.
        seconds: of each picture; the last stays three times as long.

    Raises:
        InstanceError: if there are no or too many steps, `path` has another ending, a package is missing, or the file
            cannot be written.
    """
    name = fspath(path)
    if Path(name).suffix.lower() != ".gif":
        raise InstanceError("path", f"{name!r} does not end in .gif")
    check("step.png")
    from PIL import Image

    _, scenes = _scenes(steps)
    frames = [Image.open(BytesIO(one.render("step.png"))).convert("RGB") for one in scenes]
    size = max(f.width for f in frames), max(f.height for f in frames)
    sheets = []
    for frame in frames:
        sheet = Image.new("RGB", size, "white")
        sheet.paste(frame)
        sheets.append(sheet.quantize(128, Image.Quantize.FASTOCTREE))
    content = BytesIO()
    times = [round(1000 * seconds)] * (len(sheets) - 1) + [round(3000 * seconds)]
    sheets[0].save(content, "GIF", save_all=True, append_images=sheets[1:], duration=times, loop=0)
    write_whole({name: content.getvalue()})


def page(steps: Iterable[Step], path: str | PathLike[str]) -> None:
    """Write the steps as one page with buttons, a slider and keys (left, right, home, end), light or dark.

    The page has all that it needs: nothing is loaded from anywhere.

    Args:
        steps: of one method, up to 300.
        path: a file that ends in ``.html``.

    Raises:
        InstanceError: if there are no or too many steps, `path` has another ending, or the file cannot be written.
    """
    name = fspath(path)
    if Path(name).suffix.lower() != ".html":
        raise InstanceError("path", f"{name!r} does not end in .html")
    every, scenes = _scenes(steps)
    pictures = [(repr(step), svg.draw(one)) for step, one in zip(every, scenes, strict=True)]
    write_whole({name: html.page(f"{every[0].method}, step by step", pictures)})
