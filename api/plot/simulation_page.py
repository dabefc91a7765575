"""A page around a figure of plotly that is dark where the reader's system is."""

from __future__ import annotations

from html import escape
from typing import Any

INK, GRID = "#222222", "rgba(128, 138, 150, 0.28)"
DARK_INK, DARK_PAPER = "#e2e6ea", "#14171b"
STYLE = (
    "<style>:root{color-scheme:light dark}body{margin:0;background:#ffffff}"
    f"@media (prefers-color-scheme:dark){{body{{background:{DARK_PAPER}}}}}</style>"
)
SCRIPT = (
    "(function(){const plot=document.getElementById('{plot_id}'),dark=matchMedia('(prefers-color-scheme: dark)');"
    "const ink=()=>Plotly.relayout(plot,{'font.color':dark.matches?'" + DARK_INK + "':'" + INK + "'});"
    "ink();dark.addEventListener('change',ink);})();"
)


def page(figure: Any, title: str, subtitle: str) -> bytes:
    """Return the bytes of a page with a figure, whose margin on top has room for two lines."""
    clear = "rgba(0, 0, 0, 0)"
    for text, size, rise in ((f"<b>{escape(title)}</b>", 17, 62), (escape(subtitle), 14, 38)):
        place = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor": "middle"}
        figure.add_annotation(text=text, font={"size": size}, xshift=-60, yshift=rise, showarrow=False, **place)
    figure.update_layout(
        template="plotly_white",
        paper_bgcolor=clear,
        plot_bgcolor=clear,
        font={"family": "system-ui, sans-serif", "color": INK},
        hovermode="closest",
        hoverlabel={"align": "left"},
        dragmode="zoom",
    )
    config = {"displaylogo": False, "responsive": True}
    found: str = figure.to_html(include_plotlyjs=True, full_html=True, config=config, post_script=[SCRIPT])
    return found.replace("<head>", f"<head><title>{escape(title)}</title>{STYLE}", 1).encode()
