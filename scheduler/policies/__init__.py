"""Who decides beside the heuristic."""
