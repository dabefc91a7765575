"""Pictures of steps: figures, films, pages that need nothing else."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gangplan import teach
from gangplan.instances import InstanceError
from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.teach.show import scene

JOBS = ScheduleProblem(
    (
        MoldableJob("a", (1, 2), (8.0, 5.0), weight=2.0),
        MoldableJob("b", (2,), (3.0,), weight=3.0),
        MoldableJob("c", (1,), (6.0,), release=1.0),
    ),
    Pool(2),
)


class Reader(HTMLParser):
    """Collects the figures of a page, and whatever would be loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.figures: list[dict[str, str | None]] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the tag."""
        given = dict(attrs)
        if tag == "figure":
            self.figures.append(given)
        loads = [v for k, v in attrs if k in ("src", "href", "srcset", "data", "xlink:href") and v]
        self.outside += [v for v in loads if not v.startswith("#")] + [tag] * (tag in ("link", "iframe", "object"))


def test_a_page_has_every_step_and_nothing_from_outside(tmp_path: Path) -> None:
    """The page has a figure a step, the first one shown, their words escaped, and loads nothing."""
    lesson = teach.graham(2)
    steps = list(teach.list_scheduling(lesson.problem))
    teach.page(iter(steps), tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text()
    reader = Reader()
    reader.feed(text)
    assert [figure["data-told"] for figure in reader.figures] == [repr(step) for step in steps]
    assert ["hidden" in figure for figure in reader.figures] == [False] + [True] * (len(steps) - 1)
    assert reader.outside == [] and "@import" not in text and not re.search(r"url\((?!#)", text)
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, not a place
    for key in ("ArrowLeft", "ArrowRight", "Home", "End"):
        assert key in text
    assert "prefers-color-scheme: dark" in text
    assert text.count("filter:") == text.count("figure > svg { filter:") == 1  # a picture inside one is not turned back


def test_names_cannot_break_out(tmp_path: Path) -> None:
    """A job that is called like a script is written as words."""
    from dataclasses import replace

    problem = teach.two_jobs().problem
    evil = '</figure><script>alert("x")</script>'
    problem = replace(problem, jobs=(replace(problem.jobs[0], name=evil), problem.jobs[1]))
    teach.page(teach.list_scheduling(problem), tmp_path / "x.html")
    assert "<script>alert" not in (tmp_path / "x.html").read_text()


def test_a_film_has_a_frame_a_step(tmp_path: Path) -> None:
    """The film repeats, has as many frames as there are steps, and stays longest at the last."""
    image = pytest.importorskip("PIL.Image")
    steps = list(teach.list_scheduling(teach.graham(2).problem))[-2:]
    teach.gif(steps, tmp_path / "x.gif", seconds=0.5)
    film = image.open(tmp_path / "x.gif")
    times = []
    for i in range(film.n_frames):
        film.seek(i)
        times.append(film.info["duration"])
    assert times == [500] * (len(steps) - 1) + [1500] and film.info["loop"] == 0


@pytest.mark.parametrize(
    ("steps", "panels"),
    [
        (lambda: teach.list_scheduling(teach.graham(2).problem), ["jobs", "load", "trail"]),
        (lambda: teach.list_scheduling(teach.fork().problem), ["gantt", "gantt", "trail"]),
        (lambda: teach.dual_ascent(JOBS), ["jobs", "load", "prices", "trail"]),
        (lambda: teach.ruin_and_recreate(teach.greedy_trap().problem, 3), ["cluster", "jobs", "trail"]),
        (lambda: teach.column_generation(teach.greedy_trap().problem), ["cluster", "jobs", "prices", "trail"]),
    ],
)
def test_each_method_has_its_panels(steps: Any, panels: list[str]) -> None:
    """The picture of the last step has the library's picture of the plan, prices where there are some, and values."""
    *_, last = steps()
    assert sorted({panel.name for panel in scene(last).panels}) == sorted(set(panels))


def test_a_step_draws_itself() -> None:
    """A notebook shows a step as a PNG, and `draw` gives the picture with what was done in it as a figure."""
    steps = list(teach.list_scheduling(teach.two_jobs().problem))
    assert steps[1]._repr_png_().startswith(b"\x89PNG")
    figure, drawn = teach.draw(steps[1]), scene(steps[1])
    assert figure.images[0].get_size()[1] == 1430 and drawn.subtitle == steps[1].text
    assert steps[-1].steps() == steps


@pytest.mark.parametrize(
    ("write", "name", "count", "words"),
    [
        (teach.page, "x.htm", 1, "path: .*x.htm' does not end in .html"),
        (teach.gif, "x.png", 1, "path: .*x.png' does not end in .gif"),
        (teach.page, "x.html", 0, "steps: there is none"),
        (teach.page, "x.html", 301, "steps: 301 are more than 300"),
        (teach.page, "missing/x.html", 1, "x.html: file: "),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, write: Any, name: str, count: int, words: str) -> None:
    """Another ending, no step, too many of them and a folder that is not there are refused by name."""
    first = next(teach.list_scheduling(teach.two_jobs().problem))
    with pytest.raises(InstanceError, match=words):
        write([first] * count, tmp_path / name)
