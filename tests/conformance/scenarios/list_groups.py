"""ListGroups: all, and by state and type."""

from __future__ import annotations

from collections.abc import Sequence

from mobula.protocol.api import ApiKey
from tests.conformance.groups import commit, coordinator, empty, joined, offsets, stable
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import Tree, encode_request

API = ApiKey.LIST_GROUPS
BY_STATE = range(4, 6)
BY_TYPE = range(5, 6)


def listing(states: Sequence[str] = (), types: Sequence[str] = ()) -> Tree:
    return {"states_filter": list(states), "types_filter": list(types)}


def ask_all(on: Side, version: int, asked: Tree) -> None:
    for broker in range(3):
        on.ask(broker, API, version, asked, own_topics_only=True)


def some_groups(on: Side) -> None:
    stable(on, "stable")
    joined(on, "joined")
    empty(on, "empty")
    commit(on, on.name("offsets"), offsets(on.shared_topic("one"), (0, 1)))


@scenario(API, good=True)
def everything(on: Side, version: int) -> None:
    some_groups(on)
    ask_all(on, version, listing())


@scenario(API, good=True, versions=BY_STATE)
def by_state(on: Side, version: int) -> None:
    some_groups(on)
    for states in (["Stable"], ["stable", "EMPTY"], ["CompletingRebalance"], ["Dead"]):
        ask_all(on, version, listing(states))


@scenario(API, good=True, versions=BY_TYPE)
def by_type(on: Side, version: int) -> None:
    some_groups(on)
    for types in (["classic"], ["Classic"], ["consumer"], ["classic", "consumer"]):
        ask_all(on, version, listing((), types))
    ask_all(on, version, listing(["Empty"], ["classic"]))


@scenario(API, good=False, versions=BY_STATE)
def by_a_state_that_there_is_not(on: Side, version: int) -> None:
    some_groups(on)
    for states in (["nothing"], [""], ["Stable", "nothing"]):
        ask_all(on, version, listing(states))


@scenario(API, good=False, versions=BY_TYPE)
def by_a_type_that_there_is_not(on: Side, version: int) -> None:
    some_groups(on)
    for types in (["nothing"], [""], ["classic", "nothing"]):
        ask_all(on, version, listing((), types))


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    coordinator(on, on.name("g"))
    body = encode_request(API, version, listing())
    if body:
        on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, body + b"more", own_topics_only=True)


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 5), listing()))
