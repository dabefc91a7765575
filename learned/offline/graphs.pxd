from gangplan.solvers.native cimport Floats, Ints
