"""FindCoordinator: of groups that are there or not, and of what has none."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.groups import coordinator
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import Tree, encode_request

API = ApiKey.FIND_COORDINATOR
GROUP, SHARE = 0, 2
WITH_KEYS = range(4, 7)
WITH_KEY = range(4)


def finding(*keys: str, kind: int = GROUP) -> Tree:
    return {"key": keys[0] if keys else "", "key_type": kind, "coordinator_keys": list(keys)}


@scenario(API, good=True)
def a_group(on: Side, version: int) -> None:
    for suffix in ("a", "b", "c", "d"):
        coordinator(on, on.name(suffix))
        for broker in range(3):
            on.ask(broker, API, version, finding(on.name(suffix)))


@scenario(API, good=True, versions=WITH_KEYS)
def several_groups(on: Side, version: int) -> None:
    names = [on.name(suffix) for suffix in ("a", "b", "c")]
    for name in names:
        coordinator(on, name)
    on.ask(0, API, version, finding(*names))
    on.ask(0, API, version, finding(names[0], names[0]))
    on.ask(0, API, version, finding())


@scenario(API, good=True)
def names_of_any_kind(on: Side, version: int) -> None:
    for name in ("a b", "gr\N{LATIN SMALL LETTER U WITH DIAERESIS}ppe", "\N{GRINNING FACE}"):
        coordinator(on, name)
        on.ask(0, API, version, finding(name))


@scenario(API, good=False)
def an_empty_name(on: Side, version: int) -> None:
    coordinator(on, on.name("a"))
    on.ask(0, API, version, finding(""))


@scenario(API, good=False, versions=range(1, 7))
def of_a_kind_that_there_is_not(on: Side, version: int) -> None:
    for kind in (3, -1, 127):
        on.ask(0, API, version, finding(on.name("a"), kind=kind))


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    coordinator(on, on.name("a"))
    body = encode_request(API, version, finding(on.name("a")))
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")
    on.ask(0, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 6), finding(on.name("a"))))
