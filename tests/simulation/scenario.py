"""From a seed to a cluster, and event by event to what happens on it: plain data, so that it can be cut and printed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from .operator import Operator, habits_of
from .policies import NAMES
from .world import World

Event = list[Any]
"""What is called, when, and the arguments: ``["finish", 12.5, "j3"]``. An ``odd`` one has to be refused."""
FAR = 60.0
"""A deadline, seconds, that is never hit."""


def pick(rng: random.Random, *weighted: tuple[float, Any]) -> Any:
    """Return one of some values, each with its weight."""
    return rng.choices([value for _, value in weighted], [weight for weight, _ in weighted])[0]


def cluster_of(rng: random.Random) -> dict[str, Any]:
    """Draw a cluster, a scheduler's arguments, and how things go there."""
    count = pick(rng, (60, rng.randint(1, 4)), (30, rng.randint(4, 8)), (9, rng.randint(8, 12)), (1, 200))
    types = rng.choice((["A"], ["A"], ["A", "B"], ["A", "B", "C"]))
    labels = rng.choice(([], [], ["x"], ["x", "y"]))
    sizes, tight = rng.choice(([8], [4], [2, 4, 8], [1, 3, 8], [0, 4, 16])), rng.choice((0, 0, 2, 4))
    unusable = rng.choice((0, 0, 0, 0.2))
    nodes = []
    for i in range(count):
        gpus = rng.choice(sizes) or rng.choice(sizes)
        cpu = float(rng.choice((1, 1, 2)) * tight * gpus + rng.choice((0, 1, 3))) if tight else 96.0
        memory = float(rng.choice((8, 16, 100)) * 1e9) if tight else 1e12
        nodes.append(
            {
                "name": f"n{i}", "gpus": gpus, "type": rng.choice(types), "cpu": cpu, "memory": memory,
                "labels": [x for x in labels if rng.random() < 0.5], "usable": rng.random() >= unusable,
            }
        )  # fmt: skip
    if not any(node["gpus"] for node in nodes):
        nodes[0]["gpus"] = 4
    price = rng.choice((None, None, 0.0, 1.0, 60.0, 600.0))
    options: dict[str, Any] = {} if price is None else {"price": price}
    if rng.random() < 0.2:
        options["together"] = False
    if rng.random() < 0.15:
        options["reserve"] = False
    if rng.random() < 0.3:
        options["order"] = rng.choice((0.0, 0.5, 1.0))
    if rng.random() < 0.6:
        options["patience"] = rng.choice((0.1, 1.0, 1.0, 3.0))
    policy = pick(rng, (4, "hybrid"), (4, "heuristic"), (3, rng.choice(NAMES)))
    runs = None
    if len(types) > 1 and rng.random() < 0.7:
        runs = {m: sorted(rng.sample(types, rng.randint(1, len(types)))) for m in ("m", "k")}
    due = random.Random(f"due {nodes!r}")  # its own, so that other clusters stay what they were
    if due.random() < 0.3:
        options["max_wait"] = due.choice((None, 60.0, 3600.0))
    rushed = policy == "Sleeps" or rng.random() < 0.1
    more, near = random.Random(repr(nodes)), None  # its own, so that other clusters stay what they were
    if runs is None and more.random() < 0.5:
        near = {"links": more.choice(((1 / 40, 1 / 4, 1 / 2), (0.0, 1.0, 1.0))), "m": more.choice((0.0, 1.0, 1.0, 4.0))}
    if policy not in NAMES and more.random() < (0.6 if near else 0.05):
        policy = "patient"
    elif policy not in NAMES and more.random() < (0.5 if near else 0.05):
        policy = "gnn"
    kinds = random.Random(f"kinds of {nodes!r}")  # its own, for the same reason
    varied = kinds.random() < 0.5
    taints = kinds.choice(([], ["t"], ["t", "u"])) if varied else []
    for node in nodes:
        node["taints"] = [x for x in taints if kinds.random() < 0.3]
    habits = habits_of(mine := random.Random(f"habits {nodes!r}"))
    options |= {"grace": mine.choice((0.0, 1.0, 60.0))} if habits.get("grace") else {}
    return {
        "habits": habits, "checkpoint_every": mine.choice((0, 5, 2000)),
        "sharing": sharing_of(random.Random(f"sharing {nodes!r}")),
        "taints": taints, "varied": varied,
        "nodes": nodes, "types": types, "labels": labels, "nic": 25e9, "runs": runs, "policy": policy, "near": near,
        "options": options, "rushed": rushed, "double": not rushed and rng.random() < 0.15, "racks": rng.randint(1, 3),
    }  # fmt: skip


