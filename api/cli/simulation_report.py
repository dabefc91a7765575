"""HTML pages that need nothing else, of a simulation or two: facts, tables, and schedules over calendar time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..plot.html import embed
from ..plot.scene import Scene
from ..plot.simulation import simulation_scene
from .simulation_runs import Found, Setting
from .simulation_tables import Cells, group_tables, tables, told

STYLE = """<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 1100px; padding: 0 1rem }
table { border-collapse: collapse; margin: .6rem 0 1.2rem }
th { border-bottom: 1.5px solid #8888; text-align: right; font-weight: 600; vertical-align: bottom }
th, td { padding: .18rem .7rem }
td { text-align: right; font-variant-numeric: tabular-nums; border-bottom: 1px solid #8883 }
th.word, td.word, dt { text-align: left }
td.best { font-weight: 700 }
dl { display: grid; grid-template-columns: max-content auto; gap: .1rem 1.2rem }
dt { opacity: .7 } dd { margin: 0 }
summary { cursor: pointer; font-weight: 600 }
.wide { overflow-x: auto }
</style>"""


def report(found: Found, setting: Setting, name: str, epoch: float | None, many: bool) -> bytes:
    """Return the page; the axis of time is the calendar's if the trace's time 0 has a date, seconds from 1970."""
    parts = [html_table(*one) for one in tables(found, many)]
    for title, head, rows in group_tables(found):
        parts.append(f"<details open><summary>{escape(title)}</summary>{html_table(head, rows)}</details>")
    seed = f" of seed {found.seeds[0]}" if many else ""
    scene = simulation_scene(found.outcomes, name, epoch)
    return page(name, "gangplan simulate", told(found, setting, many), parts, f"Schedules{seed}", scene)


def page(
    name: str, command: str, facts: Sequence[tuple[str, str]], tables: Sequence[str], title: str, scene: Scene
) -> bytes:
    """Return a page that needs nothing else: names and values, tables, and pictures under a title."""
    told = (f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts if name != "*")
    parts = [f"<h1>{escape(name)}</h1>", f"<dl>{''.join(told)}</dl>", "<h2>Figures</h2>", *tables]
    parts += [f"<h2>{title}</h2>", f'<div class="wide">{embed(scene)}</div>']
    top = f'<meta charset="utf-8"><title>{escape(name)}: {command}</title>{STYLE}'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{top}</head>\n<body>{"".join(parts)}</body></html>\n'.encode()


def html_table(head: Sequence[str], rows: Cells, words: int = 1) -> str:
    """Return a table whose first columns are words; the best of a column, which has a star, is bold."""

    def line(tag: str, cells: Sequence[str]) -> str:
        made = []
        for i, cell in enumerate(cells):
            best = i >= words and tag == "td" and cell.startswith("*")
            kind = ' class="word"' if i < words else ' class="best"' if best else ""
            made.append(f"<{tag}{kind}>{escape(cell[best:])}</{tag}>")
        return f"<tr>{''.join(made)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f'<div class="wide"><table><thead>{line("th", head)}</thead><tbody>{body}</tbody></table></div>'
