"""Paint the SVG of a scene as PNG or PDF, by the renderers of matplotlib."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.backends.backend_pdf import PdfFile, RendererPdf
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D, Bbox

from .scene import DPI, FloatArray, Scene
from .svg import PIXELS, POINT
from .svg import draw as draw_svg

_ANCHORS = {"start": 0.0, "middle": 0.5, "end": 1.0}
"""Share of a text that is left of its place."""


def draw(scene: Scene) -> bytes:
    """Return the content of a ``.png`` file."""
    content = BytesIO()
    figure_of(scene).savefig(content, format="png")
    return content.getvalue()


def pdf(svg: str) -> bytes:
    """Return a picture that `svg` drew as a page of PDF, letters as outlines."""
    root, content = ElementTree.fromstring(svg), BytesIO()
    width, height = (float(x) / PIXELS for x in root.attrib["viewBox"].split()[2:])
    pages: Any = PdfFile
    painter: Any = RendererPdf
    file = pages(content, metadata={"CreationDate": None})
    file.newPage(width, height)
    page, scale = painter(file, 72, height, width), 72 / PIXELS
    _paint(root, page, Affine2D().scale(scale, -scale).translate(0, 72 * height), None)
    page.finalize()
    file.finalize()
    file.close()
    return content.getvalue()


def figure_of(scene: Scene) -> Figure:
    """Return the picture as a figure of matplotlib, which no window shows."""
    figure = Figure(figsize=(scene.width, scene.height), dpi=DPI)
    width, height = FigureCanvasAgg(figure).get_width_height()
    image: Any = RendererAgg
    agg, scale = image(width, height, DPI), DPI / PIXELS
    agg.clear()
    _paint(ElementTree.fromstring(draw_svg(scene)), agg, Affine2D().scale(scale, -scale).translate(0, height), None)
    figure.figimage(np.asarray(agg.buffer_rgba()))
    return figure


def _paint(element: Any, agg: Any, pixels: Affine2D, clip: Bbox | None) -> None:
    """Paint an element as `svg` writes it, and what is in it, no further than a box of the image."""
    tag, look = element.tag.rpartition("}")[2], element.attrib
    if tag in ("svg", "g"):
        inside = Bbox(pixels.transform(_corners(look)[::2])) if "x" in look else clip
        for inner in element:
            _paint(inner, agg, pixels, inside)
        return
    gc, fill = agg.new_gc(), look.get("fill", "none")
    gc.set_clip_rectangle(clip)
    gc.set_alpha(float(look.get("opacity", 1)))
    gc.set_antialiased("shape-rendering" not in look)
    gc.set_foreground(look.get("stroke", "white"))
    gc.set_linewidth(float(look.get("stroke-width", "stroke" in look)) / POINT)
    if "stroke-dasharray" in look:
        gc.set_dashes(0, [float(x) / POINT for x in look["stroke-dasharray"].split()])
    path, face = _path(tag, look, element.text or ""), None if fill == "none" else to_rgb(fill)
    agg.draw_path(gc, path, pixels, face)
    if "paint-order" in look:  # the line is below
        gc.set_linewidth(0)
        agg.draw_path(gc, path, pixels, face)


def _corners(look: Any) -> FloatArray:
    x, y, width, height = (float(look[key]) for key in ("x", "y", "width", "height"))
    return np.array([(x, y), (x + width, y), (x + width, y + height), (x, y + height)])


def _path(tag: str, look: Any, text: str) -> Path:
    """Return the outline of an element, in pixels of the SVG."""
    if tag == "rect":
        return Path([*_corners(look), (0, 0)], closed=True)
    if tag == "circle":
        return Path.circle((float(look["cx"]), float(look["cy"])), float(look["r"]))
    if tag == "path":
        ways = [[point.split() for point in way.split("L")] for way in look["d"].split("M")[1:]]
        codes = [[Path.MOVETO] + [Path.LINETO] * (len(way) - 1) for way in ways]
        return Path(np.concatenate(ways).astype(float), np.concatenate(codes))
    if not text.strip():
        return Path(np.zeros((0, 2)))
    x, y, weight = float(look["x"]), float(look["y"]), look.get("font-weight", "normal")
    letters = TextPath((0, 0), text.replace("$", r"\$"), float(look["font-size"]), FontProperties(weight=weight))
    left = _ANCHORS[look["text-anchor"]] * letters.vertices[:, 0].max()
    place = Affine2D().scale(1, -1).translate(x - left, y)
    if turned := look.get("transform", "")[len("rotate(-90 ") : -1].split():
        place = place.rotate_deg_around(float(turned[0]), float(turned[1]), -90)
    return letters.transformed(place)
