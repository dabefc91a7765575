"""Plans of op graphs by a graph network: it corrects the scores by which a classic rule builds a plan."""
