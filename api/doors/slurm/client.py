"""Run Slurm's commands, and read what they print."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.intake import parse_json

_SECONDS = 60.0
"""Seconds that a command may take: Slurm's own time-outs are shorter."""
_AWAY = re.compile(
    r"Unable to contact|connect failure|Connection refused|timed out|Zero Bytes|not responding|munge", re.I
)
"""Words of an error by which nobody answers, rather than a command is refused."""
_NAMES = {"SLURM_BITSTR_LEN": "0", "LC_ALL": "C"}
"""Environment in which all tasks of an array are named, in English."""
_RANGES = re.compile(r"\[([^\]]*)\]")
_MOST = 10**6
"""Maximum number of names of one list."""


class Away(InstanceError):
    """Say that Slurm cannot be reached: it may come back."""


def run(*words: str) -> str:
    """Return what a command of Slurm prints.

    Raises:
        Away: if the controller does not answer.
        InstanceError: if it refuses, or is not installed.
    """
    name = words[0]
    try:
        done = subprocess.run(
            words, capture_output=True, timeout=_SECONDS, env=os.environ | _NAMES, stdin=subprocess.DEVNULL, check=False
        )
    except FileNotFoundError:
        raise InstanceError("slurm", f"there is no {name} here: install Slurm's client commands") from None
    except subprocess.TimeoutExpired:
        raise Away("slurm", f"{name}: no answer within {_SECONDS:g} s") from None
    if done.returncode:
        told = plain(done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}")
        raise (Away if _AWAY.search(told) else InstanceError)("slurm", told if name in told else f"{name}: {told}")
    return done.stdout.decode(errors="replace")


def rows(name: str) -> list[dict[str, Any]]:
    """Return the jobs that `squeue --json` prints, or the nodes of `sinfo --json`."""
    data = parse_json(run(name, "--json").replace("\0", "\ufffd"))
    return list(data["jobs" if name == "squeue" else "nodes"])


def records(entity: str) -> list[dict[str, str]]:
    """Return what `scontrol show` prints of partitions or the topology, a mapping a line."""
    lines = run("scontrol", "show", entity, "--oneliner").splitlines()
    return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines if "=" in line]


def names_in(text: str) -> list[str]:
    """Return the names in a list of Slurm's, such as ``n[01-03,7],m1``."""
    names: list[str] = []
    for part in re.split(r",(?![^\[]*\])", text):
        for name in _expanded(part):
            if len(names) >= _MOST:
                raise InstanceError("slurm", f"a list has more than {_MOST} names")
            names.append(name)
    return [name for name in names if name and name != "(null)"]


def numbers_in(text: str) -> Iterator[str]:
    """Yield the numbers in ``01-03,7``, as long as they are written there."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            return  # such as the dots of a list that is cut off
        yield from (f"{number:0{len(first)}}" for number in range(int(first), int(last or first) + 1))


def _expanded(text: str) -> Iterator[str]:
    if (found := _RANGES.search(text)) is None:
        yield text
        return
    for number in numbers_in(found[1]):
        yield from _expanded(text[: found.start()] + number + text[found.end() :])


def plain(text: Any) -> str:
    """Return text that may have come from a user so that it can be printed on one line of a terminal."""
    return "".join(c if c.isprintable() else " " for c in str(text))[:200]
