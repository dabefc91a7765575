"""SVG without a package: well-formed whatever things are called, with all that a pointer is told."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from gangplan.plot.scene import Axis, Boxes, Dots, Scene
from gangplan.plot.svg import draw, ticks_of

from .test_scene import PROBLEMS, picture, primitives

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", ["primitives", *PROBLEMS, "fleet", "simulation"])
def test_all_is_told(name: str) -> None:
    """Each picture is well-formed, and each thing that can be pointed at has its words as a title."""
    scene = primitives() if name == "primitives" else picture(name)
    root = ElementTree.fromstring(draw(scene))
    told = [x.text for x in root.iter(f"{SVG}title")]
    texts = [t for panel in scene.panels for m in panel.marks if isinstance(m, Boxes | Dots) for t in m.texts]
    wanted = {text.replace("<br>", "\n") for text in texts if text}
    assert wanted <= set(told) and len(told) >= len([text for text in texts if text])
    assert root.attrib["aria-label"] == scene.title
    written = [x.text for x in root.iter(f"{SVG}text")]
    assert {scene.title, scene.subtitle} <= set(written)
    assert {key.label or None for panel in scene.panels for key in panel.keys} <= {*written, None}
    numbers = " ".join(v for x in root.iter() for k, v in x.attrib.items() if k not in ("aria-label", "font-family"))
    assert "nan" not in numbers and "inf" not in numbers


def test_names_are_text() -> None:
    """Names that try to be markup, or that XML cannot write, are text."""
    scene = picture("step")
    hostile = replace(scene, title='<script>"\x00\ud800&</script>', subtitle="</svg>")
    root = ElementTree.fromstring(draw(Scene(hostile.title, hostile.subtitle, scene.rows)))
    assert root.attrib["aria-label"] == '<script>"\ufffd\ufffd&</script>'
    assert not list(root.iter(f"{SVG}script")) and [x.text for x in root.iter(f"{SVG}text")][1] == "</svg>"


@pytest.mark.parametrize(
    ("axis", "inches", "places"),
    [
        (Axis(0, 13), 3, [0, 5, 10]),
        (Axis(0, 13), 12, [0, 2, 4, 6, 8, 10, 12]),
        (Axis(0, 13), 0.5, [0, 5, 10]),
        (Axis(0, 20), 0.5, [0, 10, 20]),
        (Axis(1.3, 0), 3, [0, 0.5, 1]),
        (Axis(-1, 1), 3, [-1, -0.5, 0, 0.5, 1]),
        (Axis(0.5, 200, log=True), 3, [1, 10, 100]),
        (Axis(0, 1, ticks=[(0.3, "x")]), 3, [0.3]),
    ],
)
def test_ticks(axis: Axis, inches: float, places: list[float]) -> None:
    """Ticks are round numbers inside the axis, whichever way it goes, and more where there is more room."""
    assert [round(at, 9) for at, _ in ticks_of(axis, inches)] == places
