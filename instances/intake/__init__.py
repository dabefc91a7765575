"""The door: text, JSON, TOML, CSV and gzip from files, or an `InstanceError`; nobody else opens an input."""

from .content import decoded, io_error, read_bytes, read_text
from .numbers import as_float
from .structure import parse_json, parse_toml, read_json
from .tables import Table, csv_rows

__all__ = [
    "Table",
    "as_float",
    "csv_rows",
    "decoded",
    "io_error",
    "parse_json",
    "parse_toml",
    "read_bytes",
    "read_json",
    "read_text",
]
