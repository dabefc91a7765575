"""Change valid documents: trees of JSON, tables, text."""

# ruff: noqa: E501  # documents and commands as they are

from __future__ import annotations

import copy
import json
import random
from typing import Any

JUNK: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 0.5, -0.5, -0.0, 1e-300, 1e308, -1e308, 2**31, 2**53 + 1, 2**63, -(2**63), 10**30,
    "", " ", "a", "x" * 300, "é", "\ud800", "\x01", "NaN", "inf", "1e999", "-1", "1/0", "1/3", "0x10", "type", "../../x",
    "any", "*", [], {}, [[]], [None], [0, 0], {"type": "os:system"}, {"type": "Fleet"}, {"a": {"a": {}}}, [1.5, "a"],
]  # fmt: skip
CELLS = ["", " ", "0", "-1", "1", "1.5", "nan", "inf", "1e308", "1e999", "-0", "99999999999999999999", "x", "é", '"', "'",
         "2026-01-01T00:00:00", "0000-00-00 00:00:00", "9999-12-31T23:59:59", "1-00:00:00", "Unknown", "None", "gres/gpu=",
         "gres/gpu=99999999999", "[", "{}", "a|b", "a,b", "\x0b", "\ufeff", "1_000", "٣", "+5", "0x10"]  # fmt: skip
_TOKENS = [
    '"',
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\n",
    "\r",
    "\t",
    "0",
    "-",
    "e9",
    "NaN",
    "null",
    "\\u0000",
    "\\ud800",
    "--",
    "->",
]


def tree(data: Any, draw: random.Random, others: list[Any]) -> Any:
    """Return JSON with one to four things in it changed."""
    data = copy.deepcopy(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        holder = [data]
        _edit(holder, 0, draw, others)
        data = holder[0]
    return data


def _edit(into: Any, key: Any, draw: random.Random, others: list[Any]) -> None:
    value = into[key]
    if isinstance(value, dict | list) and value and draw.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        inner = draw.choice(keys)
        if draw.random() < 0.7:
            _edit(value, inner, draw, others)
            return
        kind = draw.randrange(5)
        if kind == 0:
            del value[inner]
        elif kind == 1 and isinstance(value, list):
            value.insert(inner, copy.deepcopy(draw.choice(value)))
        elif kind == 2 and isinstance(value, list):
            value[inner], value[-1] = value[-1], value[inner]
        elif isinstance(value, dict):
            value[draw.choice(["", "type", "kind", "a", *keys])] = copy.deepcopy(value[draw.choice(keys)])
        else:
            value.extend(copy.deepcopy(value[: draw.randrange(1, 4)]))
    elif isinstance(value, int | float) and not isinstance(value, bool) and draw.random() < 0.6:
        into[key] = draw.choice([value + 1, value - 1, -value, value * 2, value / 3, value * 10**9, float(value)])
    elif isinstance(value, str) and value and draw.random() < 0.5:
        into[key] = text(value, draw, [])
    elif others and draw.random() < 0.3:
        into[key] = copy.deepcopy(_part(draw.choice(others), draw))
    else:
        into[key] = copy.deepcopy(draw.choice(JUNK))


def _part(data: Any, draw: random.Random) -> Any:
    while isinstance(data, dict | list) and data and draw.random() < 0.7:
        data = draw.choice(list(data.values()) if isinstance(data, dict) else data)
    return data


def text(given: str, draw: random.Random, others: list[str]) -> str:
    """Return text with a few characters, or a piece, changed."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        at = draw.randrange(len(given) + 1)
        end = min(len(given), at + draw.choice((1, 2, 8, 60)))
        kind = draw.randrange(6)
        if kind == 0:
            given = given[:at] + given[end:]
        elif kind == 1:
            given = given[:end] + given[at:end] * draw.choice((1, 2, 30)) + given[end:]
        elif kind == 2:
            given = given[:at] + draw.choice(_TOKENS) + given[at:]
        elif kind == 3:
            given = given[:at]
        elif kind == 4 and others:
            other = draw.choice(others)
            given = given[:at] + other[draw.randrange(len(other) + 1) :]
        else:
            given = given[:at] + chr(draw.choice((0, 9, 32, 34, 48, 92, 127, 0x2028, 0x1F600))) + given[end:]
    return given


def table(given: str, draw: random.Random, others: list[str]) -> str:
    """Return a table with cells, rows or columns changed."""
    if draw.random() < 0.15:
        return text(given, draw, others)
    delimiter = max(",|\t; ", key=given[:300].count)
    rows = [line.split(delimiter) for line in given.splitlines()]
    for _ in range(draw.choice((1, 1, 2, 3))):
        row = draw.choice(rows)
        kind, at = draw.randrange(8), draw.randrange(len(row)) if row else 0
        if kind < 4 and row:
            row[at] = text(row[at], draw, []) if kind == 0 else draw.choice(CELLS)
        elif kind == 4 and row:
            del row[at]
        elif kind == 5:
            rows.insert(draw.randrange(len(rows) + 1), list(row))
        elif kind == 6:
            for each in rows:
                if at < len(each):
                    each[at] = draw.choice(CELLS)
        else:
            rows[draw.randrange(len(rows))] = draw.choice([[], [""], ["#"], [";"], row * 2])
    return "\n".join(delimiter.join(row) for row in rows) + draw.choice(("\n", ""))


def document(data: Any, draw: random.Random, others: list[Any]) -> bytes:
    """Return a changed document: mostly its tree, sometimes its text."""
    if draw.random() < 0.85:
        return json.dumps(tree(data, draw, others)).encode()
    return text(json.dumps(data), draw, [json.dumps(draw.choice(others))] if others else []).encode(errors="replace")


def raw(content: bytes, draw: random.Random) -> bytes:
    """Return bytes of which some are changed."""
    found = bytearray(content)
    for _ in range(draw.choice((1, 2, 5))):
        at = draw.randrange(len(found) + 1)
        if draw.random() < 0.7 and at < len(found):
            found[at] = draw.randrange(256)
        elif draw.random() < 0.5:
            del found[at : at + draw.choice((1, 8, 1000))]
        else:
            found[at:at] = draw.randbytes(draw.choice((1, 8)))
    return bytes(found)
