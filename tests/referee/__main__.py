"""The command line: ``python -m tests.referee --instances 500 [--only OBJECTIVE ...] [--methods [--state FOLDER]]``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from .brute import Brute, brute
from .compare import WRONG, compare
from .problems import PROBLEMS

COLUMNS = ("instances", "infeasible", "answers", "plans", "drawn", "optima", "empty", "open", "unproved", *WRONG)
KEPT = 20.0
"""Seconds after which counts are written down."""
HEAD = (
    "problem | instances | without a plan | answers | plans | plans changed | optima proved | proved to have no plan "
    "| not proved | by exact methods at their end | wrong values | wrong bounds | wrong statuses | crashes "
    "| processor seconds, children apart"
)


def main(arguments: list[str] | None = None) -> int:
    """Compare, print a row for each problem, and return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.referee", description=__doc__)
    parser.add_argument("--instances", type=int, default=500, help="of each problem  [default: 500]")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--only", nargs="+", default=tuple(PROBLEMS), choices=tuple(PROBLEMS), metavar="OBJECTIVE")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS", help="of a solve  [default: 60]")
    parser.add_argument(
        "--methods", action="store_true", help="every method by its name, at nasty scales, not by solve"
    )
    parser.add_argument(
        "--state", type=Path, metavar="FOLDER", help="with --methods, of those that prove: keep counts, and go on later"
    )
    options = parser.parse_args(arguments)
    print(f"| {HEAD} |\n|---|{'---:|' * (HEAD.count('|'))}", flush=True)
    failed = False
    for objective in options.only:
        if options.state:
            tally, seconds = resumed(options.state / f"{objective}.json", objective, options.first, options.instances)
        else:
            tally, began = Brute(), time.process_time()
            for seed in range(options.first, options.first + options.instances):
                if options.methods:
                    brute(objective, seed, tally)
                else:
                    compare(objective, seed, tally, options.time_limit)
            seconds = time.process_time() - began
        print(f"| {objective} | {' | '.join(str(tally.counts[x]) for x in COLUMNS)} | {seconds:.0f} |", flush=True)
        print("\n".join(tally.wrong), file=sys.stderr, flush=True)
        for name, spent in tally.seconds.items():
            print(
                f"{objective} {name}: {spent:.1f} s, at most {tally.longest[name]:.3f} s", file=sys.stderr, flush=True
            )
        failed |= any(tally.counts[x] for x in WRONG)
    return int(failed)


def resumed(path: Path, objective: str, first: int, instances: int) -> tuple[Brute, float]:
    """Go on with the problems of an objective from the counts in a file, kept every few seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else {"next": first, "processor": 0.0}
    tally = Brute(Counter(known.get("counts", {})), known.get("wrong", []))
    tally.seconds, tally.longest = Counter(known.get("seconds", {})), known.get("longest", {})
    began, kept = time.process_time(), time.monotonic()
    for seed in range(known["next"], first + instances):
        brute(objective, seed, tally, proofs=True)
        last = seed == first + instances - 1
        if last or time.monotonic() - kept > KEPT:
            kept, spent = time.monotonic(), known["processor"] + time.process_time() - began
            wrong = [x for x in tally.wrong if not x.startswith("open")] if len(tally.wrong) > 200 else tally.wrong
            tally.wrong[:] = wrong
            new = {"next": seed + 1, "processor": spent, "counts": tally.counts, "wrong": wrong}
            text = json.dumps(new | {"seconds": tally.seconds, "longest": tally.longest})
            path.with_suffix(".new").write_text(text)
            path.with_suffix(".new").replace(path)
    return tally, known["processor"] + time.process_time() - began


if __name__ == "__main__":
    raise SystemExit(main())
