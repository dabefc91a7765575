"""HTML pages that need nothing else, of a simulation or two: facts, tables, and schedules over calendar time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..plot.html import document, table
from ..plot.scene import Scene
from ..plot.simulation import simulation_scene
from ..plot.svg import draw
from .simulation_runs import Found, Setting
from .simulation_tables import group_tables, tables, told


def report(found: Found, setting: Setting, name: str, epoch: float | None, many: bool) -> bytes:
    """Return the page; the axis of time is the calendar's if the trace's time 0 has a date, seconds from 1970."""
    parts = [table(*one) for one in tables(found, many)]
    for title, head, rows in group_tables(found):
        parts.append(f"<details open><summary>{escape(title)}</summary>{table(head, rows)}</details>")
    seed = f" of seed {found.seeds[0]}" if many else ""
    scene = simulation_scene(found.outcomes, name, epoch)
    return page(name, "gangplan simulate", told(found, setting, many), parts, f"Schedules{seed}", scene)


def page(
    name: str, command: str, facts: Sequence[tuple[str, str]], tables: Sequence[str], title: str, scene: Scene
) -> bytes:
    """Return a page that needs nothing else: names and values, tables, and pictures under a title."""
    told = (f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts if name != "*")
    parts = [f"<h1>{escape(name)}</h1><dl>{''.join(told)}</dl><h2>Figures</h2>", *tables, f"<h2>{title}</h2>"]
    return document(f"{name}: {command}", [*parts, f"<figure>{draw(scene)}</figure>"])
