from gangplan.solvers.native cimport Flags, Float, Floats, Floats2, Halves2, Int, Ints, Word, Words2, within
from gangplan.solvers.schedule.kernels cimport Data

cdef class Grid:
    cdef readonly object pi
    cdef Int count
    cdef Floats cost, total
    cdef readonly Float zero, step

cdef class LabelArrays:
    cdef Int many, words, wide
    cdef Words2 started
    cdef Floats time, true, used, bound
    cdef Ints last, running
    cdef Floats2 ends
    cdef Halves2 held

cdef class Extension:
    cdef Int capacity
    cdef Float fine, limit
    cdef Floats least, at, idle, waiting
    cdef Floats2 rest
    cdef Ints column, parent, chosen

cdef Float run_cost(Grid g, Data d, Int job, Int option, Float start) noexcept nogil
