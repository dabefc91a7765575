"""The content of a file: bytes within the limit, gzip undone, text."""

from __future__ import annotations

import zlib
from os import PathLike, fspath
from pathlib import Path

from ..errors import BYTES, InstanceError, Limit

_CHUNK = 2**20
_GZIP = b"\x1f\x8b"


def read_bytes(path: str | PathLike[str], *, limit: Limit = BYTES) -> bytes:
    """Return what a file holds; of a device or a pipe that never ends no more than the limit is read.

    Raises:
        InstanceError: naming the file, if it cannot be read or is too large.
    """
    try:
        return _read(path, limit)
    except InstanceError as error:
        raise error.of(str(fspath(path))) from None


def read_text(path: str | PathLike[str], *, gzip: bool = False, empty: bool = False, limit: Limit = BYTES) -> str:
    """Return the text of a file, without a byte order mark, lines ending in a line feed whatever ended them there.

    Args:
        path: the file.
        gzip: whether it may be compressed, which its first bytes tell.
        empty: whether there may be nothing in it.
        limit: of its bytes, once they are uncompressed.

    Raises:
        InstanceError: naming the file, if it cannot be read, is too large, broken, empty or no UTF-8 text.
    """
    try:
        content = _read(path, limit, text=not gzip)
        if gzip and content.startswith(_GZIP):
            content = _unzipped(content, limit)
        text = decoded(content)
        if not empty and not text.strip():
            raise InstanceError("content", "the file is empty")
    except InstanceError as error:
        raise error.of(str(fspath(path))) from None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def decoded(content: bytes) -> str:
    """Return UTF-8 text without a byte order mark.

    Raises:
        InstanceError: naming the first byte that is none.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        offset = error.start + (len(content) - len(error.object))  # the codec counts from behind the mark
        raise InstanceError("content", f"byte {content[offset]:#04x} at offset {offset} is not UTF-8 text") from None
    if "\0" in text:
        raise InstanceError("content", f"byte 0x00 at offset {content.index(0)} is not text")
    return text


def io_error(error: Exception) -> str:
    """Return what a failed call of the system has to say."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def _read(path: str | PathLike[str], limit: Limit, *, text: bool = False) -> bytes:
    most, parts, size = limit.value, [], 0
    try:
        with Path(path).open("rb") as file:
            while part := file.read(_CHUNK):
                size += len(part)
                limit.check(size, "content", most)
                parts.append(part)
                if text and len(parts) == 1 and 0 in part:
                    decoded(part[: part.index(0) + 1])  # /dev/zero, or a binary: no need to read on
    except InstanceError:
        raise
    except (OSError, ValueError) as error:
        raise InstanceError("file", io_error(error)) from None
    except MemoryError:
        raise InstanceError("content", f"{size} bytes do not fit into the memory") from None
    return b"".join(parts)


def _unzipped(content: bytes, limit: Limit) -> bytes:
    """Undo gzip, of one member after the other, without ever holding more than the limit."""
    most, parts, size = limit.value, [], 0
    while content:
        machine = zlib.decompressobj(wbits=31)
        try:
            while not machine.eof:
                part = machine.decompress(content, _CHUNK)
                content = machine.unconsumed_tail
                size += len(part)
                limit.check(size, "content", most)
                parts.append(part)
                if not part and not content and not machine.eof:
                    raise InstanceError("content", "is gzip that was cut off")
        except zlib.error as error:
            raise InstanceError("content", f"is broken gzip: {error}") from None
        content = machine.unused_data.lstrip(b"\0")  # padding, which gzip allows
    return b"".join(parts)
