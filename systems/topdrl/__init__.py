"""TopDRL's cluster: gangs whose speed depends on how close their GPUs are, and who is started next, and where.

Source: Ayadi et al., JPDC 204 (2025), as far as it is known: a job's speed from its communication cost is ours.
"""

from .allocate import ALLOCATORS
from .arrays import Cluster, Jobs, State, begin, cluster_of, copy, jobs_of
from .batch import Batch
from .bound import bound
from .evaluate import Row, evaluate
from .image import Image, image
from .oracle import Oracle
from .patient import Patient
from .rollout import Candidates, Rollout
from .rules import DISCIPLINES, FEATURES, SCORES, Rule, rule
from .simulate import Policy, check_rates, outcome_of, simulate
from .suites import SUITES, TEST, TRAINING, VALIDATION, Suite, suite
from .window import Window, window
from .workloads import LARGE, SMALL, Mix

__all__ = [
    "ALLOCATORS",
    "DISCIPLINES",
    "FEATURES",
    "LARGE",
    "SCORES",
    "SMALL",
    "SUITES",
    "TEST",
    "TRAINING",
    "VALIDATION",
    "Batch",
    "Candidates",
    "Cluster",
    "Image",
    "Jobs",
    "Mix",
    "Oracle",
    "Patient",
    "Policy",
    "Rollout",
    "Row",
    "Rule",
    "State",
    "Suite",
    "Window",
    "begin",
    "bound",
    "check_rates",
    "cluster_of",
    "copy",
    "evaluate",
    "image",
    "jobs_of",
    "outcome_of",
    "rule",
    "simulate",
    "suite",
    "window",
]
