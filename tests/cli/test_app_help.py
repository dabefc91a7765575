"""`gangplan --help` and its kin: groups, examples, 80 columns."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from gangplan.cli.app import COMMANDS, GROUPS
from gangplan.cli.output import table
from gangplan.instances.quantities import quantity
from gangplan.systems.interference.baselines import baselines
from gangplan.systems.interference.policies import OTHERS
from gangplan.units import column, percent


def test_version(cli: Any) -> None:
    """The version is that of the installed package."""
    assert cli("--version").out == f"gangplan {version('gangplan')}\n"


def test_help_lists_every_command_in_its_group(cli: Any) -> None:
    """The list of commands has a section for each group, and says what each does."""
    text = cli("--help").out
    for title, entries in GROUPS.items():
        assert f"\n{title}:\n" in text
        assert all(entry.about.split(":")[0] in text for entry in entries.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(command: str, cli: Any) -> None:
    """Each explains itself in 80 columns, with an example unless its own commands have one."""
    text = cli(command, "--help").out
    assert text.startswith(f"Usage: gangplan {command} ")
    assert max(map(len, text.splitlines())) <= 80
    assert "Example:\n  $ gangplan" in text or command in ("bench", "generate", "learn", "system", "teach")


def test_every_command_is_in_the_table_of_its_page() -> None:
    """The page on the command line says in its table what each command does."""
    page = Path(__file__).parents[2] / "docs" / "command-line.md"
    rows = "".join(line for line in page.read_text().splitlines() if line.startswith("| `"))
    assert [name for name in COMMANDS if f"`{name}`" not in rows and f"`{name} " not in rows] == []


def test_an_unknown_command_is_told_what_it_may_have_been(cli: Any) -> None:
    """A mistyped command, option or kind is answered with the nearest."""
    for call, word in ((("slove",), "solve"), (("generate", "gpt2"), "gpt"), (("schema", "steps"), "step")):
        done = cli(*call)
        assert done.code == 2 and f"did you mean {word}?" in done.err
    calls = (("learn", "trian"), "train"), (("bench", "runn"), "run"), (("schema", "STEP"), "step")
    for call, word in calls:
        done = cli(*call)
        assert done.code == 2 and f"did you mean {word}?" in done.err
    assert "write gangplan --help" in cli("help").err


@pytest.mark.parametrize("command", [(), ("solve",), ("learn",), ("bench", "run"), ("generate", "gpt")])
def test_short_help(command: tuple[str, ...], cli: Any) -> None:
    """`-h` is `--help`, of groups and of their commands."""
    short, long = cli(*command, "-h"), cli(*command, "--help")
    assert short.code == 0 and short.out == long.out and "..." not in short.out.partition("Commands:")[2]


def test_help_of_harmony_has_every_policy(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name that `--policy` takes is there, those of two racks by their rule."""
    monkeypatch.setenv("COLUMNS", "80")
    text = "".join(cli("system", "harmony", "--help").out.split())
    names = [name for name in (*baselines(), *OTHERS) if not name.endswith("-2-racks")]
    assert [name for name in names if f"{name}," not in text and f"{name};" not in text] == []


@pytest.mark.parametrize("kind", ["gpt", "gangs", "moldable"])
def test_eighty_columns(kind: str, tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a solve, a verification and a description print fits into 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    cli("generate", kind, "--out", "a.json", *(["--layers", "2"] if kind == "gpt" else ["--jobs", "6"]))
    for call in (("solve", "a.json", "--out", "p.json", "--time-limit", "5"), ("verify", "a.json", "p.json")):
        assert max(map(len, cli(*call).out.splitlines())) <= 80
    for file in ("a.json", "p.json"):
        assert max(map(len, cli("show", file).out.splitlines())) <= 80


def test_no_number_is_cut(cli: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A table whose numbers need more than the terminal has is wider than that; its words fold first."""
    from gangplan.cli.output import emit_blocks

    monkeypatch.setenv("COLUMNS", "60")
    emit_blocks(table(("a word", *"bcdefghij"), [("some words", *["1234567.89"] * 9)]))
    assert capsys.readouterr().out.count("1234567.89") == 9
    emit_blocks(table(("a word", *"bcdefghij"), [("some words", *["12.3 ± 4"] * 9)]))
    assert capsys.readouterr().out.count("12.3 ± 4") == 9


def test_long_lines_go_on_below(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A line of text that is longer than the terminal goes on below between its words, a long word is left whole."""
    from gangplan.cli.output import emit_blocks

    monkeypatch.setenv("COLUMNS", "60")
    emit_blocks(f"  {'word ' * 20}{'x' * 70}")
    *folded, last = capsys.readouterr().out.splitlines()
    assert max(map(len, folded)) <= 60 and last == f"    {'x' * 70}" and " ".join(folded).split() == ["word"] * 20


def test_kinds_for_machines(cli: Any) -> None:
    """`generate --list --json` holds what each kind can be told, in the list for people within 80 columns."""
    found = json.loads(cli("generate", "--list", "--json").out)
    assert found["gpt"]["options"]["layers"] == 12 and found["gangs"]["about"].endswith(".")
    assert max(map(len, cli("generate", "--list").out.splitlines())) <= 80


def test_notes_of_a_solve_are_for_those_who_ask(problem: Path, cli: Any) -> None:
    """Phases are shown with --verbose only."""
    plain, more = cli("solve", problem), cli("solve", problem, "--verbose")
    assert "phases" not in plain.out and "phases" in more.out


def test_units() -> None:
    """Numbers have four digits, long times hours and days, columns one number of decimals."""
    assert [quantity(x, "s") for x in (0.0012345, 12.3456, 5400.0, 9000.0, 200000.0)] == [
        *("1.234 ms", "12.35 s", "90 min", "2.5 h", "2.315 d"),
    ]
    assert [quantity(x, "B") for x in (0.0, 512.0, 1.5e9)] == ["0 B", "512 B", "1.5 GB"]
    assert column([1.0, 12.3456, 0.01]) == ["1.00", "12.35", "0.01"]
    assert [percent(x) for x in (None, 0.0, 1e-9, 0.123456, 0.5)] == ["-", "0%", "0%", "12.3%", "50%"]
