"""Stops with grace: a job is told to stop, holds its GPUs until it has, and nobody else gets the room meanwhile.

A decision is made as if stops took no time. Then who has a grace runs on where it was, told to stop, and whoever would
have started on its GPUs claims its seats: the free part is nobody else's, shares are counted as if the stops were over,
limits with what both hold, and it starts there, before all others, by the first decision for which its seats are free.
A stop is not taken back: who withdraws leaves the room to whoever is first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.quantities import quantity
from gangplan.instances.typed import STATE
from gangplan.solvers.placement.online.capacity import demanded

from ..decision import GAIN, Stop, Stopping
from ..queueing.request import Request, Terms, renamed
from ..starting.gpu_types import below_zero
from .running_jobs import Nodes, RunningJob

if TYPE_CHECKING:
    from gangplan.instances.placement import GangJob

    from ..starting.starts import StartRound
    from ..state import SchedulerState, Trial


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


def end_grace(state: SchedulerState) -> list[Stop]:
    """Stop the jobs whose grace is over; return the stops."""
    late = [x for x in state.notices.stopping.values() if x.until <= state.now]
    for x in late:
        state.halt(x.job)
    return [Stop(x.job, x.nodes, x.other, max(0.0, x.left - x.seconds), x.price, x.cause) for x in late]


def start_claims(state: SchedulerState, starts: StartRound) -> None:
    """Start those for whom others have stopped, on the seats that they claim; forget claims that cannot be met."""
    notices, starts.hopeful = state.notices, False  # their places are given
    first: list[tuple[Claim, Terms]] = []  # those that wait still: of what one decision left, limits leave it to them
    for name, claim in list(notices.claims.items()):
        request, seats = state.waiting.get(name), _seats(state, claim)
        before = (x for other, x in first if other.after == claim.after)
        free = request is not None and not any(state.accounts.share_limits(request.terms, x) for x in before)
        fits = (
            request and seats and claim.degree in request.job.workers and not state.wrong(request, claim.degree, seats)
        )
        if free and fits:
            starts.one(name, (claim.degree,), claim.tier, seats, hold=False)
        comes = request or name in notices.stopping
        if not (seats and comes and (notices.stopping.keys() & {name, *claim.after})):
            notices.claims.pop(name, None)
        elif name in notices.claims:
            first.append((claim, (request or state.running[name].request).terms))
    starts.hopeful = True


def announce(
    state: SchedulerState, starts: StartRound, killed: Sequence[Stop] = ()
) -> tuple[tuple[Stop, ...], tuple[Stopping, ...]]:
    """Have those of a decision's stops be told that have a grace; return the others, and who is told.

    They run on where they were. Of the starts those remain that have room all the same; the others become claims.

    Args:
        state: it is changed.
        starts: and stops of the decision; they are changed.
        killed: those whose grace was over, which come first.
    """
    stops, halted = sorted(starts.stops.values(), key=lambda x: x.cause == GAIN), starts.trial.halted
    told = {x.job: x for x in stops if state.grace(halted[x.job].request)}
    notices, jobs, bounded = state.notices, [halted[name] for name in told], state.accounts.bounded
    rest = (*killed, *(x for x in stops if x.job not in told))
    if not told:
        return rest, ()
    nodes = {node for job in jobs for node in job.nodes}
    made = [*starts.starts.values()]
    late = [x for x in made if x.job in told or bounded or nodes & state.running[x.job].nodes.keys()]
    runs = {x.job: state.running[x.job] for x in late}
    starts.trial.back(runs, told)
    for job, stop in zip(jobs, told.values(), strict=True):
        seconds = state.grace(job.request)
        said = stop.job, stop.nodes, stop.other, stop.left, stop.price, stop.cause
        row = Stopping(*said, since=state.now, seconds=seconds)
        state.alter(job.told(row.until))
        notices.stopping[job.name] = row
    for start in late:
        if start.job in told or not _begin(state, runs[start.job]):
            rests = bounded or start.job in told
            after = tuple(x.name for x in jobs if rests or x.nodes.keys() & runs[start.job].nodes.keys())
            notices.claims[start.job] = Claim(start.job, start.degree, start.nodes, start.tier, after)
            starts.waits[start.job] = notices.why(start.job, state.now)
    starts.starts = {x.job: x for x in made if x.job not in notices.claims}
    return rest, tuple(notices.stopping[name] for name in told)


@contextmanager
def kept(state: SchedulerState) -> Iterator[None]:
    """Have nobody take what is free of claimed seats; count what is held as if stops were over, but for limits."""
    notices, placer, accounts = state.notices, state.placer, state.accounts
    if not (notices.stopping or notices.claims):
        yield
        return
    with state.trial() as trial:
        for some in (notices.rooms, notices.kept, state.closed):
            trial.note("", some.clear)
        coming: dict[str, dict[int, np.ndarray]] = {}  # what jobs that stop leave on nodes, less what is claimed of it
        for name in notices.stopping:
            nodes, used = placer.uses(name)
            coming[name] = dict(zip(nodes, used.T.copy(), strict=True))
            if accounts.kept:
                trial.hold(state.running[name].request, used[:3].sum(axis=1).tolist(), -1)
        for claim in notices.claims.values():
            request = state.waiting.get(claim.job) or state.running[claim.job].request
            if accounts.kept:
                trial.hold(request, state.asks(request, claim.degree), 1)
            seats = _seats(state, claim) or {}
            notices.rooms[claim.job] = request.job, [*seats]
            for node, gpus in seats.items():
                left = [coming[x][node] for x in claim.after if node in coming.get(x, ())]
                _close(state, trial, request, node, gpus, left)
        yield


def _close(
    state: SchedulerState, trial: Trial, request: Request, node: int, seats: Sequence[int], coming: Sequence[np.ndarray]
) -> None:
    """Have what a job is to have on a node be nobody's as far as it is free.

    Args:
        coming: what each of those who stop for it leaves there; what it is to have of that is taken off.
    """
    placer, job = state.placer, request.seated
    free = [gpu for gpu in placer.idle(node) if job.whole_nodes or gpu in seats]
    needs = np.array([ceil(need * len(seats) / max(1, job.worker.grants) - 1e-3) for need in demanded(job.worker)])
    for left in coming:
        needs -= (part := np.minimum(needs, left))
        np.subtract(left, part, out=left)
    needs[0] = len(free)
    amounts = placer.vacant[:, node].copy() if job.whole_nodes else needs
    less = trial.close(node, free, amounts, renamed(job, f"the room of {request.name}"))
    state.notices.kept[node] = state.notices.kept.get(node, 0) + less


def _seats(state: SchedulerState, claim: Claim) -> Nodes | None:
    """Return the seats of a claim by number of the node, `None` if a node is down or gone."""
    nodes = {state._index.get(name, -1): gpus for name, gpus in claim.nodes.items()}
    if any(node < 0 or not state.up[node] for node in nodes):
        return None
    return {n: gpus if min(gpus) >= 0 else below_zero(state.holders[n], len(gpus)) for n, gpus in nodes.items()}


def _begin(state: SchedulerState, job: RunningJob) -> bool:
    """Have a job that would have started do so if it has room beside those that run on; return whether it did."""
    wrong = state.refuses(job.request, job.degree) or state.wrong(job.request, job.degree, job.nodes)
    return not wrong and state.put(job)
