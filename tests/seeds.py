"""Seeds and long tests of which each run plays a share that the commit chooses: in the course of commits all are."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")
CHOICE = "GANGPLAN_TEST_SEEDS"
"""The environment variable that chooses the share: a commit, of which the first digits count, or `all`."""
ALL = "all"
_DIGITS = 12
_LEARNERS = ("learned/training", "simulator/ground.py")
RARE = {
    "tests/benchmarks/test_pacml.py": ("benchmarks", "systems/pacml"),
    "tests/benchmarks/test_sailor.py": ("instances/layout", "benchmarks/sailor.py"),
    "tests/cli/test_split.py": ("api/cli/split.py", "api/torch_split", "instances/torch_model"),
    "tests/cli/test_teach.py": ("api/cli/teach.py", "api/teach"),
    "tests/doors/test_serving.py": ("api/doors",),
    "tests/hybrid/bench/peers": ("hybrid/bench", "solvers"),
    "tests/hybrid/bench/test_plugins.py": ("hybrid/bench",),
    "tests/hybrid/bench/test_run.py": ("hybrid/bench",),
    "tests/learned/training/interference/test_models.py": _LEARNERS,
    "tests/learned/training/offline": _LEARNERS,
    "tests/learned/training/online": _LEARNERS,
    "tests/simulator/test_ceiling.py::test_published_list": ("simulator", "solvers/placement/online"),
    "tests/simulator/test_replay.py::test_published_policies": ("simulator", "solvers/placement/online"),
    "tests/simulator/test_replay_lists.py": ("simulator", "solvers/placement/online", "instances/readers/openb.py"),
    "tests/solvers/partition/stages/test_stages.py::test_published_four_devices[gnmt": ("solvers/partition/stages",),
    "tests/systems/harmony/colocate/test_learners.py": (*_LEARNERS, "systems/harmony"),
    "tests/systems/harmony/colocate/test_policy.py": (*_LEARNERS, "systems/harmony"),
    "tests/systems/harmony/test_learners.py": (*_LEARNERS, "systems/harmony"),
    "tests/systems/marl/test_learners.py": (*_LEARNERS, "systems/marl"),
    "tests/systems/marl/test_recipe.py": (*_LEARNERS, "systems/marl"),
    "tests/systems/pacml/learned": (*_LEARNERS, "systems/pacml"),
    "tests/systems/pacml/test_simulate.py::test_published_rates": ("systems/pacml",),
    "tests/systems/pacml/published/test_learners.py": (*_LEARNERS, "systems/pacml"),
    "tests/systems/topdrl/published/test_learners.py": (*_LEARNERS, "systems/topdrl"),
    "tests/teach/test_grading.py": ("api/teach",),
    "tests/teach/test_notebooks.py": ("api/teach", "docs/course"),
    "tests/torch_split/test_schedule.py": ("api/torch_split", "instances/torch_model"),
    "tests/torch_split/test_pieces.py": ("api/torch_split", "instances/torch_model"),
}
"""Tests that train, run notebooks, or programs that die, or play published lists, and what they are about."""


def commit() -> str:
    """Return the commit of the clone, zeros where there is none."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "0" * _DIGITS


def choose(everything: bool) -> str:
    """Choose the share for this process and for those it starts, unless it is chosen; return the choice."""
    if everything:
        os.environ[CHOICE] = ALL
    return os.environ.setdefault(CHOICE, commit()[:_DIGITS])


def some(seeds: Sequence[T], share: int = 10) -> Sequence[T]:
    """Return one of each `share` seeds, other ones by another commit; with `--all` return all of them."""
    choice = os.environ.get(CHOICE, ALL)
    return seeds if choice == ALL else seeds[int(choice[:_DIGITS], 16) % share :: share]


@cache
def changed(*paths: str) -> bool:
    """Return whether something in these paths is not as the commit before has it; `False` where that is not known."""
    diff = ["git", "diff", "--quiet", "HEAD~1", "--", *paths]
    return subprocess.run(diff, cwd=Path(__file__).parents[1], capture_output=True, check=False).returncode == 1


def turn(test: str) -> bool:
    """Return whether a test has its turn: one of `RARE` after a change of what it is about, and by one commit in three.

    Args:
        test: its path, `::` and its name.
    """
    for start, paths in RARE.items():
        if test.startswith(start) and os.environ.get(CHOICE, ALL) != ALL:
            choice = int(os.environ[CHOICE][:_DIGITS], 16)
            return (choice + crc32(test.encode())) % 3 == 0 or changed(start.partition("::")[0], *paths)
    return True


def examples(count: int) -> int:
    """Return how many examples hypothesis draws, which are others each time: a fifth, but 5; with `--all`, `count`."""
    return count if os.environ.get(CHOICE, ALL) == ALL else max(count // 5, 5)
