"""Two processes do not write to one folder, and a lock outlives nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gangplan.instances import InstanceError
from gangplan.learned.training.checkpoint import LOCK, locked

HOLD = """
import sys
from pathlib import Path
from gangplan.learned.training.checkpoint import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """Who comes second is told who is at work, and comes in as soon as that process is dead."""
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdin is not None
    assert other.stdout.readline() == "held\n"
    with (
        pytest.raises(InstanceError, match=rf"folder: is in use by another process \(process {other.pid} on "),
        locked(tmp_path),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    other.kill()
    other.communicate()
    with locked(tmp_path):
        assert f"process {os.getpid()} on" in (tmp_path / LOCK).read_text()
    with locked(tmp_path):
        pass


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    """A lock that is a link to somebody's file is refused, and the file is as it was."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / LOCK).symlink_to(victim)
    with pytest.raises(InstanceError, match="no folder that can be written to"), locked(tmp_path):
        pass
    assert victim.read_text() == "mine"
