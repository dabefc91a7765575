"""Answers to the course's exercises that somebody may give, wrong and right.

``tries/N.txt`` has them for notebook N. A line ``## 1.4 wrong blind`` begins the wrong answers to exercise 1.4 that
were written from its text alone, ``wrong`` those by somebody who had read the check, ``right`` right ones. A line
``---`` parts them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent / "tries"
VALUES = ("None", "'text'", "float('nan')", "10**400", "[]", "object()", "1j", "-1")
BODIES = (*(f"return {x}" for x in VALUES), "raise TypeError('no')", "return 10.0**400", "return {}['key']")


class Try(NamedTuple):
    """An answer: the exercise, "wrong blind", "wrong" or "right", and its text."""

    number: str
    kind: str
    source: str


def written(path: Path) -> Iterator[Try]:
    """Yield the answers that are written down for a notebook."""
    file = HERE / f"{path.name.partition('_')[0]}.txt"
    for part in re.split(r"(?m)^## ", file.read_text(encoding="utf-8"))[1:]:
        head, _, body = part.partition("\n")
        number, _, kind = head.partition(" ")
        for source in re.split(r"(?m)^---\n", body):
            yield Try(number, kind, source)


def strange(number: str, stub: str) -> Iterator[Try]:
    """Yield answers of no use to any exercise: values of other kinds for what a stub names, functions that raise."""
    names = [x for x in ast.parse(stub).body if isinstance(x, (ast.FunctionDef, ast.ClassDef, ast.Assign))]
    functions = [x.name for x in names if isinstance(x, ast.FunctionDef)]
    classes = [x.name for x in names if isinstance(x, ast.ClassDef)]
    values = [t.id for x in names if isinstance(x, ast.Assign) for t in x.targets if isinstance(t, ast.Name)]
    for body, value in zip(BODIES, [*VALUES, *[None] * (len(BODIES) - len(VALUES))], strict=True):
        if functions or value is not None:
            lines = [f"def {name}(*given, **more): {body}" for name in functions]
            yield Try(number, "strange", "\n".join([*lines, *(f"{x} = {value}" for x in [*classes, *values])]))
