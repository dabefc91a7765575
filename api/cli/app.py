"""The commands, put together."""

from __future__ import annotations

from typing import Any

import typer

from .about import methods, schema, versions
from .compare import compare
from .fit import fit
from .generate import generate
from .learn import learn
from .pacml import pacml
from .profile import profile
from .replay import replay
from .show import show
from .simulate import simulate
from .solve import solve
from .split import split
from .verify import verify
from .warm_up import warm_up

Abort = typer.Abort
ClickError: Any = typer.BadParameter.__mro__[2]
"""Click's ClickException, which later versions of typer carry inside themselves."""

app = typer.Typer(
    help="Partition, placement and scheduling of distributed deep-learning jobs, with proved optimality gaps.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(solve)
app.command()(show)
app.command()(verify)
app.command()(compare)
app.add_typer(generate, name="generate")
app.command()(profile)
app.command()(split)
app.command()(replay)
app.command()(simulate)
app.command()(pacml)
app.command()(fit)
app.add_typer(learn, name="learn")
app.command()(schema)
app.command()(versions)
app.command()(methods)
app.command(name="warm-up")(warm_up)
