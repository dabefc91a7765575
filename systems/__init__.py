"""Published systems, a room each: its cluster, its rivals, its policy as published, ours, and how they compare."""
