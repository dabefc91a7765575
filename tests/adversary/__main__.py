"""``python -m tests.adversary --problems N``: enumerate tiny problems and attack what is certified of them."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from typing import Any

from .attack import attack
from .brute import optimum
from .draw import CASES, problem


def one(job: tuple[str, str, int], seen: dict[str, list[Any]]) -> tuple[Any, list[str], Counter[str]]:
    """Enumerate one problem and attack its certificates, also with those of problems before."""
    drawn, counts = problem(*job), Counter[str]()
    best, plan = optimum(drawn)
    counts["problems"] += 1
    counts["problems without a plan"] += best is None
    try:
        return job, attack(drawn, best, plan, random.Random(job[2]), counts, seen), counts
    except Exception as error:
        return job, [f"{type(error).__name__}: {error}"], counts


def main() -> int:
    """Return 1 if the checker was wrong once."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("--problems", type=int, default=5000, help="how many, over all objectives")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no problem is begun")
    parser.add_argument("--only", default="", help="an objective")
    args = parser.parse_args()
    cases = [case for case in CASES if args.only in ("", case[0])]
    began, total, bad, seen = time.monotonic(), Counter[str](), 0, dict[str, list[Any]]()
    for i in range(args.problems):
        if time.monotonic() - began > args.seconds:
            break
        objective, variant = cases[i % len(cases)]
        job, faults, counts = one((objective, variant, args.first + i // len(cases)), seen)
        total, bad = total + counts, bad + len(faults)
        for words in faults[:1]:
            print(f"{job}: {words}", flush=True)
        if i % 200 == 199:
            print(f"{i + 1} problems, {total['mutations']} mutations, {bad} faults, {time.monotonic() - began:.0f} s",
                  file=sys.stderr, flush=True)  # fmt: skip
    print("\n".join(f"{count:8} {name}" for name, count in sorted(total.items())))
    print(f"{bad} faults in {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
