"""IncrementalAlterConfigs: set, delete, append, subtract, of topics and brokers; and refused."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.configs import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    change,
    changes,
    describe,
    own_settings,
    wait_until_set,
)
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import encode_request, is_flexible, with_null

API = ApiKey.INCREMENTAL_ALTER_CONFIGS
KEYS = ("retention.ms", "cleanup.policy", "segment.ms")


@scenario(API, good=True)
def set_and_deleted(on: Side, version: int) -> None:
    name = on.topic("a", configs={"segment.ms": "1000"}).name
    both = ("retention.ms", SET, "5000"), ("cleanup.policy", SET, "compact")
    on.ask(0, API, version, changes(change(TOPIC, name, *both)))
    wait_until_set(on, TOPIC, name, {"retention.ms": "5000", "cleanup.policy": "compact"})
    describe(on, TOPIC, name, *KEYS)
    fewer = ("retention.ms", DELETE, None), ("segment.ms", DELETE, "9")
    on.ask(0, API, version, changes(change(TOPIC, name, *fewer)))
    wait_until_set(on, TOPIC, name, {"retention.ms": None, "segment.ms": None})
    describe(on, TOPIC, name, *KEYS)


@scenario(API, good=True)
def what_changes_nothing(on: Side, version: int) -> None:
    name = on.topic("a", configs={"retention.ms": "1000"}).name
    on.ask(0, API, version, changes(change(TOPIC, name, ("retention.ms", SET, "1000"))))
    on.ask(0, API, version, changes(change(TOPIC, name, ("segment.ms", DELETE, None))))
    on.ask(0, API, version, changes(change(TOPIC, name, ("no.such.key", DELETE, None))))
    on.ask(0, API, version, changes(change(TOPIC, name)))
    on.ask(0, API, version, changes())


@scenario(API, good=True)
def appended_to_and_subtracted_from_a_list(on: Side, version: int) -> None:
    name = on.topic("a").name
    for operation, value, then in (
        (APPEND, "compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (APPEND, "compact", "compact"),
        (SUBTRACT, "delete", "compact"),
        (APPEND, "delete,compact", "compact,delete"),
        (SUBTRACT, "compact", "delete"),
        (SUBTRACT, "delete", ""),
        (APPEND, "delete", "delete"),
    ):
        wanted = change(TOPIC, name, ("cleanup.policy", operation, value))
        on.ask(0, API, version, changes(wanted))
        wait_until_set(on, TOPIC, name, {"cleanup.policy": then})


@scenario(API, good=True)
def settings_of_brokers(on: Side, version: int) -> None:
    keys = ("log.roll.ms", "log.cleanup.policy")
    for name in ("", "0"):
        wanted = ("log.roll.ms", SET, "7200000"), ("log.cleanup.policy", APPEND, "compact")
        on.ask(0, API, version, changes(change(BROKER, name, *wanted)))
        then = {"log.roll.ms": "7200000", "log.cleanup.policy": "delete,compact"}
        wait_until_set(on, BROKER, name, then)
        describe(on, BROKER, name, *keys)
        gone = [(key, DELETE, None) for key in keys]
        on.ask(0, API, version, changes(change(BROKER, name, *gone)))
        wait_until_set(on, BROKER, name, dict.fromkeys(keys))
        describe(on, BROKER, name, *keys)


@scenario(API, good=True)
def of_another_broker_than_is_asked(on: Side, version: int) -> None:
    wanted = change(BROKER, "0", ("log.roll.ms", SET, "7200000"))
    on.ask(2, API, version, changes(wanted, validate_only=True))


@scenario(API, good=True)
def without_changing_anything(on: Side, version: int) -> None:
    name = on.topic("a").name
    for operation in (("retention.ms", SET, "5000"), ("retention.ms", SET, "x")):
        on.ask(0, API, version, changes(change(TOPIC, name, operation), validate_only=True))
    everywhere = change(BROKER, "", ("log.roll.ms", SET, "7200000"))
    on.ask(0, API, version, changes(everywhere, validate_only=True))
    assert own_settings(on, TOPIC, name, ["retention.ms"]) == {"retention.ms": None}
    assert own_settings(on, BROKER, "", ["log.roll.ms"]) == {"log.roll.ms": None}


@scenario(API, good=False)
def operations_that_cannot_be(on: Side, version: int) -> None:
    name = on.shared_topic("one").name
    refused: list[list[tuple[str, int, str | None]]] = [
        [("retention.ms", APPEND, "1000")],
        [("retention.ms", SUBTRACT, "1000")],
        [("cleanup.policy", APPEND, "burn")],
        [("cleanup.policy", APPEND, None)],
        [("cleanup.policy", SUBTRACT, None)],
        [("retention.ms", SET, None)],
        [("no.such.key", APPEND, "1")],
        [("retention.ms", SET, "1000"), ("retention.ms", DELETE, None)],
        [("retention.ms", SET, "1000"), ("cleanup.policy", SET, None)],
    ]
    for operations in refused:
        on.ask(0, API, version, changes(change(TOPIC, name, *operations)))
    assert own_settings(on, TOPIC, name, KEYS) == dict.fromkeys(KEYS)


@scenario(API, good=False)
def operations_that_there_are_not(on: Side, version: int) -> None:
    name = on.shared_topic("one").name
    for operation in (4, -1):
        wanted = change(TOPIC, name, ("retention.ms", operation, "1000"))
        on.ask(0, API, version, changes(wanted))


@scenario(API, good=False)
def topics_that_are_not_there(on: Side, version: int) -> None:
    wanted = ("retention.ms", SET, "5000")
    for name in (on.name("missing"), "", "a b", "x" * 250):
        on.ask(0, API, version, changes(change(TOPIC, name, wanted)))
    fine = change(TOPIC, on.topic("a").name, wanted)
    on.ask(0, API, version, changes(change(TOPIC, on.name("missing"), wanted), fine))


@scenario(API, good=False)
def brokers_that_are_not_there(on: Side, version: int) -> None:
    for name in ("77", "-1", "zero", "4294967296"):
        rolled = change(BROKER, name, ("log.roll.ms", SET, "7200000"))
        on.ask(0, API, version, changes(rolled, validate_only=True))


@scenario(API, good=False)
def a_resource_named_twice(on: Side, version: int) -> None:
    twice, once = on.topic("twice").name, on.topic("once").name
    wanted = change(TOPIC, twice, ("retention.ms", SET, "5000"))
    again = change(TOPIC, twice, ("segment.ms", SET, "5000"))
    on.ask(0, API, version, changes(wanted, change(TOPIC, once), again))


@scenario(API, good=False)
def kinds_of_resources_that_are_not_there(on: Side, version: int) -> None:
    for kind in (0, 1, 64, -1):
        wanted = change(kind, "0", ("x", SET, "1"))
        on.ask(0, API, version, changes(wanted, validate_only=True))


@scenario(API, good=False)
def other_kinds_of_resources(on: Side, version: int) -> None:
    for kind in (BROKER_LOGGER, CLIENT_METRICS, GROUP):
        wanted = change(kind, on.name("a"), ("x", SET, "1"))
        on.ask(0, API, version, changes(wanted, validate_only=True))


@scenario(API, good=False)
def null_in_place_of(on: Side, version: int) -> None:
    flexible = is_flexible(API, version)
    name = on.shared_topic("one").name
    body = encode_request(API, version, changes(change(TOPIC, "nothing")))
    on.ask(0, API, version, with_null(body, "nothing", flexible=flexible))
    body = encode_request(API, version, changes(change(TOPIC, name, ("nothing", SET, "1"))))
    on.ask(0, API, version, with_null(body, "nothing", flexible=flexible))
    on.ask(0, API, version, changes({**change(TOPIC, name), "configs": None}))
    on.ask(0, API, version, {"resources": None})


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    body = encode_request(API, version, changes(change(TOPIC, on.name("missing"))))
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")
    on.ask(0, API, version, body + b"\0\0")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 1), changes()))
