"""PAC-ML's cluster: blocks of servers, split jobs on them, and arrivals that are accepted at once or blocked.

Source: Parsonson et al., arXiv 2301.13799, and the published code.
"""

from .arrivals import DISTRIBUTIONS, Case, Fractions, arrivals, interval
from .baselines import RAMP_POLICIES, make_policy
from .blocks import DEGREES, Blocks
from .check import check
from .evaluate import Rates, evaluate
from .jobs import MODELS, JobType, Placed, read_types
from .placement import first_fit
from .plans import Clairvoyant, Plan, clairvoyant, search
from .simulate import PUBLISHED, REASONS, Choice, Outcome, Policy, State, simulate
from .step import Step, training_step

__all__ = [
    "DEGREES",
    "DISTRIBUTIONS",
    "MODELS",
    "PUBLISHED",
    "RAMP_POLICIES",
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
