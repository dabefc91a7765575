"""gangplan: how distributed deep-learning jobs share a GPU cluster."""
