"""Message passing over the encodings of any problem, imitation of labels, and policy gradient for one-shot scores."""

from .batch import Batch, collate
from .network import GraphNetwork, Schema, mlp, schema_of

__all__ = ["Batch", "GraphNetwork", "Schema", "collate", "mlp", "schema_of"]
