"""A client's admin request as the controller's handlers see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mobula.actors.controller.core import ControllerCore
from mobula.actors.controller.outcome import Outcome
from mobula.protocol.errors import ErrorCode, KafkaError

ResponseTree: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRequest:
    """`body` is the decoded request of that version; the rest is in whose name it came."""

    version: int
    body: Any
    principal: str
    client_address: str
    listener: str


ControllerHandler: TypeAlias = Callable[[ControllerRequest, ControllerCore], Outcome[ResponseTree]]
"""Decides: changes nothing, returns records and the response as a plain tree."""


def refused(error: KafkaError) -> dict[str, Any]:
    """The fields by which every response of this family says that something failed."""
    return {"error_code": error.code, "error_message": error.detail}


SUCCEEDED: Mapping[str, Any] = {"error_code": ErrorCode.none, "error_message": None}
