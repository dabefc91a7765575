"""Keep a `Scheduler` and Slurm in agreement, round by round: Slurm says what is so, the scheduler what is to be."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet
from gangplan.scheduler.journal.values import decode

from ..core import Core, checked, encoded
from .client import AwayError, booted, names_in, plain, run
from .gang import NotOursError, events_of
from .reasons import COMING, SlurmRefusal, clock, job_of, noted, reasons
from .view import HOLD, SlurmJob, SlurmView

GRACE = 60.0
"""Seconds in which a released job has to start: then it is held again, and placed anew."""
DONE = ("COMPLETED", "TIMEOUT")
"""States of a job that ran as long as it was to, so that its seconds teach something."""
TOLD = 100
"""Maximum number of jobs a round whose comments are told why they wait; the others' are in the next rounds."""
DEADLINE = 1.0
"""Seconds of a decision; what it leaves is for the next round."""


class SlurmRounds:
    """Tell a scheduler what Slurm says, and Slurm what the scheduler decides.

    There is no other memory than the scheduler's log and Slurm itself: each round compares the two, so that either may
    have been away. In the scheduler a job is called by its number, with ``~2`` when it waits for the second time;
    ``17@n1`` is what job 17 holds on node n1 if it runs where the scheduler did not put it.

    Args:
        core: the scheduler.
        mark: word in the comment of the jobs that gangplan places; `None` to look at all jobs and act on none.
        say: takes what an operator should know.
        options: ``memory`` and ``spread`` of `events_of`.
    """

    def __init__(self, core: Core, mark: str | None, say: Callable[[str], object], **options: bool) -> None:
        self.core, self.mark, self._say, self._options = core, mark, say, options
        self._said = dict[str, str]()
        self._refused = dict[str, SlurmRefusal]()
        self._told = dict[str, dict[str, Any]]()  # how jobs were submitted
        self._asked = dict[str, str]()  # what gives jobs back the numbers of nodes that they asked for
        self._released = dict[str, tuple[float, Any]]()  # when, and after how many restarts
        self._signalled, self._leaving = set[str](), set[str]()  # told to stop by their names; stopped, and requeued
        self._holders = dict[str, SlurmJob]()
        self._fleet: Any = None
        self._began = 0.0
        self._open = True  # whether there is something to decide
        self._silent = True  # whether comments may lack why their jobs wait

    def round(self, view: SlurmView) -> list[str]:
        """Bring both into agreement, decide, carry it out, and return what was done in words."""
        self._began = self.now
        self._resize(view.fleet)
        self._nodes(view)
        self._known(view)
        self._changed(view)
        self._new(view)
        wake, stops = self.core.scheduler.wake, []
        if self._open or (wake is not None and wake <= self.now):
            decision = self._tell("decide", deadline=DEADLINE)["answer"]
            self._open, self._silent, stops = decision["more"], True, decision["stops"]
        self._stop(stops, view)
        done = self._apply(view)
        if self._silent and self.mark is not None:
            self._tell_why(view)
        return done

    @property
    def now(self) -> float:
        """Return the time, which never goes back."""
        return max(time.time(), self.core.scheduler.now)

    def places(self, name: str) -> tuple[str, ...]:
        """Return the nodes of a job that runs by decision."""
        state = self.core.scheduler._state
        return tuple(state.fleet.names[node] for node in state.running[name].nodes)

    def said(self, job: SlurmJob) -> str:
        """Return what was said of a job that is not placed."""
        return self._said.get(job.id) or str(self._refused.get(job.id, f"Slurm says {job.reason}"))

    def _tell_why(self, view: SlurmView) -> None:
        """Have comments say why jobs wait, where that is other than before: what Slurm refused, they say already."""
        left = TOLD
        for name, words in reasons(self.core.scheduler, view).items():
            job = view.jobs[name]
            whole = job.row["array_job_id"] and job.row["array_task_id"] is None  # a comment would split it
            if left and not (whole or name in self._refused) and self._marked(job):
                left -= self._comment(job, words)
        self._silent = not left

    def _tell(self, event: str, **fields: Any) -> dict[str, Any]:
        self._open = True
        return self.core.answer({"event": event, "now": self.now, **fields})

    def _note(self, name: str, words: str, job: SlurmJob | None = None) -> None:
        """Say something of a job, once as long as it is so, and in its comment for its users."""
        if self._said.get(name) != words:
            self._said[name] = words
            self._say(f"{name}: {words}")
            if job is not None:
                self._comment(job, words)

    def _comment(self, job: SlurmJob, words: str) -> bool:
        """Write words behind a user's own comment, or take them away; return whether it was another."""
        if other := (new := noted(job.row["comment"], words)) != str(job.row["comment"]):
            self._order(job, ("update", f"JobId={job.id}", f"Comment={new}"))
        return other

    def _resize(self, fleet: Fleet) -> None:
        """Exchange the nodes if they are others than before; who ran on those that are gone is told of anew."""
        data = encoded(fleet)
        if data != (self._fleet or encoded(self.core.scheduler._state.fleet)):
            self._tell("resize", fleet=data)
            self._fleet = data

    def _nodes(self, view: SlurmView) -> None:
        """Tell which nodes are up, closed or down."""
        scheduler = self.core.scheduler
        closed = {window.nodes[0] for window in scheduler.windows if window.drain}
        for node, up in zip(scheduler._state.fleet.names, list(scheduler._state.up), strict=True):
            state = view.states.get(node, "down")
            if up == (state == "down"):
                self._tell("fail_node" if up else "repair_node", node=node)
            if (node in closed) != (state == "closed"):
                self._tell("undrain" if node in closed else "drain", node=node)

    def _known(self, view: SlurmView) -> None:
        """Compare what the scheduler believes of each job with what Slurm says."""
        told = {x.job for x in self.core.scheduler.stopping}
        self._signalled &= told
        for name in self.core.scheduler.running:
            job, piece = job_of(name, view)
            left = name in told and job is not None and (job.waits or self._requeue(job, "FAILED"))
            if left:  # it died of the signal
                self._tell("stopped", job=name)
            elif job is None or not (job.waits or job.holds):
                done = job is not None and any(word in DONE for word in job.row["states"]) and not piece
                self._tell("finish" if done else "withdraw", job=name)
            elif piece:
                if piece not in job.parts():
                    self._tell("withdraw", job=name)
            elif not {*job.parts()} <= {*self.places(name)} or (job.waits and not self._ours(job, "BadConstraints")):
                self._tell("withdraw", job=name)
            elif job.waits and (reason := self._why(name, job)) == "BeginTime":  # it ran, and was requeued
                self._take_back(name, job, "was requeued by Slurm")
            elif job.waits and reason:
                self._refuse(name, job, reason)
        for name in self.core.scheduler.waiting:
            job, piece = job_of(name, view)
            if job is not None and not job.waits and job.id in self._leaving:
                self._requeue(job, "RUNNING")  # Slurm was killed before it saved that it is to leave
                continue
            if piece or job is None or not (job.waits and self._ours(job)) or not self._same(job, view):
                self._tell("withdraw", job=name)
            elif not job.held or job.id in self._leaving:  # its node failed, somebody released it, or it was stopped
                self._hold(job)

    def _ours(self, job: SlurmJob, *reasons: str) -> bool:
        """Return whether gangplan is to place a job that waits: nobody but its user holds it, or for these reasons."""
        return self._marked(job) and not (job.held and job.reason not in ("JobHeldUser", *reasons))

    def _marked(self, job: SlurmJob) -> bool:
        return self.mark is None or self.mark in job.row["comment"].split()

    def _why(self, name: str, job: SlurmJob) -> str:
        """Return Slurm's reason not to start a job that is to run; "" if it may start still, or is yet to be released.

        Whatever is not known to pass as nodes become free is a reason: a limit, a license, a hold of its user's.
        """
        if job.held:
            return job.reason if job.reason != "JobHeldUser" or self._keeps(name, job) else ""
        late = self.now - self.core.scheduler._state.running[name].since > GRACE
        other = "," in job.row["partition"] and job.reason.startswith(("ReqNode", "Partition"))  # of the one tried last
        return job.reason if late or not (other or job.reason in COMING) else ""

    def _keeps(self, name: str, job: SlurmJob) -> bool:
        """Return whether Slurm holds a job knowing of its release: it has neither begun nor requeued the job since."""
        since, restarts = self._released.get(job.id, (0.0, None))
        same = ({*names_in(job.row["required_nodes"])}, job.row["restart_cnt"]) == ({*self.places(name)}, restarts)
        return same and booted() < since - 1.0

    def _refuse(self, name: str, job: SlurmJob, reason: str) -> None:
        """Have a job that Slurm does not start give back its nodes, and wait before it is tried again."""
        if (job.id in self._released or not job.held) and not self._hold(job):
            return
        known = self._refused.get(job.id) or SlurmRefusal.read(job.row["comment"])
        self._refused[job.id] = refusal = SlurmRefusal.next(known, reason, self.now)
        self._tell("withdraw", job=name)
        self._note(job.id, str(refusal), job)

    def _refusal(self, job: SlurmJob, view: SlurmView) -> SlurmRefusal | None:
        """Return why a job is not to be tried yet, unless it was released or changed since."""
        found = self._refused.get(job.id)
        if found is None and (found := SlurmRefusal.read(job.row["comment"])) is not None:
            self._refused[job.id] = found
            self._told.setdefault(job.id, next(iter(self._events(job, view)), {}))
        if found is None or found.at >= self._began or (job.held and self._same(job, view)):
            return found
        del self._refused[job.id]
        self._comment(job, "")
        return None

    def _changed(self, view: SlurmView) -> None:
        """Forget what was noted of jobs that start; when one ends, try another that waits for a limit of its user's."""
        held, self._holders = self._holders, {name: job for name, job in view.jobs.items() if job.holds}
        for memory in (self._refused, self._told, self._asked, self._released):
            for name in memory.keys() - view.jobs.keys():
                del memory[name]
        for name in self._holders.keys() - held.keys():
            self._refused.pop(name, None)
            self._released.pop(name, None)
            self._comment(view.jobs[name], "")
        for gone in (held[name] for name in held.keys() - self._holders.keys()):
            for name, refusal in self._refused.items():
                limit = refusal.reason.startswith(("QOS", "Assoc")) and refusal.until > self.now
                if limit and gone.shares(view.jobs[name]):
                    self._refused[name] = replace(refusal, until=self.now)
                    break

    def _same(self, job: SlurmJob, view: SlurmView) -> bool:
        """Return whether a job asks for what it was submitted with, as far as that is remembered.

        Of several partitions it is another as soon as that has room, and the one that was told has not.
        """
        if (told := self._told.get(job.id)) is None:
            return True
        try:
            events = self._events(job, view)
        except NotOursError:
            return False
        now = self.now
        told, *events = ({**event, "begin": max(now, event.get("begin", now))} for event in (told, *events))
        return told in events and (len(events) == 1 or self._fits(told) or not any(map(self._fits, events)))

    def _fits(self, event: dict[str, Any]) -> bool:
        """Return whether there is room for a job now."""
        return self.core.scheduler._state.placer.fits(decode(checked(event, self.core.most)[1]["job"]))

    def _events(self, job: SlurmJob, view: SlurmView) -> list[dict[str, Any]]:
        state = self.core.scheduler._state
        if any(job.id in names for names in (state.running, state.waiting, state.later.held, state.finished)):
            job = replace(job, row={**job.row, "required_nodes": ""})  # which is of an earlier decision
        return list(events_of(job, view, state.sharing.queues, **self._options))

    def _take_back(self, name: str, job: SlurmJob, why: str) -> None:
        """Have a released job wait again."""
        if self._hold(job):
            self._note(job.id, f"{why}, and is placed anew")
            self._tell("withdraw", job=name)

    def _new(self, view: SlurmView) -> None:
        """Tell of jobs that the scheduler does not know: those that hold nodes, and those that are to wait."""
        scheduler = self.core.scheduler
        known = {name.partition("~")[0].partition("@")[0] for name in (*scheduler.running, *scheduler.waiting)}
        fresh = [job for job in view.jobs.values() if job.id not in known]
        for job in fresh:
            for node in job.parts() if job.holds else ():
                self._adopt(job, node, view)
        for job in fresh:
            if job.waits and self._ours(job) and not view.depends(job):
                try:
                    events = self._events(job, view)
                    refusal = self._refusal(job, view)
                except NotOursError as error:
                    self._note(job.id, f"is left to Slurm, for its {error}", job)
                    if job.held:
                        self._order(job, ("release", job.id))
                    continue
                if refusal is None or refusal.until <= self.now:
                    self._submit(job, events)

    def _adopt(self, job: SlurmJob, node: str, view: SlurmView) -> None:
        """Tell what a job holds on a node; jobs of ours that were to be there, and are not yet, make room."""
        gpus, cpus = job.parts()[node]
        name = self._name(f"{job.id}@{node}")
        piece = {"name": name, "workers": [1], "worker": {"gpu": gpus, "cpu": cpus}}
        queues, account = self.core.scheduler._state.sharing.queues, job.row["account"]
        whose = {"user": job.user} | ({"queue": account} if account and (not queues or account in queues) else {})
        left = max(1.0, (job.row["end_time"] or 0) - self.now)
        try:
            try:
                self._tell("submit", job=piece, seconds=left, price=None, **whose)
            except InstanceError:  # it is more than they may have
                self._tell("submit", job=piece, seconds=left, price=None)
            try:
                self._tell("adopt", job=name, nodes={node: 1})
            except InstanceError:
                for other in self.core.scheduler.running:
                    there, part = job_of(other, view)
                    if there is not None and there.waits and not part and node in self.places(other):
                        self._take_back(other, there, "did not start where it was to")
                self._tell("adopt", job=name, nodes={node: 1})
        except InstanceError as error:
            self._note(name, plain(error.problem))
            if name in self.core.scheduler.waiting:
                self._tell("withdraw", job=name)

    def _submit(self, job: SlurmJob, events: list[dict[str, Any]]) -> None:
        """Let a job wait that is to be placed."""
        if not events:
            self._note(job.id, f"partition {plain(job.row['partition'])} is not up", job)
        elif not job.held:
            self._hold(job)
        if len(events) > 1:
            events.sort(key=lambda event: not self._fits(event))
        why = ""
        for event in events:
            for topology in dict.fromkeys((event["topology"], "preferred")):  # perhaps no rack ever has the room
                try:
                    name = self._name(job.id)
                    self._tell(**event | {"job": event["job"] | {"name": name}, "topology": topology})
                    self._told[job.id] = event
                    return
                except InstanceError as error:
                    why = why or plain(str(error).partition("; await_nodes")[0])
        if why:
            self._note(job.id, why, job)

    def _name(self, name: str) -> str:
        """Return a name that no job had."""
        finished, number = self.core.scheduler._state.finished, 1
        while (found := name if number == 1 else f"{name}~{number}") in finished:
            number += 1
        return found

    def _apply(self, view: SlurmView) -> list[str]:
        """Release each job that runs by decision, and that Slurm still holds, to its nodes."""
        done = []
        for name in self.core.scheduler.running:
            job, piece = job_of(name, view)
            if job is None or piece or not (job.waits and job.held):
                continue
            where = [f"ReqNodeList={','.join(nodes := self.places(name))}"]
            if most := job.row["max_nodes"]:
                where.append(f"NumNodes={len(nodes)}-{len(nodes)}")
                self._asked[job.id] = f"NumNodes={job.row['node_count'] or 1}-{most}"
            if (own := noted(text := job.row["comment"], "")) != text and job.id not in self._refused:
                where.append(f"Comment={own}")
            if why := self._order(job, ("update", f"JobId={job.id}", *where), ("release", job.id)):
                self._refuse(name, job, why)
            else:
                done.append(f"{job.id} on {','.join(nodes)}")
                self._said.pop(job.id, None)
                self._released |= {job.id: (self.now, job.row["restart_cnt"])} if self.mark is not None else {}
        return done

    def _stop(self, stops: list[dict[str, Any]], view: SlurmView) -> None:
        """Requeue whom a decision stops, and have those end who are told to stop: they hold their nodes meanwhile."""
        stopped = [job for stop in stops if (job := job_of(stop["job"], view)[0]) is not None]
        self._leaving |= {job.id for job in stopped}  # the next round goes on with them if nobody answers
        for job in stopped:
            self._requeue(job, *HOLD)
        for told in self.core.scheduler.stopping:
            job, _ = job_of(told.job, view)
            if job is not None and job.holds and told.job not in self._signalled:
                words = f"is to end within {told.seconds:g} s, by {clock(told.until)} for {told.other or 'others'}"
                self._note(job.id, f"{words} ({told.cause}), then it is requeued", job)
                if why := self._order(job, ("--signal=TERM", "--full", job.id), by="scancel"):
                    self._note(job.id, why)
                self._signalled.add(told.job)

    def _requeue(self, job: SlurmJob, *states: str) -> bool:
        """Have a job wait again that is in one of these states; return whether it is to."""
        if not {*states} & {*job.row["states"]}:
            return False
        self._leaving.add(job.id)
        if why := self._order(job, ("requeuehold", job.id)):
            self._note(job.id, why)
            self._leaving.discard(job.id)
        return not why

    def _hold(self, job: SlurmJob) -> bool:
        """Have Slurm hold a job that waits; return whether it does, since it may just have started the job."""
        self._leaving.discard(job.id)
        self._released.pop(job.id, None)
        back = ("ReqNodeList=", *filter(None, [self._asked.get(job.id)]))
        if why := self._order(job, ("uhold", job.id), ("update", f"JobId={job.id}", *back)):
            self._note(job.id, why)
        return not why

    def _order(self, job: SlurmJob, *commands: tuple[str, ...], by: str = "scontrol") -> str:
        """Tell Slurm something of a job; return why it did not take it, "" if it did."""
        try:
            for words in commands if self.mark is not None else ():
                run(by, *words)
        except AwayError:
            raise
        except InstanceError as error:
            return plain(error.problem)
        return ""
