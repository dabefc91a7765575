"""Readers of job traces: each format as its publisher ships it, recognised by what it looks like."""

from .queues import queues
from .read import Trace, read_trace

__all__ = ["Trace", "queues", "read_trace"]
