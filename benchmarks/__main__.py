"""The command line: ``python -m benchmarks STUDY`` runs what its rows lack, and renews its pages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from .study import Options, Study

STUDIES = {
    "policies": "classic policies on traces of clusters: docs/policies.md",
    "scheduler": "latencies of Scheduler, and traces that it decides: docs/scheduler-results.md",
    "patience": "how long jobs wait until they are due, by setting: docs/operators-results.md",
    "eviction": "who leaves so that a gang has room, against greedy rules: docs/scheduler-results.md",
    "durations": "durations known, limits, history or nothing, rivals alike: docs/durations.md",
    "durations-loss": "how well durations are predicted, beside boosting: docs/durations.md",
    "learned-speeds": "Scheduler with speeds learned from reports: docs/tried/measured.md",
    "pacml": "PAC-ML: the learned policy, rivals, bounds, ablations: docs/pacml-results.md",
    "pacml-published": "PAC-ML as published, trained here: docs/pacml-results.md",
    "topdrl": "TopDRL, ours, rules and bounds: docs/topdrl.md and docs/topdrl-results.md",
    "online": "the graph policy in Scheduler, all rivals, its ablations: docs/graph-policy.md",
    "online-grounds": "rules and networks on long runs of clusters up to 4,096 GPUs: docs/scheduler-results.md",
    "harmony": "Harmony, MARL, ours and rules: docs/harmony.md and docs/marl.md",
    "market": "how long agents of a market take: docs/marl.md",
    "speed-models": "models of speed on combinations held out: docs/speeds.md",
    "proofs": "gaps by family and size, proofs with certificates: docs/proofs-results.md, docs/gapbench.md",
    "layout": "the cost model of layouts beside measured steps: docs/layout-results.md",
    "layouts": "layouts of known models to 16,384 GPUs, beside rivals: docs/layout-results.md",
    "proved": "how much of what auto calls optimal is proved: docs/proofs-results.md",
    "large": "auto against each of its methods alone on large problems: docs/tried/measured.md",
    "picture": "exact, network, search, rules by size: docs/picture.md",
    "ablation": "auto without each of its methods: docs/hybrid.md",
    "offline": "solve by a graph network against rules and search: docs/learning.md",
    "intervals": "when jobs start: intervals of 90% on traces, beside rivals: docs/scheduler-results.md",
    "operators": "a month of queues, Kueue's set-ups, latency with everything on: docs/operators-results.md",
    "doors": "decisions through JSON lines and HTTP: docs/operators-results.md",
    "slurm": "jobs under Slurm's backfill and under gangplan slurm, on its daemons: docs/operators-results.md",
    "fresh": "what a new process answers: its first call, its second, loaded",
}
"""What each is about, and the pages that it renews."""
_USUAL = Options()


def study(name: str) -> Study:
    """Return a study by its name."""
    found: Study = import_module(f".{name.replace('-', '_')}", __package__).STUDY
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command given and return its exit code: 0, 1 if a check fails, 2 if it makes no sense, 130 by Ctrl-C."""
    words = "\n".join(f"  {name:15} {text}" for name, text in STUDIES.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", epilog=f"studies:\n{words}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", choices=STUDIES, metavar="STUDY", help="one of those below")
    parser.add_argument("what", nargs="?", default="run", help="run (default), page, or what the study has: figure")
    parser.add_argument("--case", action="append", default=[], metavar="NAME", help="may be repeated  [default: all]")
    parser.add_argument("--policy", action="append", default=[], metavar="NAME", help="may be repeated  [default: all]")
    parser.add_argument("--only", default="", metavar="TEXT", help="only runs with this in 'case policy seed'")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many test seeds")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="that run at once  [default: 1]")
    parser.add_argument("--data", type=Path, default=_USUAL.data, metavar="FOLDER", help="of published data")
    parser.add_argument("--weights", type=Path, default=_USUAL.weights, metavar="FOLDER", help="of weights")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="other rows; the pages are left alone")
    parser.add_argument("--out", type=Path, default=_USUAL.out, metavar="FOLDER", help="of what is trained")
    parser.add_argument("--json", action="store_true", help="print JSON, where a study prints a table")
    parser.add_argument("--check", action="store_true", help="run nothing; fail if a page would change")
    given = parser.parse_args(arguments)
    found = study(given.study)
    known = ("run", "page", *found.more)
    if given.what not in known:
        print(f"{given.what}: {given.study} has {', '.join(known)}")
        return 2
    options = Options(
        tuple(given.case), tuple(given.policy), given.only, given.seeds, given.processes, given.data, given.weights,
        given.rows, given.out, given.json,
    )  # fmt: skip
    try:
        return act(found, given.what, options, check=given.check)
    except KeyboardInterrupt:
        print("interrupted: run it again to go on")
        return 130


def act(found: Study, what: str, options: Options, *, check: bool = False) -> int:
    """Do what a command asks for; return the exit code."""
    if what in found.more:
        found.more[what](options)
    elif what == "run" and not check:
        found.run(options)
    return 0 if options.rows else found.write(check=check)


if __name__ == "__main__":
    raise SystemExit(main())
