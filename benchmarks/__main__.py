"""The command line: ``python -m benchmarks run SUITE ...``, ``report``, ``policies``, more."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import cold, harmony, learned_speeds, online, pacml_main, speed_models, topdrl
from .ledger import LEDGER
from .suites import SUITES


def main(arguments: list[str] | None = None) -> int:
    """Run the command given and return its exit code: 0, 1 if a check fails, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks and report on them.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run what a suite's ledger does not have yet")
    run.add_argument("suites", nargs="+", choices=SUITES, metavar="SUITE", help=", ".join(SUITES))
    run.add_argument("--seed", type=int, default=0)
    run.add_argument("--workers", type=int, default=2, help="threads of a solve  [default: 2]")
    run.add_argument("--only", default="", help="only cases with this in 'instance variant method'")
    run.add_argument("--most", type=float, metavar="SECONDS", help="cut every time limit to this")
    run.add_argument("--data", type=Path, help="folder of published data  [default: ../shared/data]")
    report = commands.add_parser("report", help="write the tables of docs/benchmarks.md, or beside another ledger")
    report.add_argument("--check", action="store_true", help="write nothing; fail if the page would change")
    report.add_argument("--out", type=Path, metavar="FILE", help="default: in docs/, of another ledger beside it")
    policies = commands.add_parser("policies", help="simulate policies that policies.csv lacks; write docs/policies.md")
    policies.add_argument("--only", default="", help="only runs with this in 'trace policy discipline'")
    policies.add_argument("--limit", type=float, default=120.0, help="processor seconds of a run  [default: 120]")
    policies.add_argument("--data", type=Path, help="folder of published data  [default: ../shared/data]")
    policies.add_argument("--check", action="store_true", help="run nothing; fail if the page would change")
    for command, act in ((run, _run), (report, _report), (policies, _policies)):
        command.set_defaults(act=act)
    for command in (run, report):
        command.add_argument("--ledger", type=Path, default=LEDGER)
    pacml_main.add(commands)
    topdrl.add(commands)
    harmony.add(commands)
    learned_speeds.add(commands)
    online.command(commands)
    cold.command(commands)
    speed_models.command(commands)
    options = parser.parse_args(arguments)
    try:
        return int(options.act(options))
    except KeyboardInterrupt:
        print("interrupted: run it again to go on")
        return 130


def _run(options: argparse.Namespace) -> int:
    from .runner import Settings, run_suite

    given = {} if options.data is None else {"data": options.data}
    settings = Settings(options.seed, options.workers, ledger=options.ledger, most_seconds=options.most, **given)
    for suite in options.suites:
        cases = [c for c in SUITES[suite]() if options.only in f"{c.instance} {c.variant} {c.method}"]
        run_suite(suite, cases, settings)
    return 0


def _report(options: argparse.Namespace) -> int:
    from .report import PAGE, write_page

    return write_page(options.ledger, check=options.check, out=_target(options, PAGE))


def _target(options: argparse.Namespace, own: Path) -> Path:
    """Return where to write: --out, or `own` for the ledger of the project, or beside any other ledger."""
    if options.out is not None:
        return Path(options.out)
    return own if options.ledger.resolve() == LEDGER.resolve() else options.ledger.with_name(own.name)


def _policies(options: argparse.Namespace) -> int:
    from .policies import run
    from .policies_tables import write_page

    if not options.check:
        given = {} if options.data is None else {"data": options.data}
        run(only=options.only, limit=options.limit, **given)
    return write_page(check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
