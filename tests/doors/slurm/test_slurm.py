"""The page's commands, run as they are written, on the real daemons."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.slurm_daemons import Daemons

from .conftest import OURS, nodes_of

PAGE = (Path(__file__).parents[3] / "docs" / "doors.md").read_text()


def test_from_install_to_first_decision(slurm: Daemons, tmp_path: Path) -> None:
    """The job of the page is shown, released to two nodes of one rack, and in the log."""
    section = PAGE.partition("\n## Slurm\n")[2].partition("\n## ")[0]
    commands = re.search(r"```sh\n(.*?)```", section, re.DOTALL)[1].splitlines()  # type: ignore[index]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    said = dict[str, str]()
    for command in commands[1:]:
        words = [*shlex.split(command), *(["--once"] if "--interval" in command else [])]
        options = {"cwd": tmp_path, "env": slurm.environment | {"PATH": path}, "capture_output": True, "text": True}
        done = subprocess.run(words, check=False, **options)  # type: ignore[call-overload]
        assert done.returncode == 0, f"{command}: {done.stderr}"
        said[command] = done.stdout
    submitted, dry, once, *_, log = said.values()
    name = submitted.split()[-1]
    assert re.search(rf"^{name} +root +now on n\d,n\d +not known", dry, re.MULTILINE)
    assert once.startswith(f"{name} on n") and "1" in log
    nodes = once.split()[-1].split(",")
    assert len(nodes) == 2 and slurm.crossing(nodes) == 0


def test_a_loop_of_ones_own(slurm: Daemons) -> None:
    """Two rounds of the example release a job to two nodes, and Slurm runs it there."""
    example = Path(__file__).parents[3] / "docs" / "examples" / "slurm_loop.py"
    name = slurm.ask("sbatch", *OURS, "--parsable", "--nodes=2", "--gres=gpu:4", "--wrap=sleep 60").strip()
    (done,) = runpy.run_path(str(example))["main"](2, 0.1)
    assert done.startswith(f"{name} on n")
    slurm.wait(lambda: slurm.jobs()[name]["job_state"] == "RUNNING", "the job to run")
    assert nodes_of(slurm.jobs()[name]) == set(done.split()[-1].split(","))


def test_daemons_begin_anew_for_the_next_test(slurm: Daemons) -> None:
    """A node that a test leaves drained costs the next one nothing: all nodes are idle again, and no jobs are there."""
    slurm.submit(600)
    slurm.ask("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=test")
    with pytest.warns(UserWarning, match="n3 is drained: test"):
        assert not slurm.rest(0.5)
    assert slurm.states() == ["idle"] * 8 and slurm.jobs() == {}
    assert slurm.rest()
