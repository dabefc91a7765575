"""What `--set` says of a scheduler, where it is wrong, and where a log says otherwise."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from gangplan.cli import main


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing on stdin."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("queues=abc", "set queues: 'abc' is no mapping from names"),
        ('queues=["a"]', "set queues: ['a'] is no mapping from names"),
        ("limits=5", "set limits: 5 is no mapping from names"),
        ('queues={"a": {"mst": 1}}', "set queues.a.mst: is unknown; did you mean most?"),
    ],
)
def test_a_wrong_setting(text: str, words: str, told: None, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused in a line that names it and the part that is wrong."""
    assert main(["decide", "--cluster", "2x8", "--set", text]) == 2
    assert capsys.readouterr().err == f"error: {words}\n"


def test_what_a_log_says_otherwise(tmp_path: Path, told: None, capsys: pytest.CaptureFixture[str]) -> None:
    """A setting that was changed since the command began holds again, and that is said."""
    log, line = str(tmp_path / "log.jsonl"), b'{"event": "configure", "price": 600}\n'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line)))
        assert main(["decide", "--cluster", "2x8", "--set", "price=60", "--log", log]) == 0
    assert capsys.readouterr().err == ""
    assert main(["decide", "--cluster", "2x8", "--set", "price=60", "--log", log]) == 0
    assert "price was 600 by the log, and is 60 as --set says" in capsys.readouterr().err
