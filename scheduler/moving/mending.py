"""Replace the workers that a gang lost with a node, so that its others stay where they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.typed import STATE
from gangplan.solvers.placement.policies import GANG_POLICIES

from ..stopping.running_jobs import Nodes, RunningJob

if TYPE_CHECKING:
    from ..starting.starts import StartRound
    from ..state import SchedulerState

TIER = "mend"


@dataclass(frozen=True, slots=True)
class Mend:
    """Report the start of a gang that lost a node, with the GPUs that are new to it by node; its start has all."""

    job: str
    node: str
    nodes: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class TornGang:
    """Hold a gang that lost a node: its number of workers, and its GPUs elsewhere."""

    node: int
    degree: int
    kept: Nodes


_ROWS = tuple[tuple[str, int, int, tuple[tuple[int, tuple[int, ...]], ...]], ...]
"""Of a snapshot: a gang's name, the node it lost, its number of workers, and its GPUs by node."""


class Mending:
    """Keep the gangs that lost a node until a decision has the time to mend them or let them wait."""

    def __init__(self) -> None:
        self.torn: dict[str, TornGang] = {}

    def note(self, job: RunningJob, node: int) -> None:
        """Note a gang that lost a node; nothing of one that was on no other, or needs no GPU."""
        kept = {other: gpus for other, gpus in job.nodes.items() if other != node}
        if kept and job.request.job.worker.gpu:
            self.torn[job.name] = TornGang(node, job.degree, kept)

    def run(self, state: SchedulerState, starts: StartRound) -> None:
        """Mend the gangs for which there is room, in order of arrival; keep only those for which no time is left."""
        torn, self.torn = self.torn, {}
        for name in sorted((x for x in torn if x in state.waiting), key=lambda x: state.waiting[x].serial):
            gang = torn[name]
            if starts.over() or not state.queue.shows(state.queue.place(name)[0]):  # due jobs of its class come first
                self.torn[name] = gang
                continue
            kept = {node: gpus for node, gpus in gang.kept.items() if state.up[node]}
            nodes = _whole(state, name, gang.degree, kept)
            if nodes is not None and starts.one(name, (gang.degree,), TIER, nodes, hold=False):
                new = {node: tuple(x for x in gpus if x not in kept.get(node, ())) for node, gpus in nodes.items()}
                new = {node: gpus for node, gpus in new.items() if gpus}
                starts.mends.append(Mend(name, state.fleet.names[gang.node], state.named(new)))

    def save(self) -> dict[str, Any]:
        """Return the gangs for JSON, nothing if there are none."""
        rows = []
        for name, gang in self.torn.items():
            rows.append([name, gang.node, gang.degree, [[node, list(gpus)] for node, gpus in gang.kept.items()]])
        return {"torn": rows} if rows else {}

    def load(self, state: SchedulerState, rows: Iterable[Any]) -> None:
        """Take over what `save` returned."""
        for name, node, degree, kept in STATE.read(_ROWS, list(rows), "torn"):
            self.torn[name] = TornGang(state.node(node), degree, {state.node(other): gpus for other, gpus in kept})


def _whole(state: SchedulerState, name: str, degree: int, kept: Nodes) -> dict[int, tuple[int, ...]] | None:
    """Return GPUs for all workers of a gang: those that are kept, and idle ones; `None` if they do not suffice."""
    request = state.waiting[name]
    taken = any(not state.holders[node].keys().isdisjoint(gpus) for node, gpus in kept.items())
    if taken or degree not in request.job.workers:
        return None  # someone who was due took them
    need, gang = request.job.worker.grants, state.placed(request, degree)
    size = gang.worker.grants // need  # workers in a bundle
    missing = degree - sum(len(gpus) for gpus in kept.values()) // need
    if missing <= 0:
        return {node: tuple(gpus) for node, gpus in kept.items()}
    room = state.placer.room(gang)
    at = np.array([*kept], dtype=np.int64)
    mine = np.array([-(-len(gpus) // (need * size)) for gpus in kept.values()], dtype=np.int64)
    if gang.whole_nodes:
        mine[:] = room.room[at]
    room = room.with_room(at, np.maximum(room.room[at] - mine, 0))
    bundles = -(-missing // size)
    if room.total < bundles:
        return None
    policy = GANG_POLICIES["topology"] if state.places is None else state.places.closest
    nodes = {node: tuple(gpus) for node, gpus in kept.items()}
    rest = bundles * size - missing  # workers that it does not need, which it keeps where it has a whole node so
    for node, count in sorted(policy(room, bundles).items()):
        idle = [gpu for gpu in state.placer.idle(node) if gpu not in nodes.get(node, ())]
        new = idle[: count * size * need]
        if rest and len(new) + len(nodes.get(node, ())) < state.fleet.gpus[node]:
            new, rest = new[: len(new) - rest * need], 0
        nodes[node] = tuple(sorted((*nodes.get(node, ()), *new)))
    return dict(sorted(nodes.items()))
