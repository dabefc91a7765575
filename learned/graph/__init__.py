"""The one graph network: what a problem's graph is made of, its network in PyTorch Geometric, and compiled."""
