"""KafkaApis: the broker's table of handlers, and the dispatch of a request to one of them.

The table is the list of what this broker serves: ApiVersions is derived from it. What a
broker only forwards to the controller is one line.

Invariant: `handle` and `resume` raise nothing; whatever a handler raises ends its request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mobula.actors.coordinator import coordinator_apis
from mobula.actors.gateway.coordinator_requests import ForCoordinator
from mobula.actors.gateway.forwarding_manager import Forwarded
from mobula.actors.gateway.handlers import (
    api_versions,
    delete_records,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from mobula.actors.gateway.request import Request
from mobula.actors.gateway.request_handler_helper import handle_error
from mobula.actors.gateway.services import Services
from mobula.protocol.api import Api, ApiKey


class Handler(Protocol):
    """A module of `handlers/`, or one line here."""

    @property
    def API(self) -> Api: ...
    @property
    def handle(self) -> Callable[[Request, Services], None]: ...


HANDLERS: Sequence[Handler] = (
    produce,
    fetch,
    list_offsets,
    metadata,
    api_versions,
    init_producer_id,
    offset_for_leader_epoch,
    delete_records,
    describe_configs,
    describe_cluster,
    describe_topic_partitions,
    describe_log_dirs,
    find_coordinator,
    *(ForCoordinator(module.API) for module in coordinator_apis.HANDLERS),
    Forwarded(Api(ApiKey.CREATE_TOPICS, range(2, 8))),
    Forwarded(Api(ApiKey.DELETE_TOPICS, range(1, 7))),
    Forwarded(Api(ApiKey.CREATE_PARTITIONS, range(4))),
    Forwarded(Api(ApiKey.ALTER_CONFIGS, range(3))),
    Forwarded(Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, range(2))),
)


class KafkaApis:
    def __init__(self, services: Services, handlers: Sequence[Handler] = HANDLERS) -> None:
        self._services = services
        self._handlers = {int(handler.API.key): handler.handle for handler in handlers}

    def handle(self, request: Request) -> None:
        """The first stage, to the end without waiting. Who may ask is decided here, before
        the handler sees the request."""
        try:
            self._handlers[request.header.api_key](request, self._services)
        except Exception as error:  # noqa: BLE001
            handle_error(request, error)

    def resume(
        self, request: Request, continuation: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        """A later stage: something came back for the request."""
        try:
            continuation(*args)
        except Exception as error:  # noqa: BLE001
            handle_error(request, error)
