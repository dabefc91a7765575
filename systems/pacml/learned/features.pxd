from gangplan.solvers.native cimport Flags, Float, Floats, Int, Ints, Ints2, Singles2, Sorting
from gangplan.systems.pacml.learned.tables cimport BlockTables, Clusters, TypeTimes, place, start

cdef class Past:
    cdef Floats steps, needs
    cdef Float jobs, beta, beta2, work, work2, efficient4, efficient16, gap
    cpdef void add(self, Float beta, Float sequential, Float efficient4, Float efficient16, Float gap) noexcept nogil
    cpdef Float turn(self, Int servers) noexcept nogil

cdef class DegreeDecision:
    cdef readonly BlockTables tables
    cdef readonly Clusters at
    cdef readonly bint published
    cdef readonly Ints choice, block
    cdef readonly Ints2 left
    cdef readonly Singles2 row
    cdef readonly Past past
    cdef TypeTimes times
    cdef Int kind
    cdef Float now, turn, beta
    cdef Ints level, own, per, found
    cdef Ints count, taken
    cdef readonly Floats time
    cdef Floats levels, within, density, features
    cdef Flags allowed
    cdef Sorting spoils

cdef Int level_of(DegreeDecision d, Float turns) noexcept nogil
cdef Int candidates(DegreeDecision d) noexcept nogil
cdef void see(DegreeDecision d) noexcept nogil
cdef void _accumulate(Ints count, Int levels) noexcept nogil
cdef void _allow(DegreeDecision d, Float limit) noexcept nogil
cdef void _spare(DegreeDecision d, Int shape) noexcept nogil
cdef void _take(DegreeDecision d, Int block, Int until) noexcept nogil
cdef bint _leave(DegreeDecision d, Int k, Int choice, Float time) noexcept nogil
cdef void _rows(DegreeDecision d, Int k) noexcept nogil
