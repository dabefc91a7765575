"""The command whose streams, folders or keyboard do not do what they should: a line and an exit code, no traceback."""

from __future__ import annotations

import os
import pty
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gangplan.instances import InstanceError
from gangplan.instances.outlet import check_writable, write_whole

COMMAND = [sys.executable, "-m", "gangplan"]
FULL = Path("/dev/full")


def run(*words: str | Path, shell: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command in a shell that has done `shell` to its streams."""
    line = ["sh", "-c", f'exec "$@" {shell}', "sh", *COMMAND, *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=False, **options)


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
@pytest.mark.parametrize("words", [("show",), ("--help",)])
def test_full_stdout(words: tuple[str, ...], problem: Path) -> None:
    """Where there is no room for the output, a line says so, whoever prints it."""
    done = run(*words, *([problem] if words == ("show",) else []), shell=">/dev/full")
    assert (done.returncode, done.stderr) == (2, "error: stdout: no space left on device\n")


def test_closed_stdout(problem: Path, tmp_path: Path) -> None:
    """With stdout closed files are written as ever, none of them gets what was to be printed, and a line says so."""
    out = tmp_path / "plan.json"
    done = run("solve", problem, "--method", "pipedream", "--time-limit", "5", "--out", out, shell="0<&- 1>&-")
    assert done.returncode == 2
    assert done.stderr.endswith("error: stdout: is closed\n")
    assert run("verify", problem, out).returncode == 0


@pytest.mark.parametrize(
    "shell",
    ["2>&-", pytest.param("2>/dev/full", marks=pytest.mark.skipif(not FULL.exists(), reason="a device of Linux"))],
)
def test_no_stderr(shell: str, tmp_path: Path) -> None:
    """With nobody to complain to the exit code still tells."""
    done = run("show", tmp_path / "absent", shell=shell)
    assert (done.returncode, done.stdout) == (2, "")


def test_narrow_terminal(problem: Path) -> None:
    """On a terminal of one column tables are made as for a wider one."""
    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": "1", "LINES": "1", "TERM": "dumb"}
    done = subprocess.run(
        [*COMMAND, "show", problem], stdout=follower, stderr=subprocess.PIPE, env=environment, check=False
    )
    os.close(follower)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"longest ops" in os.read(leader, 10_000)
    os.close(leader)


@pytest.mark.usefixtures("listens_to_ctrl_c")
@pytest.mark.parametrize("called", ["-m", "script"])
def test_interrupt_while_importing(called: str, tmp_path: Path) -> None:
    """Ctrl-C before the command has begun ends it with 130 and without a word."""
    (tmp_path / "numpy").mkdir()
    program = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    (tmp_path / "numpy" / "__init__.py").write_text(program)
    script = tmp_path / "gangplan"
    script.write_text("import sys\nfrom gangplan.cli import main\nsys.exit(main())\n")
    call = [*COMMAND, "versions"] if called == "-m" else [sys.executable, str(script), "versions"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(call, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.usefixtures("listens_to_ctrl_c")
def test_a_program_that_imports_gangplan_keeps_its_ctrl_c() -> None:
    """What Ctrl-C does is changed for the command only."""
    program = "import signal; before = signal.getsignal(2); import gangplan; print(signal.getsignal(2) is before)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "True\n"


def test_out_of_the_ordinary(problem: Path, tmp_path: Path, cli: Any) -> None:
    """Outputs that are no file are refused by name, and inputs that never end are read no further than needed."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for out, word in ((loop, "symbolic links"), (tmp_path, "is a directory"), (f"{tmp_path}/{'x' * 300}", "too long")):
        found = cli("generate", "fork_join", "--out", out)
        assert (found.code, found.out) == (2, "")
        assert word in found.err
    assert cli("generate", "fork_join", "--out", os.devnull).code == 0
    if Path("/dev/zero").exists():
        found = cli("show", "/dev/zero")
        assert (found.code, found.err) == (2, "error: /dev/zero: content: byte 0x00 at offset 0 is not text\n")


def test_a_pipe_is_read_up_to_the_limit(tmp_path: Path) -> None:
    """Of a pipe without end no more is read than the limit, which the message names."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", f"yes '[' >{pipe}"], stderr=subprocess.DEVNULL)
    try:
        done = run("show", pipe, env=os.environ | {"GANGPLAN_MAX_JSON_BYTES": "2000000"})
    finally:
        writer.kill()
        writer.wait()
    assert done.returncode == 2
    assert "is more than 2000000 bytes" in done.stderr
    assert "GANGPLAN_MAX_JSON_BYTES" in done.stderr


def test_a_planted_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that a result is written to first has a name that nobody knew, and is never one that is there."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    names = iter(["aa", "aa", "bb"])
    monkeypatch.setattr("gangplan.instances.outlet.secrets.token_hex", lambda n: next(names))
    (tmp_path / ".gangplan-aa.part").symlink_to(victim)
    with pytest.raises(InstanceError, match="file exists"):
        write_whole({tmp_path / "out": b"new"})
    assert victim.read_text() == "mine"


def test_permissions(tmp_path: Path) -> None:
    """A new file has the permissions that the umask leaves, one that was there keeps its own."""
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("")
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        write_whole({new: b"1", old: b"2"})
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (new, old)] == [0o640, 0o640]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder(tmp_path: Path) -> None:
    """A folder that cannot be written to is refused before any work is done."""
    tmp_path.chmod(0o500)
    with pytest.raises(InstanceError, match="permission denied"):
        check_writable(tmp_path / "x")
