"""Pages that need nothing else: of pictures, to point at and go through; of words and tables besides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .scene import Scene
from .svg import draw

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2126; --line: #c9cfd6; --main: #0060a0; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171b; --ink: #e4e7eb; --line: #3b434c; --main: #6cb8ee; }
  figure > svg { filter: invert(0.91) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0 auto; max-width: 1280px; padding: 0.5rem 1rem 2rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.25rem; margin: 0.3rem 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 0.3rem; }
dl { display: grid; grid-template-columns: max-content auto; gap: 0.1rem 1.2rem; }
dt { opacity: 0.7; }
dd { margin: 0; }
summary { cursor: pointer; font-weight: 600; }
pre { border: 1px solid var(--line); padding: 0.5rem; overflow: auto; max-height: 20rem; }
table { border-collapse: collapse; margin: 0.6rem 0 1.2rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.18rem 0.7rem; text-align: right; vertical-align: bottom; border-bottom: 1px solid var(--line); }
th.word, td.word { text-align: left; }
td.best { font-weight: 700; }
.wide, figure { margin: 0; overflow-x: auto; }
figure > svg { display: block; width: 100%; min-width: 640px; user-select: none; }
.key, .key * { cursor: pointer; pointer-events: all; }
.key.off { opacity: 0.35; }
nav { display: flex; flex-wrap: wrap; gap: 0.6rem; align-items: center; padding: 0.5rem 0; position: sticky; top: 0;
  background: var(--paper); border-bottom: 1px solid var(--line); z-index: 1; }
nav input { flex: 1 1 12rem; accent-color: var(--main); }
button { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--line); border-radius: 6px;
  padding: 0.3rem 0.9rem; cursor: pointer; }
button:disabled { opacity: 0.45; cursor: default; }
:focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
#told { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
@media print { h2, tr, figure { break-inside: avoid; } h2 { break-after: avoid; } }
"""
_POLICY = """<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">"""
"""Nothing is fetched, no script runs."""
_NAV = """<h1>{title}</h1>
<nav aria-label="Steps"><button id="back">Back</button><button id="next">Next</button><button id="play">Play</button>
<input id="step" type="range" min="0" max="{last}" value="0" aria-label="Step"><span id="where"></span></nav>
<p id="told" aria-live="polite">{told}</p>"""
_KEYS = """
for (const svg of document.querySelectorAll("figure > svg")) {
  svg.onclick = ({ target }) => {
    const key = target.closest(".key"), off = key?.classList.toggle("off");
    for (const mark of key ? svg.querySelectorAll("[data-name]:not(.key)") : [])
      if (mark.dataset.name === key.dataset.name) mark.style.display = off ? "none" : "";
  };
}
"""
_STEP = """
const figures = [...document.querySelectorAll("figure")], $ = id => document.getElementById(id);
const last = figures.length - 1;
let at = 0, timer = 0;
function go(to) {
  at = Math.max(0, Math.min(last, to));
  figures.forEach((figure, i) => { figure.hidden = i !== at; });
  $("told").textContent = figures[at].dataset.told;
  $("step").value = at;
  $("step").setAttribute("aria-valuetext", figures[at].dataset.told);
  $("where").textContent = `${at} of ${last}`;
  $("back").disabled = at === 0;
  $("next").disabled = at === last;
  if (at === last) stop();
}
function stop() { clearInterval(timer); timer = 0; $("play").textContent = "Play"; }
function play() {
  if (timer) return stop();
  if (at === last) go(0);
  timer = setInterval(() => go(at + 1), 1200);
  $("play").textContent = "Stop";
}
$("back").onclick = () => go(at - 1);
$("next").onclick = () => go(at + 1);
$("play").onclick = play;
$("step").oninput = () => go(Number($("step").value));
addEventListener("keydown", event => {
  if (event.target.id === "step" || event.ctrlKey || event.metaKey || event.altKey) return;
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
  if (to !== undefined) { event.preventDefault(); go(to); }
});
go(0);
"""


def document(title: str, body: Iterable[str], *, static: bool = False) -> bytes:
    """Return a page that needs nothing else; in a static one no script runs, whatever its words are."""
    script = "" if static else f'<script type="module">{_KEYS}</script>'
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
{_POLICY * static}<title>{escape(title)}</title><style>{_STYLE}</style></head>
<body>{"".join(body)}{script}</body></html>
""".encode()


def page(title: str, pictures: Sequence[tuple[str, str]]) -> bytes:
    """Return the page of a picture as SVG, or of several that follow each other, each with what is told of it."""
    body = []
    if len(pictures) > 1:
        body.append(_NAV.format(title=escape(title), last=len(pictures) - 1, told=escape(pictures[0][0])))
        body.append(f'<script type="module">{_STEP}</script>')
    for i, (told, svg) in enumerate(pictures):
        body.append(f'<figure data-told="{escape(told)}"{" hidden" if i else ""}>{svg}</figure>')
    return document(title, body)


def report(
    name: str, command: str, facts: Sequence[tuple[str, str]], tables: Sequence[str], title: str, scene: Scene
) -> bytes:
    """Return a page of names and values, tables, and pictures under a title."""
    told = (f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts if value and name != "*")
    parts = [f"<h1>{escape(name)}</h1><dl>{''.join(told)}</dl><h2>Figures</h2>", *tables, f"<h2>{title}</h2>"]
    return document(f"{name}: {command}", [*parts, f"<figure>{draw(scene)}</figure>"])


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Return a table whose first columns are words; the best of a column, which has a star, is bold."""
    kinds = [' class="word"' if i < words else "" for i in range(len(head))]
    lines = ["".join(f"<th{kind}>{escape(cell)}</th>" for kind, cell in zip(kinds, head, strict=True))]
    for row in rows:
        cells = []
        for place, word in zip(kinds, row, strict=True):
            best = not place and word.startswith("*")
            kind, cell = (' class="best"', word[1:]) if best else (place, word)
            cells.append(f"<td{kind}>{escape(cell)}</td>")
        lines.append("".join(cells))
    top, *below = (f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table><thead>{top}</thead><tbody>{"".join(below)}</tbody></table></div>'
