from gangplan.solvers.native cimport Flags, Float, Floats, Floats2, Halves2, Int, Ints, Ints2, Ints3

cdef class BlockTables:
    cdef readonly Int n
    cdef readonly Halves2 servers
    cdef readonly Ints size, degree, shape, fast
    cdef Ints first, holds

cdef class TypeTimes:
    cdef readonly Floats2 jct, efficiency, spread
    cdef readonly Floats sequential
    cdef readonly Ints3 uses

cdef class Clusters:
    cdef readonly BlockTables tables
    cdef readonly Floats2 ends
    cdef Flags free
    cdef Ints placed, stamp
    cdef Int mark

cdef void free_blocks(Clusters at, Int row, Float now) noexcept nogil
cdef void hold(Clusters at, Int row, Int block, Float until) noexcept nogil
cdef Float place(Clusters at, TypeTimes times, Int kind, Int degree) noexcept nogil
cdef Float start(Clusters at, Int row, Float now, Int choice, TypeTimes times, Int kind, bint spread) noexcept nogil
cdef Float fitted(
    Clusters at, Int row, Float since, Float now, Int degree, TypeTimes times, Int kind, Float limit
) noexcept nogil
cdef Int ruled(Clusters at, Int row, Float now, TypeTimes times, Int kind, Float limit, Int degree, Int way) noexcept nogil
cdef Int _lost(Clusters at, Int block) noexcept nogil