def sharing_of(rng: random.Random) -> dict[str, Any] | None:
    """Draw how queues, users and classes share a cluster, `None` if all are alike."""
    if rng.random() < 0.5:
        return None
    sharing: dict[str, Any] = {"aging": rng.choice((None, 100.0, 86400.0)), "least_run": rng.choice((0.0, 0.0, 50.0))}
    if rng.random() < 0.6:
        shares = {"a": rng.choice((0.0, 0.3, 0.5)), "b": rng.choice((0.1, 0.25, 0.5))}
        shares |= {"a.x": shares["a"] / 2, "a.y": rng.choice((0.0, shares["a"] / 2))} if rng.random() < 0.5 else {}
        sharing["queues"] = {path: {"share": share, "weight": rng.choice((1.0, 2.0))} for path, share in shares.items()}
        if rng.random() < 0.3:
            sharing["queues"]["b"] |= {"most": rng.choice((0.6, 0.9)), "lends": rng.choice((0.0, 0.5, 1.0))}
    if rng.random() < 0.3:
        sharing["limits"] = {"*": rng.choice(({"gpus": 4}, {"jobs": 2}, {"gpus": 8, "jobs": 3})), "ann": {"jobs": 4}}
    if rng.random() < 0.3:
        sharing |= {"fair_users": True, "halflife": rng.choice((None, 1000.0))}
    if rng.random() < 0.2:
        sharing["preempt"] = False
    if rng.random() < 0.3:
        sharing["most_run"] = rng.choice((10.0, 1000.0))
    return sharing


