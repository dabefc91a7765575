"""What happens on a cluster over time, whoever decides."""
