from gangplan.simulator.gangs.arrays cimport GpuRacks
from gangplan.solvers.native cimport Int, Ints
from gangplan.solvers.placement.online.closest cimport best_fit, closest, rack_idle, take_idle

cpdef enum:
    NEAREST, SIZED, CENTRE, CLOSEST

cdef bint choose(Int rule, Int need, GpuRacks cluster, Ints free, Ints take) noexcept nogil
cdef void _around(Int seed, Int need, GpuRacks cluster, Ints free, Ints take) noexcept nogil
cdef Int _seed_by_size(Int need, GpuRacks cluster, Ints free) noexcept nogil
cdef Int _rack_by_idle(GpuRacks cluster, Ints free, bint most) noexcept nogil
cdef Int _emptiest(GpuRacks cluster, Ints free, Int rack) noexcept nogil
cdef Int _centre(GpuRacks cluster, Ints free) noexcept nogil
