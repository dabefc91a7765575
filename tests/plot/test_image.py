"""PNG and PDF: what the SVG says is painted, where it says."""

from __future__ import annotations

import re
import zlib

import numpy as np

from gangplan.plot.image import figure_of, pdf
from gangplan.plot.scene import DPI, Axis, Boxes, Dots, Lines, Panel, Scene, Words
from gangplan.plot.svg import draw


def test_what_is_painted() -> None:
    """Boxes, lines, dots and words are where they should be, cut off at the panel, in their colours."""
    marks = [
        Boxes(np.array([[0.0, 0.0, 0.5, 1.0], [0.9, 0.9, 9.0, 9.0]]), ["#ff0000", "#0000ff"]),
        Lines([[(0.6, 0.0), (0.6, 1.0)]], "#00ff00", 6.0),
        Dots(np.array([[0.75, 0.5]]), "#ff00ff", 20.0),
        Words(np.array([[0.25, 0.5], [0.25, 0.8]]), ["MMMM", "$ x"], 20.0, "#ffffff", halo=["#000000"] * 2),
    ]
    axis = Axis(0, 1)
    panel = Panel("x", axis, axis, marks, left=1.0, width=4.0, height=2.0, bare=True)
    scene = Scene("t", "s", [[panel]], 6.0)
    image = np.asarray(figure_of(scene).images[0].get_array())[:, :, :3]
    assert image.shape[:2] == (int(scene.height * DPI), int(6.0 * DPI))

    def at(x: float, y: float) -> list[int]:
        top = scene.panels[0].top
        return [int(v) for v in image[round((top + 2.0 * (1 - y)) * DPI), round((1.0 + 4.0 * x) * DPI)]]

    assert at(0.1, 0.1) == [255, 0, 0] and at(0.95, 0.95) == [0, 0, 255]
    assert at(0.6, 0.3) == [0, 255, 0] and at(0.75, 0.5) == [255, 0, 255]
    assert at(1.05, 0.95) == at(0.95, 1.05) == at(0.75, 0.1) == [255, 255, 255]
    word = image[round((scene.panels[0].top + 0.9) * DPI) :, round(1.6 * DPI) : round(2.4 * DPI)][: round(0.2 * DPI)]
    assert {(255, 255, 255), (0, 0, 0)} <= {tuple(v) for v in word.reshape(-1, 3).tolist()}


def test_a_page_of_pdf() -> None:
    """It is of the picture's size, the same each time, and has the box as lines and a fill, not as an image."""
    axis = Axis(0, 1)
    marks = [Boxes(np.array([[0.0, 0.0, 0.5, 1.0]]), ["#ff0000"])]
    panel = Panel("x", axis, axis, marks, left=1.0, width=4.0, height=2.0, bare=True)
    scene = Scene("t", "s", [[panel]], 6.0)
    page = pdf(draw(scene))
    box = [float(x) for x in re.findall(rb"/MediaBox \[ ([^\]]*)\]", page)[0].split()]
    assert np.allclose(box, [0, 0, 6.0 * 72, scene.height * 72], atol=1) and page == pdf(draw(scene))
    streams = [zlib.decompress(x) for x in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", page, re.DOTALL)]
    (red,) = [x for x in streams if b"1 0 0 rg" in x]
    (bottom,) = re.findall(rb"\n72 ([\d.]+) l\n", red)
    assert abs(float(bottom) - 72 * (scene.height - scene.panels[0].top - 2.0)) < 0.1
