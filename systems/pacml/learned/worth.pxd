from gangplan.solvers.native cimport Float, Floats, Floats3, Int, Ints, Ints2, Ints3, Random, Sorting, Word, Words
from gangplan.systems.pacml.learned.features cimport Decision, candidates, see
from gangplan.systems.pacml.learned.tables cimport BlockTables, TypeTimes, start

cdef class ValueTable:
    cdef Floats3 table
    cdef Ints counted, column

cdef class Plans:
    cdef BlockTables tables
    cdef Int futures
    cdef Words mask
    cdef Ints kind, drawn, start, ways, until, parent, chosen
    cdef Ints2 done, root
    cdef Ints3 held
    cdef Floats beta, gain, value, score
    cdef Sorting best

cdef class Teacher:
    cdef ValueTable values
    cdef Plans plans
    cdef Decision ahead
    cdef bint planned
    cdef readonly bint published
    cdef Int futures
    cdef Float discount
    cdef Ints kind, drawn
    cdef Floats beta, played, found
    cdef Sorting best

cdef Float _worth(ValueTable values, Decision d, Int i) noexcept nogil
cdef void _weigh(ValueTable values, Decision d, Int k, Floats out) noexcept nogil
cdef void _judge(Teacher t, Decision d, Int k, Floats out, Random random) noexcept nogil
cdef void _look_ahead(Teacher t, Decision d, Int k, Floats out, Random random) noexcept nogil
cdef Float _played(Teacher t, Decision ahead, Decision d, Int choice, Int first) noexcept nogil
cdef Int _arrivals(Float time, Float gap) noexcept nogil
cdef void _hindsight(
    Plans p, Int k, Ints block, Float gap, TypeTimes times, Int kind, Floats out, Random random
) noexcept nogil
cdef void _plan(
    Plans p, Int k, Ints block, Float gap, TypeTimes times, Int kind, Random random
) noexcept nogil
cdef Int _extend(Plans p, Int i, Int now, Int count, Int ways, Random random) noexcept nogil
cdef Int _trim(Plans p, Int c) noexcept nogil
cdef Int _keep(Plans p, Int i, Int now, Int after, Int c) noexcept nogil
cdef bint _known(Plans p, Int i, Int after, Int count) noexcept nogil
