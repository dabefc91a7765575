"""Options that are read off a signature."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

from gangplan.cli.app import ClickError, made_of
from gangplan.cli.options import SEVERAL, Section, by_name
from gangplan.instances import InstanceError

LATE = Section("Of the end")


@dataclass(frozen=True)
class Table:
    """What a table asks for, and something that it does not."""

    section = "Of the table"
    count: Annotated[int, "how many", (1, 9)] = 3
    sizes: Annotated[Sequence[int] | None, "of each", "N,N", LATE] = None
    hidden: str = "as it is"

    def __post_init__(self) -> None:
        if self.count == 7:
            raise InstanceError("count", "7 is not liked")


TOLD: list[tuple[Any, ...]] = []
NAMES = ("--names", "x, y", "--names", "z")


def command(
    file: Annotated[str, "what is read", "FILE"],
    table: Table,
    out: Annotated[str, "what is written", "FILE", "--out"],
    more: Annotated[str | None, "and this", "[MORE]"] = None,
    fast: Annotated[bool, "hurry"] = False,
    tidy: Annotated[bool | None, "or not"] = None,
    speeds: Annotated[Any, "by name", lambda text: by_name(text, "speeds")] = None,
    names: Annotated[list[str] | None, "joined by commas", SEVERAL] = None,
) -> int:
    """Do it."""
    TOLD.append((file, table, out, more, fast, tidy, speeds, names))
    return 3


def call(*words: str) -> Any:
    """Call the command, and return what it was told."""
    assert made_of("do", command, "a.json")(list(words), standalone_mode=False) == 3
    return TOLD.pop()


def test_values() -> None:
    """Arguments, options, flags and the fields of a table arrive as the signature says."""
    assert call("a", "--out", "b") == ("a", Table(), "b", None, False, None, None, None)
    told = call(
        "a", "c", "--out", "b", "--count", "9", "--sizes", "1,2", "--fast", "--no-tidy", "--speeds", "v=1,k=.5", *NAMES
    )
    assert told == ("a", Table(9, (1, 2)), "b", "c", True, False, {"v": 1.0, "k": 0.5}, ["x", "y", "z"])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--count", "10"), "10 is not from 1 to 9"),
        (("--count", "x"), "'x' is not a whole number"),
        (("--speeds", "v"), "'v' is not name=number"),
        (("--count", "7"), "count: 7 is not liked"),
        (("--no-fast",), "No such option: --no-fast"),
        (("--hidden", "x"), "No such option: --hidden"),
        (("--names", "x,y", "--names", "x"), "names: 'x' is given 2 times"),
    ],
)
def test_refused(words: tuple[str, ...], problem: str) -> None:
    """What is wrong with a value is said by the option or by the table that it is for."""
    with pytest.raises((InstanceError, ClickError), match=re.escape(problem)):
        call("a", "--out", "b", *words)


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Options stand below their section, values have names, and the example is whole."""
    made_of("do", command, "a.json")(["--help"], standalone_mode=False)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["Of", "the", "table:"] in lines and ["Of", "the", "end:"] in lines
    assert lines.index(["Of", "the", "table:"]) < lines.index(["--count", "N", "how", "many", "[default:", "3]"])
    assert ["$", "gangplan", "do", "a.json"] in lines and ["FILE", "what", "is", "read"] in lines


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("--size", "x"), "--size: 'x' is not name=word"),
        (("--degrees", "1,x"), "--degrees: 'x' is not a whole number"),
        (("--bandwidth", "1,x"), "--bandwidth: 'x' is not a number"),
    ],
)
def test_options_of_problems(problem: Path, words: tuple[str, ...], wrong: str, cli: Any) -> None:
    """What reads the text of an option of a problem says what is wrong with it."""
    assert cli("show", problem, *words).err == f"error: {wrong}\n"
