"""Slurm: its jobs and nodes in, decisions of a `Scheduler` out, by its own commands."""
