"""The commands by group, each imported when it is asked for, and what `--help` prints: options by group, examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, cleandoc
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from gangplan.instances.addons import plugged
from gangplan.instances.errors import InstanceError, unknown

from .options import declared
from .output import emit


class Help(TyperCommand):
    """A command whose help has its options by group, and an example."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; of an option given twice the parser would take the last and say nothing.

        An empty value, as of an unset variable of a shell, would be taken for the folder one is in.
        """
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for x, count in Counter(order).items():
            if x.param_type_name != "option":
                continue
            given = values[x.name] if x.multiple else [values[x.name]]
            if "" in given and x.default != "":
                raise InstanceError(max(x.opts, key=len), "is empty")
            if count > 1 and not x.multiple:
                raise InstanceError(max(x.opts, key=len), f"is given {count} times, and only one counts")
        return list(super().parse_args(ctx, args))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the command's name."""
        return ["[OPTIONS]", *(f"{x.metavar}" for x in self.params if x.param_type_name == "argument")]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, by the group they are given."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for x in self.get_params(ctx):
            name, text = x.get_help_record(ctx) or ("", "")
            if x.param_type_name == "argument":
                sections["Arguments"].append((str(x.metavar), text.replace("  [required]", "")))
            elif name:
                sections.setdefault(getattr(x, "rich_help_panel", None) or "Options", []).append((name, text))
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=26)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write examples; an epilog has one a line."""
        if self.epilog:
            with formatter.section("Example"):
                for line in self.epilog.splitlines():
                    formatter.write(f"  $ gangplan {line}\n")


def made_of(name: str, function: Callable[..., Any], example: str = "", asked: Sequence[Parameter] = ()) -> Any:
    """Return a function as a command, see `declared`; `example` is what follows its whole name in a call of it."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name.rpartition(" ")[2], cls=Help, epilog=f"{name} {example}".rstrip())(declared(function, asked))
    return typer.main.get_command(app)


class Group(TyperGroup):
    """Commands by title, each of which is made when it is asked for: what it imports may take long.

    Args:
        name: what the commands follow.
        about: what `--help` says of all.
        groups: their names by title.
        make, tell: what makes a command of its name, and says in words what it does.
        of: what a name is one of, for the error.
        called: what comes before any of them, with options of its own.
    """

    def __init__(
        self,
        name: str,
        about: str,
        groups: Mapping[str, Iterable[str]],
        make: Callable[[str], Any],
        tell: Callable[[str], str],
        of: str = "command",
        called: Callable[..., Any] = lambda: None,
        **more: Any,
    ) -> None:
        front = made_of(name, called)
        more |= {"params": front.params, "callback": front.callback, "help": cleandoc(about)}
        super().__init__(name=name, invoke_without_command=True, no_args_is_help=True, rich_markup_mode=None, **more)
        self.groups, self.make, self.tell, self.of = groups, make, tell, of

    format_epilog = Help.format_epilog

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [name for names in self.groups.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Make a command."""
        if cmd_name not in (known := self.list_commands(ctx)):
            hint = "; write gangplan --help" if cmd_name == "help" else ""
            raise InstanceError(self.of, f"{unknown(cmd_name, known)}{hint}")
        if cmd_name not in self.commands:
            self.commands[cmd_name] = self.make(cmd_name)
        return self.commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each command does, names and words in the same columns throughout."""
        width = max(map(len, self.list_commands(ctx)))
        for title, names in self.groups.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{width}}", self.tell(name)) for name in names])


def commands(name: str, about: str, of: Mapping[str, tuple[Callable[..., Any], str]]) -> Group:
    """Return the commands of one name: of each by its own what does it, and an example of what follows the name."""

    def make(own: str) -> Any:
        return made_of(f"{name} {own}", *of[own])

    return Group(name, about, {"Commands": of}, make, lambda own: str(make(own).get_short_help_str(200)))


