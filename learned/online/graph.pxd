from libc.math cimport log1pf
from gangplan.learned.graph.compiled cimport Graph
from gangplan.learned.online.candidates cimport APART, CROWD, DEARNESS, DEVIATION, GPUS, HELD_UP, LARGEST_NODE, \
    LARGEST_RACK, LISTED, LOAD, MEAN, SEEN, STEPS, SURPRISE, WAIT, WORK, CandidateScratch, list_candidates, remaining
from gangplan.learned.online.features cimport count_idle, effective, soon, write_rows
from gangplan.simulator.gangs.arrays cimport NOW, RUNNING, Cluster, Jobs, State
from gangplan.simulator.gangs.formula cimport Formula
from gangplan.solvers.native cimport Float, Int

cpdef enum:
    STARTS, STARTED_BY, NODE_TAKEN, TAKES, RACK_TAKEN, HOLDS, IN_RACK, HAS_NODE, RACK_IN, RUN_IN, JOB_IN, \
    CANDIDATE_IN, HAS_CANDIDATE, HAS_JOB, RELATIONS

cpdef enum:
    CANDIDATES, JOBS, RUNS, NODES, RACKS, WHOLE

cdef Int write_graph(
    Jobs jobs, Cluster cluster, State state, CandidateScratch s, Formula f, Graph g
) noexcept nogil
cdef void _tell_apart(Cluster cluster, State state, CandidateScratch s) noexcept nogil
cdef void _forget(CandidateScratch s, Int count) noexcept nogil
cdef Int _step(Float share) noexcept nogil
cdef void _list_runs(Jobs jobs, State state, CandidateScratch s) noexcept nogil
cdef void _write_jobs(Jobs jobs, State state, CandidateScratch s, Graph g) noexcept nogil
cdef void _write_runs(Jobs jobs, Cluster cluster, State state, CandidateScratch s, Graph g) noexcept nogil
cdef void _write_places(Cluster cluster, State state, CandidateScratch s, Graph g) noexcept nogil
cdef void _average(Graph g, Int kind, Int of) noexcept nogil
cdef void _write_cluster(Jobs jobs, Cluster cluster, State state, CandidateScratch s, Graph g) noexcept nogil
cdef Int _edge(Graph g, Int e, Int source, Int target, Float weight) noexcept nogil
cdef void _write_edges(Jobs jobs, Cluster cluster, State state, CandidateScratch s, Int k, Graph g) noexcept nogil
cdef Int _join_whole(Graph g, Int e, Int kind, bint up) noexcept nogil
cdef Int _join_taken(Cluster cluster, CandidateScratch s, Int k, Int relation, Graph g, Int e) noexcept nogil
cdef Int _join_held(
    Jobs jobs, Cluster cluster, State state, CandidateScratch s, Int run, Graph g, Int e
) noexcept nogil
cdef Int _join_racks(Cluster cluster, CandidateScratch s, bint up, Graph g, Int e) noexcept nogil
