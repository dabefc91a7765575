"""Layouts: degrees of parallelism are branched on, and inside a family of layouts the split into stages is exact."""
