from gangplan.solvers.native cimport Float, Floats, Floats2, Floats3, Int, Ints, Ints2, Ints3, Random, Sorting, Word, Words2
from gangplan.systems.pacml.learned.features cimport DegreeDecision, candidates, see
from gangplan.systems.pacml.learned.tables cimport BlockTables, TypeTimes, start

cdef class Plans:
    cdef BlockTables tables
    cdef TypeTimes times
    cdef Random random
    cdef Int futures
    cdef Words2 mask
    cdef Ints kind, drawn, start, block, ways, until, parent, chosen
    cdef Ints2 done, root
    cdef Ints3 held
    cdef Floats beta, gain, value, score
    cdef Sorting best

cdef class Teacher:
    cdef readonly Random random
    cdef Plans plans
    cdef DegreeDecision ahead
    cdef bint planned
    cdef readonly bint published
    cdef Int futures
    cdef Float discount
    cdef Floats3 table
    cdef Ints counted, column, kind, drawn
    cdef Floats beta, played, found
    cdef Sorting best

cdef Float _worth(Teacher t, DegreeDecision d, Int i) noexcept nogil
cdef void _weigh(Teacher t, DegreeDecision d, Int k, Floats out) noexcept nogil
cdef void _look_ahead(Teacher t, DegreeDecision d, Int k, Floats out) noexcept nogil
cdef Float _played(Teacher t, DegreeDecision ahead, DegreeDecision d, Int choice, Int first) noexcept nogil
cdef Int _arrivals(Float time, Float gap) noexcept nogil
cdef void _hindsight(Plans p, Int k, Float gap, Int kind, Floats out) noexcept nogil
cdef void _plan(Plans p, Int k, Float gap, Int kind) noexcept nogil
cdef Int _extend(Plans p, Int i, Int now, Int count, Int ways) noexcept nogil
cdef Int _trim(Plans p, Int c) noexcept nogil
cdef Int _keep(Plans p, Int i, Int now, Int after, Int c) noexcept nogil
cdef bint _known(Plans p, Int i, Int after, Int count) noexcept nogil
