"""JoinGroup: by members new and known, with and without an instance id, and refused."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.groups import SUBSCRIPTION, coordinator, joined, joining, stable
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import Json, encode_request

API = ApiKey.JOIN_GROUP
WITH_INSTANCES = range(5, 10)
TO_COME_BACK = range(4, 10)


def ask_to_join(on: Side, version: int, group: str, broker: int) -> Json:
    answer = on.ask(broker, API, version, joining(group))
    if answer["error_code"] == "member_id_required":
        answer = on.ask(broker, API, version, joining(group, answer["member_id"]))
    return answer


@scenario(API, good=True)
def alone(on: Side, version: int) -> None:
    name = on.name("g")
    answer = ask_to_join(on, version, name, coordinator(on, name))
    assert answer["error_code"] == "none"


@scenario(API, good=True)
def again(on: Side, version: int) -> None:
    """By the leader of a stable group, which begins a rebalance, and of one that is not."""
    for suffix, group in (("a", stable(on, "a")), ("b", joined(on, "b"))):
        assert suffix
        on.ask(group.broker, API, version, joining(group.name, group.member_id))


@scenario(API, good=True)
def with_several_protocols(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    protocols = [{"name": each, "metadata": SUBSCRIPTION} for each in ("sticky", "range")]
    asked = joining(name, protocols=protocols, protocol_type="own")
    answer = on.ask(broker, API, version, asked)
    if answer["error_code"] == "member_id_required":
        on.ask(broker, API, version, {**asked, "member_id": answer["member_id"]})


@scenario(API, good=True, versions=WITH_INSTANCES)
def a_static_member(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    on.ask(broker, API, version, joining(name, group_instance_id="one"))


@scenario(API, good=True, versions=WITH_INSTANCES)
def a_static_member_that_is_back(on: Side, version: int) -> None:
    group = stable(on, "g", "one")
    answer = on.ask(group.broker, API, version, joining(group.name, group_instance_id="one"))
    assert answer["error_code"] == "none"
    former = joining(group.name, group.member_id, group_instance_id="one")
    on.ask(group.broker, API, version, former)


@scenario(API, good=False)
def without_a_group(on: Side, version: int) -> None:
    coordinator(on, on.name("g"))
    on.ask(0, API, version, joining(""))


@scenario(API, good=False)
def a_member_that_is_not_known(on: Side, version: int) -> None:
    name = on.name("g")
    on.ask(coordinator(on, name), API, version, joining(name, "nobody"))
    group = stable(on, "h")
    on.ask(group.broker, API, version, joining(group.name, "nobody"))


@scenario(API, good=False)
def sessions_that_cannot_be(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    for session in (0, -1, 5_999, 1_800_001, (1 << 31) - 1):
        on.ask(broker, API, version, joining(name, session_timeout=session))


@scenario(API, good=False)
def protocols_that_do_not_fit(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    on.ask(broker, API, version, joining(name, protocols=[]))
    on.ask(broker, API, version, joining(name, protocol_type=""))
    group = stable(on, "h")
    on.ask(group.broker, API, version, joining(group.name, protocol_type="other"))
    other = [{"name": "other", "metadata": b""}]
    on.ask(group.broker, API, version, joining(group.name, protocols=other))


@scenario(API, good=False)
def a_broker_that_does_not_coordinate(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    for other in {0, 1, 2} - {broker}:
        on.ask(other, API, version, joining(name))


@scenario(API, good=False, versions=WITH_INSTANCES)
def a_static_member_under_another_id(on: Side, version: int) -> None:
    group = stable(on, "g", "one")
    for member in ("nobody", group.member_id + "0"):
        asked = joining(group.name, member, group_instance_id="one")
        on.ask(group.broker, API, version, asked)
    asked = joining(group.name, group.member_id, group_instance_id="two")
    on.ask(group.broker, API, version, asked)


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    name = on.name("g")
    broker = coordinator(on, name)
    body = encode_request(API, version, joining(name, "nobody"))
    on.ask(broker, API, version, body[:-1])
    on.ask(broker, API, version, b"")
    on.ask(broker, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 9), joining(on.name("g"))))
