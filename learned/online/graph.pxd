from libc.math cimport log1pf
from gangplan.learned.online.candidates cimport APART, STEPS, WAIT, CandidateScratch, list_candidates, remaining
from gangplan.learned.online.features cimport count_idle, effective, look_ahead, soon, write_rows
from gangplan.simulator.gangs.arrays cimport NOW, RUNNING
from gangplan.simulator.gangs.formula cimport Formula
from gangplan.solvers.native cimport Float, Int

cpdef enum:
    STARTS, STARTED_BY, NODE_TAKEN, TAKES, RACK_TAKEN, HOLDS, IN_RACK, HAS_NODE, RACK_IN, RUN_IN, JOB_IN, \
    CANDIDATE_IN, HAS_CANDIDATE, HAS_JOB, RELATIONS

cpdef enum:
    CANDIDATES, JOBS, RUNS, NODES, RACKS, WHOLE

cdef Int write_graph(CandidateScratch s, Formula f) noexcept nogil
cdef void _tell_apart(CandidateScratch s) noexcept nogil
cdef Int _step(Float share) noexcept nogil
cdef void _write_jobs(CandidateScratch s) noexcept nogil
cdef void _write_runs(CandidateScratch s) noexcept nogil
cdef void _write_places(CandidateScratch s) noexcept nogil
cdef void _average(CandidateScratch s, Int kind, Int of) noexcept nogil
cdef void _write_cluster(CandidateScratch s, Formula f) noexcept nogil
cdef Int _edge(CandidateScratch s, Int e, Int source, Int target, Float weight) noexcept nogil
cdef void _write_edges(CandidateScratch s, Int k) noexcept nogil
cdef Int _join_whole(CandidateScratch s, Int e, Int kind, bint up) noexcept nogil
cdef Int _join_taken(CandidateScratch s, Int k, Int relation, Int e) noexcept nogil
cdef Int _join_held(CandidateScratch s, Int run, Int e) noexcept nogil
cdef Int _join_racks(CandidateScratch s, bint up, Int e) noexcept nogil
