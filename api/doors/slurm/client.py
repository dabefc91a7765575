"""Run Slurm's commands, and read what they print."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from gangplan.instances.errors import InstanceError, brief
from gangplan.instances.intake import parse_json

_SECONDS = 90.0
"""Seconds that a command may take: Slurm's own time-outs are shorter."""
_ORDERS = ("update", "release", "uhold", "requeuehold", "--signal=TERM")
"""Words of `scontrol` and `scancel` that one job may be refused; whatever else fails, Slurm is away."""
_AWAY = re.compile(r"contact|connect|timed out|zero bytes|not responding|munge|auth|standby|initializ", re.IGNORECASE)
_NAMES = {"SLURM_BITSTR_LEN": "0", "SLURM_TIME_FORMAT": "standard", "LC_ALL": "C"}
"""Environment in which all tasks of an array are named, and times written in full, in English."""
_RANGES = re.compile(r"\[([^\]]*)\]")


class AwayError(InstanceError):
    """Say that Slurm cannot be reached: it may come back."""


def run(*words: str) -> str:
    """Return what a command of Slurm prints.

    Raises:
        AwayError: if nobody answers.
        InstanceError: if an order is refused, or the command is not installed.
    """
    try:
        done = subprocess.run(
            words, capture_output=True, timeout=_SECONDS, env=os.environ | _NAMES, stdin=subprocess.DEVNULL, check=False
        )
    except FileNotFoundError:
        raise InstanceError("slurm", f"there is no {words[0]} here: install Slurm's client commands") from None
    except subprocess.TimeoutExpired:
        raise AwayError("slurm", f"{words[0]}: no answer within {_SECONDS:g} s") from None
    if done.returncode:
        told = done.stderr.decode(errors="replace").strip().removeprefix(f"{words[0]}: ").removeprefix("error: ")
        told = plain(told or f"exit code {done.returncode}")
        order = words[1] in _ORDERS and not _AWAY.search(told)
        raise (InstanceError if order else AwayError)("slurm", f"{words[0]}: {told}")
    return done.stdout.decode(errors="replace").replace("\0", "\ufffd")


def booted() -> float:
    """Return when slurmctld began, in seconds since 1970; 0 if it does not say."""
    found = re.search(r"BOOT_TIME\s*=\s*(\d\S+)", run("scontrol", "show", "config"))
    return datetime.fromisoformat(found[1]).timestamp() if found else 0.0


def jobs() -> list[dict[str, Any]]:
    """Return all jobs, those too that ended or are in hidden partitions, which later versions print only if asked."""
    return list(_told("jobs", "squeue", "--json", "--states=all", "--all") or ())


def nodes() -> list[dict[str, Any]]:
    """Return all nodes: `sinfo --json` prints them in 22.05, and groups of nodes since 23.02."""
    found = _told("nodes", "sinfo", "--json")
    return list((_told("nodes", "scontrol", "show", "nodes", "--json") if found is None else found) or ())


def _told(key: str, command: str, *words: str) -> Any:
    """Return what a command prints under a key, `None` if it is not there."""
    try:
        told = parse_json(run(command, *words))
        if told.get("errors"):  # with exit code 0 and none of what there is
            raise AwayError("slurm", f"{command}: slurmctld does not answer: {plain(told['errors'][0].get('error'))}")
        found = told[key] if key == "jobs" else told.get(key)
        if not isinstance(found, list | None):
            raise InstanceError(key, f"{brief(found)} is no list")
        return found
    except (InstanceError, KeyError, TypeError) as error:  # half an answer, since the controller ended
        raise error if isinstance(error, AwayError) else AwayError("slurm", f"{command} --json: {error}") from None


def records(entity: str) -> list[dict[str, str]]:
    """Return what `scontrol show` prints of partitions, or of the topology, a mapping a line, the name first."""
    lines = run("scontrol", "show", entity, "--oneliner").splitlines()
    return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines if "=" in line]


def names_in(text: str) -> list[str]:
    """Return the names in a list of Slurm's, such as ``n[01-03,7],m1``."""
    parts = re.split(r",(?![^\[]*\])", text)
    return [name for part in parts for name in _expanded(part) if name and name != "(null)"]


def numbers_in(text: str) -> Iterator[str]:
    """Yield the numbers in ``01-03,7``, as they are written there."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            yield from (f"{number:0{len(first)}}" for number in range(int(first), int(last or first) + 1))


def _expanded(text: str) -> Iterator[str]:
    if (found := _RANGES.search(text)) is None:
        yield text
        return
    for number in numbers_in(found[1]):
        yield from _expanded(text[: found.start()] + number + text[found.end() :])


def plain(text: object) -> str:
    """Return text that a user may have written so that it can be printed on one line of a terminal."""
    line = "".join(c if c.isprintable() else " " for c in str(text))
    return line if len(line) <= 300 else f"{line[:300]} ..."
