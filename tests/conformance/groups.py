"""Groups for scenarios: where their coordinators are, and members that have joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mobula.actors.coordinator.partitioner import GROUP_TOPIC, partition_for
from mobula.protocol.api import ApiKey
from tests.conformance.side import THREE_PARTITIONS, Side
from tests.conformance.wire import Json, Tree

SUBSCRIPTION = bytes.fromhex("0000 00000001 0001 74 ffffffff")
"""To the topic t, as a consumer writes it."""
ASSIGNMENT = bytes.fromhex("0000 00000001 0001 74 00000001 00000000 ffffffff")
SESSION_MS = 30_000
_JOIN_VERSION, _SYNC_VERSION, _FIND_VERSION, _CREATE_VERSION = 5, 3, 3, 7
_COMMIT_VERSION = 7


def coordinator(on: Side, group: str) -> int:
    """The broker that coordinates it. Partition i of the groups' topic is led by broker i."""
    _create_topic(on)
    on.wait_until(lambda: _found(on, group), f"a coordinator of {group}")
    broker = partition_for(group, len(THREE_PARTITIONS))
    on.wait_until(lambda: _loaded(on, broker, group), f"broker {broker} to coordinate {group}")
    return broker


def _create_topic(on: Side) -> None:
    on.do(
        0,
        ApiKey.CREATE_TOPICS,
        _CREATE_VERSION,
        {
            "timeout": 10_000,
            "topics": [
                {
                    "name": GROUP_TOPIC,
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "assignments": [
                        {"partition_index": index, "broker_ids": list(brokers)}
                        for index, brokers in enumerate(THREE_PARTITIONS)
                    ],
                    "configs": [{"name": "cleanup.policy", "value": "compact"}],
                }
            ],
        },
    )


def _found(on: Side, group: str) -> bool:
    asked = {"key": group, "key_type": 0}
    answers = [on.do(broker, ApiKey.FIND_COORDINATOR, _FIND_VERSION, asked) for broker in range(3)]
    return all(answer["error_code"] == "none" for answer in answers)


def _loaded(on: Side, broker: int, group: str) -> bool:
    asked = {"group_id": group, "topics": [], "require_stable": False}
    return bool(on.do(broker, ApiKey.OFFSET_FETCH, 7, asked)["error_code"] == "none")


def joining(group: str, member_id: str = "", **changes: Any) -> Tree:
    return {
        "group_id": group,
        "session_timeout": SESSION_MS,
        "rebalance_timeout": 60_000,
        "member_id": member_id,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
        **changes,
    }


def syncing(group: str, member_id: str, generation: int = 1, **changes: Any) -> Tree:
    return {
        "group_id": group,
        "generation_id": generation,
        "member_id": member_id,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": member_id, "assignment": ASSIGNMENT}],
        **changes,
    }


@dataclass(frozen=True, slots=True)
class Group:
    """With one member, which leads it."""

    name: str
    broker: int
    member_id: str
    generation: int = 1


def joined(on: Side, suffix: str = "g", instance: str | None = None) -> Group:
    """A group whose one member has joined, and not yet synced."""
    name = on.name(suffix)
    broker = coordinator(on, name)
    asked = joining(name, group_instance_id=instance)
    answer = on.do(broker, ApiKey.JOIN_GROUP, _JOIN_VERSION, asked)
    if answer["error_code"] == "member_id_required":
        asked = joining(name, answer["member_id"])
        answer = on.do(broker, ApiKey.JOIN_GROUP, _JOIN_VERSION, asked)
    assert answer["error_code"] == "none", answer
    return Group(name, broker, answer["member_id"])


def stable(on: Side, suffix: str = "g", instance: str | None = None) -> Group:
    group = joined(on, suffix, instance)
    asked = syncing(group.name, group.member_id, group_instance_id=instance)
    answer = on.do(group.broker, ApiKey.SYNC_GROUP, _SYNC_VERSION, asked)
    assert answer["error_code"] == "none", answer
    return group


def empty(on: Side, suffix: str = "g") -> Group:
    """A group whose one member has left."""
    group = stable(on, suffix)
    members = [{"member_id": group.member_id, "group_instance_id": None}]
    on.do(group.broker, ApiKey.LEAVE_GROUP, 4, {"group_id": group.name, "members": members})
    return group


def committing(group: str, *topics: Tree, **changes: Any) -> Tree:
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": topics,
        **changes,
    }


def offsets(topic: Any, *parts: tuple[int, int], metadata: str | None = "text") -> Tree:
    """(partition, offset) of each."""
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "partitions": [
            {
                "partition_index": index,
                "committed_offset": offset,
                "committed_leader_epoch": 0,
                "committed_metadata": metadata,
            }
            for index, offset in parts
        ],
    }


def commit(on: Side, group: str, *topics: Tree) -> None:
    """By nobody: of a group without members."""
    broker = coordinator(on, group)
    answer: Json = on.do(broker, ApiKey.OFFSET_COMMIT, _COMMIT_VERSION, committing(group, *topics))
    codes = {part["error_code"] for topic in answer["topics"] for part in topic["partitions"]}
    assert codes == {"none"}, answer
