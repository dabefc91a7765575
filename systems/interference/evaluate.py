"""Policies on the same cases, seed by seed: figures, intervals and paired differences; every outcome is checked.

found = evaluate(baselines(), CASES["poisson"], range(10))
print(report(found))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from time import process_time
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.simulator.metrics.compare import interval
from gangplan.simulator.snapshots import Truth

from .agents import Team, Traffic
from .baselines import Policy, Rule, run
from .case import Case
from .greedy import Greedy
from .outcome import check
from .truths import HiddenTruth

CONSOLIDATE, PATIENCE = 50.0, 2.0
"""Intervals that a tuned rule lets a job wait for few servers, and an oracle for a fast place: the best on validation
seeds, as are the shortest first, and together."""
Maker = Callable[[Case], Policy]
"""Makes a policy for a case, of which it may look at all but the truth."""


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """One policy over s seeds, float64 (s,) each.

    Attributes:
        mean_jct, p95_jct: seconds from submission to end.
        makespan: seconds from the first submission to the last end.
        rate: placements of tasks a second of processor time, simulation included.
        messages, size: what agents told one another, and its bytes, a job; 0 where there are no agents.
        wire: bytes a job that really went to and from agents in other processes.
        round: mean seconds until agents of a market had answered, of wall clock; nan where there is none.
    """

    mean_jct: FloatArray
    p95_jct: FloatArray
    makespan: FloatArray
    rate: FloatArray
    messages: FloatArray
    size: FloatArray
    wire: FloatArray
    round: FloatArray

    @classmethod
    def join(cls, parts: Sequence[Figures]) -> Figures:
        """Return the figures of all parts, one after the other."""
        return cls(*(np.concatenate([getattr(x, f.name) for x in parts]) for f in fields(cls)))

    def against(self, other: Figures) -> tuple[float, float | None]:
        """Return by what share the mean JCT is above another's, paired by seed, and half the width of its interval."""
        return interval(self.mean_jct / other.mean_jct - 1)


def evaluate(policies: Mapping[str, Maker], make: Callable[[int], Case], seeds: Iterable[int]) -> dict[str, Figures]:
    """Simulate every policy on the case of each seed.

    Args:
        policies: by name.
        make: makes the case of a seed, e.g. one of `CASES`.
        seeds: see `cases.VALIDATION`.

    Raises:
        InstanceError: if there is no seed.
        RuntimeError: if an outcome does not hold, which is a defect of the policy or of this library.
    """
    rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in policies}
    for seed in seeds:
        case = make(seed)
        for name, maker in policies.items():
            policy, begin = maker(case), process_time()
            env = run(case, policy)
            seconds, outcome = process_time() - begin, env.outcome()
            if faults := check(outcome):
                raise RuntimeError(f"{name}, seed {seed}: {'; '.join(faults)}")
            jct = outcome.jct
            rate = env.placements / max(seconds, 1e-9)
            said = policy.traffic if isinstance(policy, Team) else Traffic(0, 0, [])
            rows[name].append(
                (
                    float(jct.mean()),
                    float(np.quantile(jct, 0.95)),
                    outcome.makespan,
                    rate,
                    *(x / len(jct) for x in (said.messages, said.size, said.wire)),
                    said.seconds / said.rounds if said.rounds else np.nan,
                )
            )
    if not any(rows.values()):
        raise InstanceError("seeds", "there is none")
    return {name: Figures(*np.array(found).T) for name, found in rows.items()}


def report(found: Mapping[str, Figures]) -> str:
    """Return a table in Markdown: minutes and hours, and differences in mean JCT from the first policy, paired."""
    first = next(iter(found.values()))
    lines = ["| policy | mean JCT, min | against the first | p95 JCT, min | makespan, h | placements/s |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for name, one in found.items():
        (jct, margin), (share, apart) = interval(one.mean_jct / 60), one.against(first)
        each, other = _plus_minus(margin, ".1f"), _plus_minus(apart, ".1%")
        lines.append(
            f"| {name} | {jct:.1f}{each} | {share:+.1%}{other} "
            f"| {one.p95_jct.mean() / 60:.0f} | {one.makespan.mean() / 3600:.1f} | {np.median(one.rate):,.0f} |"
        )
    return "\n".join(lines)


def _plus_minus(margin: float | None, form: str) -> str:
    return "" if margin is None else f" ± {margin:{form}}"


def baselines() -> dict[str, Maker]:
    """Return by name the classic rules, tuned and as published (spread, by arrival, none waits), and two oracles.

    One lets a job wait for a place that is fast, the other for few servers, as the tuned rules do; the better of both
    is what to compare with. ``alone`` is the latter with the speeds that jobs have alone: what it lacks is what there
    is to learn about interference.
    """
    tuned = {"order": "shortest", "together": True, "patience": CONSOLIDATE}
    makers = {name: _rule(name, **tuned) for name in ("lif", "tetris", "lb", "best", "first")}
    makers |= {f"{name}-published": _rule(name) for name in ("lif", "tetris", "lb")}
    makers["alone"] = lambda case: Greedy(alone(case.truth), consolidate=CONSOLIDATE)
    makers["oracle-patient"] = lambda case: Greedy(case.truth, PATIENCE)
    return makers | {"oracle-consolidated": lambda case: Greedy(case.truth, consolidate=CONSOLIDATE)}


def alone(truth: Truth) -> HiddenTruth:
    """Return a truth without interference, see `HiddenTruth.alone`."""
    if not isinstance(truth, HiddenTruth):
        raise InstanceError("truth", "is not compiled: how fast jobs are alone is not known of it")
    return truth.alone()


def _rule(score: str, **words: Any) -> Maker:
    return lambda case: Rule(score, **words)
