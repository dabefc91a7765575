"""Readers of job traces, each format as its publisher ships it, recognised by what it looks like."""

from .queues import queues
from .read import Trace, read_trace
from .write import as_csv

__all__ = ["Trace", "as_csv", "queues", "read_trace"]
