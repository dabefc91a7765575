"""How much a problem is like those that the policies were trained on: what is far from them gets less of the time.

Every column of a problem's encoding comes down to its mean and its maximum over the nodes of a type. Ranges of these
over training instances are in familiar.json, which ``python -m benchmarks familiar`` writes. Sizes do not count:
encodings have none, and policies are to be used on larger problems than they have seen.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from gangplan.solvers import Run

RANGES = Path(__file__).with_name("familiar.json")
_MARGIN = 0.25
"""Of a range, on either side: so far outside still counts as inside."""
_ROUNDED = 1e-5
"""What the ranges in the file may be off."""
_FEW, _NONE_LEFT = 0.03, 0.3
"""Shares of columns outside up to which a policy has all of its time, and from which on it has none."""


def summary(problem: Any) -> dict[str, float]:
    """Return mean and maximum of each column of the problem's encoding by name."""
    from gangplan.learned.encode import encode_partition, encode_schedule
    from gangplan.learned.encode.placement import PlacementEncoder

    if problem.objective == "placement":
        encoding = PlacementEncoder(problem)()
    else:
        encoding = encode_schedule(problem) if problem.objective == "schedule" else encode_partition(problem)
    found = {}
    for kind, x in encoding.nodes.items():
        for i, column in enumerate(encoding.columns[kind]):
            if len(x):
                found[f"{kind}.{column} mean"] = float(x[:, i].mean())
                found[f"{kind}.{column} most"] = float(x[:, i].max())
    return found


def outside(problem: Any) -> list[str]:
    """Return the names of what lies outside of the ranges of training."""
    known = _ranges().get(problem.objective, {})
    found = []
    for name, value in summary(problem).items():
        low, high = known.get(name, (value, value))
        margin = _MARGIN * (high - low) + _ROUNDED
        if not low - margin <= value <= high + margin:
            found.append(name)
    return found


def trust(run: Run) -> float:
    """Return the share of its time that a policy gets on a run's problem, from 0 to 1, and note it if it is less."""
    known = _ranges().get(run.problem.objective)
    if not known:
        return 1.0
    try:
        strange = outside(run.problem)
    except Exception as error:  # numbers of a kind that no network has been shown
        run.note(f"learned left out: the problem cannot be encoded: {' '.join(str(error).split())[:200]}")
        return 0.0
    share = len(strange) / len(known)
    if share <= _FEW:
        return 1.0
    left = max(0.0, 1 - share / _NONE_LEFT)
    names = ", ".join(strange[:3]) + (", ..." if len(strange) > 3 else "")
    run.note(
        f"learned gets {left:.0%} of its time: {share:.0%} of the problem's features lie outside of training ({names})"
    )
    return left


@cache
def _ranges() -> dict[str, dict[str, tuple[float, float]]]:
    found: dict[str, Any] = json.loads(RANGES.read_text(encoding="utf-8")) if RANGES.exists() else {}
    return found
