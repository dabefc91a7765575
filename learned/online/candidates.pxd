from gangplan.simulator.gangs.allocate cimport CLOSEST, choose
from gangplan.simulator.gangs.arrays cimport NOW, RUNNING, WAITING, Arrays, Cluster, Jobs, State
from gangplan.simulator.gangs.formula cimport Formula, hope, key_of
from gangplan.simulator.gangs.step cimport communication, total
from gangplan.solvers.native cimport Float, Floats, Int, Ints, Ints2, Singles

cpdef enum:
    WAIT = -1

cpdef enum:
    IN_SIGHT = 128

cpdef enum:
    BLOCKED = 16

cpdef enum:
    RUNS_SEEN = 64
    APART = 64
    STEPS = 8

cpdef enum:
    MEAN, WORK, GPUS, DEVIATION, LOAD, DEARNESS, LARGEST_NODE, LARGEST_RACK, SEEN, SURPRISE, TYPICAL, RUNS, CROWD, \
    UNSEEN, STATS

cpdef enum:
    ASKED, LISTED, HELD_UP, ODD, AT_ONCE

cdef class CandidateScratch(Arrays):
    cdef Ints place, of, listed, blocked, free, most, group, seen, queue, runs
    cdef Ints2 take, idle
    cdef Floats cost, key, least, ends, known, ideal, last, stats, early, work
    cdef Singles score
    cdef Int waiting, running, need, spare, now, whole_now, left, whole, largest, best, broken, racks, nodes, rows
    cdef Int edges
    cdef Float gain, better_in, held, shadow

cdef Int list_candidates(Jobs jobs, Cluster cluster, State state, CandidateScratch s, Formula f) noexcept nogil
cdef bint _is_new(Int begin, Int k, CandidateScratch s) noexcept nogil
cdef void _list_jobs(Jobs jobs, Cluster cluster, State state, CandidateScratch s, Formula f) noexcept nogil
cdef Int sort_in(Jobs jobs, CandidateScratch s, Int at, Float key, Ints listed, Floats keys, Int count, \
    bint every) noexcept nogil
cdef bint _alike(Jobs jobs, Int a, Int b) noexcept nogil
cdef Float remaining(Jobs jobs, State state, Int job) noexcept nogil
