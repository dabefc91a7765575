"""Draw docs/images/harmony.png: who hurts whom, what a model believes of it, and what policies make of that."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.learned.training.interference.models import fit
from gangplan.plot.colours import mixed
from gangplan.plot.scene import Axis, Boxes, Heat, Key, Panel, Scene, Words
from gangplan.simulator.snapshots import Snapshots, Truth
from gangplan.systems.interference.baselines import Places, ScoreRule, baselines, run
from gangplan.systems.interference.cases import TRAINING, VALIDATION, maker
from gangplan.systems.interference.environment import InterferenceOutcome
from gangplan.systems.interference.greedy import Greedy
from gangplan.systems.interference.samples import Log, log, log_samples
from gangplan.systems.interference.truths import TESTBED, HiddenTruth

from .rows import ROOT

PICTURE = ROOT / "docs" / "images" / "harmony.png"
SHADES = ("#a50026", "#f46d43", "#fee08b", "#d9ef8b", "#1a9850")
CASE, SIZE, SEED, JOBS, SLOTS = "shared", 2000, VALIDATION + 1, 60, 4
"""What is drawn, samples of the model, the arrivals drawn, how many, and half GPUs of a server."""


def kept_beside(truth: Truth) -> FloatArray:
    """Return what share of its speed a worker of each type keeps beside one of each other on its server, (K, K)."""
    kinds = len(TESTBED.names)
    one = {0: (1, 0)}
    alone = truth.speeds(Snapshots.join([Snapshots.of_rows(np.array([k]), [one]) for k in range(kinds)]))
    pairs = [Snapshots.of_rows(np.array([a, b]), [one, one]) for a in range(kinds) for b in range(kinds)]
    return np.asarray(truth.speeds(Snapshots.join(pairs))[::2].reshape(kinds, kinds) / alone[:, None])


def kept(outcome: InterferenceOutcome, truth: HiddenTruth) -> FloatArray:
    """Return what share of its speed each job kept beside the others, where it was, (n,)."""
    return np.asarray(outcome.case.jobs.epochs / truth.alone().speeds(outcome.where) / (outcome.finish - outcome.start))


def lanes(outcome: InterferenceOutcome, shares: FloatArray, end: float) -> Boxes:
    """Return a box for each worker: when it ran, on which half GPU, coloured by what its job kept."""
    where, boxes, colours = outcome.where, list[tuple[float, float, float, float]](), list[str]()
    free = np.zeros((outcome.case.fleet.n_nodes, SLOTS))
    job = where.job
    for row in sorted(range(len(job)), key=lambda r: outcome.start[job[r]]):
        j, server = int(job[row]), int(where.server[row])
        slots = np.flatnonzero(free[server] <= outcome.start[j] + 1e-6)[: where.workers[row]]
        free[server, slots] = outcome.finish[j]
        for slot in slots.tolist():
            boxes.append(
                (outcome.start[j] / 3600, server * (SLOTS + 1) + slot, (outcome.finish - outcome.start)[j] / 3600, 0.9)
            )
            colours += mixed(shares[j : j + 1], SHADES)
    return Boxes(np.array(boxes), colours, edge="white", line=0.3)


def draw(picture: Path = PICTURE) -> None:
    """Write the picture."""
    make = maker(CASE, jobs=JOBS)
    parts = [log(maker(CASE)(TRAINING + i), ScoreRule("lb"), noise=0.03, seed=i) for i in range(12)]
    case = make(SEED)
    samples = log_samples(case, Log.join(parts))
    few = np.cumsum(np.diff(samples.now.first)) <= SIZE
    model, truth = fit(samples.take(np.flatnonzero(few))), case.truth
    assert isinstance(truth, HiddenTruth)
    heats = (("who hurts whom: the truth, hidden", truth), (f"what the model believes after {SIZE:,} samples", model))
    top = [_heat(words, kept_beside(x), 1.75 + 6.2 * i) for i, (words, x) in enumerate(heats)]
    policies: dict[str, Places] = {
        "least interference first": baselines()["lif"](case),
        "the shortest first, where predicted speeds are best for all": Greedy(model, 2.0),
    }
    outcomes = {name: run(make(SEED), policy).outcome() for name, policy in policies.items()}
    end = max(x.finish.max() for x in outcomes.values()) / 3600
    rows = [[_panel(name, x, truth, end)] for name, x in outcomes.items()]
    title = "Interference: hidden, believed, avoided"
    subtitle = (
        f"{JOBS} jobs of eight types on 6 servers of 2 GPUs, two workers may share one; colour: share of speed kept"
    )
    Scene(title, subtitle, [top, *rows]).save(picture)
    print(f"{picture} drawn")


def _heat(words: str, values: FloatArray, left: float) -> Panel:
    names, count = TESTBED.names, len(values)
    ticks = [(i + 0.5, name) for i, name in enumerate(names)]
    told = [(j + 0.5, i + 0.5, f"{100 * values[i, j]:.0f}", 8.0, "#222222") for i in range(count) for j in range(count)]
    shades = Heat(np.clip((values - 0.3) / 0.7, 0, 1), (0, 0, count, count), SHADES)
    x = Axis(0, count, "beside one worker of", [(at, name[:7]) for at, name in ticks])
    y = Axis(count, 0, "", ticks)
    marks = [shades, *([found] if (found := Words.of(told)) else [])]
    return Panel("types", x, y, marks, heading=words + ", % kept", left=left, width=4.6, height=3.4)


def _panel(name: str, outcome: InterferenceOutcome, truth: HiddenTruth, end: float) -> Panel:
    shares = np.clip((kept(outcome, truth) - 0.3) / 0.7, 0, 1)
    servers = outcome.case.fleet.n_nodes
    ticks = [(s * (SLOTS + 1) + SLOTS / 2, f"server {s}") for s in range(servers)]
    heading = f"{name}: mean JCT {outcome.jct.mean() / 60:.0f} min"
    keys = [Key(f"{x}%", tuple(mixed(np.array([(x / 100 - 0.3) / 0.7]), SHADES))) for x in (30, 50, 70, 85, 100)]
    y = Axis(servers * (SLOTS + 1) - 1, 0, "", ticks)
    return Panel(
        "servers", Axis(0, end, "hours", link="hours"), y, [lanes(outcome, shares, end)], keys, heading=heading
    )
