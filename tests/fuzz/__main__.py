"""``python -m tests.fuzz --inputs N --seed S``: give changed documents to every reader, command and endpoint.

A fault is an error other than `InstanceError`, over five seconds of a processor, over two gigabytes, or the process's
end. Counts go on where they were; a failing input is a file of the folder, and ``--input FILE`` gives it once more.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from .attempts import attempt


def main() -> int:
    """Return 1 if something failed."""
    from .targets import TARGETS, run

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="how many more, over all targets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help=f"targets, with commas, of {', '.join(TARGETS)}")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"), help="of counts and of inputs that failed")
    parser.add_argument("--input", type=Path, help="a file to be tried once more: TARGET-SEED-NUMBER")
    args = parser.parse_args()
    if args.input:
        content, name = args.input.read_bytes(), args.input.name.rsplit("-", 2)[0].replace("-", " ")
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/inputs")
            os.chdir(f"{folder}/inputs")
            print(run(name, content))
        return 0
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    counts = folder / f"counts-{args.seed}.json"
    state = json.loads(counts.read_text()) if counts.exists() else {}
    chosen = {name: x for name, x in TARGETS.items() if args.only in ("", name) or name in args.only.split(",")}
    total, began = sum(x.weight for x in chosen.values()), time.monotonic()
    for name, target in sorted(chosen.items(), key=lambda x: x[1].weight):
        first = state.get(name, {"next": 0})["next"]
        attempt(name, args.seed, first, first + max(1, args.inputs * target.weight // total), state, folder)
        counts.write_text(json.dumps(state, indent=1))
        print(f"{name}: {state[name]['next']:,} inputs, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print(f"{'target':16} {'inputs':>9} {'taken':>9} {'refused':>9} {'faults':>7} {'kinds':>6}")
    for name, row in sorted(state.items()):
        bad = sum(row["faults"].values())
        print(f"{name:16} {row['next']:>9,} {row['taken']:>9,} {row['refused']:>9,} {bad:>7,} {len(row['faults']):>6}")
    for name, row in sorted(state.items()):
        for words, count in row["faults"].items():
            print(f"{name}: {words}: {count}")
    return 1 if any(row["faults"] for row in state.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
