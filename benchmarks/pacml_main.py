"""The commands about the learned PAC-ML policy: ``pacml``, ``pacml-ablations`` and ``pacml-figures``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .ledger import ROOT

WEIGHTS = ROOT / "learned" / "weights"


def add(commands: Any) -> None:
    """Add the commands to a parser's; each sets ``act``, from its options to an exit code."""
    pacml = commands.add_parser("pacml", help="judge the learned policy where pacml.csv lacks it; write its page")
    pacml.add_argument("suites", nargs="*", metavar="SUITE", help="main, bounds, models, loads, clusters, search")
    pacml.add_argument("--only", default="", help="only runs with this in 'units models cluster load policy A seed'")
    pacml.add_argument("--weights", type=Path, default=WEIGHTS, help="folder of the weights  [default: the shipped]")
    pacml.add_argument("--page", action="store_true", help="run nothing; write the page")
    pacml.add_argument("--check", action="store_true", help="run nothing; fail if the page would change")
    pacml.set_defaults(act=_pacml)
    ablations = commands.add_parser("pacml-ablations", help="train the policy without this and that, and judge it")
    ablations.add_argument("--out", type=Path, required=True, help="folder of the trainings; goes on where it was")
    ablations.add_argument("--units", choices=("physical", "as-published"), default="physical")
    ablations.add_argument("--seeds", type=int, default=10, help="test seeds  [default: 10]")
    ablations.set_defaults(act=_ablations)
    for command in (pacml, ablations):
        command.add_argument("--processes", type=int, default=1, help="that simulate at once  [default: 1]")
        command.add_argument("--data", type=Path, help="folder of published data  [default: ../shared/data]")
    figures = commands.add_parser("pacml-figures", help="draw the learning curves and the blocking")
    figures.add_argument("--run", nargs=2, action="append", default=[], metavar=("UNITS", "FOLDER"),
                         help="take the curves of a training first")  # fmt: skip
    figures.set_defaults(act=_figures)


def _pacml(options: argparse.Namespace) -> int:
    from .pacml import DATA, missing, run, shipped
    from .pacml_rows import PACML
    from .pacml_suites import SUITES
    from .pacml_tables import write_page

    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        print(f"{', '.join(unknown)}: suites are {', '.join(SUITES)}")
        return 2
    if not (options.page or options.check):
        folder = (options.data or DATA) / "pipedream"
        for name in options.suites or SUITES:
            tasks = missing(SUITES[name], PACML, files=shipped(options.weights), folder=folder, only=options.only)
            run(tasks, processes=options.processes)
    return write_page(check=options.check)


def _ablations(options: argparse.Namespace) -> int:
    from .pacml import DATA
    from .pacml_ablations import ablate
    from .pacml_tables import write_page

    data = options.data or DATA
    ablate(options.out, options.units, seeds=options.seeds, processes=options.processes, data=data)
    return write_page()


def _figures(options: argparse.Namespace) -> int:
    from .pacml_curves import collect, replace_run
    from .pacml_figures import draw_blocking, draw_learning, draw_training

    for units, folder in options.run:
        replace_run(units, collect(units, Path(folder)))
    draw_blocking()
    draw_learning()
    draw_training()
    return 0
