"""A bar for what takes long."""

from __future__ import annotations

import sys


class Bar:
    """A progress bar on a terminal's stderr; nothing where there is none, or if hidden."""

    def __init__(self, doing: str, *, hidden: bool) -> None:
        """Say what is being done; hide it if its output would be in the way."""
        self.doing = doing
        self.hidden = hidden or not sys.stderr.isatty()

    def __enter__(self) -> Bar:
        from rich.console import Console
        from rich.progress import Progress

        self.bar = Progress(console=Console(stderr=True), disable=self.hidden, transient=True)
        self.bar.start()
        self.task = self.bar.add_task(self.doing, total=1.0)
        return self

    def __call__(self, share: float) -> None:
        """Show how much is done."""
        self.bar.update(self.task, completed=share)

    def __exit__(self, *error: object) -> None:
        self.bar.stop()
