"""``python -m tests.simulation --seeds N``: play many scenarios; print what goes wrong, as small as it gets."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from pathlib import Path

from .seeds import Job, one


def main() -> int:
    """Return 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many scenarios")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--events", type=int, help="of each scenario, before it runs out; by default 40 to 300")
    parser.add_argument("--jobs", "-j", type=int, default=1, help="processes")
    parser.add_argument(
        "--shrink", type=float, default=60.0, help="seconds to make a failing scenario small, 0 for none"
    )
    parser.add_argument("--each", type=int, default=1, help="scripts printed of a rule")
    parser.add_argument("--ignore", default="", help="rules that are not looked at, with commas")
    parser.add_argument("--out", type=Path, help="a folder for the scripts, instead of printing them")
    args = parser.parse_args()
    began, events, decisions = time.monotonic(), 0, 0
    rules: Counter[str] = Counter()
    ignored = tuple(args.ignore.split(","))
    jobs: list[Job] = [(seed, args.events, 0.0, ignored) for seed in range(args.first, args.first + args.seeds)]
    with multiprocessing.get_context("spawn").Pool(args.jobs) if args.jobs > 1 else _Here() as pool:
        for i, (seed, count, made, rule, what, _) in enumerate(pool.imap_unordered(one, jobs), 1):
            events, decisions = events + count, decisions + made
            if rule:
                rules[rule] += 1
                print(f"\nseed {seed}: {rule}: {what[:400]}", flush=True)
                if rules[rule] <= args.each and args.shrink:
                    text = one((seed, args.events, args.shrink, ignored))[5]
                    if args.out:
                        args.out.mkdir(parents=True, exist_ok=True)
                        (args.out / f"{rule}-{seed}.py").write_text(text)
                    else:
                        print(text, flush=True)
            if i == len(jobs) or sys.stderr.isatty() or i % 10 == 0:
                took = time.monotonic() - began
                rest = f"{events / took:,.0f} a second, {rules.total()} fail"
                line = f"{i} of {len(jobs)} seeds, {events:,} events, {rest}"
                print(line, end="\r" if sys.stderr.isatty() and i < len(jobs) else "\n", file=sys.stderr, flush=True)
    kinds = ", ".join(f"{rule} {count}" for rule, count in rules.most_common()) or "none"
    print(f"{args.seeds} seeds from {args.first}: {events:,} events, {decisions:,} decisions; faults: {kinds}")
    return 1 if rules else 0


class _Here:
    """This process, where a pool would be."""

    imap_unordered = staticmethod(map)

    def __enter__(self) -> _Here:
        return self

    def __exit__(self, *_: object) -> None:
        return None


if __name__ == "__main__":
    sys.exit(main())
