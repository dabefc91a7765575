from gangplan.learned.graph.compiled cimport CompiledNetwork, Graph
from gangplan.simulator.gangs.allocate cimport CLOSEST, choose
from gangplan.simulator.gangs.arrays cimport NOW, RUNNING, Arrays, GpuRacks, Jobs, State
from gangplan.simulator.gangs.formula cimport Formula, hope, key_of
from gangplan.simulator.gangs.step cimport communication, total
from gangplan.solvers.native cimport Float, Floats, Int, Ints, Ints2, Singles, Singles2

cpdef enum:
    WAIT = -1
    BLOCKED = 16
    RUNS_SEEN = 64
    APART = 64
    STEPS = 8
    IN_SIGHT = 128

cdef class CandidateScratch(Arrays):
    cdef Jobs jobs
    cdef GpuRacks cluster
    cdef State state
    cdef readonly Graph graph
    cdef Singles2 x
    cdef Singles weight, score
    cdef Ints kind, source, target, relation, place, of, listed, blocked, free, group, seen, queue, runs
    cdef Ints2 take, idle
    cdef Floats cost, work, key, least, early, ends, known, ideal, last
    cdef public Int asked, soon, fit, not_fit, odd, at_once, arrived
    cdef public Float mean, unseen
    cdef readonly Float mean_work, mean_gpus, deviation, surprise, load, dearness, node_size, rack_size
    cdef Float gain, better_in, held, shadow
    cdef Int waiting, running, need, spare, now, whole_now, left, whole, largest, best, broken, racks, nodes

cdef Int list_candidates(CandidateScratch s, Formula f) noexcept nogil
cdef bint _is_new(CandidateScratch s, Int begin, Int k) noexcept nogil
cdef void _list_jobs(CandidateScratch s, Formula f) noexcept nogil
cdef Int sort_in(CandidateScratch s, Int at, Float key, Ints listed, Floats keys, Int count, bint every) noexcept nogil
cdef Float remaining(Jobs jobs, State state, Int job) noexcept nogil
