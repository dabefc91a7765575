"""Keep a `Scheduler` and Slurm in agreement, round by round: Slurm says what is so, the scheduler what is to be."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gangplan.instances import InstanceError

from ..core import Core, encoded, text_of
from .client import Away, plain, run
from .gang import NotOurs, event_of
from .view import DONE, SlurmJob, View

GRACE = 60.0
"""Seconds in which a released job has to start: then it is held again, and placed anew."""
REFUSED = 60.0
"""Seconds until a job is tried again of which Slurm refused what was decided."""


class Rounds:
    """Tell a scheduler what Slurm says, and Slurm what the scheduler decides.

    There is no other memory than the scheduler's log and Slurm itself: each round compares the two, so that either may
    have been away. In the scheduler a job is called by its number, perhaps with ``~2`` if it waits for the second
    time; ``17@n1`` is what job 17, which somebody else placed, holds on node n1.

    Args:
        core: the scheduler.
        mark: comment of the jobs that are gangplan's to place.
        say: takes what an operator should know.
        memory: whether jobs take memory from one another.
        act: whether Slurm is told of decisions.
    """

    def __init__(
        self, core: Core, mark: str, say: Callable[[str], object], memory: bool = False, act: bool = True
    ) -> None:
        self.core, self.mark, self.memory, self.act = core, mark, memory, act
        self._say, self._said = say, dict[str, str]()
        self._refused = dict[str, float]()
        self._told = dict[str, dict[str, Any]]()  # of jobs that wait, how they were submitted
        self._more = True  # whether there is something to decide

    def round(self, view: View) -> list[str]:
        """Bring both into agreement, decide, and return what was done in words."""
        self._resize(view)
        self._nodes(view)
        self._known(view)
        self._new(view)
        wake = self.core.scheduler.wake
        while self._more or (wake is not None and wake <= self._now()):
            self._more, wake = False, None
            self._more = self._tell("decide")["answer"]["more"]
        return self._apply(view)

    def _now(self) -> float:
        """Return the time, which never goes back."""
        return max(time.time(), self.core.scheduler.now)

    def _tell(self, event: str, **fields: Any) -> dict[str, Any]:
        """Tell the scheduler an event; whatever changed, it has to decide again."""
        self._more = self._more or event != "decide"
        return self.core.answer({"event": event, "now": self._now(), **fields})

    def _note(self, name: str, words: str) -> None:
        """Say something of a job or node, once as long as it is so."""
        if self._said.get(name) != words:
            self._said[name] = words
            self._say(f"{name}: {words}")

    def _resize(self, view: View) -> None:
        fleet = encoded(view.fleet)
        if text_of(fleet) != text_of(encoded(self.core.scheduler._state.fleet)):
            self._tell("resize", fleet=fleet)

    def _nodes(self, view: View) -> None:
        """Tell which nodes are up, closed or down."""
        scheduler = self.core.scheduler
        up = dict(zip(scheduler._state.fleet.names, scheduler._state.up, strict=True))
        closed = {window.nodes[0] for window in scheduler.windows if window.drain}
        for node in view.nodes:
            if up[node.name] == (node.state == "down"):
                self._tell("fail_node" if up[node.name] else "repair_node", node=node.name)
            if (node.name in closed) != (node.state == "closed"):
                self._tell("undrain" if node.name in closed else "drain", node=node.name)

    def _known(self, view: View) -> None:
        """Compare what the scheduler believes of each job with what Slurm says."""
        running = {name: {*self._places(name)} for name in self.core.scheduler.running}
        for name, nodes in running.items():
            identity, _, node = name.partition("~")[0].partition("@")
            job = view.jobs.get(identity)
            if node:
                if job is None or not job.holds or node not in job.parts():
                    self._tell("withdraw", job=name)
            elif job is None or not (job.waits or job.holds):
                self._tell("finish" if job and job.state in DONE else "withdraw", job=name)
            elif (job.holds and {*job.parts()} != nodes) or (job.waits and not self._ours(job)):
                self._tell("withdraw", job=name)
            elif job.waits and not job.held and self._late(name):
                self._take_back(name, job)
        for name in self.core.scheduler.waiting:
            identity, _, node = name.partition("~")[0].partition("@")
            job = view.jobs.get(identity)
            if node or job is None or not (job.waits and self._ours(job)):
                self._tell("withdraw", job=name)
            elif not job.held:  # it ran, and its node failed; or somebody released it
                self._hold(job)

    def _ours(self, job: SlurmJob) -> bool:
        """Return whether gangplan is to place a job."""
        return job.comment() == self.mark and not job.by_admin

    def _late(self, name: str) -> bool:
        return self._now() - self.core.scheduler._state.running[name].since > GRACE

    def _places(self, name: str) -> tuple[str, ...]:
        """Return the nodes of a running job."""
        state = self.core.scheduler._state
        return tuple(state.fleet.names[node] for node in state.running[name].nodes)

    def _take_back(self, name: str, job: SlurmJob) -> None:
        """Have a released job that did not start wait again."""
        self._note(job.id, "did not start where it was to: it is placed anew")
        self._hold(job)
        self._tell("withdraw", job=name)

    def _hold(self, job: SlurmJob) -> None:
        self._scontrol(job, ("update", f"JobId={job.id}", "ReqNodeList="), ("uhold", job.id))

    def _new(self, view: View) -> None:
        """Tell of jobs that the scheduler does not know: those that hold nodes, and those that are to wait."""
        scheduler = self.core.scheduler
        known = {name.partition("~")[0].partition("@")[0] for name in (*scheduler.running, *scheduler.waiting)}
        for job in view.jobs.values():
            if job.id in known:
                continue
            if job.holds:
                self._adopt(job)
            elif job.waits and self._ours(job) and not job.row["dependency"]:
                self._submit(job, view)

    def _adopt(self, job: SlurmJob) -> None:
        """Tell that others hold GPUs and cores, a piece on each node."""
        left = max(1.0, (job.row["end_time"] or 0) - self._now())
        for node, (gpus, cpus) in job.parts().items():
            name = self._name(f"{job.id}@{node}")
            piece = {"name": name, "workers": [1], "worker": {"gpu": gpus, "cpu": cpus}}
            try:
                self._tell("submit", job=piece, seconds=left, price=None, user=job.user)
                self._tell("adopt", job=name, nodes={node: 1})
            except InstanceError as error:
                self._note(f"{job.id}@{node}", plain(error.problem))
                for other in self.core.scheduler.running:
                    pass

    def _submit(self, job: SlurmJob, view: View) -> None:
        """Let a job wait that is to be placed, or leave it to Slurm if only Slurm can."""
        if self._refused.get(job.id, 0.0) > self._now():
            return
        try:
            event = event_of(job, view, self.core.scheduler._state.sharing.queues, self.memory)
        except NotOurs as error:
            self._note(job.id, f"is left to Slurm: gangplan does not place jobs with {error}")
            if job.held:
                self._scontrol(job, ("release", job.id))
            return
        if not job.held:
            self._hold(job)
        event["job"]["name"] = self._name(job.id)
        try:
            self._tell(**event)
        except InstanceError as error:
            self._note(job.id, plain(error))

    def _name(self, name: str) -> str:
        """Return a name that no job had."""
        finished, number = self.core.scheduler._state.finished, 1
        while (found := name if number == 1 else f"{name}~{number}") in finished:
            number += 1
        return found

    def _apply(self, view: View) -> list[str]:
        """Release each job that runs by decision and that Slurm still holds, to its nodes."""
        done = []
        for name in self.core.scheduler.running:
            job = view.jobs.get(name.partition("~")[0])
            if job is None or not (job.waits and job.held):
                continue
            nodes = self._places(name)
            where = f"ReqNodeList={','.join(nodes)}", f"NumNodes={len(nodes)}"
            if self._scontrol(job, ("update", f"JobId={job.id}", *where), ("release", job.id)):
                done.append(f"{job.id} on {','.join(nodes)}")
                self._said.pop(job.id, None)
            else:
                self._refused[job.id] = self._now() + REFUSED
                self._tell("withdraw", job=name)
        return done

    def _scontrol(self, job: SlurmJob, *commands: tuple[str, ...]) -> bool:
        """Tell Slurm something of a job; return whether it took it."""
        try:
            for words in commands if self.act else ():
                run("scontrol", *words)
            return True
        except Away:
            raise
        except InstanceError as error:
            self._note(job.id, plain(error.problem))
            return False
