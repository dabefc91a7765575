"""What an operator does, event by event: nodes come and go, settings change, stops have a grace, arrays come."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .scenario import Driver, Event


def habits_of(rng: random.Random) -> dict[str, Any]:
    """Draw how often an operator does what, and the grace of stops; nothing in every second scenario."""
    if rng.random() < 0.5:
        return {}
    return {
        "resize": rng.choice((0, 0, 0.01, 0.04)), "configure": rng.choice((0, 0, 0.02, 0.05)),
        "clock": rng.choice((0, 0, 0.01)), "array": rng.choice((0, 0.02, 0.05)),
        "await": rng.choice((0, 0.1)), "checkpoint": rng.choice((0, 0, 0.02)), "grace": rng.choice((0, 0, 0.3, 1.0)),
    }  # fmt: skip


def sharing_again(rng: random.Random, sharing: dict[str, Any]) -> dict[str, Any]:
    """Draw how the same queues share the cluster from now on."""
    new = dict(sharing)
    if "queues" in sharing:
        a, b = rng.choice((0.0, 0.3, 0.5)), rng.choice((0.1, 0.25, 0.5))
        shares = {"a": a, "b": b, "a.x": a / 2, "a.y": rng.choice((0.0, a / 2))}
        new["queues"] = {path: {"share": shares[path], "weight": rng.choice((1.0, 2.0))} for path in sharing["queues"]}
        if rng.random() < 0.5:
            new["queues"]["b"] |= {"most": rng.choice((0.6, 0.9)), "lends": rng.choice((0.0, 0.5, 1.0))}
    new["limits"] = rng.choice(({}, {"*": {"gpus": 4}}, {"*": {"jobs": 2}, "ann": {"gpus": 8}}))
    new["least_run"], new["preempt"] = rng.choice((0.0, 20.0)), rng.random() < 0.8
    return new


class Operator:
    """Draws what an operator does next, by a chance of its own: other scenarios stay what they were.

    Args:
        driver: of everything else.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver, self.world = driver, driver.world
        self.rng = random.Random(f"operator {driver.cluster['nodes']!r}")
        self.habits: dict[str, Any] = driver.cluster.get("habits") or {}
        self.nodes = [x | {"rack": i % driver.cluster["racks"]} for i, x in enumerate(driver.cluster["nodes"])]
        self.spare, self.made = list[dict[str, Any]](), len(self.nodes)

    def events(self) -> list[Event]:
        """Draw what happens beside the rest, mostly nothing."""
        rng, now = self.rng, self.world.now
        if not self.habits:
            return []
        told, events = self.world.notices.until, list[Any]()
        if told and rng.random() < 0.3:
            events.append(["stopped", now + rng.choice((0.0, 1.0)), rng.choice(sorted(told))])
        elif told and rng.random() < 0.3:
            events.append(["decide", min(told.values()), 60.0])
        elif rng.random() < 0.02:
            names = sorted({*self.world.running} - {*told}) or ["nobody"]
            events.append(["odd", now, "stopped", rng.choice(names)])
        for what in ("resize", "configure", "clock", "array", "checkpoint"):
            if rng.random() < self.habits[what]:
                events.append([what, now, *getattr(self, f"_{what}")()])
        return events

    def vary(self, spec: dict[str, Any]) -> None:
        """Give a job a grace of its own, or have it wait for nodes."""
        if not self.habits:
            return
        if self.rng.random() < self.habits["grace"] * 0.5:
            spec["grace"] = self.rng.choice((0.0, 0.5, 30.0))
        if self.rng.random() < self.habits["await"]:
            spec["await_nodes"] = True
            if self.rng.random() < 0.5:
                spec["workers"] = [4 * max(spec["workers"])]
                spec["seconds"] = spec["seconds"][0] if isinstance(spec["seconds"], list) else spec["seconds"]

    def _resize(self) -> list[Any]:
        rng = self.rng
        draw = rng.random()
        if draw < 0.15:
            self.spare, self.nodes = [*self.spare, *self.nodes], []
            return [[]]
        if draw < 0.5 and self.nodes:
            for node in rng.sample(self.nodes, rng.randint(1, max(1, len(self.nodes) // 2))):
                self.nodes.remove(node)
                self.spare.append(node)
        elif draw < 0.8 or not self.driver.cluster["nodes"]:
            self.nodes, self.spare = [*self.nodes, *self.spare], []
        else:
            like = rng.choice(self.driver.cluster["nodes"])
            fresh = {"name": f"n{self.made}", "rack": rng.randrange(self.driver.cluster["racks"]), "usable": True}
            self.nodes, self.made = [*self.nodes, like | fresh], self.made + 1
        rng.shuffle(self.nodes)
        return [list(self.nodes)]

    def _configure(self) -> list[Any]:
        rng, sharing = self.rng, self.world.books.rules
        what: dict[str, Any] = {}
        if rng.random() < 0.4:
            what["price"] = rng.choice((None, 0.0, 1.0, 60.0))
        if rng.random() < 0.3:
            what["patience"] = rng.choice((0.1, 1.0, 3.0, 50.0))
        if rng.random() < 0.3:
            what["max_wait"] = rng.choice((None, 60.0, 3600.0))
        if rng.random() < 0.3 and self.habits["grace"]:
            what["grace"] = rng.choice((0.0, 5.0, 60.0))
        if sharing and rng.random() < 0.5:
            what["sharing"] = sharing_again(rng, sharing)
        return [what or {"patience": 2.0}]

    def _clock(self) -> list[Any]:
        return [self.rng.choice((0.0, 10.0, 1000.0, 1e6))]

    def _array(self) -> list[Any]:
        spec = self.driver.spec(f"a{self.world.serial}")
        return [spec, self.rng.randint(1, 4), self.rng.choice((None, 1, 2))]

    def _checkpoint(self) -> list[Any]:
        return []
