from gangplan.simulator.gangs.arrays cimport ARRIVED, NOW, RUNNING, WAITING, GpuRacks, Jobs, State
from gangplan.solvers.native cimport Float, Int, Ints

cdef Int total(Ints counts) noexcept nogil
cpdef Float communication(GpuRacks cluster, Ints take) noexcept nogil
cdef void begin_job(Jobs jobs, GpuRacks cluster, State state, Int at, Ints take) noexcept nogil
cdef Float rate(Jobs jobs, State state, Int job) noexcept nogil
cdef Float remaining(Jobs jobs, State state, Int job) noexcept nogil
cdef bint pass_time(Jobs jobs, GpuRacks cluster, State state, Float until) noexcept nogil
cdef void restore(State to, State of) noexcept nogil
cpdef Float total_jct(Jobs jobs, State state) noexcept nogil
