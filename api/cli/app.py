"""The commands by group: each is imported when it is asked for, so that `--help` and small commands start at once."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from gangplan.instances.errors import InstanceError, unknown

from .help import made_of, write_groups

Abort = typer.Abort
ClickError: Any = typer.BadParameter.__mro__[2]
"""Click's ClickException, which later versions of typer carry inside themselves."""


class Entry(NamedTuple):
    """A command.

    Attributes:
        about: what it does, for the list of commands.
        example: a call of it.
        home: the module and the function or group in it, by default both named like the command.
    """

    about: str
    example: str
    home: str = ""


GROUPS: dict[str, dict[str, Entry]] = {
    "Problems and plans": {
        "generate": Entry(
            "make a problem: a network's op graph, gangs, jobs over time",
            "gangplan generate gpt --devices 4 --out gpt.json",
        ),
        "show": Entry("describe a problem or a plan", "gangplan show gpt.json"),
        "solve": Entry("find a plan, and a bound", "gangplan solve gpt.json --time-limit 20 --out plan.json"),
        "verify": Entry("check a plan without any solver", "gangplan verify gpt.json plan.json"),
        "compare": Entry("set plans of one problem side by side", "gangplan compare a.json b.json --problem gpt.json"),
        "plot": Entry("draw a plan", "gangplan plot gpt.json plan.json plan.svg"),
    },
    "PyTorch models": {
        "profile": Entry(
            "make a problem of a model", "gangplan profile docs/examples/gpt2.py:build --devices 8 --out graph.json"
        ),
        "split": Entry("say which module goes where", "gangplan split model.py:build graph.json plan.json --run"),
    },
    "Simulation": {
        "simulate": Entry(
            "run a trace of jobs on a cluster", "gangplan simulate jobs.csv --cluster 20x8 --policy fifo --policy srtf"
        ),
        "replay": Entry("fill a cluster with pods", "gangplan replay nodes.csv pods.csv --policy fgd"),
        "system": Entry("compare policies of published systems", "gangplan system topdrl --policy select --seeds 10"),
    },
    "Learning and measurement": {
        "learn": Entry("train, judge, export and list policies", "gangplan learn list"),
        "fit": Entry("fit the cost model of placements", "gangplan fit throughputs.json"),
    },
    "Benchmarks": {
        "bench": Entry("compare methods where bounds are known", "gangplan bench run --suite toy --jobs 2"),
    },
    "This installation": {
        "methods": Entry("list the methods of `solve`", "gangplan methods", "about:methods"),
        "schema": Entry("print the JSON Schema of a document", "gangplan schema partition", "about:schema"),
        "versions": Entry("list all versions that matter", "gangplan versions", "about:versions"),
        "warm-up": Entry("compile what `solve` uses", "gangplan warm-up throughput", "about:warm_up"),
    },
}
COMMANDS = {name: entry for entries in GROUPS.values() for name, entry in entries.items()}


class Front(TyperGroup):
    """All commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command."""
        if cmd_name not in COMMANDS:
            hint = "; write gangplan --help" if cmd_name == "help" else ""
            raise InstanceError("command", f"{unknown(cmd_name, COMMANDS)}{hint}")
        if cmd_name not in self.commands:
            module, _, name = (COMMANDS[cmd_name].home or f"{cmd_name}:{cmd_name}").partition(":")
            made = getattr(import_module(f".{module}", __package__), name)
            self.commands[cmd_name] = made_of(cmd_name, made, COMMANDS[cmd_name].example)
        return self.commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each command does, without importing any."""
        write_groups(formatter, {title: {n: x.about for n, x in entries.items()} for title, entries in GROUPS.items()})

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write how to begin."""
        with formatter.section("Example"):
            for name in ("generate", "solve", "verify"):
                formatter.write(f"  $ {COMMANDS[name].example}\n")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from .output import emit

        emit(f"gangplan {version('gangplan')}")
        raise typer.Exit(0)


_HELP: Any = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, context_settings=_HELP)


@app.callback(cls=Front, no_args_is_help=True)
def gangplan(
    version: Annotated[
        bool, typer.Option("--version", help="print the version and exit", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Decide how deep-learning jobs share a GPU cluster, with a proof of how good the decision is."""