Abort = typer.Abort
ClickError: Any = typer.BadParameter.__mro__[2]
"""Click's ClickException, which later versions of typer carry inside themselves."""


class Command(NamedTuple):
    """A command.

    Attributes:
        about: what it does, for the list of commands.
        example: what follows its name in a call of it.
        home: the module and the function or group in it, by default both named like the command.
    """

    about: str
    example: str = ""
    home: str = ""


GROUPS: dict[str, dict[str, Command]] = {
    "Problems and plans": {
        "generate": Command(
            "make a problem: a network's op graph, gangs, jobs over time",
            "gpt --devices 4 --out gpt.json",
            "generate:kinds",
        ),
        "show": Command("describe a problem or a plan", "gpt.json"),
        "solve": Command("find a plan, and a bound", "gpt.json --time-limit 20 --out plan.json"),
        "layout": Command(
            "split the training of a large model over GPUs", "config.json --cluster 128x8 --gpu H100 --batch 1024"
        ),
        "verify": Command("check a plan without any solver", "gpt.json plan.json", "plans:verify_plan"),
        "compare": Command("set plans of one problem side by side", "a.json b.json --problem gpt.json"),
        "plot": Command("draw a plan", "gpt.json plan.json plan.svg", "plans:plot_plan"),
        "pipeline": Command("order the passes of micro-batches", "--devices 4 --micro-batches 8 --memory 4"),
    },
    "PyTorch models": {
        "profile": Command("make a problem of a model", "docs/examples/gpt2.py:build --devices 8 --out graph.json"),
    },
    "Simulation": {
        "simulate": Command("run a trace of jobs on a cluster", "jobs.csv --cluster 20x8 --policy fifo --policy srtf"),
        "replay": Command("fill a cluster with pods", "nodes.csv pods.csv --policy fgd"),
    },
    "The log of a Scheduler": {
        "log": Command("tell who got what, and which rule decided", "cluster.jsonl"),
        "whatif": Command("play it once more with other arguments", "cluster.jsonl --set price=600"),
        "shadow": Command(
            "tell what gangplan would have decided beside another scheduler",
            "sacct.csv --cluster 20x8",
            "whatif:shadow",
        ),
    },
    "For other programs": {},
    "Learning and measurement": {},
    "Benchmarks": {},
    "Teaching": {},
    "This installation": {
        "methods": Command("list the methods of `solve`", "", "about:methods"),
        "schema": Command("print the JSON Schema of a document", "partition", "about:schema"),
        "versions": Command("list all versions that matter", "", "about:versions"),
        "warm-up": Command("do nothing, for one more release", "", "about:warm_up"),
    },
}
"""Those of the core by title; what `addons.toml` has of add-ons that are installed follows below each."""
for _plugged in plugged("commands").values():
    for _name, (_title, *_words) in _plugged.items():
        GROUPS[_title][_name] = Command(*_words)
COMMANDS = {name: entry for entries in GROUPS.values() for name, entry in entries.items()}


def _imported(name: str) -> Any:
    module, _, function = (COMMANDS[name].home or f"{name}:{name}").partition(":")
    found = getattr(import_module(f".{module}", __package__), function)
    return found if isinstance(found, Group) else made_of(name, found, COMMANDS[name].example)


def _version(version: Annotated[bool, "print the version and exit", "--version"] = False) -> None:
    if version:
        from importlib.metadata import version as installed

        emit(f"gangplan {installed('gangplan')}")
        raise typer.Exit(0)


app = Group(
    "gangplan",
    "Decide how deep-learning jobs share a GPU cluster, with a proof of how good the decision is.",
    {title: list(entries) for title, entries in GROUPS.items() if entries},
    _imported,
    lambda name: COMMANDS[name].about,
    called=_version,
    epilog="\n".join(f"{name} {COMMANDS[name].example}" for name in ("generate", "solve", "verify")),
    context_settings={"help_option_names": ["-h", "--help"]},
)
