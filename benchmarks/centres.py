"""Who is compared where there are many schedulers, and the tables of docs/marl.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .found import Found, number, percent, table
from .study import Tables

RULES = ("lif", "tetris", "lb", "lif-near", "tetris-near", "lb-near")
SINGLE = (*RULES, "alone", "alone-joint")
AGENTS = (
    "market-learned",
    "market-packed",
    "market",
    "market-ask-2",
    "marl",
    "agents-alone",
    "agents-random",
    "agents-apart",
    "agents-lif",
)
WIDE = (
    "market-learned-2-racks",
    "market-packed-2-racks",
    "market-2-racks",
    "market-ask-1-2-racks",
    "agents-alone-2-racks",
    "agents-apart-2-racks",
    "agents-lif-2-racks",
)
_NETWORKS = ("fat-tree", "leaf-spine", "flat")
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "centres": (_NETWORKS, (*AGENTS, *SINGLE)),
    "workloads": (("leaf-spine-gavel", "leaf-spine-philly"), (*AGENTS, *SINGLE)),
    "wide": (tuple(f"{name}-wide" for name in _NETWORKS), (*WIDE, *SINGLE)),
}
"""What is run: cases, and the policies on them, the first of which the others are compared with."""
FEW = (*AGENTS[:2], *AGENTS[3:6], "agents-lif", "lif-near", "alone")
SHOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "centres": (("leaf-spine", *PARTS["workloads"][0]), FEW),
}
"""What the tables show of it: networks differ little."""


def policies_of(case: str) -> tuple[str, ...]:
    """Return who is compared on a case of many schedulers, nobody if it is none."""
    return next((policies for cases, policies in PARTS.values() if case in cases), ())


def compared(found: Found, cases: Sequence[str], policies: Sequence[str]) -> str:
    """Return mean JCTs in minutes by case, and by how much the first policy's is less."""
    first, lines = policies[0], []
    for name in policies:
        cells: list[str] = []
        for case in cases:
            mean = found.mean(case, name)
            cells += ["" if mean is None else number(mean / 60)]
            cells += ["" if name == first else percent(found.apart(case, first, name))]
        if any(cells):
            lines.append((f"`{name}`", *cells))
    heads = [words for case in cases for words in (f"{case}, min", f"`{first}` less it")]
    return table(("policy", *heads), lines)


def _of(cases: Sequence[str], policies: Sequence[str]) -> Callable[[Found], str]:
    return lambda found: compared(found, cases, policies)


TABLES: Tables = {name: _of(*of) for name, of in SHOWN.items()}
