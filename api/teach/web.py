"""The page that steps are clicked through on: one file, light or dark, without anything from outside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

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
nav { display: flex; flex-wrap: wrap; gap: 0.6rem; align-items: center; padding: 0.5rem 0; position: sticky; top: 0;
  background: var(--paper); border-bottom: 1px solid var(--line); z-index: 1; }
nav input { flex: 1 1 12rem; accent-color: var(--main); }
button { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--line); border-radius: 6px;
  padding: 0.3rem 0.9rem; cursor: pointer; }
button:disabled { opacity: 0.45; cursor: default; }
:focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
#told { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
figure { margin: 0; overflow-x: auto; }
figure > svg { display: block; width: 100%; min-width: 640px; }
"""
_SCRIPT = """
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


def written(title: str, steps: Sequence[tuple[str, str]]) -> str:
    """Return the page of steps, each what is told of it and its picture as SVG."""
    figures = "\n".join(
        f'<figure data-told="{escape(told)}"{" hidden" if i else ""}>{svg}</figure>'
        for i, (told, svg) in enumerate(steps)
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}, step by step</title><style>{_STYLE}</style></head>
<body><h1>{escape(title)}, step by step</h1>
<nav aria-label="Steps"><button id="back">Back</button><button id="next">Next</button><button id="play">Play</button>
<input id="step" type="range" min="0" max="{len(steps) - 1}" value="0" aria-label="Step"><span id="where"></span></nav>
<p id="told" aria-live="polite">{escape(steps[0][0])}</p>
{figures}
<script>{_SCRIPT}</script></body></html>
"""
