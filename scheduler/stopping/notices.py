"""The jobs that were told to stop and have not yet, and the room that is kept for those for whom they stop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.quantities import quantity
from gangplan.instances.typed import STATE

from ..decision import Stopping

if TYPE_CHECKING:
    from gangplan.instances.placement import GangJob

    from ..state import SchedulerState


@dataclass(frozen=True, slots=True)
class Claim:
    """The room of a job that starts once others have stopped.

    Attributes:
        job: its name.
        degree: number of workers.
        nodes: its GPUs by name of the node; numbers of tasks without GPUs are below 0.
        tier: as of its start.
        after: the jobs that stop for it.
    """

    job: str
    degree: int
    nodes: Mapping[str, tuple[int, ...]] = field(metadata={"signed": True})
    tier: str
    after: tuple[str, ...]


class Notices:
    """Keep who stops and who claims the room, by name.

    Attributes:
        stopping: the jobs that were told to stop.
        claims: of those for whom they stop.
        rooms: of each claim the gang and its nodes, while a decision is made.
        kept: by node what nobody else gets while a decision is made, in the units of `Kind.need`, int64 (4,).
    """

    def __init__(self) -> None:
        self.stopping: dict[str, Stopping] = {}
        self.claims: dict[str, Claim] = {}
        self.rooms: dict[str, tuple[GangJob, list[int]]] = {}
        self.kept: dict[int, np.ndarray] = {}

    def apart(self, job: GangJob) -> list[int]:
        """Return the nodes with the room of gangs with which a job shares none."""
        gangs = [x for x in self.rooms.values() if x[0].name != job.name]
        return [node for gang, nodes in gangs for node in nodes if job.whole_nodes or gang.whole_nodes
                or gang.name in job.apart or job.name in gang.apart]  # fmt: skip

    def wake(self, now: float) -> float | None:
        """Return when the next grace is over, `None` if none is."""
        return min((x.until for x in self.stopping.values() if x.until > now), default=None)

    def why(self, name: str, now: float) -> str:
        """Return in words which jobs stop for a waiting one."""
        some = [self.stopping[x] for x in self.claims[name].after if x in self.stopping]
        if not some:
            return "its room is free: the next decision starts it"
        names = ", ".join(x.job for x in some[:4]) + f" and {len(some) - 4} more" * (len(some) > 4)
        left = quantity(max(x.until for x in some) - now, "s", 3)
        return f"{names} stop{'s' * (len(some) == 1)} for it, within {left}"

    def save(self) -> dict[str, Any]:
        """Return all of it for JSON, nothing if there is none."""
        rows = {"stopping": [asdict(x) for x in self.stopping.values()], "claims": self.claimed()}
        return {name: some for name, some in rows.items() if some}

    def claimed(self) -> list[dict[str, Any]]:
        """Return the claims for JSON."""
        return [asdict(x) for x in self.claims.values()]

    def load(self, state: SchedulerState, document: Mapping[str, Any]) -> None:
        """Take over what `save` returned."""
        for row in document.get("stopping", ()):
            tell(state, row)
        self.claim(document.get("claims", ()))

    def claim(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Enter claims, as `save` returned them, in the place of those that there are."""
        self.claims.clear()
        for row in rows:
            self.claims[row["job"]] = STATE.read(Claim, row, "claims")


def tell(state: SchedulerState, row: Mapping[str, Any]) -> None:
    """Have a running job be told to stop, as a snapshot or a log says."""
    state.find(row["job"], "runs")
    told = STATE.read(Stopping, row, "stopping")
    if told.job in state.notices.stopping:
        raise InstanceError("stopping", f"{told.job!r} is there twice")
    state.notices.stopping[told.job] = told
    state.alter(state.running[told.job].told(told.until))
