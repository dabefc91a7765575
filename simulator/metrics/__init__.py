"""What a schedule is worth: figures, figures over time, tables of jobs and of policies."""

from .cluster import available_gpus, held_gpus, period, present_jobs, waiting_jobs
from .compare import Row, compare
from .fairness import finish_time_fairness
from .fragmentation import fragments
from .regret import regret
from .rows import job_rows
from .steps import Steps
from .summary import Metrics, summary
from .tables import columns, to_csv, to_parquet

__all__ = [
    "Metrics",
    "Row",
    "Steps",
    "available_gpus",
    "columns",
    "compare",
    "finish_time_fairness",
    "fragments",
    "held_gpus",
    "job_rows",
    "period",
    "present_jobs",
    "regret",
    "summary",
    "to_csv",
    "to_parquet",
    "waiting_jobs",
]
