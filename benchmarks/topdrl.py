"""TopDRL, ours and all rivals on the same workloads: run what benchmarks/topdrl.csv lacks, write the pages."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError
from gangplan.learned.proximity import PUBLISHED, make_policy, weights_of
from gangplan.simulator.proximity import ALLOCATORS, DISCIPLINES, SUITES, Suite, suite
from gangplan.simulator.proximity.evaluate import Row, evaluate

from .ledger import ROOT, measured_commit
from .pacml import digest
from .records import append_records, read_records

CSV = ROOT / "benchmarks" / "topdrl.csv"
DATA, WEIGHTS = ROOT.parent / "shared" / "data", ROOT / "learned" / "weights"
CLASSIC = (*PUBLISHED, "least_work")
GRID = tuple(f"{s}+{d}+{a}" for s in CLASSIC for d in DISCIPLINES for a in ALLOCATORS)
"""Every selector, discipline and allocator: the best of them is the best rule of a workload, chosen in hindsight."""
LEARNED = ("topdrl", "topdrl-imitated", "topdrl-single", "proximity-drl", "select")
NETWORKS = ("select-unguarded", "select-random", "select-linear", "select-trees")
"""Ours without its guard, and with something else in the place of its network."""
WINDOWS = "windows"
"""The suite of windows of 15 jobs."""
OTHERS = ("linear", "linear+easy", "linear+overtake", "srtf", "rollout", *LEARNED, *NETWORKS, "oracle", "bound")


@dataclass(frozen=True, slots=True)
class TopdrlRow(Row):
    """One simulation, or what is proved of it.

    Attributes:
        weights: the first twelve digits of their SHA-256, empty of a policy without.
        date, commit: as in the ledger.
    """

    weights: str
    date: str
    commit: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What makes another row a repetition of this one."""
        return self.weights, self.workload, self.policy, self.seed


def read(path: Path = CSV) -> list[TopdrlRow]:
    """Return the rows, oldest first."""
    return read_records(path, TopdrlRow)


def run(
    suites: Sequence[str],
    policies: Sequence[str],
    seeds: Sequence[int],
    path: Path = CSV,
    data: Path = DATA,
    folder: Path = WEIGHTS,
    say: Callable[[str], None] = print,
) -> None:
    """Simulate what is missing; a row is written as soon as it is there, those of rules a seed at once."""
    known = {row.key for row in read(path)}
    for name in suites:
        try:
            ground = suite(name, data)
        except InstanceError as error:
            say(f"{name}: left out, {error}")
            continue
        made = dict(_made(policies, ground, folder, say))
        files = {p: weights_of(p, ground, folder) for p in made}
        weights = {p: "" if file is None else digest(file) for p, file in files.items()}
        for seed in seeds:
            missing = [p for p in made if (weights[p], name, p, seed) not in known]
            rules = [p for p in missing if p in GRID]
            for group in [rules] * bool(rules) + [[p] for p in missing if p not in GRID]:
                found = evaluate({p: made[p] for p in group}, ground, [seed])
                about = datetime.now(UTC).isoformat(timespec="seconds"), measured_commit()
                append_records([TopdrlRow(*_short(x), weights[x.policy], *about) for x in found], path)
                best = min(found, key=lambda x: x.mean_jct)
                say(f"{name} seed {seed}: {best.policy} {best.mean_jct:.4g} s, best of {len(group)}")


def _made(names: Sequence[str], ground: Suite, folder: Path, say: Callable[[str], None]) -> Iterator[tuple[str, Any]]:
    for name in names:
        try:
            yield name, make_policy(name, suite=ground, folder=folder)
        except InstanceError as error:
            say(f"{ground.name}, {name}: left out, {error}")


def _short(row: Row) -> list[Any]:
    """Return the fields of a row, figures in seven digits."""
    return [float(f"{x:.7g}") if isinstance(x, float) else x for x in astuple(row)]


def add(commands: Any) -> None:
    """Add the command."""
    topdrl = commands.add_parser(
        "topdrl", help="policies on TopDRL's cluster: run what topdrl.csv lacks, write the page"
    )
    topdrl.add_argument("what", nargs="?", choices=("run", "page"), default="run")
    topdrl.add_argument(
        "--suite", action="append", choices=SUITES, metavar="NAME", help="may be repeated  [default: all]"
    )
    topdrl.add_argument(
        "--policy", action="append", metavar="NAME", help="may be repeated  [default: all, the grid of rules too]"
    )
    topdrl.add_argument("--seeds", type=int, default=10, help="test seeds  [default: 10]")
    topdrl.add_argument("--rows", type=Path, default=CSV, help="where the rows are  [default: benchmarks/topdrl.csv]")
    topdrl.add_argument("--data", type=Path, default=DATA, help="folder of published data  [default: ../shared/data]")
    topdrl.add_argument("--weights", type=Path, default=WEIGHTS, help="folder of NAME[-SUITE].safetensors")
    topdrl.add_argument("--check", action="store_true", help="run nothing; fail if the page would change")
    topdrl.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    from .topdrl_tables import write_page

    if options.what == "run" and not options.check:
        policies = options.policy or (*GRID, *OTHERS)
        run(options.suite or tuple(SUITES), policies, range(options.seeds), options.rows, options.data, options.weights)
    return write_page(options.rows, check=options.check)
