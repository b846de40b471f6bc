"""All messages that have no codec of their own: kio's classes, behind a face.

Everything is made on first use, once per API and version, so that a process imports only
the versions its clients speak.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from kio.index import (
    KioIndexError,
    load_payload_module,
    load_request_schema,
    load_response_schema,
)
from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from mobula.protocol.builders import Builder, Tree, compile_builder
from mobula.protocol.errors import DecodeError
from mobula.protocol.primitives import Buffer
from mobula.protocol.readers import Reader, compile_reader
from mobula.protocol.schema import shape_of
from mobula.protocol.writers import compile_writer


def decode_request(key: int, version: int, body: Buffer) -> Any:
    """The kio request that these bytes begin with.

    What follows it is ignored, as Kafka does: librdkafka writes the null of "all topics" in
    a flexible Metadata request as four bytes where one belongs, and so has three too many.
    DecodeError: the bytes are no such request, or there is no such version.
    """
    message, _ = _request_reader(key, version)(memoryview(body), 0)
    return message


def decode_response(key: int, version: int, body: Buffer) -> Any:
    """The kio response in these bytes, all of them, for clients and tests."""
    view = memoryview(body)
    message, end = _response_reader(key, version)(view, 0)
    if end != len(view):
        raise DecodeError(
            f"{len(view) - end} bytes too many after a {type(message).__name__}"
            f" v{message.__version__}"
        )
    return message


def build_request(key: int, version: int, tree: Tree) -> Any:
    """The kio request of this version, from a tree (see `builders`)."""
    return _request_builder(key, version)(tree)


def build_response(key: int, version: int, tree: Tree) -> Any:
    """The kio response of this version, from a tree (see `builders`)."""
    return _response_builder(key, version)(tree)


def encode(message: Any) -> bytes:
    """The body of a kio request or response."""
    entity: type = type(message)
    return compile_writer(entity)(message)


@cache
def _request_reader(key: int, version: int) -> Reader:
    return compile_reader(_schema(load_request_schema, key, version))


@cache
def _response_reader(key: int, version: int) -> Reader:
    return compile_reader(_schema(load_response_schema, key, version))


def _schema(load: Callable[[int, int], Any], key: int, version: int) -> type:
    try:
        schema: type = load(key, version)
    except KioIndexError:
        raise DecodeError(f"there is no version {version} of API {key}") from None
    return schema


@cache
def _request_builder(key: int, version: int) -> Builder:
    return compile_builder(load_request_schema(key, version), _asker(key, EntityType.request))


@cache
def _response_builder(key: int, version: int) -> Builder:
    return compile_builder(load_response_schema(key, version), _asker(key, EntityType.response))


def _asker(key: int, kind: Any) -> Callable[[str, str], bool]:
    """Whether any version of a message has a class of this name with this field."""

    def known(class_name: str, field: str) -> bool:
        for version in sorted(schema_name_map[api_key_map[key]], reverse=True):
            entity = getattr(load_payload_module(key, version, kind), class_name, None)
            if entity is not None and any(shape.name == field for shape in shape_of(entity)):
                return True
        return False

    return known
