"""Scenes and their ends: every picture as PNG, SVG and HTML, single panels, and the first mistakes."""

from __future__ import annotations

import struct
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import gangplan
from gangplan.instances import InstanceError, with_objective
from gangplan.instances.generators import generate
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import Fleet
from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.instances.workload import Workload
from gangplan.plot import PANELS, check_panel, render, scene
from gangplan.plot.colours import colours, paler
from gangplan.plot.scene import Axis, Boxes, Dots, Heat, Key, Lines, Panel, Scene, Words, fit
from gangplan.simulator.trace import Outcome, simulate

GRAPH = generate("gpt", layers=1, devices=2)
PROBLEMS: dict[str, Any] = {
    "throughput": GRAPH,
    "latency": with_objective(generate("layered", training=False, ops=12, layers=4, devices=2), "latency"),
    "step": with_objective(GRAPH, "step"),
    "stages": with_objective(GRAPH, "stages"),
    "placement": gangs(jobs=4, racks=2, nodes=2, gpus=4, load=0.7, down=0.1, seed=1),
    "layout": gangplan.LayoutProblem(
        gangplan.Transformer("<b>small", 6, 512, 8, 8, 64, 1000, 2048), (gangplan.gpu_pool("H100", 1, 4),), 4, 512
    ),
    "pipeline": generate("micro_batches", devices=2, micro_batches=3, chunks=2),
    "schedule": ScheduleProblem(tuple(MoldableJob(x, (1, 2), (9.0, 5.0)) for x in "abc"), Pool(2), "mean_jct"),
}
SOLVED: dict[str, Scene] = {}


def picture(name: str) -> Scene:
    """Return the picture of a problem, of a fleet, or of a simulation."""
    if name not in SOLVED:
        if name == "fleet":
            fleet = Fleet.regular(1, 2, 2)
            SOLVED[name] = gangplan.plot(fleet, {"<b>x": {fleet.names[0]: (0, 1)}})
        elif name == "simulation":
            work = Workload(("a", "b"), np.zeros(2), [2, 2], np.array([3.0, 4.0]))
            SOLVED[name] = gangplan.plot(simulate(work, 1, 2, consolidate=True), name="<b>x")
        else:
            problem = PROBLEMS[name]
            result = gangplan.solve(problem, time_limit=20 if name == "layout" else 0.3, workers=1)
            SOLVED[name] = gangplan.plot(problem, result, name="<b>x")
    return SOLVED[name]


def primitives() -> Scene:
    """Return a scene with every primitive and look."""
    at = np.array([[0.2, 0.3], [0.6, 0.7]])
    marks = [
        Boxes(np.array([[0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 1e-9, 0.5]]), "#0072b2", ["one<br><i>", "two"], "boxes"),
        Boxes(np.array([[0.5, 0.0, 0.2, 0.2]]), ["#ffffff"], edge="#222222", hatch=True),
        Lines([[(0, 0), (1, 1)], [(0, 1), (1, 0)]], ["#222222", "#009e73"], [1.0, 2.0], dash=True, name="lines"),
        Lines([[(0, 0), (1, 0), (1, 1)]], "#e69f00", opacity=0.5),
        *(Dots(at, "#cc79a7", [4.0, 8.0], shape, texts=["p", "q"]) for shape in ("o", "D", "|", "x", "")),
        Words(at, ["<b>$x$", "b"], [8.0, 9.0], ["#222222", "#555555"], "left", halo=["#ffffff", "#ffffff"]),
        Words.of([(1.1, 0.5, "beside", 9.0, "#222222")], "left", outside=True),
        Heat(np.array([[0.0, 1.0], [np.nan, 0.5]]), (0, 0, 1, 1), ("#ffffff", "#000000"), "#ff0000", ("r", "s")),
    ]
    keys = [Key("boxes", ("#0072b2", "#009e73")), Key("words alone", look=""), *(Key(x, look=x) for x in "Dx|")]
    keys += [Key("hatch", ("#ffffff", "#222222"), "hatch"), Key("lines", look="line"), Key("dashed", look="dash")]
    panel = Panel("all", Axis(0, 1, "x, s"), Axis(1, 0, "y"), [m for m in marks if m is not None], keys, heading="h")
    log = Panel("log", Axis(1, 100, log=True, ticks=[(10, "10 s")], grid=True, link="t"), Axis(0, 1), [])
    return Scene("<b>title", "sub", [[panel], [log, Panel("side", Axis(0, 1, link="t"), Axis(0, 1), [], bare=True)]])


