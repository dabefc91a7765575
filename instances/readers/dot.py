"""Read Graphviz' digraphs as node-link data; the attributes are those of `networkx_graph`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

from ..errors import InstanceError
from .fields import value_of

_SPACE = r"(?:[\s;]|//[^\n]*|/\*.*?\*/|^\#[^\n]*)*"
_NAME = r'(?:"(?:[^"\\]|\\.)*"|-?[\w.]+)'
_FLAGS = re.DOTALL | re.MULTILINE | re.IGNORECASE
_BLANK = re.compile(_SPACE, _FLAGS)
_HEAD = re.compile(rf"{_SPACE}(?:strict\s+)?(di)?graph\b\s*(?:{_NAME})?\s*\{{", _FLAGS)
_TOKEN = re.compile(
    rf"""{_SPACE}(?:
    (?P<given>\[(?:"(?:[^"\\]|\\.)*"|[^\]"])*\])
    |(?P<default>node|edge|graph)(?=\s*\[)
    |(?P<ignored>{_NAME}\s*=\s*{_NAME})
    |(?P<open>(?:subgraph\b\s*(?:{_NAME})?\s*)?\{{)
    |(?P<close>\}})
    |(?P<join>->|--)
    |(?P<end>{_NAME})(?:\s*:\s*{_NAME})*
    )""",
    _FLAGS | re.VERBOSE,
)
_PAIR = re.compile(rf"({_NAME})\s*=\s*({_NAME})", _FLAGS)

Attributes = dict[str, Any]


@dataclass
class _Scope:
    """What braces enclose: defaults, nodes, and the statement that is read.

    Attributes:
        node, edge, graph: defaults; those of graphs say nothing about ops.
        members: names of the nodes inside, in order.
        ends: of the statement, groups of nodes, each of which leads to the next.
        joined: whether an arrow waits for its head.
        given: attributes of the statement, or the defaults that are being set.
    """

    node: Attributes
    edge: Attributes
    graph: Attributes = field(default_factory=dict)
    members: dict[str, None] = field(default_factory=dict)
    ends: list[list[str]] = field(default_factory=list)
    joined: bool = False
    given: Attributes = field(default_factory=dict)


def is_dot(text: str) -> bool:
    """Say whether a text begins as a graph does."""
    return _HEAD.match(text) is not None


def dot_link(text: str) -> dict[str, Any]:
    """Return node-link data; braces lead to all nodes inside, ports say nothing about ops.

    Raises:
        InstanceError: naming the line that is not understood.
    """
    head = _HEAD.match(text)
    at, directed = (head.end(), bool(head[1])) if head else (0, False)
    nodes: dict[str, Attributes] = {}
    edges: list[Attributes] = []
    scopes = [_Scope({}, {})]
    while scopes and (match := _TOKEN.match(text, at)):
        scope, kind = scopes[-1], str(match.lastgroup)
        wrong = not scope.ends or (match["join"] == "--" and directed)
        if (wrong and kind == "join") or (scope.joined and kind not in ("open", "end")):
            break
        at = match.end()
        if kind == "given":
            scope.given.update((_word(key), value_of(_word(value))) for key, value in _PAIR.findall(match["given"]))
        elif kind == "join":
            scope.joined = True
        elif kind == "open":
            if not scope.joined:
                _finish(scope, nodes, edges)
            scopes.append(_Scope(dict(scope.node), dict(scope.edge)))
        elif kind == "end":
            name = _word(match["end"])
            nodes.setdefault(name, {"id": name} | scope.node)
            _add(scope, [name], nodes, edges)
        else:
            _finish(scope, nodes, edges)
            if kind == "default":
                scope.given = getattr(scope, match["default"].lower())
            elif kind == "close":
                scopes.pop()
                if scopes:
                    _add(scopes[-1], list(scope.members), nodes, edges)
    at = _BLANK.match(text, at).end()  # type: ignore[union-attr] # nothing matches too
    if at < len(text) or scopes:
        line = text.count("\n", 0, at) + 1
        words = repr(text[at:].splitlines()[0]) if at < len(text) else "the end, within braces,"
        raise InstanceError(f"line {line}", f"{words} is not understood")
    return {"directed": directed, "nodes": list(nodes.values()), "edges": edges}


def _add(scope: _Scope, group: list[str], nodes: dict[str, Attributes], edges: list[Attributes]) -> None:
    """Have nodes be the next end of the statement, or begin another one."""
    if not scope.joined:
        _finish(scope, nodes, edges)
    scope.ends.append(group)
    scope.members.update(dict.fromkeys(group))
    scope.joined = False


def _finish(scope: _Scope, nodes: dict[str, Attributes], edges: list[Attributes]) -> None:
    """Enter the nodes and edges of the statement that is over."""
    if len(scope.ends) == 1:
        for name in scope.ends[0]:
            nodes[name].update((key, value) for key, value in scope.given.items() if key != "id")
    for tails, heads in pairwise(scope.ends):
        edges += [{**scope.edge, **scope.given, "source": a, "target": b} for a, b in product(tails, heads)]
    scope.ends, scope.given = [], {}


def _word(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text
