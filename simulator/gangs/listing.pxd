from gangplan.simulator.gangs.allocate cimport choose
from gangplan.simulator.gangs.arrays cimport RUNNING, WAITING, Arrays, GpuRacks, Jobs, State
from gangplan.simulator.gangs.step cimport begin_job, communication, pass_time, total
from gangplan.solvers.native cimport Float, Floats, Int, Ints

cdef class Listing(Arrays):
    cdef Floats key, most
    cdef Ints allocator, blocks

cdef void decode(Jobs jobs, GpuRacks cluster, State state, Listing of, Ints take, Float until) noexcept nogil
cdef void sort_in(State state, Floats key, Int known) noexcept nogil
