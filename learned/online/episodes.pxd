from gangplan.learned.graph.compiled cimport CompiledNetwork, scores, strange
from gangplan.learned.online.candidates cimport IN_SIGHT, WAIT, CandidateScratch, sort_in
from gangplan.learned.online.features cimport BY_RULE, see
from gangplan.learned.online.graph cimport write_graph
from gangplan.simulator.gangs.arrays cimport ARRIVED, NOW, WAITING, GpuRacks, Jobs, State
from gangplan.simulator.gangs.formula cimport Formula, key_of, look_at
from gangplan.simulator.gangs.step cimport begin_job, pass_time
from gangplan.solvers.native cimport Float, Int

cdef void _see_queue(CandidateScratch s, Formula f) noexcept nogil
cdef Int _rate(CandidateScratch s, CompiledNetwork net, Formula f, bint learned) noexcept nogil
