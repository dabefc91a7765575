"""What `--help` prints: options by group, an example for each command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from gangplan.instances.errors import InstanceError, unknown

EXAMPLES = {
    "learn train": "gangplan learn train topdrl --out runs/topdrl",
    "learn eval": "gangplan learn eval topdrl --seeds 10",
    "learn export": "gangplan learn export pacml --out pacml.onnx",
    "learn list": "gangplan learn list --json",
    "bench list": "gangplan bench list --suite small --objective step",
    "bench generate": "gangplan bench generate step-random-toy-00",
    "bench run": "gangplan bench run --suite toy --jobs 2",
    "bench report": "gangplan bench report",
    "bench submit": "gangplan bench submit plan.json --instance step-random-toy-00 --by me",
}
"""Calls of the commands of groups."""


class Help(TyperCommand):
    """A command whose help has its options by group, and an example."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; of an option given twice the parser would take the last and say nothing."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for x, count in Counter(order).items():
            if count > 1 and x.param_type_name == "option" and not x.multiple:
                raise InstanceError(max(x.opts, key=len), f"is given {count} times, and only one counts")
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the command's name."""
        arguments = [x.metavar for x in self.params if x.param_type_name == "argument"]
        return ["[OPTIONS]", *(f"{x}" for x in arguments)]

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
        """Write an example; an epilog is one."""
        if self.epilog:
            with formatter.section("Example"):
                formatter.write(f"  $ {self.epilog}\n")


class Group(TyperGroup):
    """Commands of which an unknown one is answered with those there are."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command."""
        if cmd_name not in self.commands:
            raise InstanceError("command", unknown(cmd_name, self.commands))
        return self.commands[cmd_name]


def write_groups(formatter: Any, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Write a section for each group, names and words in the same columns throughout."""
    width = max(len(name) for entries in groups.values() for name in entries)
    for title, entries in groups.items():
        with formatter.section(title):
            formatter.write_dl([(f"{name:{width}}", about) for name, about in entries.items()])


def made_of(name: str, made: Any, example: str = "", about: str | None = None) -> Any:
    """Return a function, or a `typer.Typer`, as a command of `name`."""
    app = made if isinstance(made, typer.Typer) else typer.Typer()
    if app is not made:
        app.command(name=name, epilog=example, help=about)(made)
    app._add_completion, app.rich_markup_mode = False, None
    for entry in app.registered_commands:
        entry.cls = Help
        entry.epilog = entry.epilog or EXAMPLES.get(f"{name} {entry.name or getattr(entry.callback, '__name__', '')}")
    found = typer.main.get_command(app)
    found.name = name
    for command in getattr(found, "commands", {"": found}).values():
        for x in command.params:
            if not (x.metavar or getattr(x, "is_flag", False)):
                x.metavar = "NAME"
    return found
