"""JSON lines: an event a line, and for each a line with its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from gangplan.instances import InstanceError
from gangplan.instances.intake import decoded, parse_json

from .core import Core, error_of, text_of

LONGEST = 2**24
"""Maximum number of bytes of a line: a snapshot of a large cluster has less."""


def answer_lines(core: Core, lines: BinaryIO, write: Callable[[bytes], object], longest: int = LONGEST) -> None:
    """Answer each line that is not blank, until there are no more."""
    number = 0
    while line := lines.readline(longest + 1):
        number += 1
        if len(line) > longest and not line.endswith(b"\n"):
            while (rest := lines.readline(longest)) and not rest.endswith(b"\n"):
                pass
            answer: dict[str, Any] = {"error": {"field": "line", "problem": f"has more than {longest} bytes"}}
        elif not line.strip():
            continue
        else:
            try:
                answer = core.reply(parse_json(decoded(line)))
            except InstanceError as error:
                answer = {"error": error_of(error)}
        if "error" in answer:
            answer["line"] = number
        write(text_of(answer).encode() + b"\n")
