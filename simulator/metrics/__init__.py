"""What a schedule is worth: figures, figures over time, tables of jobs and of policies."""

from .compare import ComparedFigure, compare, half_width, interval
from .groups import GroupMetrics, groups
from .nodes import fragments
from .series import Steps, available_gpus, held_gpus, means_of_groups, period, present_jobs, waiting_jobs
from .summary import Metrics, finish_time_fairness, regret, summary
from .tables import columns, job_rows, to_csv, to_parquet

__all__ = [
    "ComparedFigure",
    "GroupMetrics",
    "Metrics",
    "Steps",
    "available_gpus",
    "columns",
    "compare",
    "finish_time_fairness",
    "fragments",
    "groups",
    "half_width",
    "held_gpus",
    "interval",
    "job_rows",
    "means_of_groups",
    "period",
    "present_jobs",
    "regret",
    "summary",
    "to_csv",
    "to_parquet",
    "waiting_jobs",
]
