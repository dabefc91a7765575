"""PAC-ML's cluster: blocks of servers, split jobs on them, and arrivals that are accepted at once or blocked.

Source: Parsonson et al., arXiv 2301.13799, and the published code.
"""

from .arrivals import Case, arrivals, interval
from .baselines import POLICIES, make_policy
from .beam import Plan, search
from .beta import DISTRIBUTIONS, Fractions
from .blocks import DEGREES, Blocks
from .check import check
from .clairvoyant import Clairvoyant, clairvoyant
from .evaluate import Rates, evaluate
from .jobs import JobType, Placed
from .placement import first_fit
from .profiles import MODELS, read_types
from .simulate import PUBLISHED, REASONS, Choice, Outcome, Policy, State, simulate
from .step import Step, training_step

__all__ = [
    "DEGREES",
    "DISTRIBUTIONS",
    "MODELS",
    "POLICIES",
    "PUBLISHED",
    "REASONS",
    "Blocks",
    "Case",
    "Choice",
    "Clairvoyant",
    "Fractions",
    "JobType",
    "Outcome",
    "Placed",
    "Plan",
    "Policy",
    "Rates",
    "State",
    "Step",
    "arrivals",
    "check",
    "clairvoyant",
    "evaluate",
    "first_fit",
    "interval",
    "make_policy",
    "read_types",
    "search",
    "simulate",
    "training_step",
]
