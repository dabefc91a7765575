"""MARL: many schedulers that learn to place and to pass on, over a hierarchy of graphs (Zhao and Wu, TNSM 2022)."""
