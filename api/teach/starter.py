"""A first submission to build on: the problems of a suite as files, and a solver that scores some points."""

from __future__ import annotations

from pathlib import Path

from gangplan.instances import InstanceError, dump
from gangplan.instances.intake import io_error
from gangplan.instances.outlet import write_whole

from .suite import Suite

_SOLVE = '''"""My submission: the grader calls solve, and prove where a bound is worth points too."""

import gangplan

SIMPLE = {
    "throughput": "pipedream",
    "latency": "series",
    "step": "heft",
    "stages": "chain",
    "placement": "pack",
    "schedule": "dual",
}
"""A simple heuristic for each objective; `gangplan methods` lists others."""


def solve(problem):
    """Return a plan; replace this by a method of your own."""
    return gangplan.solve(problem, time_limit=8, method=SIMPLE[problem.objective]).plan


def prove(problem):
    """Return the certificate of a bound, or None; see docs/proofs.md for what it may say."""
    if problem.objective == "placement":
        return None  # prices of gangs, "covers"
    # a weight of a second, and of a byte, for each type of device
    types = len(problem.cluster.device_types)
    return {"argument": "shares", "seconds": ["1"] * types, "bytes": ["0"] * types}


if __name__ == "__main__":
    import pathlib

    for file in sorted(pathlib.Path(__file__).parent.glob("problems/*.json")):
        problem = gangplan.load(file)
        verdict = gangplan.verify(problem, solve(problem))
        print(f"{file.stem:30} {verdict.objective or verdict.violations}")
'''
_README = """# {title}

Improve `solve(problem)` in `solve.py`; it has {seconds:g} s for a problem. `python solve.py` tries it on all of them.
Instead of a program you may hand in plans, `NAME.json`, and certificates of bounds, `NAME.bound.json`.

Points by the gap to the best known: {worth}; else 0.

{rows}
"""


def write_starter(suite: Suite, folder: str | Path) -> list[Path]:
    """Write a starter submission into a new or empty folder and return its files.

    Raises:
        InstanceError: if the folder is not empty, or cannot be written.
    """
    own = Path(folder)
    try:
        own.joinpath("problems").mkdir(parents=True, exist_ok=True)
        there = sorted(x.name for x in own.iterdir() if x.name != "problems")
    except OSError as error:
        raise InstanceError("folder", io_error(error), str(folder)) from None
    if there or any(own.joinpath("problems").iterdir()):
        raise InstanceError("folder", "is not empty", str(folder))
    worth = ", ".join(f"{p:g} at {g:.0%}" for g, p in zip(suite.gaps, suite.points, strict=True))
    rows = "\n".join(f"- {x.name}: plan{', bound' * x.proof}" for x in suite.assignments)
    text = _README.format(title=suite.title, seconds=suite.seconds, worth=worth, rows=rows)
    files = {own / "solve.py": _SOLVE.encode(), own / "README.md": text.encode()}
    files |= {own / "problems" / f"{x.name}.json": dump(x.problem).encode() for x in suite.assignments}
    write_whole(files)
    return list(files)
