"""Teaching: the library's own methods step by step, tiny instances with a known optimum, classic words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gangplan.instances.lazy import exported

if TYPE_CHECKING:
    # step by step, tiny instances, vocabulary, files
    from .dual import dual_ascent as dual_ascent
    from .files import read_jobshop as read_jobshop
    from .files import read_lekin as read_lekin
    from .files import read_swf as read_swf
    from .files import write_jobshop as write_jobshop
    from .files import write_lekin as write_lekin
    from .files import write_swf as write_swf
    from .lessons import LESSONS as LESSONS
    from .lessons import Lesson as Lesson
    from .lessons import fork as fork
    from .lessons import graham as graham
    from .lessons import greedy_trap as greedy_trap
    from .lessons import lp_gap as lp_gap
    from .lessons import moldable as moldable
    from .lessons import one_call as one_call
    from .lessons import replicas as replicas
    from .lessons import symmetric as symmetric
    from .lessons import two_jobs as two_jobs
    from .lists import list_cost as list_cost
    from .lists import list_scheduling as list_scheduling
    from .neighbourhoods import ruin_and_recreate as ruin_and_recreate
    from .notation import Notation as Notation
    from .notation import notation as notation
    from .patterns import column_generation as column_generation
    from .show import draw as draw
    from .show import gif as gif
    from .show import page as page
    from .step import Step as Step
else:
    __getattr__ = exported(__name__, __file__)
