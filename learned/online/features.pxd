from gangplan.learned.graph.compiled cimport Graph
from gangplan.learned.online.candidates cimport AT_ONCE, DEARNESS, DEVIATION, GPUS, HELD_UP, LARGEST_NODE, \
    LARGEST_RACK, LOAD, MEAN, SEEN, STATS, SURPRISE, TYPICAL, WAIT, WORK, CandidateScratch, remaining
from gangplan.simulator.gangs.allocate cimport CLOSEST, choose
from gangplan.simulator.gangs.arrays cimport ARRIVED, NOW, RUNNING, Cluster, Jobs, State
from gangplan.simulator.gangs.formula cimport Formula, hope
from gangplan.simulator.gangs.step cimport communication, total
from gangplan.solvers.native cimport Float, Int, Ints

cpdef enum:
    BY_RULE = 27
    FEATURES = 31

cdef void see(Jobs jobs, Cluster cluster, State state, CandidateScratch s) noexcept nogil
cdef void _size_up(Cluster cluster, CandidateScratch s) noexcept nogil
cdef void write_rows(
    Jobs jobs, Cluster cluster, State state, CandidateScratch s, Formula f, Int k, Graph g
) noexcept nogil
cdef void _write_rule(Jobs jobs, State state, CandidateScratch s, Formula f, Int k, Graph g) noexcept nogil
cdef bint _is_first(CandidateScratch s, Int i) noexcept nogil
cdef Float effective(Jobs jobs, Int job, Float cost) noexcept nogil
cdef void _list_ends(Jobs jobs, State state, CandidateScratch s) noexcept nogil
cdef void _look_ahead(Jobs jobs, Cluster cluster, State state, CandidateScratch s) noexcept nogil
cdef Float _cost_then(Int need, Int step, Cluster cluster, CandidateScratch s) noexcept nogil
cdef void _hold_up(Jobs jobs, CandidateScratch s) noexcept nogil
cdef void count_idle(Cluster cluster, Ints free, CandidateScratch s) noexcept nogil
cdef Float soon(Float seconds, Float unit) noexcept nogil
cdef void _write_candidate(
    Jobs jobs, Cluster cluster, State state, CandidateScratch s, Int i, Int k, Float least, Graph g
) noexcept nogil
cdef void _find_gain(
    Float duration, Float length, Float intensity, Int gpus, Cluster cluster, CandidateScratch s
) noexcept nogil
cdef void _write_place(
    Jobs jobs, Cluster cluster, State state, CandidateScratch s, Int i, Float duration, Graph g
) noexcept nogil
