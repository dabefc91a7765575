from gangplan.solvers.native cimport Float, Floats, Floats2, Int, Ints, Ints2

cdef class Data:
    cdef readonly Int n
    cdef Int options, kind, nodes, per
    cdef bint makespan
    cdef Ints first, gpus, size, block_first, server
    cdef Floats seconds, due, release, slope, price

cdef class Room:
    cdef Int nodes, width
    cdef Floats2 times
    cdef Ints2 free
    cdef Ints count, chosen, spot
    cdef Floats whole, part, sorted

cdef class Schedule:
    cdef Floats start, finish
    cdef Ints option
    cdef Ints2 rows

cdef void clear(Room r, Int per) noexcept nogil
cdef (Int, Float, Int) chosen(
    Data d, Room r, Int job, Int wish, Floats penalty, Float last, Floats finish
) noexcept nogil
cdef Int seat(Data d, Room r, Int job, Int option, Float at, Int nodes, Ints2 rows, Int used) noexcept nogil
