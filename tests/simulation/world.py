"""The books of the independent model: what a cluster is like, who holds what, and what a decision may do to it.

It is written from docs/scheduler.md and public docstrings alone and shares no code with what it checks. Where the page
leaves room (how many workers of a gang that holds more GPUs than it needs are on which node), a start is refused only
if no reading allows it, and a job is missed only if every reading starts it.
"""

from __future__ import annotations

from typing import Any

SLACK = 1e-9
"""Of an amount: sums of floating-point numbers lose a little."""
AMOUNTS = ("cpu", "memory", "nic")
Nodes = dict[str, tuple[int, ...]]


class Wrong(Exception):  # noqa: N818, it is no error of the program but what the machine is looking for
    """Something that the page promises does not hold."""

    def __init__(self, rule: str, words: str) -> None:
        super().__init__(f"{rule}: {words}")
        self.rule, self.words = rule, words


IGNORED: set[str] = set()
"""Rules that are not looked at, so that what lies behind a known fault can be seen."""


def hold(truth: object, rule: str, words: str) -> None:
    """Raise `Wrong` unless a promise holds."""
    if not truth and rule not in IGNORED:
        raise Wrong(rule, words)


class Node:
    """A node and who is on it."""

    def __init__(self, name: str, spec: dict[str, Any], nic: float) -> None:
        self.name, self.gpus, self.type = name, spec["gpus"], spec["type"]
        self.labels, self.up = set(spec["labels"]), spec["usable"]
        self.has = (spec["cpu"], spec["memory"], nic)
        self.holder: dict[int, str] = {}
        self.jobs: dict[str, Job] = {}


