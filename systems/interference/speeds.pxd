from gangplan.solvers.native cimport Flags, Float, Floats, Floats2, Int, Ints, Ints2, within

cpdef enum:
    CONTENTION, PAIRS, LINKS

cdef class Crossings:
    cdef Ints2 link, behind
    cdef Ints links

cdef class HiddenArrays:
    cdef Int mode
    cdef Crossings cross
    cdef Floats step, batches, socket, duty, quality, alone, load
    cdef Floats2 sync, host, kept, tasks
    cdef Ints2 row
    cdef Flags marked

cdef class SnapshotArrays:
    cdef Ints first, kind, rows, server, workers, ps
    cdef Floats speed

cdef Int crossed(Crossings to, SnapshotArrays now, Int job, Int begin) noexcept nogil
