from gangplan.learned.online.candidates cimport WAIT, CandidateScratch, remaining
from gangplan.simulator.gangs.arrays cimport ARRIVED, NOW, RUNNING, WAITING, GpuRacks, Jobs, State
from gangplan.simulator.gangs.formula cimport Formula, run_formula
from gangplan.simulator.gangs.step cimport begin_job, pass_time, restore, total, total_jct
from gangplan.solvers.native cimport Float, Floats2, Int, Ints, Random

cdef void _imagine(
    Jobs jobs, State state, Jobs pool, Ints live, Int ahead, Random random, Jobs ours, State then
) noexcept nogil
cdef bint _is_candidate(CandidateScratch s, Int i) noexcept nogil
cdef void _try(Jobs jobs, GpuRacks cluster, State state, CandidateScratch s, Int i) noexcept nogil
