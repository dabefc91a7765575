"""Pictures of pipelines: what they show is what the plan says."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan import verify
from gangplan.instances.generators import generate
from gangplan.plot.partition import Drawn
from gangplan.plot.pipeline import frontier_scene, pipeline_scene
from gangplan.plot.scene import Boxes, Dots, Lines, Panel, Words
from gangplan.solvers.pipeline.published import plan_of


def of(panel: Panel, kind: type[Any]) -> list[Any]:
    """Return the marks of a kind."""
    return [mark for mark in panel.marks if isinstance(mark, kind)]


PROBLEM = generate("micro_batches", devices=2, micro_batches=3, memory=2, chunks=1)
PLAN = plan_of(PROBLEM, "ZB-H1")


def test_passes() -> None:
    """A box a pass stands where the verifier says, with its micro-batch; beside it what devices are idle and hold."""
    panel, side = pipeline_scene([Drawn(PROBLEM, PLAN, bound=10.0)]).panels
    _, boxes = of(panel, Boxes)
    verdict = verify(PROBLEM, PLAN)
    assert np.array_equal(boxes.at[:, 0], verdict.start) and np.array_equal(boxes.at[:, 2], np.ones(18))
    assert np.array_equal(np.floor(boxes.at[:, 1]), PROBLEM.passes().device)
    assert boxes.texts[4] == "F of micro-batch 1 in stage 1<br>3 s to 4 s"
    (line,) = of(panel, Lines)
    assert [list(map(list, path)) for path in line.paths] == [[[10.0, 0], [10.0, 2]]] and line.dash
    told = [text for mark in of(side, Words) for text in mark.texts]
    assert told == ["idle", "batches", "1 s", "2", "1 s", "2"]


def test_several_plans() -> None:
    """Plans beside each other have one axis, and their names."""
    other = plan_of(PROBLEM, "1F1B")
    scene = pipeline_scene([Drawn(PROBLEM, PLAN, "a"), Drawn(PROBLEM, other, "b")])
    passes = [x for x in scene.panels if not x.bare]
    assert [x.heading[:1] for x in passes] == ["a", "b"] and passes[0].x.high == passes[1].x.high


def test_frontier() -> None:
    """A dot of memory and bubble a point, filled if it is proved, and published schedules by name."""
    names = ("capacity", "seconds", "bound", "bubble", "least_bubble", "by", "proved", "standing", "unit")
    rows = [
        dict(zip(names, x, strict=True))
        for x in (
            (1.0, 20.0, 18.0, 0.4, 0.3, "beam", False, "FEASIBLE", "B"),
            (2.0, 13.0, 13.0, 0.1, 0.1, "beam", True, "OPTIMAL (certified)", "B"),
        )
    ]
    (panel,) = frontier_scene(rows, "title", [{"name": "1F1B", "memory": 2.0, "bubble": 0.2}]).panels
    dots = of(panel, Dots)
    assert [x.at.tolist() for x in dots] == [[[1.0, 40.0]], [[2.0, 10.0]], [[2.0, 20.0]]]
    assert dots[0].colour == "#ffffff" != dots[1].colour
    assert [text for mark in of(panel, Words) for text in mark.texts] == ["1F1B"]
