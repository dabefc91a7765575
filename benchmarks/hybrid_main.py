"""The command ``python -m benchmarks hybrid``."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Add the command."""
    hybrid = commands.add_parser(
        "hybrid", help="auto against single methods: run what hybrid.csv lacks, write the page"
    )
    hybrid.add_argument("what", choices=("small", "medium", "page"))
    hybrid.add_argument("--instances", type=int, default=100, help="of each problem  [default: 100]")
    hybrid.add_argument("--alone", type=int, default=30, help="of these for single methods  [default: 30]")
    hybrid.add_argument("--longest", type=int, default=10, help="of these with 10 s as well  [default: 10]")
    hybrid.add_argument("--deadline", type=float, default=10.0, help="of the medium set, seconds  [default: 10]")
    hybrid.add_argument(
        "--only", default="", help="only solves with this in 'set problem family size seed method deadline'"
    )
    hybrid.add_argument("--check", action="store_true", help="run nothing; fail if the page would change")
    hybrid.set_defaults(act=_act)


def _act(options: argparse.Namespace) -> int:
    from .hybrid_tables import write_page

    if options.what != "page" and not options.check:
        from .hybrid import jobs, run

        run(
            jobs(options.what, options.instances, options.alone, options.longest, options.deadline),
            only=options.only,
        )
    if not options.check:
        from .hybrid_figure import draw

        draw()
    return write_page(check=options.check)
