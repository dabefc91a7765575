"""Message passing over the encodings of any problem."""

from .network import Batch, GraphNetwork, Schema, collate, mlp, schema_of

__all__ = ["Batch", "GraphNetwork", "Schema", "collate", "mlp", "schema_of"]
