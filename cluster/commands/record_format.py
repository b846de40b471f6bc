"""How a consumed record is written: kcat's format tokens, or a line of JSON."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from mobula.cluster.options import UsageError

DEFAULT_FORMAT = r"%s\n"

HELP = (
    r"%s value, %S its length, %k key, %K its length, %h headers, %t topic, %p partition, "
    r"%o offset, %T timestamp in ms, %% a percent sign; \n \r \t \\ \xNN"
)


class Record(Protocol):
    """The part of confluent-kafka's Message that is used here."""

    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def key(self) -> Any: ...
    def value(self) -> Any: ...
    def headers(self) -> Any: ...
    def timestamp(self) -> tuple[int, int]: ...


Formatter: TypeAlias = Callable[[Record], bytes]

_PIECE = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.?)|[^%\\]+", re.DOTALL)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0"}


def compile_format(text: str) -> Formatter:
    """UsageError names a token that does not exist."""
    pieces: list[bytes | Formatter] = []
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece[0] == "%":
            pieces.append(_token(match[1]))
        elif piece[0] == "\\":
            pieces.append(_escape(match[2]))
        else:
            pieces.append(piece.encode())

    def write(record: Record) -> bytes:
        return b"".join([piece if isinstance(piece, bytes) else piece(record) for piece in pieces])

    return write


def json_line(record: Record) -> bytes:
    """UTF-8 as text; what is no text as `<field>_base64`."""
    kind, timestamp = record.timestamp()
    document: dict[str, Any] = {
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "timestamp": timestamp,
        "timestamp_type": {1: "CreateTime", 2: "LogAppendTime"}.get(kind),
    }
    _put(document, "key", record.key())
    _put(document, "value", record.value())
    document["headers"] = []
    for name, value in record.headers() or ():
        header: dict[str, Any] = {"key": name}
        _put(header, "value", value)
        document["headers"].append(header)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _put(document: dict[str, Any], field: str, data: bytes | str | None) -> None:
    if not isinstance(data, bytes):
        document[field] = data
        return
    try:
        document[field] = data.decode()
    except UnicodeDecodeError:
        document[f"{field}_base64"] = base64.b64encode(data).decode()


def _token(letter: str) -> bytes | Formatter:
    if letter == "%":
        return b"%"
    formatter = _TOKENS.get(letter)
    if formatter is None:
        raise UsageError(f"-f: there is no token %{letter}; there are {HELP}")
    return formatter


def _escape(text: str) -> bytes:
    if len(text) == 3:
        return bytes([int(text[1:], 16)])
    if text not in _ESCAPES:
        raise UsageError(f"-f: there is no escape \\{text}; there are {HELP}")
    return _ESCAPES[text]


def _bytes(data: bytes | str | None) -> bytes:
    if data is None:
        return b""
    return data.encode() if isinstance(data, str) else data


def _length(data: bytes | str | None) -> bytes:
    """-1 when there is none, which is not the same as an empty one."""
    return b"-1" if data is None else str(len(_bytes(data))).encode()


def _headers(record: Record) -> bytes:
    return b",".join(
        _bytes(name) + b"=" + (b"NULL" if value is None else _bytes(value))
        for name, value in record.headers() or ()
    )


_TOKENS: dict[str, Formatter] = {
    "s": lambda record: _bytes(record.value()),
    "S": lambda record: _length(record.value()),
    "k": lambda record: _bytes(record.key()),
    "K": lambda record: _length(record.key()),
    "t": lambda record: _bytes(record.topic()),
    "p": lambda record: str(record.partition()).encode(),
    "o": lambda record: str(record.offset()).encode(),
    "T": lambda record: str(record.timestamp()[1]).encode(),
    "h": _headers,
}
