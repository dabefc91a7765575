"""`gangplan warm-up`: compile all that `solve` uses, for images of containers and for servers."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from . import options
from .output import emit_blocks, emit_json, table
from .progress import Bar


def warm_up(
    objectives: Annotated[
        list[str] | None, typer.Argument(metavar="[OBJECTIVE]...", help="as of `solve`  [default: all]")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compile what `solve` uses, so that no later process has to.

    Nobody needs this to solve something: `solve` compiles what it lacks beside its methods. It is for images of
    containers, and says where compiled code is kept; GANGPLAN_CACHE_DIR names another folder.
    """
    from gangplan.hybrid import warm_up as warm
    from gangplan.hybrid.compiling import kernels
    from gangplan.solvers.kernels import folder
    from gangplan.solvers.method import OBJECTIVES

    chosen = objectives or list(OBJECTIVES)
    spent = {}
    with Bar("compiling", hidden=as_json) as bar:
        for i, objective in enumerate(chosen):
            started = time.process_time()
            warm(objective, tell=lambda _, done, count, at=i: bar((at + done / count) / len(chosen)))  # type: ignore[misc]
            spent[objective] = time.process_time() - started
    found = {
        objective: {"kernels": len(kernels(objective)), "processor_seconds": seconds}
        for objective, seconds in spent.items()
    }
    if as_json:
        emit_json({"folder": str(folder()), "objectives": found})
        return
    rows = [(name, str(row["kernels"]), f"{row['processor_seconds']:.1f} s") for name, row in found.items()]
    emit_blocks(table(("objective", "kernels", "processor time"), rows), f"compiled code: {folder()}")
