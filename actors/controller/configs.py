"""Settings of topics and brokers: what may be changed, and the records that change it.

Every refusal is a KafkaError; a resource is changed as a whole or not at all.

Invariant: what is set passes its key's checks, so whoever reads it never fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from mobula.actors.config import Config, ConfigError
from mobula.actors.config.definitions import TOPIC_KEYS, Scope, definition
from mobula.actors.config.describe import BrokerLayers, Entry, describe_topic_of
from mobula.actors.config.key import ConfigType
from mobula.actors.config.topic import (
    broker_config_now,
    topic_config_of,
    validate_all,
)
from mobula.actors.metadata.broker_name import broker_id_of
from mobula.actors.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from mobula.actors.metadata.records import ConfigChanged, Record
from mobula.actors.metadata.topic_name import validate_topic_name
from mobula.actors.placement import DEDICATED_KEY
from mobula.protocol.errors import ErrorCode, KafkaError

Change: TypeAlias = Callable[[Mapping[str, str]], dict[str, str]]
"""From the settings there are to those that should be."""


class Resource(NamedTuple):
    type: int
    name: str


class Operation(IntEnum):
    """Kafka's numbers of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigControl:
    def __init__(self, image: MetadataImage, config: Config) -> None:
        self._image = image
        self._config = config

    def replace(
        self, resource: Resource, configs: Sequence[tuple[str, str | None]]
    ) -> list[Record]:
        """AlterConfigs: these and nothing else are set from now on."""
        _check_keys([key for key, _ in configs])
        _check_not_null([key for key, value in configs if value is None])
        wanted = {key: value for key, value in configs if value is not None}
        return self._records(resource, lambda _present: wanted)

    def change(
        self, resource: Resource, operations: Sequence[tuple[str, int, str | None]]
    ) -> list[Record]:
        """IncrementalAlterConfigs: (key, operation, value) each."""
        _check_keys([key for key, _, _ in operations])
        _check_not_null(
            [key for key, op, value in operations if value is None and op != Operation.DELETE]
        )

        def apply(present: Mapping[str, str]) -> dict[str, str]:
            wanted = dict(present)
            for key, op, value in operations:
                self._apply(resource, wanted, key, op, value or "")
            return wanted

        return self._records(resource, apply)

    def of_new_topic(self, own: Mapping[str, str]) -> list[Entry]:
        """All settings that a topic with these of its own has, by name."""
        return describe_topic_of(own, BrokerLayers.of(self._image, self._config, None))

    def _records(self, resource: Resource, change: Change) -> list[Record]:
        # Before its keys: to find what a misspelt one may have meant takes milliseconds, and
        # a request can name a hundred thousand resources that do not exist.
        resource = self._found(resource)
        check = _check_topic if resource.type == TOPIC_RESOURCE else _check_broker
        present = self._image.configs.get((resource.type, resource.name), {})
        try:
            wanted = change(present)
            check(present, wanted)
        except ConfigError as error:
            code = (
                ErrorCode.invalid_config
                if resource.type == TOPIC_RESOURCE
                else ErrorCode.invalid_request
            )
            raise KafkaError(code, str(error)) from None
        gone = [key for key in present if key not in wanted]
        altered = {key: value for key, value in wanted.items() if present.get(key) != value}
        return [
            *(ConfigChanged(resource.type, resource.name, key, None) for key in gone),
            *(ConfigChanged(resource.type, resource.name, *entry) for entry in altered.items()),
        ]

    def _found(self, resource: Resource) -> Resource:
        """Under the name that its settings are kept by."""
        if resource.type == TOPIC_RESOURCE:
            self._check_topic_there(resource.name)
        elif resource.type == BROKER_RESOURCE:
            return Resource(BROKER_RESOURCE, self._found_broker(resource.name))
        else:
            raise KafkaError(ErrorCode.invalid_request, f"Unknown resource type {resource.type}")
        return resource

    def _check_topic_there(self, name: str) -> None:
        if not name:
            raise KafkaError(ErrorCode.invalid_request, "Default topic resources are not allowed.")
        validate_topic_name(name)
        if name not in self._image.topic_ids:
            raise KafkaError(
                ErrorCode.unknown_topic_or_partition, f"The topic '{name}' does not exist."
            )

    def _found_broker(self, name: str) -> str:
        if not name:
            return name
        broker_id = broker_id_of(name)
        if broker_id is None:
            raise KafkaError(
                ErrorCode.invalid_request, f"Node id must be an integer, but it is: {name}"
            )
        if broker_id not in self._image.brokers:
            raise KafkaError(
                ErrorCode.broker_id_not_registered, f"No node with id {broker_id} found."
            )
        return str(broker_id)

    def _apply(
        self, resource: Resource, wanted: dict[str, str], key: str, op: int, value: str
    ) -> None:
        match op:
            case Operation.SET:
                wanted[key] = value
            case Operation.DELETE:
                wanted.pop(key, None)
            case Operation.APPEND | Operation.SUBTRACT:
                items = self._list_value(resource, wanted, key, Operation(op))
                for item in value.split(","):
                    if op == Operation.APPEND and item not in items:
                        items.append(item)
                    elif op == Operation.SUBTRACT and item in items:
                        items.remove(item)
                wanted[key] = ",".join(items)
            case _:
                raise KafkaError(
                    ErrorCode.invalid_request, f"Unknown config operation {op} of {key}."
                )

    def _list_value(
        self, resource: Resource, wanted: Mapping[str, str], key: str, op: Operation
    ) -> list[str]:
        of_topic = resource.type == TOPIC_RESOURCE
        found = definition(key, Scope.TOPIC if of_topic else Scope.BROKER)
        if found.type is not ConfigType.LIST:
            raise KafkaError(
                ErrorCode.invalid_config,
                f"Can't {op.name} to key {key} because its type is not LIST.",
            )
        broker = broker_config_now(self._image, self._config, None)
        base = topic_config_of(wanted, broker) if of_topic else broker.overlaid(wanted)
        return base.strings(key) if base.has(key) else []


def _check_topic(present: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    validate_all(wanted)
    default = TOPIC_KEYS[DEDICATED_KEY].default
    if wanted.get(DEDICATED_KEY, default) != present.get(DEDICATED_KEY, default):
        raise ConfigError(
            f"{DEDICATED_KEY} is decided when a topic is created and cannot be changed"
        )


def _check_broker(present: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    static: list[str] = []
    for key, value in wanted.items():
        if present.get(key) == value:
            continue
        found = definition(key, Scope.BROKER)
        found.parse(value)
        if not found.dynamic:
            static.append(key)
    if static:
        raise KafkaError(
            ErrorCode.invalid_request,
            f"Cannot update these configs dynamically: [{', '.join(static)}]",
        )


def _check_keys(keys: Sequence[str]) -> None:
    if len(set(keys)) != len(keys):
        raise KafkaError(ErrorCode.invalid_request, "Error due to duplicate config keys")


def _check_not_null(keys: Sequence[str]) -> None:
    if keys:
        raise KafkaError(
            ErrorCode.invalid_request, f"Null value not supported for : {', '.join(keys)}"
        )
