"""`Scheduler` with speeds learned from reports, on 32 servers over 5,000 jobs whose truth changes at half: mean JCT."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np

from gangplan.hybrid.online.interval_policy import IntervalScheduler
from gangplan.simulator.interference.baselines import Policy, Rule, run
from gangplan.simulator.interference.case import Case
from gangplan.simulator.interference.cases import gavel_pairs, poisson
from gangplan.simulator.interference.environment import Environment
from gangplan.simulator.interference.evaluate import CONSOLIDATE
from gangplan.simulator.interference.greedy import Greedy
from gangplan.simulator.interference.measured import gpu_pairs
from gangplan.simulator.interference.outcome import check
from gangplan.simulator.interference.truths import HiddenTruth, contention

from .ledger import ROOT, measured_commit
from .records import append_records, read_records

CSV, DATA = ROOT / "benchmarks" / "learned_speeds.csv", ROOT.parent / "shared" / "data"
SERVERS, JOBS, WINDOW, NOISE = 32, 5000, 500, 0.03
CLUSTER = 100
"""The truth of a seed is drawn from the seed and this; validation used other clusters."""


@dataclass(frozen=True, slots=True)
class LearnedRow:
    """One window of one simulation.

    Attributes:
        ground, seed, policy: what was simulated; `GROUNDS`, `POLICIES`.
        window: counted from 0, of `WINDOW` jobs by submission.
        jct: mean of its jobs, seconds.
        decision: processor seconds of the slowest decision in a hundred, of the whole simulation; 0 of rules.
        date, commit: as in the ledger.
    """

    ground: str
    seed: int
    policy: str
    window: int
    jct: float
    decision: float
    date: str
    commit: str


def shared(seed: int, jobs: int, data: Path) -> tuple[Case, HiddenTruth]:
    """Return gangs on halves of GPUs under contention; later other models hurt one another."""
    case = poisson(seed, jobs, SERVERS, kind="ring", share=0.5, load=0.9, cluster=CLUSTER + seed)
    other = contention(case.fleet, 2 * CLUSTER + seed).hidden
    return case, HiddenTruth(_truth(case).hidden._replace(host=other.host))


def pairs(seed: int, jobs: int, data: Path) -> tuple[Case, HiddenTruth]:
    """Return Gavel's jobs on halves of GPUs, as it measured pairs on P100; later as on V100."""
    folder = data / "gavel"
    case = gavel_pairs(str(folder), seed, jobs, SERVERS)
    _, other = gpu_pairs(folder / "simulation_throughputs.json", case.fleet, "v100")
    return case, HiddenTruth(_truth(case).hidden._replace(kept=other.hidden.kept))


def links(seed: int, jobs: int, data: Path) -> tuple[Case, HiddenTruth]:
    """Return gangs that need several servers, on whole GPUs; later the links of eight servers have half the speed."""
    case = poisson(seed, jobs, SERVERS, kind="ring", load=0.7, cluster=CLUSTER + seed)
    truth = _truth(case)
    for link in np.unique(truth.hidden.link[:, : SERVERS // 4]).tolist():
        truth = truth.slower_link(link, 0.5)
    return case, truth


def _truth(case: Case) -> HiddenTruth:
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
_tuned = partial(Rule, order="shortest", together=True, patience=CONSOLIDATE)
RULES = ("tetris", "lif", "lb")
POLICIES: dict[str, Callable[[int], Policy]] = {
    "without": lambda seed: IntervalScheduler(reports=False),
    "learned": lambda seed: IntervalScheduler(noise=NOISE, seed=seed),
    "never forgets": lambda seed: IntervalScheduler(noise=NOISE, seed=seed, forget=1.0),
    **{name: lambda seed, name=name: _tuned(name) for name in RULES},
    "oracle": lambda seed: Oracle(),
}
"""Made for a seed of what is reported."""


def simulate(ground: str, seed: int, policy: str, jobs: int = JOBS, data: Path = DATA) -> list[LearnedRow]:
    """Return the rows of one simulation.

    Raises:
        RuntimeError: if the outcome does not hold.
    """
    case, truth = GROUNDS[ground](seed, jobs, data)
    change = float(np.ceil(case.jobs.submit[jobs // 2] / case.interval)) * case.interval
    made = POLICIES[policy](seed)
    outcome = run(case, made, (change, truth)).outcome()
    if faults := check(outcome, (change, case.truth)):
        raise RuntimeError(f"{ground}, {policy}, seed {seed}: {'; '.join(faults)}")
    slow = float(np.quantile(made.took, 0.99)) if isinstance(made, IntervalScheduler) else 0.0
    about = float(f"{slow:.3g}"), datetime.now(UTC).isoformat(timespec="seconds"), measured_commit()
    means = outcome.jct.reshape(-1, WINDOW * jobs // JOBS).mean(axis=1)
    return [LearnedRow(ground, seed, policy, i, float(f"{x:.7g}"), *about) for i, x in enumerate(means.tolist())]


def read(path: Path = CSV) -> list[LearnedRow]:
    """Return the rows, oldest first."""
    return read_records(path, LearnedRow)


def measure(
    grounds: Iterable[str],
    policies: Sequence[str],
    seeds: Sequence[int],
    path: Path = CSV,
    data: Path = DATA,
    say: Callable[[str], None] = print,
) -> None:
    """Simulate what is missing; the rows of a simulation are written as soon as it is over."""
    known = {(row.ground, row.seed, row.policy) for row in read(path)}
    for seed in seeds:
        for ground in grounds:
            for policy in policies:
                if (ground, seed, policy) not in known:
                    rows = simulate(ground, seed, policy, data=data)
                    append_records(rows, path)
                    say(f"{ground} seed {seed} {policy}: {np.mean([row.jct for row in rows]) / 60:.1f} min")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    found = commands.add_parser("learned-speeds", help="Scheduler with learned speeds: run what is missing")
    found.add_argument("what", nargs="?", choices=("run", "page"), default="run")
    found.add_argument("--ground", action="append", choices=GROUNDS, help="may be repeated  [default: all]")
    found.add_argument("--policy", action="append", choices=POLICIES, help="may be repeated  [default: all]")
    found.add_argument("--seeds", type=int, default=5, help="test seeds  [default: 5]")
    found.add_argument("--rows", type=Path, default=CSV, help="where the rows are")
    found.add_argument("--data", type=Path, default=DATA, help="folder of published data  [default: ../shared/data]")
    found.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    if options.what == "run":
        chosen = options.ground or tuple(GROUNDS), options.policy or tuple(POLICIES)
        measure(*chosen, range(options.seeds), options.rows, options.data)
    from .learned_speeds_page import draw, learned
    from .online_page import write_page

    if options.rows != CSV:
        print(learned(read(options.rows)))
        return 0
    draw(read())
    return write_page()
