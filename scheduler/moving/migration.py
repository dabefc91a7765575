"""Moves of running jobs, so that others have room: what is proposed, the check that replays it, and what is done."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import plain, require_number
from gangplan.instances.placement import GangJob
from gangplan.instances.verify.actions import verify_start
from gangplan.solvers.run import OPTIMAL_GAP

from ..decision import Decision, Printed, Start, Stop, Stopping, explained, gpu_hours, listed
from ..journal.write import recorded
from ..policies.policy import Watchdog
from ..queueing.queue import QueueWalk
from ..starting.gpu_types import verify_terms
from ..starting.starts import StartRound
from ..state import SchedulerState
from ..stopping.grace import announce, kept
from ..stopping.running_jobs import Nodes, RunningJob

if TYPE_CHECKING:
    from ..scheduler import Scheduler

TIER = "moves"


@dataclass(frozen=True, slots=True)
class Move:
    """Have a job go on elsewhere.

    Attributes:
        degree: number of workers.
        nodes, to: the GPUs that it leaves, and those that it gets, by name of the node.
        cost: GPU seconds that it loses: its price on all of its GPUs.
    """

    job: str
    degree: int
    nodes: Mapping[str, tuple[int, ...]]
    to: Mapping[str, tuple[int, ...]]
    cost: float


@dataclass(frozen=True, slots=True)
class Moves(Printed):
    """Propose moves, of which nothing is done yet.

    Attributes:
        moves: in an order in which each has its place free.
        cost: GPU seconds.
        bound: lower bound on the cost of moves that make such room.
        domain: what they free, or where a gang is to be: ``rack 2``.
        gang: that needs the room, "" if all of the domain is to be free.
        seats: GPUs by name of the node that are free then: the gang's own, else all of the domain.
    """

    moves: tuple[Move, ...]
    cost: float
    bound: float
    domain: str
    gang: str
    seats: Mapping[str, tuple[int, ...]]

    @property
    def proved(self) -> bool:
        """Whether no moves cost less, up to rounding."""
        return self.cost - self.bound <= OPTIMAL_GAP * self.cost

    def __str__(self) -> str:
        """Return it in a line: ``3 moves, 1.2 GPU-hours; no set costs less; frees rack 2``, and a line a move."""
        count = f"{len(self.moves)} move" + "s" * (len(self.moves) != 1)
        less = "no set costs less" if self.proved else f"no set costs less than {gpu_hours(self.bound)}"
        room = f"makes room for {self.gang} in {self.domain}" if self.gang else f"frees {self.domain}"
        rows = [f"  {x.job}: {', '.join(x.nodes)} -> {', '.join(x.to)}" for x in self.moves]
        return "\n".join([f"{count}, {gpu_hours(self.cost)}; {less}; {room}", *listed(rows)])


def movable(job: RunningJob, now: float) -> bool:
    """Return whether a job may be stopped now, and has more left than that costs."""
    price = job.request.price
    return price is not None and job.settled <= now and job.since < now and job.left(now) > price


def in_order(state: SchedulerState, places: Mapping[str, Nodes]) -> tuple[list[str], list[dict[int, str]]] | None:
    """Replay moves without a solver: return an order in which each place is free, and who holds which GPUs then.

    `places` are the GPUs that each job gets; the state is not changed. Return `None` if there is no order.
    """
    holders, held = [dict(here) for here in state.holders], dict(state.held)
    order: list[str] = []
    while len(order) < len(places):
        for name in (name for name in places if name not in order):
            job = state.running[name]
            there, to = held.pop(name), places[name]
            for node, gpus in job.nodes.items():
                for gpu in gpus:
                    del holders[node][gpu]
            start = state.fleet, state.up, holders, held, job.request.job, job.degree, to, state.speeds
            free = not verify_start(*start)
            held[name] = (job.request.job, to) if free else there
            for node, gpus in held[name][1].items():
                holders[node].update(dict.fromkeys(gpus, name))
            if free:
                order.append(name)
                break
        else:
            return None
    return order, holders


def limited(state: SchedulerState) -> set[str]:
    """Return the running jobs that could not start again by the limits of their users or queues."""
    return {name for name, x in state.running.items() if state.refuses(x.request, x.degree, [x]) is not None}


def closed(state: SchedulerState, job: RunningJob, now: float, late: float, to: Nodes | None = None) -> np.ndarray:
    """Return the nodes that close before a job would end if it moved in `late` seconds, to its best place or some."""
    rest = job.request.stopped(job.degree, job.ran(now), now - job.since)
    slower = state.least(rest, job.degree) if to is None else state.slower(rest, job.degree, to)
    return state.calendar.closed(rest, now, now + rest.lasts(job.degree, slower) + late)


def _checked(state: SchedulerState, moves: Moves, now: float) -> dict[str, Nodes]:
    """Return the GPUs that each job gets; refuse moves that are not possible any more."""
    if not isinstance(moves, Moves):
        raise InstanceError("moves", f"{moves!r} is no Moves: nothing is proposed")
    places: dict[str, Nodes]
    places = {x.job: {state.node(node): tuple(gpus) for node, gpus in x.to.items()} for x in moves.moves}
    for x in moves.moves:
        state.find(x.job, "runs")
    late = state.delay(state.running[x.job] for x in moves.moves)
    for x in moves.moves:
        job, to = state.running[x.job], places[x.job]
        held = {node: tuple(gpus) for node, gpus in x.nodes.items()}  # a log has lists
        job = job.aged(now)[0] if job.request.work else job
        if job.degree != x.degree or state.named(job.nodes) != held or not movable(job, now):
            raise InstanceError("moves", f"{x.job!r} may not move from there any more: ask for a new proposal")
        wrong = verify_terms(job.request, job.degree, state.fleet, to)
        if wrong or {*closed(state, job, now, late, to)} & to.keys():
            why = wrong[0] if wrong else f"a node closes before {x.job!r} would end"
            raise InstanceError("moves", f"{why}: ask for a new proposal")
    if names := limited(state) & places.keys():
        raise InstanceError("moves", f"{min(names)!r} holds more than its user or queue may")
    first = QueueWalk(state.due).next()
    if first and first[1] != moves.gang and state.waiting[first[1]].due <= now:
        raise InstanceError("moves", f"{first[1]!r} waits and is due: nobody takes room before it")
    jobs = [state.running[name] for name in places]
    with state.trial() as trial:
        trial.unseat(jobs)
        fits = in_order(state, places) is not None and all(trial.put(x.request, places[x.name]) for x in jobs)
    if not fits:
        raise InstanceError("moves", "a place is taken by now: ask for a new proposal")
    return places


def carry_out(
    state: SchedulerState, watchdog: Watchdog, moves: Moves, now: float
) -> tuple[tuple[Start, ...], tuple[Stop, ...], tuple[Stopping, ...]]:
    """Do what was proposed if it is still possible; return who starts, who stops and who is told to."""
    with kept(state):
        places = _checked(state, moves, now)
    state.now = now
    jobs, starts = [state.running[name] for name in places], StartRound(state, watchdog)
    starts.hopeful = False  # their places are given
    begun = (starts.one(job.name, (job.degree,), TIER, places[job.name], hold=False) for job in jobs)
    done = starts.exchange([(job, moves.gang or moves.domain, "move") for job in jobs], begun)
    assert done, "the places were verified"
    rest, stopping = announce(state, starts)
    return tuple(starts.starts.values()), rest, stopping


class MoveCalls:
    """Move running jobs. An `InstanceError` names what is wrong, and nothing has changed then."""

    _state: SchedulerState

    def defragment(
        self, domain: Any = None, gang: GangJob | str | None = None, *, worth: float | None = None, seconds: float = 1.0
    ) -> Moves | None:
        """Return the cheapest moves of running jobs that free a domain, or make room for a gang; nothing is done yet.

        Args:
            domain: a node or several, by name or number, a group of the network, ``rack 2``, or a level, ``rack``: any
                group of it. With a gang, where that is to be; by default anywhere.
            gang: a job that waits, by name, or any other; with its fewest workers.
            worth: GPU seconds of the room; there is no proposal that costs more.
            seconds: of the machine's clock, for the search.

        Returns:
            `None` if there are no moves that make room, or they cost more.
        """
        require_number(worth := plain(worth), "worth", optional=True)
        require_number(seconds := plain(seconds), "seconds", positive=True)
        from .defragment import defragment

        with kept(self._state):
            return defragment(self._state, domain, gang, worth, seconds)

    @recorded
    def apply(self, moves: Moves, *, now: float | None = None) -> Decision:
        """Carry out what `defragment` proposed: a decision whose stops are all among its starts, elsewhere."""

        began, state, of = time.perf_counter(), self._state, cast("Scheduler", self)
        starts, stops, stopping = carry_out(state, of._watchdog, moves, state.at(now))
        of._count += 1
        of._explained[of._count] = explained(of._count, TIER, set(), {}, [], (), (), ())
        took = time.perf_counter() - began
        return Decision(of._count, state.now, starts, TIER, (), took, False, stops, (), stopping)
