"""The learned policy for placement: gangs one after the other, each where a network expects the batch to cost least."""
