"""Methods for schedules of moldable jobs."""
