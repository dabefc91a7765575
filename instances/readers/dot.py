"""Read a ``digraph`` of Graphviz' DOT language as node-link data: nodes, edges, and what is in their brackets."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from ..errors import InstanceError

_SPACE = r"(?:[\s;]|//[^\n]*|/\*.*?\*/|^\#[^\n]*)*"
_ID = r'(?:"(?:[^"\\]|\\.)*"|-?[\w.]+)'
_END = rf"{_ID}(?:\s*:\s*{_ID})*"  # with a port
_GIVEN = r'\[(?:"(?:[^"\\]|\\.)*"|[^\]"])*\]'
_FLAGS = re.DOTALL | re.MULTILINE
_BLANK = re.compile(_SPACE, _FLAGS)
_HEAD = re.compile(rf"{_SPACE}(?:strict\s+)?(di)?graph\b\s*(?:{_ID})?\s*\{{", _FLAGS | re.IGNORECASE)
_SILENT = re.compile(
    rf"{_SPACE}(?:{_ID}\s*=\s*{_ID}|(?:node|edge|graph)\s*{_GIVEN}|subgraph\s*(?:{_ID})?|\{{|\}})", _FLAGS
)
_STATEMENT = re.compile(rf"{_SPACE}({_END}(?:\s*->\s*{_END})*)\s*((?:{_GIVEN}\s*)*)", _FLAGS)
_PAIR = re.compile(rf"({_ID})\s*=\s*({_ID})", _FLAGS)


def recognises(text: str) -> bool:
    """Say whether a text begins as a graph does."""
    return _HEAD.match(text) is not None


def node_link(text: str) -> dict[str, Any]:
    """Return node-link data; ports, defaults and the frames of subgraphs say nothing about ops."""
    head = _HEAD.match(text)
    at = head.end() if head else 0
    nodes: dict[str, dict[str, Any]] = {}
    edges: list[dict[str, Any]] = []
    while match := _SILENT.match(text, at) or _STATEMENT.match(text, at):
        at = match.end()
        if match.re is _SILENT:
            continue
        ends = [_word(word) for word in re.findall(rf"({_ID})(?:\s*:\s*{_ID})*", match[1], _FLAGS)]
        given = {_word(key): _value(_word(value)) for key, value in _PAIR.findall(match[2])}
        for end in ends:
            nodes.setdefault(end, {"id": end})
        if len(ends) == 1:
            nodes[ends[0]].update({key: value for key, value in given.items() if key != "id"})
        edges += [given | {"source": a, "target": b} for a, b in pairwise(ends)]
    at = _BLANK.match(text, at).end()  # type: ignore[union-attr] # nothing matches too
    if at < len(text):
        line = text.count("\n", 0, at) + 1
        raise InstanceError(f"line {line}", f"{text[at:].splitlines()[0]!r} is not understood")
    return {"directed": bool(head and head[1]), "nodes": list(nodes.values()), "edges": edges}


def _word(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _value(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word
