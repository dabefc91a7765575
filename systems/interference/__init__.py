"""Jobs that slow one another down on shared servers and links, placed once an interval and never moved."""
