"""Where published data is: the folder of a user's that holds it, and who publishes what."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from .errors import InstanceError

DATA = "data"
"""The folder that is looked at by default, from where a command runs."""
PUBLISHERS = {
    "deepshare": "github.com/gajagajago/deepshare",
    "gavel": "github.com/stanford-futuredata/gavel",
    "philly": "github.com/msr-fiddle/philly-traces",
    "pipedream": "github.com/msr-fiddle/pipedream (profiler)",
    "pollux": "github.com/petuum/adaptdl (branch osdi21-artifact)",
}
"""Publishers of what is in a folder of that name."""


def published(folder: str | PathLike[str], part: str, field: str = "data") -> Path:
    """Return the path of a part of the data in a folder.

    Raises:
        InstanceError: naming who publishes it, if it is not there.
    """
    path = Path(folder) / part
    if not path.exists():
        words = f"{str(folder)!r} has no {part}: get it from {PUBLISHERS[Path(part).parts[0]]}, and name the folder"
        raise InstanceError(field, words)
    return path