@pytest.mark.parametrize("name", ["primitives", *PROBLEMS, "fleet", "simulation"])
def test_ends(name: str) -> None:
    """Every picture comes out as PNG, SVG and HTML, the same each time, with names from files escaped."""
    drawn = primitives() if name == "primitives" else picture(name)
    png = drawn.render("a.PNG")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    assert width == 1430
    assert 200 <= height <= 1600
    assert png == drawn.render("b.png")
    svg = drawn.render("a.svg")
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert svg == drawn.render("a.svg")
    text = drawn.render("a.html").decode()
    page = Page(text)
    assert not page.open and not page.loads and "b" not in page.tags and "prefers-color-scheme" in text
    assert svg.decode() in text and page.told[0] == drawn.title
    texts = [m.texts for p in drawn.panels for m in p.marks if isinstance(m, Boxes | Dots)]
    rows = {row for p in drawn.panels for m in p.marks if isinstance(m, Heat) for row in m.rows}
    assert {t.replace("<br>", "\n") for some in texts for t in some} | rows == set(page.told[1:])


class Page(HTMLParser):
    """Reads a page: its tags, what is still open, what would be loaded, and titles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.told: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)
        self.loads += [name for name, _ in attrs if name in ("src", "href", "xlink:href")] + [tag] * (tag == "link")
        self.open += [tag] if tag != "meta" else []

    def handle_endtag(self, tag: str) -> None:
        """Compare a tag with what is open."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep titles."""
        if self.open and self.open[-1] == "title":
            self.told.append(data)


def test_legend_hides_what_it_names() -> None:
    """In a page the marks of a legend's entry have its name, and no others."""
    root = ElementTree.fromstring(primitives().render("a.svg"))
    named = [x for x in root.iter() if "data-name" in x.attrib]
    keys = [x.attrib["data-name"] for x in named if x.get("class") == "key"]
    assert keys == [key.label for key in primitives().panels[0].keys]
    marks = [(x.attrib["data-name"], x.tag.split("}")[1]) for x in named if x.get("class") != "key"]
    assert marks == [("boxes", "rect")] * 2 + [("lines", "path")] * 2


