from gangplan.solvers.native cimport Float, Floats2, Floats3, Int, Ints, within
from gangplan.systems.interference.speeds cimport Crossings, SnapshotArrays, crossed

cdef class FittedArrays:
    cdef Crossings cross
    cdef Floats2 unit, compute, site, curve, amount, total, logs
    cdef Floats3 passes, suffers, exerts, crosses, fellow
    cdef Ints first
