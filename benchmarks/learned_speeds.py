"""`Scheduler` with speeds learned from reports, on 32 servers over 5,000 jobs whose truth changes at half: mean JCT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from gangplan.systems.interference.baselines import CONSOLIDATE, Places, ScoreRule, run
from gangplan.systems.interference.case import InterferenceCase
from gangplan.systems.interference.cases import gavel_pairs, poisson
from gangplan.systems.interference.environment import Environment, check
from gangplan.systems.interference.greedy import Greedy
from gangplan.systems.interference.truths import HiddenTruth, contention, gpu_pairs

from .interval_policy import IntervalScheduler
from .learned_speeds_tables import JOBS, RULES, TABLES, WINDOWS, draw
from .rows import Task
from .study import Options, Study

SERVERS, NOISE, SEEDS = 32, 0.03, 5
CLUSTER = 100
"""The truth of a seed is drawn from the seed and this; validation used other clusters."""


def shared(seed: int, jobs: int, data: Path) -> tuple[InterferenceCase, HiddenTruth]:
    """Return gangs on halves of GPUs under contention; later other models hurt one another."""
    case = poisson(seed, jobs, SERVERS, kind="ring", share=0.5, load=0.9, cluster=CLUSTER + seed)
    other = contention(case.fleet, 2 * CLUSTER + seed).hidden
    return case, HiddenTruth(_truth(case).hidden._replace(host=other.host))


def pairs(seed: int, jobs: int, data: Path) -> tuple[InterferenceCase, HiddenTruth]:
    """Return Gavel's jobs on halves of GPUs, as it measured pairs on P100; later as on V100."""
    folder = data / "gavel"
    case = gavel_pairs(str(folder), seed, jobs, SERVERS)
    _, other = gpu_pairs(folder / "simulation_throughputs.json", case.fleet, "v100")
    return case, HiddenTruth(_truth(case).hidden._replace(kept=other.hidden.kept))


def links(seed: int, jobs: int, data: Path) -> tuple[InterferenceCase, HiddenTruth]:
    """Return gangs that need several servers, on whole GPUs; later the links of eight servers have half the speed."""
    case = poisson(seed, jobs, SERVERS, kind="ring", load=0.7, cluster=CLUSTER + seed)
    truth = _truth(case)
    for link in np.unique(truth.hidden.link[:, : SERVERS // 4]).tolist():
        truth = slower_link(truth, link, 0.5)
    return case, truth


def slower_link(truth: HiddenTruth, link: int, factor: float) -> HiddenTruth:
    """Return the truth with one link at `factor` of its bandwidth: a server's NIC, or behind them an uplink."""
    quality = truth.hidden.quality.copy()
    quality[link] *= factor
    return HiddenTruth(truth.hidden._replace(quality=quality))


def _truth(case: InterferenceCase) -> HiddenTruth:
    assert isinstance(case.truth, HiddenTruth)
    return case.truth


class Oracle:
    """`Greedy` with the true speeds, also after they change."""

    def __init__(self) -> None:
        self._known: tuple[object, Greedy | None] = None, None

    def place(self, env: Environment) -> None:
        """Place what waits."""
        if self._known[0] is not env.case.truth:
            self._known = env.case.truth, Greedy(env.case.truth, consolidate=CONSOLIDATE)
        assert self._known[1] is not None
        self._known[1].place(env)


GROUNDS = {"shared": shared, "pairs": pairs, "links": links}
_tuned = partial(ScoreRule, order="shortest", together=True, patience=CONSOLIDATE)
POLICIES: dict[str, Callable[[int], Places]] = {
    "without": lambda seed: IntervalScheduler(reports=False),
    "learned": lambda seed: IntervalScheduler(noise=NOISE, seed=seed),
    "never forgets": lambda seed: IntervalScheduler(noise=NOISE, seed=seed, forget=1.0),
    **{name: lambda seed, name=name: _tuned(name) for name in RULES},
    "oracle": lambda seed: Oracle(),
}
"""Made for a seed of what is reported."""


def tasks(options: Options) -> Iterator[Task]:
    """Yield every ground, policy and test seed."""
    for seed in range(options.seeds or SEEDS):
        for ground in options.chosen(GROUNDS):
            yield from (Task(ground, policy, seed) for policy in options.policies or POLICIES)


def measure(task: Task, options: Options, jobs: int = JOBS) -> Mapping[str, float]:
    """Simulate.

    Raises:
        RuntimeError: if the outcome does not hold.
    """
    case, truth = GROUNDS[task.case](task.seed, jobs, options.data)
    change = float(np.ceil(case.jobs.submit[jobs // 2] / case.interval)) * case.interval
    made = POLICIES[task.policy](task.seed)
    outcome = run(case, made, (change, truth)).outcome()
    if faults := check(outcome, (change, case.truth)):
        raise RuntimeError(f"{task}: {'; '.join(faults)}")
    slow = float(np.quantile(made.took, 0.99)) if isinstance(made, IntervalScheduler) else 0.0
    return dict(zip(WINDOWS, outcome.jct.reshape(len(WINDOWS), -1).mean(axis=1).tolist(), strict=True)) | {
        "decision": slow
    }


STUDY = Study(
    "learned-speeds",
    (*WINDOWS, "decision"),
    tasks,
    measure,
    {"tried/measured.md": TABLES},
    {"figure": lambda options: draw(STUDY.found(options.rows))},
)
"""Mean JCT of the jobs of each window by submission, seconds; processor seconds of the slowest decision in a hundred, 0
of rules."""
