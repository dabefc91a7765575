"""TopDRL, ours and all rivals on the same workloads: run what benchmarks/topdrl.csv lacks, write the pages."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from math import nan
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError
from gangplan.learned.proximity import PUBLISHED, make_policy, weights_of
from gangplan.simulator.proximity import ALLOCATORS, DISCIPLINES, SMALL, SUITES, Suite, suite
from gangplan.simulator.proximity.bound import bound
from gangplan.simulator.proximity.evaluate import Row, evaluate
from gangplan.simulator.proximity.rules import TUNED
from gangplan.simulator.proximity.window import window

from .ledger import ROOT, measured_commit
from .pacml import digest
from .records import append_records, read_records

CSV = ROOT / "benchmarks" / "topdrl.csv"
DATA, WEIGHTS = ROOT.parent / "shared" / "data", ROOT / "learned" / "weights"
CLASSIC = (*PUBLISHED, "least_work")
GRID = tuple(f"{s}+{d}+{a}" for s in CLASSIC for d in DISCIPLINES for a in ALLOCATORS)
"""Every selector, discipline and allocator: the best of them is the best rule of a workload, chosen in hindsight."""
LEARNED = ("topdrl", "topdrl-imitated", "topdrl-single", "proximity-drl", "select")
NETWORKS = ("select-unguarded", "select-random", "select-linear")
"""Ours without its guard, and with something else in the place of its network."""
PLACED = tuple(f"topdrl+{a}" for a in ALLOCATORS if a != "closest")
"""TopDRL with the published allocators."""
ORACLE, BOUND = "oracle", "bound"
WINDOWS, JOBS, SECONDS = "windows", 15, 10.0
"""The suite of windows, their jobs, and the seconds for a proof; there the oracle is the best plan of CP-SAT."""
OTHERS = (
    "linear",
    "patient",
    "linear+easy",
    "linear+overtake",
    "srtf",
    "rollout",
    *LEARNED,
    *NETWORKS,
    *PLACED,
    ORACLE,
    BOUND,
)


def full(name: str, allocator: str = "closest") -> str:
    """Return the name that the rows have of a selector with the discipline that suits it."""
    if name in CLASSIC:
        return f"{name}+{TUNED.get(name, 'overtake')}+{allocator}"
    return name if allocator == "closest" else f"{name}+{allocator}"


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
            ground = _ground(name, data)
        except InstanceError as error:
            say(f"{name}: left out, {error}")
            continue
        made = dict(_made(policies, ground, folder, say))
        files = {p: weights_of(p, ground, folder) for p in made}
        weights = {p: "" if file is None else digest(file) for p, file in files.items()}
        for seed in seeds:
            missing = [p for p in policies if (weights.get(p, ""), name, p, seed) not in known]
            rules = [p for p in missing if p in GRID]
            for group in [rules] * bool(rules) + [[p] for p in missing if p in {*made, BOUND} - {*GRID}]:
                found = (
                    _proved(ground, seed) if group == [BOUND] else evaluate({p: made[p] for p in group}, ground, [seed])
                )
                about = datetime.now(UTC).isoformat(timespec="seconds"), measured_commit()
                append_records([TopdrlRow(*_short(x), weights.get(x.policy, ""), *about) for x in found], path)
                best = min(found, key=lambda x: x.mean_jct)
                say(f"{name} seed {seed}: {best.policy} {best.mean_jct:.4g} s, best of {len(group)}")


def _ground(name: str, data: Path) -> Suite:
    if name == WINDOWS:
        return replace(suite("small"), name=WINDOWS, draw=lambda seed: (replace(SMALL, jobs=JOBS).draw(seed), None))
    return suite(name, data)


def _proved(ground: Suite, seed: int) -> list[Row]:
    """Return what no plan is below; of a window also what its best plan comes to."""
    work, _ = ground.draw(seed)
    if ground.name == WINDOWS:
        best = window(work, ground.fleet, ground.proximity, time_limit=SECONDS)
        known = {ORACLE: best.mean_jct, BOUND: best.bound}
    else:
        known = {BOUND: bound(work, ground.fleet, ground.proximity)}
    return [Row(name, ground.name, seed, value, *[nan] * 5) for name, value in known.items()]


def _made(names: Sequence[str], ground: Suite, folder: Path, say: Callable[[str], None]) -> Iterator[tuple[str, Any]]:
    for name in names:
        if name == BOUND or (name, ground.name) == (ORACLE, WINDOWS):
            continue
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
        "--suite", action="append", choices=(*SUITES, WINDOWS), metavar="NAME", help="may be repeated  [default: all]"
    )
    topdrl.add_argument(
        "--policy", action="append", metavar="NAME", help="may be repeated  [default: all, the grid of rules too]"
    )
    topdrl.add_argument("--seeds", type=int, default=10, help="test seeds, of windows ten times as many  [default: 10]")
    topdrl.add_argument("--rows", type=Path, default=CSV, help="where the rows are  [default: benchmarks/topdrl.csv]")
    topdrl.add_argument("--data", type=Path, default=DATA, help="folder of published data  [default: ../shared/data]")
    topdrl.add_argument("--weights", type=Path, default=WEIGHTS, help="folder of NAME[-SUITE].safetensors")
    topdrl.add_argument("--check", action="store_true", help="run nothing; fail if the page would change")
    topdrl.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    from .topdrl_tables import write_page

    if options.what == "run" and not options.check:
        for name in options.suite or (*SUITES, WINDOWS):
            rules, seeds = (GRID, options.seeds) if name != WINDOWS else (map(full, CLASSIC), 10 * options.seeds)
            run([name], options.policy or (*rules, *OTHERS), range(seeds), options.rows, options.data, options.weights)
    return write_page(options.rows, check=options.check)
