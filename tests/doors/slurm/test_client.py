"""Commands of Slurm: errors are clear, text is data."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gangplan.doors.slurm import client
from gangplan.doors.slurm.client import AwayError, names_in, plain, run
from gangplan.instances import InstanceError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[01-03,7],m1", ["n01", "n02", "n03", "n7", "m1"]),
        ("r[0-1]n[8-9]", ["r0n8", "r0n9", "r1n8", "r1n9"]),
        ("(null)", []),
        ("", []),
        ("a,b", ["a", "b"]),
    ],
)
def test_lists_of_names(text: str, names: list[str]) -> None:
    """Ranges keep their zeros, and multiply."""
    assert names_in(text) == names


def test_text_is_data(tmp_path: Path) -> None:
    """No shell sees an argument."""
    file = tmp_path / "made"
    told = run(sys.executable, "-c", "import sys; print(sys.argv[1])", f"$(touch {file}); `touch {file}`")
    assert told.startswith("$(touch") and not file.exists()


def test_errors_say_who_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is not there, an order that is refused, nobody who answers."""
    with pytest.raises(InstanceError, match="there is no squeue-not-here here"):
        run("squeue-not-here", "--json")
    with pytest.raises(InstanceError, match="Invalid job") as refused:
        _run(monkeypatch, "release", "Invalid job id specified")
    assert not isinstance(refused.value, AwayError)
    for words in ("Unable to contact slurm controller (connect failure)", "Zero Bytes were transmitted or received"):
        with pytest.raises(AwayError, match=words[:9]):
            _run(monkeypatch, "release", words)
    with pytest.raises(AwayError):
        _run(monkeypatch, "show", "whatever it is")


def _run(monkeypatch: pytest.MonkeyPatch, order: str, words: str) -> str:
    """Have scontrol fail with some words."""

    class Done:
        returncode, stdout, stderr = 1, b"", words.encode()

    monkeypatch.setattr(client.subprocess, "run", lambda *_, **__: Done)
    return run("scontrol", order, "1")


def test_names_do_not_write_to_the_terminal() -> None:
    """Escapes, ends of lines and long texts of users are made harmless."""
    assert plain("a\x1b[31m\nb\r\0") == "a [31m b  " and len(plain("x" * 999)) == 304