class Driver:
    """Draws what happens next from what is so.

    Args:
        rng: the source of chance.
        world: the books, kept by whoever carries the events out.
        count: events until everything is repaired and the jobs are let run to their ends.
    """

    def __init__(self, rng: random.Random, world: World, count: int) -> None:
        self.rng, self.world, self.count = rng, world, count
        self.cluster = world.cluster
        self.gpus = sum(node["gpus"] for node in self.cluster["nodes"])
        self.most = max(node["gpus"] for node in self.cluster["nodes"])
        self.asks, self.told = rng.random() < 0.5, rng.random() < 0.85
        self.exact, self.always = rng.random() < 0.4, rng.random() < 0.6
        self.load, self.length = rng.choice((0.5, 0.8, 1.0, 1.5)), rng.choice((10.0, 500.0, 500.0, 1e5))
        self.failing, self.odd = rng.choice((0, 0, 0.03, 0.1)), rng.choice((0, 0.02, 0.1))
        self.snaps, self.asked = rng.choice((0, 0, 0.02, 0.05)), rng.choice((0, 0, 0, 0.02))
        self.reports = rng.choice((0, 0, 0, 0.1))
        self.dates = dates = random.Random(repr(self.cluster["nodes"]))  # its own: other scenarios stay what they were
        self.later, self.closing = dates.choice((0, 0, 0.2, 0.5)), dates.choice((0, 0, 0.03, 0.1))
        self.altering = dates.choice((0, 0, 0.05, 0.1))
        self.small, self.arrival = rng.random() < 0.3, 0.0
        self.kinds = random.Random(f"kinds of {self.cluster['nodes']!r}")
        self.ends: dict[str, tuple[int, float]] = {}
        self.chance = random.Random(repr(self.cluster["nodes"]))  # its own, so that other jobs stay what they were
        self.levels = self.chance.choice(([0], [0, 0, 0, 1], [0, 1, 5], [-1, 0]))
        self.operator = Operator(self)

    def __iter__(self) -> Iterator[Event]:
        """Yield events; each has been carried out when the next is asked for."""
        world, rng = self.world, self.rng
        for _ in range(self.count):
            if self.dates.random() < self.closing:
                yield self._window()
            if self.dates.random() < self.altering:
                yield self._alter()
            yield from self.operator.events()
            yield (event := self._next())
            if event[0] not in ("decide", "odd", "explain") and (self.always or rng.random() < 0.5):
                yield self._decide()
        yield ["drained", world.now]

    def _first_end(self) -> tuple[str, float]:
        """Return who of the running jobs is done first, and when."""
        for name, job in self.world.running.items():
            if self.ends.get(name, (0, 0.0))[0] != job.begun:
                factor = 1.0 if self.exact else self.rng.choice((1.0, 1.0, 0.1, 0.7, 1.5, 8.0))
                self.ends[name] = job.begun, job.since + job.lasts * factor
        return min(((name, self.ends[name][1]) for name in self.world.running), key=lambda x: x[1])

    def _decide(self) -> Event:
        rng = self.rng
        if self.cluster["policy"] == "Sleeps":
            return ["decide", self.world.now, 0.01]
        deadline = 10 ** rng.uniform(-6, 0) if self.cluster["rushed"] and rng.random() < 0.7 else FAR
        return ["decide", self.world.now, deadline]

    def _next(self) -> Event:
        rng, world = self.rng, self.world
        now = world.now
        draw = rng.random()
        for share, what in (
            (self.failing, self._node), (self.odd, self._odd), (self.snaps, self._snap), (self.asked, self._explain),
            (self.reports, self._report), (0.02, self._withdraw),
        ):  # fmt: skip
            draw -= share
            if draw < 0:
                return what()
        if rng.random() < 0.1:
            self.arrival = min(self.arrival, now)  # a burst
        if world.running:
            name, end = self._first_end()
            if end <= self.arrival or len(world.waiting) > 40:
                return ["finish", max(now, end), name]
        spec = self.spec(f"j{world.serial}")
        now = max(now, self.arrival)
        mean = self.length * spec["workers"][0] * (spec["worker"][0] or 1) / max(1, self.gpus) / self.load
        self.arrival = now + rng.expovariate(1 / mean)
        return ["submit", now, spec]

    def spec(self, name: str) -> dict[str, Any]:
        """Draw a job."""
        rng = self.rng
        most, total = max(1, self.most), max(1, self.gpus)
        small = 1 if self.small and rng.random() < 0.9 else rng.randint(1, most)
        degree = pick(rng, (60, small), (20, most), (15, rng.randint(1, total)), (3, total), (2, 2 * total))
        workers = sorted({degree, *(rng.randint(1, total) for _ in range(rng.choice((0, 0, 0, 0, 1, 2))))})
        seconds: Any = round(rng.choice((rng.expovariate(1 / self.length), self.length)), 3)
        if not self.told and rng.random() < 0.5:
            seconds = None
        elif rng.random() < 0.1:
            seconds = [seconds * rng.choice((0.5, 1.0, 2.0)) for _ in workers]
        worker: list[float] = [rng.choice((1, 1, 1, 1, 2, 4)) if rng.random() < 0.4 else 1, 0.0, 0.0, 0.0]
        spec = {
            "name": name, "model": rng.choice(("m", "k")) if self.cluster["runs"] else "m", "workers": workers,
            "worker": worker, "requires": [], "apart": [], "most_per_node": None, "whole_nodes": False,
            "seconds": seconds, "together": None, "price": None,
        } | self._terms()  # fmt: skip
        if self.asks and rng.random() < 0.6:
            worker[1] = rng.choice((0.0, 1.0, 2.5, 4.0, 7.0, 0.1, 16.0))
            worker[2] = rng.choice((0.0, 0.0, 1e9, 4e9, 7.7e9))
            worker[3] = rng.choice((0.0, 0.0, 0.0, 1e9, 12.5e9))
        if rng.random() < 0.5:
            spec["requires"] = [x for x in self.cluster["labels"] if rng.random() < 0.6]
        if rng.random() < 0.08:
            spec["apart"] = [f"j{max(0, self.world.serial + rng.randint(-3, 2))}"]
            spec["apart"] = [] if spec["apart"] == [name] else spec["apart"]
        if rng.random() < 0.1:
            spec["most_per_node"] = rng.randint(1, 5)
        spec["whole_nodes"] = rng.random() < 0.05
        if rng.random() < 0.1:
            spec["together"] = rng.random() < 0.5
        if rng.random() < 0.1:
            spec["price"] = rng.choice((0.0, 5.0, 300.0))
        if self.dates.random() < self.later:
            spec |= self._when()
        if self.cluster["varied"]:
            self._vary(spec)
        self.operator.vary(spec)
        return spec

    def _terms(self) -> dict[str, Any]:
        """Draw whose a job is, and its class."""
        sharing, rng = self.cluster["sharing"], self.chance
        if sharing is None:
            return {}
        paths = [*sharing.get("queues", ())]
        leaves = [path for path in paths if not any(x.startswith(f"{path}.") for x in paths)]
        return {
            "queue": rng.choice((*leaves, *leaves, "")), "user": rng.choice(("ann", "bob", "")),
            "priority": rng.choice(self.levels),
        }  # fmt: skip

    def _when(self) -> dict[str, Any]:
        """Draw when a job may wait: after some time, or other jobs."""
        dates, world = self.dates, self.world
        names = [*world.waiting, *world.running, *world.held, *sorted(world.over)[:3]]
        names = sorted(dates.sample(names, min(len(names), dates.randint(0, 2))))
        return {"begin": world.now + dates.expovariate(1 / self.length) * dates.choice((0, 1)), "after": names}

    def _window(self) -> Event:
        """Draw a window, or one to forget."""
        dates, world = self.dates, self.world
        if world.windows and dates.random() < 0.4:
            return ["open", world.now, dates.choice([*world.windows])]
        begin = world.now + dates.choice((0.0, dates.expovariate(1 / self.length)))
        end = dates.choice((float("inf"), begin + dates.expovariate(1 / self.length) + 1.0))
        if not world.nodes:
            return self._decide()
        nodes = dates.sample([*world.nodes], dates.randint(1, max(1, len(world.nodes) // 2)))
        if dates.random() < 0.5:
            return ["close", world.now, f"drain-{nodes[0]}", nodes[:1], begin, end, []]
        names = [*world.waiting, *world.held, *world.running]
        jobs = dates.sample(names, min(len(names), dates.choice((0, 1, 3))))
        return ["close", world.now, f"w{world.now}", sorted(nodes), begin, end, sorted(jobs)]

    def _alter(self) -> Event:
        """Draw what else is said of a job."""
        dates, world, what = self.dates, self.world, {}
        names = [*world.waiting, *world.running, *world.held]
        if not names:
            return self._decide()
        if dates.random() < 0.6:
            what["seconds"] = round(dates.expovariate(1 / self.length), 3)
        if dates.random() < 0.4:
            what["price"] = dates.choice((None, 0.0, 5.0, 300.0))
        if dates.random() < 0.3:
            over = sorted(world.over)
            what["begin"] = world.now + dates.choice((0.0, dates.expovariate(1 / self.length)))
            what["after"] = dates.sample(over, min(len(over), dates.randint(0, 1)))
        return ["alter", world.now, dates.choice(names), what]

    def _vary(self, spec: dict[str, Any]) -> None:
        """Have a job differ in where it may be: types, taints, racks, groups, no GPU."""
        rng, types = self.kinds, self.cluster["types"]
        spec["tolerates"] = [x for x in self.cluster["taints"] if rng.random() < 0.5]
        if rng.random() < 0.2:
            spec["gpu_types"] = rng.sample(types, rng.randint(1, len(types)))
        if rng.random() < 0.15:
            spec["worker"] = [0, rng.choice((0.5, 1.0, 2.0, 6.0)), rng.choice((0.0, 0.0, 2e9)), 0.0]
            spec["together"] = rng.choice((None, False))
        elif rng.random() < 0.4 and spec["seconds"] is not None:
            accepted = spec.get("gpu_types") or rng.sample(types, rng.randint(1, len(types)))
            spec["on"] = {kind: rng.choice((1.0, 1.0, 1.05, 1.5, 4.0)) for kind in accepted}
        elif rng.random() < 0.15:
            spec["servers"], spec["server"] = rng.randint(1, 4), [0, rng.choice((0.5, 1.0, 3.0)), 1e9, 0.0]
        spec["mixed"] = rng.random() < 0.3
        if rng.random() < 0.4:
            spec["within"] = rng.choice(("rack", "rack", "rack", "node"))
            spec["topology"] = rng.choice(("required", "required", "preferred"))
        if rng.random() < 0.25 and spec["worker"][0]:
            spec["group"] = group = rng.choice((2, 2, 3, 4))
            if rng.random() < 0.9:
                spec["workers"] = sorted({-(-d // group) * group for d in spec["workers"]})
                if isinstance(spec["seconds"], list):
                    spec["seconds"] = max(spec["seconds"])

    def _node(self) -> Event:
        if not self.world.nodes:
            return self._decide()
        node = self.rng.choice([*self.world.nodes.values()])
        later = self.world.now + (self.rng.expovariate(1 / self.length) if self.rng.random() < 0.5 else 0.0)
        if node.up and self.dates.random() < 0.5:
            return ["fail", later, node.name, True]
        return ["fail" if node.up else "repair", later, node.name]

    def _withdraw(self) -> Event:
        names = [*self.world.waiting, *self.world.running, *self.world.held]
        return ["withdraw", self.world.now, self.rng.choice(names)] if names else self._decide()

    def _report(self) -> Event:
        names = [*self.world.running]
        return ["report", self.world.now, self.rng.choice(names), self.rng.uniform(0.2, 2)] if names else self._decide()

    def _snap(self) -> Event:
        return ["snap", self.world.now]

    def _explain(self) -> Event:
        names = [*self.world.waiting, *self.world.held]
        return ["explain", self.world.now, self.rng.choice(names)] if names else self._decide()

    def _odd(self) -> Event:
        """Draw a call that is wrong: late, double, out of order, or nonsense."""
        rng, world = self.rng, self.world
        names = rng.choice(([*world.waiting], [*world.running], [*world.over], ["nobody", "", 7, None])) or ["nobody"]
        name, now = rng.choice(names), rng.choice((world.now, world.now, world.now - 1.0, float("nan"), float("inf")))
        node = rng.choice([*world.nodes, -1, len(world.nodes), "nowhere", True, 1.5, None])
        spec = self.spec(f"j{world.serial}") | rng.choice(
            ({"name": name}, {"seconds": float("nan")}, {"seconds": -1.0}, {"seconds": [1.0] * 9}, {"price": -1.0},
             {"worker": [0.5, 0.0, 0.0, 0.0]}, {"seconds": "long"}, {"requires": ["nowhere"]}, {"model": 3})
        )  # fmt: skip
        calls: list[tuple[str, Any]] = [
            ("finish", name), ("withdraw", name), ("fail", node), ("repair", node), ("submit", spec),
            ("report", name), ("decide", rng.choice((0.0, -1.0, float("nan"), float("inf"), "soon", FAR))),
            ("restore", rng.choice(({}, {"gangplan": "scheduler", "version": 3}, [], None))), ("snap", rng.random()),
        ]  # fmt: skip
        what, argument = rng.choice(calls)
        return ["odd", now, what, argument]
