"""Doors: a `Scheduler` and `solve` for programs that are not Python in the same process: JSON lines, and HTTP."""
