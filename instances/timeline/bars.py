"""Bars in rows: what a timeline is made of, and the chain that makes it as long as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..verify import Verdict

KINDS = ("forward", "backward", "transfer", "call")
"""What a bar stands for: ops of one direction, data under way, a call to an accelerator."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a timeline: a device, or a link.

    Attributes:
        name: what it is called.
        device: index of the device whose row or link it is, or of one of several that do the same; `None` for a link
            that several devices share.
        link: whether it shows transfers.
        lanes: how many bars lie on top of one another where it is fullest.
    """

    name: str
    device: int | None = None
    link: bool = False
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that takes time.

    Attributes:
        row: index into the timeline's rows.
        kind: one of `KINDS`.
        label: the name of the op, or what else it is.
        start, finish: seconds.
        size: bytes moved by a transfer, held in memory by ops.
        count: how many ops or outputs it stands for.
        sender, receiver: devices of a single transfer, otherwise `None`.
        lane: its place among those of its row; bars of one lane do not overlap.
        critical: whether it is on the chain that leads to the last finish.
    """

    row: int
    kind: str
    label: str
    start: float
    finish: float
    size: float = 0.0
    count: int = 1
    sender: int | None = None
    receiver: int | None = None
    lane: int = 0
    critical: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """When everything of a plan runs.

    Attributes:
        rows: the devices in use, each followed by its links, then links that devices share.
        bars: in no particular order; a transfer has one on each link that it is shown on.
        chain: bars in the order of time up to the last finish, each the last that the next one waited for.
        makespan: the last finish, seconds: the verifier's objective.
        verdict: the verifier's, for loads and memory.
        idle: how many devices do nothing.
    """

    rows: tuple[Row, ...]
    bars: tuple[Bar, ...]
    chain: tuple[int, ...]
    makespan: float
    verdict: Verdict
    idle: int


def assemble(
    rows: Sequence[Row],
    bars: Sequence[Bar],
    chain: Sequence[int],
    same: Sequence[int],
    verdict: Verdict,
    idle: int,
    slack: float,
) -> Timeline:
    """Put bars into lanes and mark the critical ones.

    Args:
        rows, bars, verdict, idle: of the timeline.
        chain: the bars of the chain.
        same: for each bar, a number that it shares with the bars of the same transfer on other links.
        slack: seconds that bars of one lane may overlap, for rounding.
    """
    lane, lanes = [0] * len(bars), [1] * len(rows)
    free: list[list[float]] = [[] for _ in rows]
    for i in sorted(range(len(bars)), key=lambda i: (bars[i].start, bars[i].finish, i)):
        bar, ends = bars[i], free[bars[i].row]
        k = next((k for k, end in enumerate(ends) if end <= bar.start + slack), len(ends))
        ends[k : k + 1] = [max(bar.finish, ends[k]) if k < len(ends) else bar.finish]
        lane[i], lanes[bar.row] = k, max(lanes[bar.row], k + 1)
    critical = {same[i] for i in chain}
    return Timeline(
        rows=tuple(replace(row, lanes=count) for row, count in zip(rows, lanes, strict=True)),
        bars=tuple(replace(bar, lane=lane[i], critical=same[i] in critical) for i, bar in enumerate(bars)),
        chain=tuple(chain),
        makespan=max((bar.finish for bar in bars), default=0.0),
        verdict=verdict,
        idle=idle,
    )


def critical_chain(finish: Sequence[float], waits_for: Sequence[Sequence[int]], slack: float) -> list[int]:
    """Return the items that lead to the last finish, in the order of time: each the last that the next waited for.

    Args:
        finish: seconds, of each item.
        waits_for: the items that each one cannot start before; of several that finish together within `slack`
            seconds the first counts.
        slack: seconds, for rounding.
    """
    item: int | None = max(range(len(finish)), key=finish.__getitem__, default=None)
    found: list[int] = []
    seen: set[int] = set()
    while item is not None:
        found.append(item)
        seen.add(item)
        last: int | None = None
        for other in waits_for[item]:
            # items that take no time can wait for one another in a circle
            if other not in seen and (last is None or finish[other] > finish[last] + slack):
                last = other
        item = last
    return found[::-1]
