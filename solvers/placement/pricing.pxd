from gangplan.solvers.native cimport Flags, Flags2, Float, Floats, Floats2, Int, Ints, Ints2, Sorting

cdef class PricedKind:
    cdef Floats2 table, host
    cdef Ints2 marks
    cdef Flags2 apart
    cdef Ints many
    cdef Floats room

cdef class PricingSearch:
    cdef Ints2 following
    cdef Floats2 gains, meeting, slower, left
    cdef Ints listed, next, chosen, gangs, option
    cdef Floats free, value, least, filled, more, suffers, harm
    cdef Sorting gain

cdef class FoundPatterns:
    cdef Int count
    cdef Floats reduced, cost
    cdef Ints2 options
