"""The command line: ``python -m benchmarks policies``, ``pacml``, more."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import cold, harmony, large, learned_speeds, market, online, pacml_main, speed_models, topdrl


def main(arguments: list[str] | None = None) -> int:
    """Run the command given and return its exit code: 0, 1 if a check fails, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks and report on them.")
    commands = parser.add_subparsers(dest="command", required=True)
    policies = commands.add_parser("policies", help="simulate policies that policies.csv lacks; write docs/policies.md")
    policies.add_argument("--only", default="", help="only runs with this in 'trace policy discipline'")
    policies.add_argument("--limit", type=float, default=120.0, help="processor seconds of a run  [default: 120]")
    policies.add_argument("--data", type=Path, help="folder of published data  [default: ../shared/data]")
    policies.add_argument("--check", action="store_true", help="run nothing; fail if the page would change")
    policies.set_defaults(act=_policies)
    pacml_main.add(commands)
    topdrl.add(commands)
    harmony.add(commands)
    learned_speeds.add(commands)
    online.command(commands)
    cold.command(commands)
    large.command(commands)
    market.command(commands)
    speed_models.command(commands)
    options = parser.parse_args(arguments)
    try:
        return int(options.act(options))
    except KeyboardInterrupt:
        print("interrupted: run it again to go on")
        return 130


def _policies(options: argparse.Namespace) -> int:
    from .policies import run
    from .policies_tables import write_page

    if not options.check:
        given = {} if options.data is None else {"data": options.data}
        run(only=options.only, limit=options.limit, **given)
    return write_page(check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