class Job:
    """A job that was submitted; `left` is of its work, `pays` the seconds its next start costs."""

    def __init__(self, spec: dict[str, Any], together: bool, price: float | None, now: float, serial: int) -> None:
        self.name, self.spec, self.submit, self.serial = spec["name"], spec, now, serial
        self.workers: list[int] = spec["workers"]
        gpu, *self.need = spec["worker"]
        self.grants, self.apart, self.requires = int(gpu), set(spec["apart"]), set(spec["requires"])
        self.most, self.whole = spec["most_per_node"] or 10**9, spec["whole_nodes"]
        self.together = together if spec["together"] is None else spec["together"]
        self.price = price if spec["price"] is None else spec["price"]
        seconds = spec["seconds"]
        if isinstance(seconds, int | float):
            seconds = [seconds * self.workers[-1] / d for d in self.workers]
        self.seconds: list[float] | None = seconds  # of each number of workers, None if they were not told
        self.left, self.pays = 1.0, 0.0
        self.nodes: Nodes = {}
        self.degree, self.since, self.lasts, self.begun = 0, now, 0.0, -1

    def takes(self, degree: int) -> float | None:
        """Return the seconds of its next start, `None` if they were not told."""
        return None if self.seconds is None else self.seconds[self.workers.index(degree)] * self.left + self.pays

    def stop(self, now: float) -> None:
        """Keep what it has got on with."""
        whole, ran = self.lasts if self.seconds is None else self.seconds[self.workers.index(self.degree)], 0.0
        ran = max(0.0, now - self.since - self.pays)
        if self.seconds is not None:
            done = ran / whole if whole else 0.0
            self.left = self.left - done if self.left > done else done
        self.pays = self.price or 0.0

    def ends(self, now: float) -> float:
        """Return when it is expected to be done: as long again, if that is over."""
        end = self.since + self.lasts
        return end if end > now else now + (now - self.since)

    def on(self, node: str, least: bool) -> int:
        """Return how many of its workers are on a node, at least or at most, where it holds more than it needs."""
        most = len(self.nodes[node]) // self.grants
        others = sum(len(gpus) // self.grants for n, gpus in self.nodes.items() if n != node)
        return max(0, self.degree - others) if least else most


class World:
    """The cluster as events and decisions leave it."""

    def __init__(self, cluster: dict[str, Any]) -> None:
        self.cluster, options = cluster, cluster["options"]
        self.nodes = {x["name"]: Node(x["name"], x, cluster["nic"]) for x in cluster["nodes"]}
        self.together, self.price = options.get("together", True), options.get("price")
        self.runs: dict[str, list[str]] | None = cluster["runs"]
        self.now, self.serial, self.starts = 0.0, 0, 0
        self.waiting: dict[str, Job] = {}
        self.running: dict[str, Job] = {}
        self.over: dict[str, None] = {}
        self.news = True  # whether anything but decisions happened since `swaps` was emptied
        self.swaps: set[tuple[str, str]] = set()

    @property
    def idle(self) -> int:
        """GPUs of nodes that are up which nobody holds."""
        return sum(n.gpus - len(n.holder) for n in self.nodes.values() if n.up)

    def job(self, spec: dict[str, Any]) -> Job:
        """Return a job as the books have it."""
        return Job(spec, self.together, self.price, self.now, self.serial)

    def room(self, job: Job, node: Node, *, empty: bool = False, up: bool = True, sure: bool = True) -> int:
        """Return how many workers of a job a node takes: surely, or in the most lenient reading."""
        if (up and not node.up) or not job.requires <= node.labels:
            return 0
        if self.runs is not None and node.type not in self.runs.get(job.spec["model"], ()):
            return 0
        count, there = node.gpus, {} if empty else node.jobs
        if there:
            if job.whole or any(x.whole or x.name in job.apart or job.name in x.apart for x in there.values()):
                return 0
            count -= len(node.holder)
        count = min(count // job.grants, job.most)
        for i, need in enumerate(job.need):
            if need:
                has = node.has[i] * (1 - SLACK if sure else 1 + SLACK)
                has -= sum(x.need[i] * x.on(node.name, not sure) for x in there.values())
                count = min(count, max(0, int(has / need)))
        return count

    def fits(self, job: Job, *, empty: bool = False, up: bool = True, sure: bool = True, without: Any = ()) -> bool:
        """Return whether a job has room for one of its numbers of workers, on nodes not among `without`."""
        here = [n for n in self.nodes.values() if n.name not in without]
        rooms = [self.room(job, n, empty=empty, up=up, sure=sure) for n in here]
        if empty or not job.together:
            return sum(rooms) >= job.workers[0]
        best = max((self.room(job, n, empty=True) for n in self.nodes.values()), default=0)
        whole = sum(room for n, room in zip(here, rooms, strict=True) if not n.jobs)
        return any(max(rooms, default=0) >= d if d <= best else whole >= d for d in job.workers)

    def admits(self, spec: dict[str, Any]) -> bool | None:
        """Return whether a new job can ever run here; `None` if that is a matter of rounding."""
        job = self.job(spec)
        sure = self.fits(job, empty=True, up=False)
        return sure if sure == self.fits(job, empty=True, up=False, sure=False) else None

    def submit(self, spec: dict[str, Any]) -> None:
        """Let a job wait."""
        job = self.job(spec)
        self.waiting[job.name], self.serial, self.news = job, self.serial + 1, True

    def free(self, name: str) -> Job:
        """Have a running job hold nothing any more."""
        job, self.news = self.running.pop(name), True
        for node, gpus in job.nodes.items():
            del self.nodes[node].jobs[name]
            for gpu in gpus:
                del self.nodes[node].holder[gpu]
        return job

    def finish(self, name: str) -> None:
        """Have a job be done."""
        self.free(name)
        self.over[name] = None

    def withdraw(self, name: str) -> None:
        """Forget a waiting job."""
        del self.waiting[name]
        self.over[name], self.news = None, True

    def fail(self, node: str) -> list[str]:
        """Take a node down; return who ran there and waits again, with the work it had when it started."""
        lost = sorted(self.nodes[node].jobs)
        for name in lost:
            job = self.free(name)
            job.pays = job.price or 0.0
            self.waiting[name] = job
        self.nodes[node].up, self.news = False, True
        return lost

    def repair(self, node: str) -> None:
        """Bring a node up."""
        self.nodes[node].up, self.news = True, True

    def decide(self, decision: Any, own: bool) -> None:
        """Enter a decision, and raise `Wrong` if it does what it may not; `own`: whether a policy chooses GPUs."""
        news, self.news = self.news, False
        if news:
            self.swaps.clear()
        self.stopped = self._stops(decision)
        before = {**self.waiting}
        for x in decision.starts:
            hold(x.job in before, "lost", f"{x.job} starts and does not wait")
            job = before.pop(x.job)
            self._start(job, x, own and x.tier == "policy")
        self._causes(decision)
        self.news = False

    def _stops(self, decision: Any) -> dict[str, Job]:
        """Have jobs stop: those that run, may be stopped and are named with what they hold."""
        gone: dict[str, Job] = {}
        for x in decision.stops:
            hold(x.job in self.running, "stop", f"{x.job} stops and does not run")
            job = self.running[x.job]
            hold(job.price is not None, "stop", f"{x.job} stops and may not be stopped")
            hold(dict(x.nodes) == job.nodes, "stop", f"{x.job} held {job.nodes}, its stop names {dict(x.nodes)}")
            hold(x.price == job.price, "stop", f"{x.job} has the price {job.price}, its stop {x.price}")
            left = job.ends(self.now) - self.now
            hold(
                abs(x.left - left) <= 1e-6 * max(1, left), "stop", f"{x.job} has {left} s left, its stop says {x.left}"
            )
            gone[x.job] = self.free(x.job)
        for job in gone.values():
            job.was, job.width = dict(job.nodes), sum(map(len, job.nodes.values()))  # type: ignore[attr-defined]
            job.stop(self.now)
            self.waiting[job.name] = job
        return gone

    def _start(self, job: Job, start: Any, own: bool) -> None:
        """Have a job start where it may, whole."""
        name, nodes = job.name, {n: tuple(g) for n, g in start.nodes.items()}
        hold(start.degree in job.workers, "gang", f"{name} starts with {start.degree} of {job.workers} workers")
        whole = sum(len(gpus) // job.grants for gpus in nodes.values())
        hold(whole >= start.degree, "gang", f"{name} has seats for {whole} of {start.degree} workers in {nodes}")
        for node, gpus in nodes.items():
            hold(node in self.nodes, "place", f"{name} is on {node}, which is not there")
            n = self.nodes[node]
            hold(len(set(gpus)) == len(gpus), "twice", f"{name} has a GPU of {node} twice: {gpus}")
            hold(all(0 <= g < n.gpus for g in gpus), "place", f"{name} has GPUs {gpus} of {node}, which has {n.gpus}")
            for g in gpus:
                hold(g not in n.holder, "twice", f"{name} gets GPU {g} of {node}, which {n.holder.get(g)} holds")
            most = self.room(job, n, sure=False)
            others = sum(len(g) // job.grants for x, g in nodes.items() if x != node)
            least = max(0, start.degree - others)
            words = f"{name} has {least} workers on {node}, which may have {most}: {self.why(job, n)}"
            hold(least <= most and n.up and job.requires <= n.labels, "place", words)
        if job.together and not own and len(nodes) > 1:
            best = max(self.room(job, n, empty=True) for n in self.nodes.values())
            words = f"{name}: {start.degree} workers fit on one node and are on {len(nodes)}"
            hold(start.degree > best, "together", words)
        takes = job.takes(start.degree)
        words = f"{name} takes {takes} s with {start.degree} workers, its start says {start.seconds}"
        hold(takes is None or abs(start.seconds - takes) <= 1e-6 * max(1.0, takes), "seconds", words)
        job.nodes, job.degree, job.since, job.lasts = nodes, start.degree, self.now, start.seconds
        del self.waiting[name]
        self.starts += 1
        self.running[name], job.begun = job, self.starts
        for node, gpus in nodes.items():
            self.nodes[node].jobs[name] = job
            self.nodes[node].holder.update(dict.fromkeys(gpus, name))

    def why(self, job: Job, node: Node) -> str:
        """Return what is on a node in words."""
        there = {x.name: x.on(node.name, True) for x in node.jobs.values()}
        words = f"{'up' if node.up else 'down'}, {node.type}, {sorted(node.labels)}, {node.gpus} GPUs, {node.has}"
        return f"{words}, workers there {there}; {job.name} needs {job.spec}"

    def _causes(self, decision: Any) -> None:
        """Check that a stop makes room for who it names, is worth it, and is not taken back with nothing new."""
        starts = {x.job: x for x in decision.starts}
        for x in decision.stops:
            hold(x.other in starts, "cause", f"{x.job} stops for {x.other}, which does not start")
            hold(x.other != x.job, "cause", f"{x.job} stops for itself")
            job, other = self.stopped[x.job], starts[x.other]
            shared = set(x.nodes) & set(other.nodes)
            hold(shared, "cause", f"{x.job} stops on {[*x.nodes]} for {x.other}, which starts on {[*other.nodes]}")
            self._worth(x, job, self.running[x.other], x.job in starts)
            hold((x.other, x.job) not in self.swaps, "swap", f"{x.job} stops for {x.other}, which stopped for it")
            self.swaps.add((x.job, x.other))

    def _worth(self, stop: Any, job: Job, other: Job, moved: bool) -> None:
        """Check that a stop gains more than it costs, by the page's order."""
        needs, gpus = other.degree * other.grants, job.width  # type: ignore[attr-defined]
        if moved:
            lost, gained = stop.price * gpus, other.lasts * needs
            hold(lost <= gained, "worth", f"moving {job.name} costs {lost} GPU s, {other.name} needs {gained}")
            return
        orders = [self.cluster["options"].get("order")]
        orders = [0.0, 0.25, 0.5, 0.75, 1.0] if orders == [None] else orders
        worth = any((stop.left - stop.price) * gpus**e > other.lasts * needs**e for e in orders)
        words = (
            f"{job.name} ({gpus} GPUs) has {stop.left} s left and the price {stop.price}; {other.name} ({needs} GPUs)"
        )
        hold(worth, "worth", f"{words} lasts {other.lasts} s")

    def settled(self, steered: bool) -> None:
        """Check that who should have started did; `steered`: whether a policy may make jobs wait."""
        if steered or not self.waiting:
            return
        if not self.running:
            for job in self.waiting.values():
                hold(
                    not self.fits(job, empty=True), "idle", f"{job.name} waits on an idle cluster that has room for it"
                )
        waits = list(self.waiting.values())[:24]
        fit = [job for job in waits if self.fits(job)]
        if not fit:
            return
        rest = [job for job in self.waiting.values() if job not in fit]
        wanted = {n.name for n in self.nodes.values() if any(self.room(j, n, empty=True, up=False) for j in rest)}
        for job in fit:
            hold(not self.fits(job, without=wanted), "spare", f"{job.name} waits; nobody else may have where it fits")
