"""Instances and clusters as graphs of numbers without units, of any size: what networks read."""

from .encoding import Encoding
from .partition import encode_partition
from .placement import PlacementEncoder, encode_placement
from .schedule import Moment, encode_schedule, encode_view

__all__ = [
    "Encoding",
    "Moment",
    "PlacementEncoder",
    "encode_partition",
    "encode_placement",
    "encode_schedule",
    "encode_view",
]
