"""Step time learned: a network scores ops and edges, a list scheduler makes a plan of it; see docs/learned-step.md."""
