"""Who runs, and who stops so that another may start."""
