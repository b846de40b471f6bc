"""What gateways ask of a broker's coordinators."""

from __future__ import annotations

from mobula.actors.link.method import Message, Method


class Coordinate(Message, frozen=True, array_like=True, gc=False):
    """A client's request, header and body, in the bulk; asked in the client's name."""

    principal: str
    client_address: str
    listener: str


class Coordinated(Message, frozen=True, array_like=True, gc=False):
    """The response's body is in the bulk, or there is only an error for the whole request."""

    error_code: int = 0
    detail: str | None = None


COORDINATE = Method(70, "coordinate", Coordinate, Coordinated)
