"""What clients get: every handler, over the wire's bytes."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import pytest

from mobula.actors.controller.controller_apis import CONTROLLER_APIS, ControllerApis
from mobula.actors.controller.handlers import create_topics
from mobula.actors.controller.messages import Envelope
from mobula.actors.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from mobula.protocol.api import ApiKey, flexible
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_request, decode_response, encode
from tests.unit.controller.fakes import World

ENVELOPE = Envelope("User:ANONYMOUS", "127.0.0.1", "PLAINTEXT", 1000)
SET, DELETE, APPEND, SUBTRACT = range(4)


class Client:
    def __init__(self, world: World) -> None:
        self.world = world
        self.apis = ControllerApis(world.core)

    def send(self, frame: bytes) -> tuple[int, bytes]:
        answer = self.world.run(self.apis.handle(ENVELOPE, memoryview(frame)))
        return answer.message.error_code, answer.body

    def ask(self, key: ApiKey, version: int, **tree: Any) -> Any:
        body = encode(build_request(key, version, tree))
        code, response = self.send(header(key, version) + body)
        assert code == ErrorCode.none
        return decode_response(key, version, response)

    def create(self, *topics: dict[str, Any], version: int = 7, validate_only: bool = False) -> Any:
        defaults = {
            "num_partitions": 1,
            "replication_factor": 1,
            "assignments": [],
            "configs": [],
        }
        response = self.ask(
            ApiKey.CREATE_TOPICS,
            version,
            topics=[{**defaults, **topic} for topic in topics],
            timeout=1000,
            validate_only=validate_only,
        )
        return response.topics

    def delete(self, *topics: dict[str, Any]) -> Any:
        return self.ask(ApiKey.DELETE_TOPICS, 6, topics=[*topics], timeout=1000).responses

    def add(self, *topics: dict[str, Any], version: int = 3, validate_only: bool = False) -> Any:
        return self.ask(
            ApiKey.CREATE_PARTITIONS,
            version,
            topics=[{"assignments": None, **topic} for topic in topics],
            timeout=1000,
            validate_only=validate_only,
        ).results

    def alter(self, *resources: tuple[int, str, list[Any]], **more: Any) -> Any:
        return self.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            resources=[
                {
                    "resource_type": kind,
                    "resource_name": name,
                    "configs": [
                        {"name": key, "config_operation": op, "value": value}
                        for key, op, value in configs
                    ],
                }
                for kind, name, configs in resources
            ],
            **{"validate_only": False, **more},
        ).responses

    def replace(self, *resources: tuple[int, str, dict[str, str | None]], **more: Any) -> Any:
        return self.ask(
            ApiKey.ALTER_CONFIGS,
            2,
            resources=[
                {
                    "resource_type": kind,
                    "resource_name": name,
                    "configs": [{"name": k, "value": v} for k, v in configs.items()],
                }
                for kind, name, configs in resources
            ],
            **{"validate_only": False, **more},
        ).responses


def header(key: int, version: int) -> bytes:
    tags = b"\0" if flexible(key, version) else b""
    return struct.pack(">hhih", key, version, 42, -1) + tags


def codes(results: Any) -> list[ErrorCode]:
    return [result.error_code for result in results]


@pytest.fixture
def world() -> World:
    world = World()
    world.start(0, 1, 2)
    return world


@pytest.fixture
def client(world: World) -> Client:
    return Client(world)


class TestTheTable:
    def test_it_has_exactly_the_apis_and_versions_that_are_served(self) -> None:
        served = {
            ApiKey(key): (api.served[0], api.served[-1])
            for key, (api, _) in CONTROLLER_APIS.items()
        }
        assert served == {
            ApiKey.CREATE_TOPICS: (2, 7),
            ApiKey.DELETE_TOPICS: (1, 6),
            ApiKey.CREATE_PARTITIONS: (0, 3),
            ApiKey.ALTER_CONFIGS: (0, 2),
            ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
        }

    @pytest.mark.parametrize(("key", "version"), [(3, 1), (19, 1), (19, 8), (20, 0), (999, 0)])
    def test_what_is_not_in_it_is_an_unsupported_version(
        self, client: Client, key: int, version: int
    ) -> None:
        frame = struct.pack(">hhih", key, version, 42, -1) + b"\0"
        assert client.send(frame) == (ErrorCode.unsupported_version, b"")

    @pytest.mark.parametrize("frame", [b"", b"\0\x13", header(19, 7), header(19, 7) + b"\xff" * 9])
    def test_garbage_is_an_invalid_request(self, client: Client, frame: bytes) -> None:
        assert client.send(frame) == (ErrorCode.invalid_request, b"")

    def test_a_bug_in_a_handler_is_answered_and_changes_nothing(
        self, client: Client, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: Any) -> Any:
            raise ZeroDivisionError

        monkeypatch.setitem(CONTROLLER_APIS, 19, (create_topics.API, broken))
        body = encode(build_request(19, 7, {"topics": [], "timeout": 1, "validate_only": False}))
        offset = world.image.offset
        assert client.send(header(19, 7) + body) == (ErrorCode.unknown_server_error, b"")
        assert world.image.offset == offset

    @pytest.mark.parametrize("key", CONTROLLER_APIS)
    def test_every_version_answers_an_empty_request(self, client: Client, key: int) -> None:
        for version in CONTROLLER_APIS[key][0].served:
            body = encode(build_request(key, version, {}))
            code, response = client.send(header(key, version) + body)
            assert code == ErrorCode.none
            decode_response(key, version, response)


class TestCreateTopics:
    @pytest.mark.parametrize("version", range(2, 8))
    def test_a_topic_is_made_in_every_version(
        self, client: Client, world: World, version: int
    ) -> None:
        (result,) = client.create(
            {"name": "t", "num_partitions": 6, "replication_factor": 3}, version=version
        )
        assert result.error_code is ErrorCode.none
        assert result.error_message is None
        topic = world.image.topic("t")
        assert topic is not None
        assert list(topic.partitions) == list(range(6))
        leaders = sorted(partition.leader for partition in topic.partitions.values())
        assert leaders == [0, 0, 1, 1, 2, 2]
        if version >= 5:
            assert (result.num_partitions, result.replication_factor) == (6, 3)
        if version >= 7:
            assert result.topic_id.bytes == topic.topic_id

    def test_minus_one_stands_for_the_defaults(self) -> None:
        world = World(settings={"num.partitions": "4", "default.replication.factor": "2"})
        world.start(0, 1, 2)
        wish = {"name": "t", "num_partitions": -1, "replication_factor": -1}
        (result,) = Client(world).create(wish)
        assert (result.num_partitions, result.replication_factor) == (4, 2)

    def test_the_configs_of_the_new_topic_come_back_with_their_source(self, world: World) -> None:
        world = World(settings={"log.retention.hours": "1"})
        world.start(0)
        configs = [{"name": "cleanup.policy", "value": "compact"}]
        (result,) = Client(world).create({"name": "t", "configs": configs})
        values = {entry.name: (entry.value, entry.config_source) for entry in result.configs}
        assert values["cleanup.policy"] == ("compact", 1)
        assert values["retention.ms"] == ("3600000", 4)
        assert values["segment.bytes"] == ("1073741824", 5)
        assert world.image.configs == {(TOPIC_RESOURCE, "t"): {"cleanup.policy": "compact"}}

    def test_a_name_that_stands_twice_is_refused_and_the_rest_is_made(
        self, client: Client, world: World
    ) -> None:
        results = client.create({"name": "a"}, {"name": "b"}, {"name": "a"})
        by_name = {result.name: result for result in results}
        assert len(results) == 2
        assert by_name["a"].error_code is ErrorCode.invalid_request
        assert by_name["a"].error_message == "Duplicate topic name."
        assert by_name["b"].error_code is ErrorCode.none
        assert world.image.topic("a") is None

    @pytest.mark.parametrize(
        ("wish", "code", "words"),
        [
            ({"name": "a b"}, "invalid_topic_exception", "Topic name is invalid"),
            ({"name": ".."}, "invalid_topic_exception", "'..' is not allowed"),
            ({"name": "old_name"}, "invalid_topic_exception", "collides with existing topic: old"),
            ({"name": "old.name"}, "topic_already_exists", "Topic 'old.name' already exists."),
            ({"name": "__cluster_metadata"}, "invalid_request", "is prohibited"),
            ({"num_partitions": 0}, "invalid_partitions", "non-positive"),
            ({"num_partitions": -2}, "invalid_partitions", "non-positive"),
            ({"replication_factor": 0}, "invalid_replication_factor", "larger than 0"),
            (
                {"replication_factor": 4},
                "invalid_replication_factor",
                "Unable to replicate the partition 4 time(s): The target replication factor of 4 "
                "cannot be reached because only 3 broker(s) are registered or some brokers "
                "have all their log directories cordoned.",
            ),
            ({"configs": [{"name": "retention.ms", "value": "x"}]}, "invalid_config", "whole"),
            ({"configs": [{"name": "retntion.ms", "value": "1"}]}, "invalid_config", "retention"),
            ({"configs": [{"name": "retention.ms", "value": None}]}, "invalid_config", "Null"),
            ({"assignments": [(0, [0])]}, "invalid_request", "replication factor was not set"),
        ],
    )
    def test_one_bad_topic_is_refused_with_the_reason_and_does_not_fail_the_rest(
        self, client: Client, world: World, wish: dict[str, Any], code: str, words: str
    ) -> None:
        client.create({"name": "old.name"})
        wish = dict(wish)
        if "assignments" in wish:
            wish["assignments"] = assigned(*wish["assignments"])
        bad, good = client.create({"name": "bad", **wish}, {"name": "good"})
        assert bad.error_code is ErrorCode[code]
        assert words in bad.error_message
        assert (bad.num_partitions, bad.replication_factor) == (-1, -1)
        assert good.error_code is ErrorCode.none
        assert set(world.image.topic_ids) == {"old.name", "good"}

    @pytest.mark.parametrize("version", range(2, 8))
    def test_a_name_as_long_as_a_string_may_be_does_not_fail_the_rest(
        self, client: Client, version: int
    ) -> None:
        results = client.create({"name": "x" * 32_767}, {"name": "good"}, version=version)
        assert codes(results) == [ErrorCode.invalid_topic_exception, ErrorCode.none]

    def test_names_that_collide_within_a_request_are_not_both_made(self, client: Client) -> None:
        assert codes(client.create({"name": "a.b"}, {"name": "a_b"})) == [
            ErrorCode.none,
            ErrorCode.invalid_topic_exception,
        ]

    @pytest.mark.parametrize(
        ("assignments", "words"),
        [
            ([(0, [])], "empty replica list"),
            ([(0, [0, 7])], "includes broker 7, but no such broker is registered"),
            ([(0, [1, 1])], "includes the broker 1 more than once"),
            ([(0, [0, 1]), (1, [0])], "not consistent with previous partitions"),
            ([(0, [0]), (0, [1])], "Found multiple manual partition assignments"),
            ([(0, [0]), (2, [1])], "consecutive 0-based integer sequence"),
            ([(0, [2])], "are fenced or in controlled shutdown"),
        ],
    )
    def test_a_bad_assignment_is_refused(
        self, client: Client, world: World, assignments: list[Any], words: str
    ) -> None:
        world.fence(2)
        wish = {"name": "t", "num_partitions": -1, "replication_factor": -1}
        (result,) = client.create({**wish, "assignments": assigned(*assignments)})
        assert result.error_code is ErrorCode.invalid_replica_assignment
        assert words in result.error_message

    def test_an_assignment_is_followed_and_fenced_brokers_start_out_of_sync(
        self, client: Client, world: World
    ) -> None:
        world.fence(2)
        wish = {"name": "t", "num_partitions": -1, "replication_factor": -1}
        (result,) = client.create({**wish, "assignments": assigned((1, [2, 0]), (0, [0, 1]))})
        assert result.error_code is ErrorCode.none
        topic = world.image.topic("t")
        assert topic is not None
        assert [(p.replicas, p.isr, p.leader) for p in topic.partitions.values()] == [
            ([0, 1], [0, 1], 0),
            ([2, 0], [0], 0),
        ]

    def test_validate_only_answers_and_makes_nothing(self, client: Client, world: World) -> None:
        offset = world.image.offset
        results = client.create({"name": "t"}, {"name": "a b"}, validate_only=True)
        assert codes(results) == [ErrorCode.none, ErrorCode.invalid_topic_exception]
        assert world.image.offset == offset

    @pytest.mark.parametrize(
        "counts", [[10_001], [2**31 - 1, 1], [4000, 4000, 4000], [10_000, -1]], ids=str
    )
    def test_a_request_for_more_than_ten_thousand_partitions_makes_none(
        self, client: Client, world: World, counts: list[int]
    ) -> None:
        wishes = [{"name": f"t{n}", "num_partitions": count} for n, count in enumerate(counts)]
        results = client.create(*wishes)
        assert {result.error_message for result in results} == {
            "Excessively large number of partitions per request."
        }
        assert codes(results) == [ErrorCode.policy_violation] * len(counts)
        assert not world.image.topics

    def test_a_topic_can_be_made_while_a_broker_is_away(self, client: Client, world: World) -> None:
        world.fence(2)
        (result,) = client.create({"name": "t", "replication_factor": 3})
        assert result.error_code is ErrorCode.none
        topic = world.image.topic("t")
        assert topic is not None
        assert sorted(topic.partitions[0].isr) == [0, 1]


def assigned(*pairs: tuple[int, list[int]]) -> list[dict[str, Any]]:
    return [{"partition_index": index, "broker_ids": brokers} for index, brokers in pairs]


class TestDeleteTopics:
    def test_topics_go_by_name_and_by_id(self, client: Client, world: World) -> None:
        client.create({"name": "a"}, {"name": "b"}, {"name": "c"})
        b = uuid.UUID(bytes=world.image.topic_ids["b"])
        results = client.delete({"name": "a"}, {"name": None, "topic_id": b})
        assert [(r.name, r.error_code) for r in results] == [
            ("a", ErrorCode.none),
            ("b", ErrorCode.none),
        ]
        assert results[1].topic_id == b
        assert list(world.image.topic_ids) == ["c"]

    @pytest.mark.parametrize("version", range(1, 6))
    def test_earlier_versions_name_them(self, client: Client, world: World, version: int) -> None:
        client.create({"name": "a"})
        response = client.ask(ApiKey.DELETE_TOPICS, version, topic_names=["a", "x"], timeout=1000)
        assert [(r.name, r.error_code) for r in response.responses] == [
            ("a", ErrorCode.none),
            ("x", ErrorCode.unknown_topic_or_partition),
        ]
        assert not world.image.topics

    def test_what_is_unknown_or_named_badly_is_refused_and_stays(
        self, client: Client, world: World
    ) -> None:
        client.create({"name": "a"}, {"name": "b"}, {"name": "c"})
        a, c = (uuid.UUID(bytes=world.image.topic_ids[name]) for name in "ac")
        nobody = uuid.UUID(int=7)
        results = client.delete(
            {"name": "x"},
            {"name": None, "topic_id": nobody},
            {"name": None},
            {"name": None},
            {"name": "a", "topic_id": a},
            {"name": "b"},
            {"name": "b"},
            {"name": None, "topic_id": c},
            {"name": "c"},
        )
        found = [(result.name, result.topic_id, result.error_code.name) for result in results]
        assert found == [
            ("x", None, "unknown_topic_or_partition"),
            (None, nobody, "unknown_topic_id"),
            (None, None, "invalid_request"),
            (None, None, "invalid_request"),
            ("a", a, "invalid_request"),
            ("b", None, "invalid_request"),
            ("c", c, "invalid_request"),
        ]
        assert all(result.error_message for result in results)
        assert set(world.image.topic_ids) == {"a", "b", "c"}

    @pytest.mark.parametrize(
        ("version", "code"),
        [(1, ErrorCode.invalid_request), (3, ErrorCode.topic_deletion_disabled)],
    )
    def test_deletion_can_be_switched_off(self, version: int, code: ErrorCode) -> None:
        world = World(settings={"delete.topic.enable": "false"})
        world.start(0)
        client = Client(world)
        client.create({"name": "a"})
        response = client.ask(ApiKey.DELETE_TOPICS, version, topic_names=["a"], timeout=1000)
        assert codes(response.responses) == [code]
        assert "a" in world.image.topic_ids

    def test_a_topic_made_again_is_another_topic(self, client: Client, world: World) -> None:
        (first,) = client.create({"name": "a"})
        client.delete({"name": "a"})
        (second,) = client.create({"name": "a"})
        assert first.topic_id != second.topic_id


class TestCreatePartitions:
    @pytest.mark.parametrize("version", range(4))
    def test_a_topic_grows_to_the_count(self, client: Client, world: World, version: int) -> None:
        client.create({"name": "t", "num_partitions": 2, "replication_factor": 2})
        (result,) = client.add({"name": "t", "count": 5}, version=version)
        assert (result.error_code, result.error_message) == (ErrorCode.none, None)
        topic = world.image.topic("t")
        assert topic is not None
        assert list(topic.partitions) == [0, 1, 2, 3, 4]
        assert all(len(partition.replicas) == 2 for partition in topic.partitions.values())

    @pytest.mark.parametrize(
        ("wish", "code", "words"),
        [
            ({"name": "x", "count": 5}, "unknown_topic_or_partition", None),
            ({"count": 2}, "invalid_partitions", "Topic already has 2 partition(s)."),
            (
                {"count": 1},
                "invalid_partitions",
                "The topic t currently has 2 partition(s); 1 would not be an increase.",
            ),
            ({"count": 2**31 - 1}, "policy_violation", "excessively large"),
            (
                {"count": 2**31 - 1, "assignments": [[0, 1]]},
                "invalid_replica_assignment",
                "but only 1 assignment(s) were specified.",
            ),
            (
                {"count": 4, "assignments": [[0, 1]]},
                "invalid_replica_assignment",
                "Attempted to add 2 additional partition(s), but only 1 assignment(s) were "
                "specified.",
            ),
            ({"count": 3, "assignments": [[0]]}, "invalid_replica_assignment", "consistent"),
            ({"count": 3, "assignments": [[0, 9]]}, "invalid_replica_assignment", "broker 9"),
        ],
    )
    def test_a_bad_wish_is_refused_and_does_not_fail_the_rest(
        self, client: Client, wish: dict[str, Any], code: str, words: str | None
    ) -> None:
        client.create({"name": "t", "num_partitions": 2, "replication_factor": 2})
        client.create({"name": "good"})
        if "assignments" in wish:
            lists = wish["assignments"]
            wish = {**wish, "assignments": [{"broker_ids": brokers} for brokers in lists]}
        bad, good = client.add({"name": "t", **wish}, {"name": "good", "count": 2})
        assert bad.error_code is ErrorCode[code]
        assert (words is None) if bad.error_message is None else (words in bad.error_message)
        assert good.error_code is ErrorCode.none

    def test_an_assignment_is_followed(self, client: Client, world: World) -> None:
        client.create({"name": "t", "replication_factor": 2})
        wish = {"name": "t", "count": 3, "assignments": [{"broker_ids": [2, 0]}] * 2}
        assert codes(client.add(wish)) == [ErrorCode.none]
        topic = world.image.topic("t")
        assert topic is not None
        assert [topic.partitions[index].replicas for index in (1, 2)] == [[2, 0], [2, 0]]

    def test_a_topic_named_twice_is_refused(self, client: Client) -> None:
        client.create({"name": "t"})
        (result,) = client.add({"name": "t", "count": 2}, {"name": "t", "count": 3})
        assert result.error_code is ErrorCode.invalid_request

    def test_validate_only_adds_nothing(self, client: Client, world: World) -> None:
        client.create({"name": "t"})
        offset = world.image.offset
        assert codes(client.add({"name": "t", "count": 2}, validate_only=True)) == [0]
        assert world.image.offset == offset


class TestIncrementalAlterConfigs:
    def test_values_are_set_and_go_back_to_their_defaults(
        self, client: Client, world: World
    ) -> None:
        client.create({"name": "t"})
        change = [("retention.ms", SET, "5000"), ("max.message.bytes", SET, "999")]
        assert codes(client.alter((TOPIC_RESOURCE, "t", change))) == [ErrorCode.none]
        assert world.image.configs[TOPIC_RESOURCE, "t"] == {
            "retention.ms": "5000",
            "max.message.bytes": "999",
        }
        change = [("retention.ms", DELETE, None), ("never.set", DELETE, None)]
        assert codes(client.alter((TOPIC_RESOURCE, "t", change))) == [ErrorCode.none]
        assert world.image.configs[TOPIC_RESOURCE, "t"] == {"max.message.bytes": "999"}

    def test_lists_grow_and_shrink_from_what_is_in_force(
        self, client: Client, world: World
    ) -> None:
        client.create({"name": "t"})
        client.alter((TOPIC_RESOURCE, "t", [("cleanup.policy", APPEND, "compact")]))
        configs = world.image.configs[TOPIC_RESOURCE, "t"]
        assert configs == {"cleanup.policy": "delete,compact"}
        client.alter((TOPIC_RESOURCE, "t", [("cleanup.policy", SUBTRACT, "delete")]))
        assert configs == {"cleanup.policy": "compact"}
        client.alter((TOPIC_RESOURCE, "t", [("cleanup.policy", SUBTRACT, "compact")]))
        assert configs == {"cleanup.policy": ""}

    def test_a_brokers_number_is_the_same_however_it_is_written(
        self, client: Client, world: World
    ) -> None:
        client.alter((BROKER_RESOURCE, "00", [("log.retention.ms", SET, "5000")]))
        assert world.image.configs == {(BROKER_RESOURCE, "0"): {"log.retention.ms": "5000"}}

    def test_setting_what_is_set_commits_nothing(self, client: Client, world: World) -> None:
        client.create({"name": "t"})
        change = (TOPIC_RESOURCE, "t", [("retention.ms", SET, "5000")])
        client.alter(change)
        offset = world.image.offset
        assert codes(client.alter(change)) == [ErrorCode.none]
        assert world.image.offset == offset

    @pytest.mark.parametrize(
        ("resource", "change", "code", "words"),
        [
            ((2, "x"), ("retention.ms", SET, "1"), "unknown_topic_or_partition", "'x' does not"),
            ((2, ""), ("retention.ms", SET, "1"), "invalid_request", "Default topic resources"),
            ((2, "a b"), ("retention.ms", SET, "1"), "invalid_topic_exception", "is invalid"),
            ((2, "t"), ("retention.mss", SET, "1"), "invalid_config", "retention.ms"),
            ((2, "t"), ("retention.ms", SET, "soon"), "invalid_config", "whole number"),
            ((2, "t"), ("retention.ms", APPEND, "1"), "invalid_config", "type is not LIST"),
            ((2, "t"), ("retention.ms", SET, None), "invalid_request", "Null value"),
            ((2, "t"), ("retention.ms", 9, "1"), "invalid_request", "operation"),
            ((2, "t"), ("replica.actor", SET, "dedicated"), "invalid_config", "created"),
            ((4, "x"), ("log.retention.ms", SET, "1"), "invalid_request", "must be an integer"),
            ((4, "9"), ("log.retention.ms", SET, "1"), "broker_id_not_registered", "9"),
            ((4, "9"), ("log.retention.mss", SET, "1"), "broker_id_not_registered", "9"),
            ((2, "x"), ("retention.mss", SET, "1"), "unknown_topic_or_partition", "'x' does not"),
            ((4, "9" * 5000), ("log.retention.ms", SET, "1"), "invalid_request", "an integer"),
            ((4, "0"), ("log.retention.mss", SET, "1"), "invalid_request", "log.retention.ms"),
            ((4, "0"), ("log.retention.ms", APPEND, "1"), "invalid_config", "type is not LIST"),
            ((4, "0"), ("log.retention.hours", SET, "1"), "invalid_request", "dynamically"),
            ((4, "0"), ("num.network.threads", SET, "1"), "invalid_request", "dynamically"),
            ((8, "0"), ("root", SET, "DEBUG"), "invalid_request", "Unknown resource type 8"),
            ((77, "0"), ("root", SET, "DEBUG"), "invalid_request", "Unknown resource type 77"),
        ],
    )
    def test_a_bad_change_is_refused_as_a_whole_and_does_not_fail_the_rest(
        self,
        client: Client,
        resource: tuple[int, str],
        change: tuple[str, int, str | None],
        code: str,
        words: str,
    ) -> None:
        client.create({"name": "t"}, {"name": "good"})
        bad, good = client.alter(
            (*resource, [change]), (TOPIC_RESOURCE, "good", [("retention.ms", SET, "7")])
        )
        assert bad.error_code is ErrorCode[code]
        assert words in bad.error_message
        assert good.error_code is ErrorCode.none
        assert client.world.image.configs == {(TOPIC_RESOURCE, "good"): {"retention.ms": "7"}}

    def test_resources_and_keys_that_stand_twice_are_refused(
        self, client: Client, world: World
    ) -> None:
        client.create({"name": "t"}, {"name": "u"})
        one = ("retention.ms", SET, "1")
        results = client.alter(
            (TOPIC_RESOURCE, "t", [one]),
            (TOPIC_RESOURCE, "t", [one]),
            (TOPIC_RESOURCE, "u", [one, one]),
        )
        assert set(codes(results)) == {ErrorCode.invalid_request}
        assert not world.image.configs

    def test_brokers_and_all_brokers_take_what_can_be_changed_while_they_run(
        self, client: Client, world: World
    ) -> None:
        results = client.alter(
            (BROKER_RESOURCE, "", [("log.retention.ms", SET, "9")]),
            (BROKER_RESOURCE, "1", [("log.segment.bytes", SET, "5000")]),
        )
        assert codes(results) == [ErrorCode.none] * 2
        assert world.image.configs == {
            (BROKER_RESOURCE, ""): {"log.retention.ms": "9"},
            (BROKER_RESOURCE, "1"): {"log.segment.bytes": "5000"},
        }

    def test_validate_only_changes_nothing(self, client: Client, world: World) -> None:
        client.create({"name": "t"})
        change = (TOPIC_RESOURCE, "t", [("retention.ms", SET, "1")])
        assert codes(client.alter(change, validate_only=True)) == [ErrorCode.none]
        assert not world.image.configs


class TestAlterConfigs:
    def test_what_is_left_out_goes_back_to_its_default(self, client: Client, world: World) -> None:
        client.create({"name": "t"})
        client.replace((TOPIC_RESOURCE, "t", {"retention.ms": "1", "segment.bytes": "5000"}))
        client.replace((TOPIC_RESOURCE, "t", {"retention.ms": "2"}))
        assert world.image.configs == {(TOPIC_RESOURCE, "t"): {"retention.ms": "2"}}

    def test_bad_values_are_refused_and_the_old_ones_stay(
        self, client: Client, world: World
    ) -> None:
        client.create({"name": "t"})
        client.replace((TOPIC_RESOURCE, "t", {"retention.ms": "1"}))
        results = client.replace(
            (TOPIC_RESOURCE, "t", {"retention.ms": "x"}),
            (TOPIC_RESOURCE, "u", {"retention.ms": None}),
            (TOPIC_RESOURCE, "v", {"retention.ms": "1"}),
        )
        assert codes(results) == [
            ErrorCode.invalid_config,
            ErrorCode.invalid_request,
            ErrorCode.unknown_topic_or_partition,
        ]
        assert world.image.configs == {(TOPIC_RESOURCE, "t"): {"retention.ms": "1"}}

    def test_how_a_topics_replicas_live_was_decided_when_it_was_made(self, client: Client) -> None:
        client.create({"name": "t", "configs": [{"name": "replica.actor", "value": "dedicated"}]})
        (result,) = client.replace((TOPIC_RESOURCE, "t", {}))
        assert result.error_code is ErrorCode.invalid_config
        kept = {"replica.actor": "dedicated", "retention.ms": "5"}
        assert codes(client.replace((TOPIC_RESOURCE, "t", kept))) == [ErrorCode.none]

    def test_validate_only_changes_nothing(self, client: Client, world: World) -> None:
        client.create({"name": "t"})
        change = (TOPIC_RESOURCE, "t", {"retention.ms": "1"})
        assert codes(client.replace(change, validate_only=True)) == [ErrorCode.none]
        assert not world.image.configs
