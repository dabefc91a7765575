"""The command line: ``python -m tests.referee --instances 500 [--only OBJECTIVE ...] [--methods]``."""

from __future__ import annotations

import argparse
import sys
import time

from .brute import Brute, brute
from .compare import WRONG, compare
from .problems import PROBLEMS

COLUMNS = ("instances", "infeasible", "answers", "plans", "drawn", "optima", "empty", "open", "unproved", *WRONG)
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
    options = parser.parse_args(arguments)
    print(f"| {HEAD} |\n|---|{'---:|' * (HEAD.count('|'))}", flush=True)
    failed = False
    for objective in options.only:
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


if __name__ == "__main__":
    raise SystemExit(main())
