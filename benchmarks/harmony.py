"""Harmony, ours and all rivals on the same cases: run what benchmarks/harmony.csv lacks, write the page."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError
from gangplan.learned.interference.policies import make_policy, weights_of
from gangplan.simulator.interference.cases import CASES, DATA_CASES, OF_AGENTS, VALIDATION, maker
from gangplan.simulator.interference.evaluate import Figures, evaluate

from .ledger import ROOT, measured_commit
from .pacml import digest
from .records import append_records, read_records

CSV = ROOT / "benchmarks" / "harmony.csv"
DATA, WEIGHTS = ROOT.parent / "shared" / "data", ROOT / "learned" / "weights"
RULES = ("lif", "tetris", "lb", "lif-near", "tetris-near", "lb-near", "best", "first")
PUBLISHED = ("lif-published", "tetris-published", "lb-published")
ORACLES = ("oracle-patient", "oracle-consolidated", "oracle-joint", "oracle-joint-patient")
HARMONY, OURS = "harmony", "colocate"
FULL = "harmony-ppo"
"""Taught by Tetris without `near`, then 50 updates of PPO on rewards of the `sequence` model: what ablations change."""
ABLATIONS = (
    *("harmony-2019", "harmony-no-model", "harmony-no-exploration", "harmony-no-replay", "harmony-pressure"),
    *("harmony-near-ppo", "harmony-near-ppo-long"),
)
LEARNED = (HARMONY, FULL, *ABLATIONS, OURS)
POLICIES = (*RULES, *PUBLISHED, "alone", "alone-joint", *ORACLES, *LEARNED)
GROUND = tuple(name for name in (*CASES, *DATA_CASES) if name not in OF_AGENTS)
LARGE = ("poisson-32",)
"""Cases of which a third of the seeds are run."""


@dataclass(frozen=True, slots=True)
class HarmonyRow:
    """One simulation.

    Attributes:
        policy, workload: names, of the policy and of the case.
        seed: of the arrivals.
        mean_jct, p95_jct, makespan: seconds, see `Figures`.
        rate: placements of tasks a second of processor time.
        weights: the first twelve digits of their SHA-256, empty of a policy without.
        date, commit: as in the ledger.
    """

    policy: str
    workload: str
    seed: int
    mean_jct: float
    p95_jct: float
    makespan: float
    rate: float
    weights: str
    date: str
    commit: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What makes another row a repetition of this one."""
        return self.weights, self.workload, self.policy, self.seed


def read(path: Path = CSV) -> list[HarmonyRow]:
    """Return the rows, oldest first."""
    return read_records(path, HarmonyRow)


def run(
    cases: Sequence[str],
    policies: Sequence[str],
    seeds: Sequence[int],
    path: Path = CSV,
    data: Path = DATA,
    folder: Path = WEIGHTS,
    say: Callable[[str], None] = print,
) -> None:
    """Simulate what is missing; a row is written as soon as it is there."""
    known = {row.key for row in read(path)}
    for name in cases:
        for policy in policies:
            try:
                make, chosen = maker(name, data), make_policy(policy, name, folder)
            except InstanceError as error:
                say(f"{name}, {policy}: left out, {error}")
                continue
            file = weights_of(policy, name, folder)
            weights = "" if file is None else digest(file)
            for seed in seeds:
                if (weights, name, policy, seed) in known:
                    continue
                try:
                    found = evaluate({policy: chosen}, make, [seed])[policy]
                except InstanceError as error:
                    say(f"{name}, {policy}: left out, {error}")
                    break
                append_records([_row(policy, name, seed, found, weights)], path)
                say(f"{name} seed {seed}: {policy} {found.mean_jct[0] / 60:.4g} min")


def _row(policy: str, case: str, seed: int, found: Figures, weights: str) -> HarmonyRow:
    figures = (found.mean_jct, found.p95_jct, found.makespan, found.rate)
    values = (float(f"{float(x[0]):.7g}") for x in figures)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return HarmonyRow(policy, case, seed, *values, weights, when, measured_commit())


def add(commands: Any) -> None:
    """Add the command."""
    harmony = commands.add_parser(
        "harmony",
        help="policies under hidden interference: run what harmony.csv lacks, write the page, draw, search longer",
    )
    harmony.add_argument("what", nargs="?", choices=("run", "page", "figure", "room"), default="run")
    harmony.add_argument(
        "--case", action="append", choices=(*GROUND, *OF_AGENTS), metavar="NAME", help="may be repeated  [all]"
    )
    harmony.add_argument("--policy", action="append", metavar="NAME", help="may be repeated  [default: all]")
    harmony.add_argument("--seeds", type=int, default=10, help="test seeds, of large cases a third  [default: 10]")
    harmony.add_argument("--rows", type=Path, default=CSV, help="where the rows are  [default: benchmarks/harmony.csv]")
    harmony.add_argument("--data", type=Path, default=DATA, help="folder of published data  [default: ../shared/data]")
    harmony.add_argument("--weights", type=Path, default=WEIGHTS, help="folder of NAME[-CASE].safetensors")
    harmony.add_argument("--check", action="store_true", help="run nothing; fail if the page would change")
    harmony.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    from . import centres, harmony_tables

    if options.what == "figure":
        from . import centres_figure, harmony_figure

        harmony_figure.draw()
        centres_figure.draw()
        return 0

    if options.what == "room":
        from .harmony_room import room

        for name, begin in product(options.case or ("poisson", "shared"), (VALIDATION + 100, 0)):
            print(
                f"seeds from {begin}",
                *room(name, maker(name, options.data), range(begin, begin + options.seeds)),
                sep="\n",
            )
        return 0

    if options.what == "run" and not options.check:
        for name in options.case or (*GROUND, *OF_AGENTS):
            seeds = range(max(5, options.seeds // 3) if name in (*LARGE, *OF_AGENTS) else options.seeds)
            policies = options.policy or (centres.policies_of(name) if name in OF_AGENTS else POLICIES)
            run([name], policies, seeds, options.rows, options.data, options.weights)
    pages = (harmony_tables, centres)
    return max(page.write_page(options.rows, check=options.check) for page in pages)
