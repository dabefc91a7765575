"""Gantt charts of schedules: what they show is what the plan says."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan import plot
from gangplan.instances.schedule import MoldableJob, NodePool, Pool, SchedulePlan, ScheduleProblem
from gangplan.plot.partition import Drawn
from gangplan.plot.scene import Boxes, Dots, Lines, Panel, Scene, Words
from gangplan.plot.schedule import MOST_JOBS, schedule_scene

from .parts import parts

JOBS = (
    MoldableJob("a", (1, 2), (100.0, 60.0), deadline=300.0),
    MoldableJob("b", (4,), (50.0,), release=20.0, deadline=115.0),
    MoldableJob("c", (2,), (30.0,), release=10.0, value=5.0),
)
PROBLEM = ScheduleProblem(JOBS, Pool(4), "weighted_completion")
PLAN = SchedulePlan(("a", "b", "c"), [1, 0, -1], [0.0, 60.0, 0.0])


def panels(picture: Scene) -> dict[str, Panel]:
    """Return the panels by name."""
    return {panel.name: panel for panel in picture.panels}


def boxes(panel: Panel) -> list[Boxes]:
    """Return the jobs that run."""
    return parts(panel.marks, Boxes)


def test_rows() -> None:
    """Few jobs have a row each: from the release a line, a box with the GPUs, the deadline; and what is left out."""
    jobs = panels(schedule_scene([Drawn(PROBLEM, PLAN)]))["jobs"]
    assert [name for _, name in jobs.y.ticks or ()] == ["a", "b", "c"]
    assert jobs.x.label == "time, s"
    assert {mark.name: mark.at[:, [0, 2]].tolist() for mark in boxes(jobs)} == {
        "2 GPUs": [[0.0, 60.0]],
        "3-4 GPUs": [[60.0, 50.0]],
    }
    (words,) = (mark for mark in jobs.marks if isinstance(mark, Words))
    assert list(words.texts) == ["2 GPUs", "4 GPUs"]
    waits = next(list(mark.paths) for mark in jobs.marks if isinstance(mark, Lines))
    assert waits == [[(0.0, 0.5), (0.0, 0.5)], [(20.0, 1.5), (60.0, 1.5)], [(10.0, 2.5), (10.0, 2.5)]]
    dots = {mark.name: mark for mark in jobs.marks if isinstance(mark, Dots)}
    assert dots["deadline"].at.tolist() == [[115.0, 1.5]]
    assert "deadline, 1 later ones are not shown" in {key.label for key in jobs.keys}
    assert list(dots["left out"].texts) == ["c<br>left out"]
    texts = [text for mark in boxes(jobs) for text in mark.texts]
    assert "a<br>2 GPUs, one of 1, 2<br>0 s to 60 s: 60 s" in texts[0]
    assert "released at 20 s, waited 40 s<br>deadline 115 s: 5 s to spare" in texts[1]


def test_title() -> None:
    """The title says what, the subtitle how good and how full, with its gap."""
    picture = plot.picture(PROBLEM, PLAN, name="batch", status="FEASIBLE", bound=87.5)
    assert picture.title == "batch: 3 jobs on 4 GPUs"
    assert picture.subtitle == (
        "FEASIBLE · 175 s of weighted completion in sum · gap 50% · 1 left out · utilisation 72.7% to 110 s"
    )


def test_load_and_queue() -> None:
    """The areas are the GPUs in use and the jobs that wait, over time."""
    found = panels(schedule_scene([Drawn(PROBLEM, PLAN)]))

    def at(panel: Panel, time: float) -> float:
        areas = np.concatenate([mark.at for mark in boxes(panel)])
        over = areas[(areas[:, 0] <= time) & (time < areas[:, 0] + areas[:, 2])]
        return float((over[:, 1] + over[:, 3]).max(initial=0.0))

    assert [at(found["load"], t) for t in (30.0, 85.0, 113.0)] == pytest.approx([2.0, 4.0, 0.0])
    assert [at(found["queue"], t) for t in (15.0, 40.0, 80.0)] == pytest.approx([0, 1, 0])
    assert {mark.name for mark in boxes(found["load"])} == {"2 GPUs", "3-4 GPUs"}


def test_bound_of_a_makespan() -> None:
    """Where the goal is the last completion, the bound is a line over the rows."""
    problem = ScheduleProblem(JOBS[:2], NodePool(2, 2), "makespan")
    plan = SchedulePlan(("a", "b"), [1, 0], [0.0, 60.0], [0, 1, 1], [0, 0, 1], [2, 2, 2])
    jobs = panels(schedule_scene([Drawn(problem, plan, bound=90.0)]))["jobs"]
    (bound,) = (mark for mark in jobs.marks if isinstance(mark, Lines) and mark.dash)
    assert [x for x, _ in next(iter(bound.paths))] == pytest.approx([90.0, 90.0])
    assert any(text.endswith("on nodes 0, 1") for mark in boxes(jobs) for text in mark.texts)


@pytest.mark.parametrize(("gpus", "kinds"), [(8, ["jobs", "load", "queue"]), (512, ["load", "queue"])])
def test_many(gpus: int, kinds: list[str]) -> None:
    """Of many jobs lanes show who holds which GPUs, of a large cluster only how many are in use."""
    n = MOST_JOBS + 1
    jobs = tuple(MoldableJob(f"j{i}", (1,), (10.0,), release=2.0 * i) for i in range(n))
    plan = SchedulePlan(tuple(j.name for j in jobs), [0] * n, [2.0 * i for i in range(n)])
    picture = schedule_scene([Drawn(ScheduleProblem(jobs, Pool(gpus), "mean_jct"), plan)])
    assert [panel.name for panel in picture.panels] == kinds
    if gpus == 8:
        assert sum(len(mark.at) for mark in boxes(picture.panels[0])) == n


def test_several_and_infeasible() -> None:
    """Plans below one another share the axis; one that breaks a constraint is not drawn."""
    late = SchedulePlan(("a", "b", "c"), [1, 0, -1], [2.0, 63.0, 0.0])
    picture = schedule_scene([Drawn(PROBLEM, PLAN, "one"), Drawn(PROBLEM, late, "two")])
    assert [panel.name for panel in picture.panels] == ["jobs", "load", "queue"] * 2
    assert len({panel.x.high for panel in picture.panels}) == 1
    assert [panel.heading.split(" · ")[0] for panel in picture.panels if panel.heading] == ["one", "two"]
    with pytest.raises(ValueError, match="cannot be drawn"):
        schedule_scene([Drawn(PROBLEM, SchedulePlan(("a", "b", "c"), [1, 0, 0], [0.0, 0.0, 10.0]))])
