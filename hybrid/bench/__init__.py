"""GapBench: instances with best-known values and bounds, a runner that resumes, a report of optimality gaps."""