def test_many_boxes() -> None:
    """Of very many boxes each is told, and narrow ones are as wide as a line."""
    n = 3001
    at = np.stack([np.arange(n), np.zeros(n), np.ones(n), np.ones(n)], axis=1).astype(float)
    colour = ["#0072b2", "#e69f00"] * (n // 2) + ["#0072b2"] * (n % 2)
    panel = Panel("x", Axis(0, n), Axis(0, 1), [Boxes(at, colour, [str(i) for i in range(n)])])
    svg = Scene("t", "s", [[panel]]).render("a.svg").decode()
    assert Page(svg).told == [str(i) for i in range(n)]
    assert svg.count('width="0.7"') == n


@pytest.mark.parametrize("name", [*PROBLEMS, "simulation"])
def test_panels(name: str) -> None:
    """Each panel can be drawn alone, and is one of those that are known beforehand."""
    drawn = picture(name)
    names = {panel.name for panel in drawn.panels}
    kind = Outcome if name == "simulation" else type(PROBLEMS[name])
    assert names <= set(next(known for of, known in PANELS.items() if issubclass(kind, of)))
    for panel in names:
        check_panel(panel, kind)
        alone = drawn.only(panel)
        assert {p.name for p in alone.panels} == {panel}
        assert alone.height < drawn.height or names == {panel}
        assert all(not p.x.quiet for p in alone.panels)
    with pytest.raises(InstanceError, match=r"panel: 'nowhere' is not one of \w+"):
        drawn.only("nowhere")
    with pytest.raises(InstanceError, match=r"panel: 'nowhere' is not one of \w+"):
        check_panel("nowhere", kind)


def test_a_panel_alone_says_what_it_is() -> None:
    """A panel alone has the heading and the entries of the legend that stood above other panels."""
    work = Workload(("a", "b"), np.zeros(2), [1, 2], np.array([3.0, 4.0]))
    drawn = gangplan.plot({"p": simulate(work, 1, 2, consolidate=True), "q": simulate(work, 1, 2, consolidate=True)})
    assert [p.heading[0] for p in drawn.only("queue").panels] == ["p", "q"]
    assert len({key for p in drawn.panels for key in p.keys}) == sum(len(p.keys) for p in drawn.panels)
    (load,) = picture("schedule").only("load").panels
    assert {key.label for key in load.keys} == {mark.name for mark in load.marks if isinstance(mark, Lines | Boxes)}


def test_a_panel_alone_has_the_room_of_its_row() -> None:
    """Of two panels beside each other one alone is as wide as both."""
    whole = picture("throughput")
    both = [p for p in whole.panels if p.name in {"load", "memory"}]
    (alone,) = whole.only("memory").panels
    assert (alone.left, alone.left + alone.width) == (both[0].left, both[1].left + both[1].width)


@pytest.mark.parametrize("name", [*PROBLEMS, "fleet", "simulation"])
def test_nothing_overlaps(name: str) -> None:
    """Panels, with their headings and legends, lie below or beside each other, inside the picture."""
    drawn = picture(name)
    spans = [(p.top - p.above, p.top + p.height, p.left, p.left + p.width) for p in drawn.panels]
    for i, (top, bottom, left, right) in enumerate(spans):
        assert top >= scene.HEADER - 1e-9
        assert bottom <= drawn.height
        assert 0 <= left < right <= scene.WIDTH
        for other in spans[i + 1 :]:
            assert bottom <= other[0] + 1e-9 or right <= other[2] + 1e-9


def test_save(tmp_path: Path) -> None:
    """A picture is written as it is made or later, and a notebook shows it."""
    path = tmp_path / "x.svg"
    result = gangplan.solve(GRAPH, time_limit=0.3, workers=1)
    drawn = gangplan.plot(GRAPH, result, path, panel="load")
    assert b"<svg" in path.read_bytes()
    assert str(result.status) in drawn.subtitle
    assert drawn._repr_png_()[:4] == b"\x89PNG"
    shown = drawn._repr_html_()
    assert "<svg" in shown and '<div class="gangplan-picture">' in shown
    for theme in ('[data-jp-theme-light="false"]', ".vscode-dark", "prefers-color-scheme: dark"):  # who may say so
        assert theme in shown
    assert drawn.render("x.svg") == path.read_bytes()


@pytest.mark.parametrize(
    ("of", "plan", "path", "message"),
    [
        (GRAPH, None, "x.svgz", r"plot: '.svgz' is not one of .png, .svg, .html"),
        (GRAPH, None, "x", r"plot: '' is not one of .png"),
        (GRAPH, gangplan.SchedulePlan(("a",), [0], [0.0]), None, "a SchedulePlan does not answer a PartitionProblem"),
        (PROBLEMS["step"], gangplan.PartitionPlan(("a",), [0], [0]), None, "does not answer a StepProblem"),
        (PROBLEMS["schedule"], None, None, "a NoneType does not answer a ScheduleProblem"),
        ("x.json", None, None, "a str is no problem, fleet or outcome"),
        ({}, None, None, "a dict is no problem"),
    ],
)
def test_first_mistakes(of: Any, plan: Any, path: str | None, message: str) -> None:
    """What cannot be drawn is refused with what is wrong."""
    with pytest.raises(InstanceError, match=message):
        gangplan.plot(of, plan, path)


def test_extra_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matplotlib PNG says how to install it; the others need nothing."""
    drawn = picture("schedule")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InstanceError, match=r"needs matplotlib; in the clone of gangplan: pip install \"\.\[plot\]\""):
        render("x.png", GRAPH, None)
    assert b"<svg" in drawn.render("x.svg") and b"<svg" in drawn.render("x.html")


@pytest.mark.parametrize("count", [1, 8, 9, 64])
def test_colours(count: int) -> None:
    """Every device has a colour of its own, and its paler one is another."""
    found = colours(count)
    assert len(set(found)) == count
    assert all(len(c) == 7 and paler(c) != c for c in found)


def test_fit() -> None:
    """A text is as large as its box allows, and left out where it could not be read."""
    assert fit("abc", 10.0, 10.0, (6.0, 9.0)) == 9.0
    assert fit("abc", 10.0, 0.15, (6.0, 9.0)) == pytest.approx(0.15 * 72 * 0.62)
    assert fit("abc" * 20, 1.0, 10.0, (6.0, 9.0)) == 0.0
