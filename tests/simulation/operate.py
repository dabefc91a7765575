"""Carry out what operators do: exchange nodes, settings and the clock, submit arrays, hear that a job has stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gangplan import InstanceError

from .arguments import fleet_of, seconds_of, told_of
from .wrong import hold

if TYPE_CHECKING:
    from .check import Player

    Base = Player
else:
    Base = object


class Operations(Base):
    """Carry an operator's events out on schedulers and in the books."""

    def on_array(self, now: float, spec: dict[str, Any], count: int, most: int | None) -> bool:
        """Let jobs wait that are alike, some at a time, or see that they are refused because none ever fits."""
        world, names = self.world, tuple(f"{spec['name']}[{i}]" for i in range(count))
        if any(map(world.known, names)) or spec["name"] in world.arrays.most:
            return False
        told = told_of(spec) | ({} if most is None else {"most": most})
        answer = self.each("submit_array", spec, count, seconds_of(spec), right=False, now=now, **told)
        expected = world.admits(spec) and all(map(world.known, spec.get("after", ())))
        refused = isinstance(answer, InstanceError)
        hold(refused != expected, "admission", f"array of {count}, fits is {expected}: {answer}; {spec}")
        if not refused:
            hold(answer == names, "array", f"{answer} are the names, should be {names}")
            world.now = now
            world.arrays.submit(spec, names, most)
        return True

    def on_stopped(self, now: float, name: str) -> bool:
        """Hear that a job has stopped which was told to."""
        if name not in self.world.notices.until:
            return False
        self.each("stopped", name, now=now)
        self.world.now = now
        self.world.halt(name)
        return True

    def on_configure(self, now: float, settings: dict[str, Any]) -> bool:
        """Change settings; a dry run before changes nothing."""
        settings = {k: v for k, v in settings.items() if k != "sharing" or self.world.books.rules}
        if not settings:
            return False
        before = self.all["s"].snapshot()
        self.call("s", "configure", **settings, now=now, dry_run=True)
        hold(self.all["s"].snapshot() == before, "changed", f"a dry run of {settings} changed the state")
        self.each("configure", **settings, now=now)
        self.configured = True
        self.world.now = now
        self.world.configure(settings)
        return True

    def on_resize(self, now: float, nodes: list[dict[str, Any]]) -> bool:
        """Exchange nodes, for none too; who runs on those that stay runs on."""
        self.shape = self.cluster | {"nodes": nodes}
        answer = self.each("resize", self.shape, now=now)
        self.fleet = fleet_of(self.shape)
        self.world.now = now
        lost = self.world.resize(nodes)
        hold(answer == lost, "lost", f"{answer} lost their nodes, should be {lost}")
        return True

    def on_clock(self, now: float, back: float) -> bool:
        """Set the time back."""
        now = max(0.0, self.world.now - back)
        self.each("set_clock", now)
        self.world.turn_back(now)
        return True

    def on_checkpoint(self, now: float) -> bool:
        """Append the state to the log; nothing else changes."""
        before = self.all["s"].snapshot()
        for name in self.all if self.cluster["policy"] == "gnn" else ("s",):
            self.call(name, "checkpoint")
        hold(self.all["s"].snapshot() == before, "changed", "a checkpoint changed the state")
        return True
