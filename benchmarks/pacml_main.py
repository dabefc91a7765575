"""The commands about the learned PAC-ML policy: ``pacml``, ``pacml-ablations`` and ``pacml-figure``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .ledger import ROOT


def add(commands: Any) -> None:
    """Add the commands to a parser's; each sets ``act``, from its options to an exit code."""
    pacml = commands.add_parser("pacml", help="judge the learned policy where pacml.csv lacks it; write its page")
    pacml.add_argument("suites", nargs="*", metavar="SUITE", help="main, bounds, models, loads, clusters, search")
    pacml.add_argument("--only", default="", help="only runs with this in 'units models cluster load policy A seed'")
    pacml.add_argument("--weights", type=Path, default=ROOT / "learned" / "weights", help="folder of the weights")
    pacml.add_argument("--page", action="store_true", help="run nothing; write the page")
    pacml.add_argument("--check", action="store_true", help="run nothing; fail if the page would change")
    pacml.set_defaults(act=_pacml)
    ablations = commands.add_parser("pacml-ablations", help="train the policy without this and that, and judge it")
    ablations.add_argument("--out", type=Path, required=True, help="folder of the trainings; goes on where it was")
    ablations.add_argument("--units", choices=("physical", "as-published"), default="physical")
    ablations.add_argument("--only", default="", help="only variants with this in their name")
    ablations.add_argument("--seeds", type=int, default=10, help="test seeds  [default: 10]")
    ablations.set_defaults(act=_ablations)
    for command in (pacml, ablations):
        command.add_argument("--processes", type=int, default=1, help="that simulate at once  [default: 1]")
        command.add_argument("--data", type=Path, help="folder of published data  [default: ../shared/data]")
    commands.add_parser("pacml-figure", help="draw the blocking").set_defaults(act=_figure)


def _pacml(options: argparse.Namespace) -> int:
    from .pacml import missing, run, shipped
    from .pacml_suites import PACML, SUITES
    from .pacml_tables import write_page

    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        print(f"{', '.join(unknown)}: suites are {', '.join(SUITES)}")
        return 2
    if not (options.page or options.check):
        for name in options.suites or SUITES:
            files, folder = shipped(options.weights), _profiles(options)
            tasks = missing(SUITES[name], PACML, files=files, folder=folder, only=options.only)
            run(tasks, processes=options.processes)
    return write_page(check=options.check)


def _ablations(options: argparse.Namespace) -> int:
    from .pacml_ablations import ablate
    from .pacml_tables import write_page

    out, units, data = options.out, options.units, _profiles(options)
    ablate(out, units, only=options.only, seeds=options.seeds, processes=options.processes, data=data)
    return write_page()


def _figure(options: argparse.Namespace) -> int:
    from .pacml_figures import draw_blocking

    draw_blocking()
    return 0


def _profiles(options: argparse.Namespace) -> Path:
    from .pacml import DATA

    return DATA if options.data is None else options.data / "pipedream"
