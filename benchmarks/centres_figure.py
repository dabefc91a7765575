"""Draw docs/images/market.png: who hands jobs to whom, what racks ask for, and mean JCTs by network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.plot.scene import Axis, Dots, Heat, Key, Lines, Panel, Scene, Words
from gangplan.simulator.metrics import interval
from gangplan.systems.interference.agents import Team
from gangplan.systems.interference.baselines import CONSOLIDATE, alone, run
from gangplan.systems.interference.bidders import Bids, Here, Local, Message
from gangplan.systems.interference.case import InterferenceCase
from gangplan.systems.interference.cases import CENTRES, VALIDATION
from gangplan.systems.interference.environment import Environment
from gangplan.systems.interference.greedy import Greedy
from gangplan.systems.interference.market import Market
from gangplan.systems.interference.policies import make_policy

from .found import Found
from .rows import ROOT

PICTURE = ROOT / "docs" / "images" / "market.png"
SHADES = ("#f7fbff", "#9ecae1", "#3182bd", "#08306b")
SHOWN = {
    "alone": "#7f7f7f",
    "lif-near": "#222222",
    "market": "#1f77b4",
    "marl": "#d62728",
    "agents-lif": "#ff7f0e",
    "agents-apart": "#2ca02c",
}
NETWORKS = ("fat-tree", "leaf-spine", "flat")
HOURS = 1 / 3
"""Of which prices are averaged."""


class Noted(Here):
    """Bidders whose first bids of each interval are noted: a row (seconds, agent, bid over seconds the job takes)."""

    def __init__(self, cases: Sequence[InterferenceCase], local: Local) -> None:
        super().__init__(cases, local)
        self.bids: list[tuple[float, int, float]] = []
        self._parts_seen: Mapping[int, Environment] = {}

    def begin(self, parts: Mapping[int, Environment]) -> None:
        """Note the parts too."""
        self._parts_seen = parts
        super().begin(parts)

    def ask(self, asks: Mapping[int, Message]) -> dict[int, Bids]:
        """Note what is bid before any award."""
        found = super().ask(asks)
        for k, bids in found.items() if all(x.award is None for x in asks.values()) else ():
            part = self._parts_seen[k]
            self.bids += [(part.now, k, more / float(part.profiled[job])) for job, (_, more) in bids.items()]
        return found


def passed(team: Team) -> FloatArray:
    """Return how many jobs each agent (rows) handed to each other (columns)."""
    count = np.zeros((len(team.servers), len(team.servers)))
    for _, _, before, after in team.traffic.passed:
        count[before, after] += 1
    return count


def prices(market: Market) -> FloatArray:
    """Return the mean bid of each agent (rows) in stretches of `HOURS` (columns), NaN where it bid for nothing."""
    assert isinstance(market.bidders, Noted)
    at, agent, price = (np.array(x) for x in zip(*market.bidders.bids, strict=True))
    column = (at // (3600 * HOURS)).astype(int)
    total, count = np.zeros((2, len(market.servers), column.max() + 1))
    np.add.at(total, (agent, column), price)
    np.add.at(count, (agent, column), 1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def draw(results: Found, picture: Path = PICTURE) -> None:
    """Write the picture."""
    case = CENTRES["leaf-spine"](VALIDATION)
    teams = {"agents-lif": make_policy("agents-lif")(case), "market": Market(case, _bidder, bidders=Noted)}
    for team in teams.values():
        run(case, team)
    found = {name: team for name, team in teams.items() if isinstance(team, Team)}
    counts = {name: passed(team) for name, team in found.items()}
    top = [_hands(name, x, 0.9 + 5.9 * i) for i, (name, x) in enumerate(counts.items())]
    market = found["market"]
    assert isinstance(market, Market)
    rows = [top, [_prices(prices(market))], [_times(results)]]
    words = "400 jobs on leaf-spine, 8 agents with a rack of 32 GPUs each; below test seeds 0 to 4 on three networks"
    Scene("Many schedulers: jobs handed on, prices of racks, mean JCT", words, rows).save(picture)
    print(f"{picture} drawn")


def _bidder(case: InterferenceCase) -> Greedy:
    return Greedy(alone(case.truth), consolidate=CONSOLIDATE)


def _hands(name: str, count: FloatArray, left: float) -> Panel:
    agents, most = len(count), max(count.max(), 1.0)
    told = [
        (j + 0.5, i + 0.5, f"{count[i, j]:.0f}", 8.0, "#ffffff" if count[i, j] > most / 2 else "#222222")
        for i in range(agents)
        for j in range(agents)
        if i != j
    ]
    heat, ticks = Heat(count / most, (0, 0, agents, agents), SHADES), [(i + 0.5, str(i)) for i in range(agents)]
    x, y = Axis(0, agents, "to agent", ticks), Axis(agents, 0, "from agent", ticks)
    heading = f"{name}: {count.sum():.0f} jobs handed on"
    panel = Panel("hands", x, y, [heat], heading=heading, left=left, width=4.6, height=3.2)
    return panel.add(Words.of(told))


def _prices(found: FloatArray) -> Panel:
    agents, columns = found.shape
    low, high = np.nanquantile(found, [0.02, 0.98])
    heat = Heat(np.clip((found - low) / (high - low), 0, 1), (0, 0, columns * HOURS, agents), SHADES)
    ticks = [(i + 0.5, str(i)) for i in range(agents)]
    x, y = Axis(0, columns * HOURS, "hours"), Axis(agents, 0, "agent", ticks)
    shades = [(at, SHADES[round(at * (len(SHADES) - 1))]) for at in (0.0, 1 / 3, 2 / 3, 1.0)]
    keys = [Key(f"{low + at * (high - low):.2f}", (colour,)) for at, colour in shades]
    heading = "market: what an agent bids, seconds of delay a second of the job; white where it bids for nothing"
    return Panel("prices", x, y, [heat], keys, heading=heading, height=2.2)


def _times(found: Found) -> Panel:
    marks, top = list[Lines | Dots](), 0.0
    for i, network in enumerate(NETWORKS):
        for j, (name, colour) in enumerate(SHOWN.items()):
            mean, margin = interval(np.array(list(found.of(network, name).values())) / 60)
            at, half = i + (j + 1) / (len(SHOWN) + 1), margin or 0.0
            marks += [Lines([[(at, mean - half), (at, mean + half)]], colour, 1.5)]
            marks += [Dots(np.array([[at, mean]]), colour, 7.0)]
            top = max(top, mean + half)
    ticks = [(i + 0.5, name) for i, name in enumerate(NETWORKS)]
    keys = [Key(name, (colour,)) for name, colour in SHOWN.items()]
    x, y = Axis(0, len(NETWORKS), "", ticks), Axis(50, 5 * np.ceil(top / 5), "minutes", grid=True)
    return Panel("times", x, y, marks, keys, heading="mean JCT and 95% interval", height=2.4)
