"""Leaders and ISRs: elections, alterations, replica actors that go and come."""

from __future__ import annotations

import pytest

from mobula.actors.controller.messages import AlterPartition, PartitionIsr, ReplicaActorState
from mobula.protocol.errors import ErrorCode
from tests.unit.controller.fakes import World


@pytest.fixture
def world() -> World:
    world = World()
    world.start(0, 1, 2)
    return world


def test_a_fenced_leader_is_followed_by_the_next_replica_in_the_isr(world: World) -> None:
    topic = world.create("t", [0, 1, 2])
    assert world.alter(topic, [0, 2]) == ErrorCode.none
    world.fence(0)
    partition = world.partition(topic)
    assert partition.leader == 2
    assert partition.leader_epoch == 1
    assert partition.isr == [2]


def test_a_fenced_follower_leaves_the_isr_and_the_leader_epoch_stays(world: World) -> None:
    topic = world.create("t", [0, 1, 2])
    world.fence(2)
    partition = world.partition(topic)
    assert (partition.leader, partition.leader_epoch) == (0, 0)
    assert partition.isr == [0, 1]
    assert partition.partition_epoch == 1


def test_the_last_member_stays_in_the_isr_and_leads_again_when_it_is_back(world: World) -> None:
    topic = world.create("t", [0, 1])
    world.fence(1)
    world.fence(0)
    assert world.partition(topic).leader == -1
    assert world.partition(topic).isr == [0]
    world.register(1, incarnation="life-2")
    world.beat(1)
    assert world.partition(topic).leader == -1, "1 was not in sync"
    epoch = world.partition(topic).leader_epoch
    world.beat(0)
    assert world.partition(topic).leader == 0
    assert world.partition(topic).leader_epoch == epoch + 1


def test_a_broker_that_lost_its_folder_does_not_lead_what_was_in_it(world: World) -> None:
    topic = world.create("t", [0])
    old_folder = world.image.brokers[0].directory_id
    world.fence(0)
    world.register(0, incarnation="new disk", directory_id=b"2" * 16)
    assert not world.beat(0).fenced
    assert world.partition(topic).leader == -1
    assert world.core.balance_leaders() == []
    world.fence(0)
    world.register(0, incarnation="old disk", directory_id=old_folder)
    world.beat(0)
    assert world.partition(topic).leader == 0
    assert world.partition(topic).awaits_directory == b""


def test_the_isr_changes_as_the_leader_asks_in_the_order_of_the_replicas(world: World) -> None:
    topic = world.create("t", [0, 1, 2])
    assert world.alter(topic, [0]) == ErrorCode.none
    assert world.alter(topic, [2, 0]) == ErrorCode.none
    partition = world.partition(topic)
    assert partition.isr == [0, 2]
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 2)


def test_asking_for_the_isr_there_is_changes_nothing(world: World) -> None:
    topic = world.create("t", [0, 1, 2])
    offset = world.image.offset
    assert world.alter(topic, [2, 1, 0]) == ErrorCode.none
    assert world.image.offset == offset


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"leader_epoch": 0}, ErrorCode.fenced_leader_epoch),
        ({"leader_epoch": 9}, ErrorCode.not_controller),
        ({"partition_epoch": 0}, ErrorCode.invalid_update_version),
        ({"partition_epoch": 9}, ErrorCode.not_controller),
        ({"broker_id": 2}, ErrorCode.invalid_request),
        ({"new_isr": [2]}, ErrorCode.invalid_request),
        ({"new_isr": []}, ErrorCode.invalid_request),
        ({"new_isr": [1, 1]}, ErrorCode.invalid_request),
        ({"new_isr": [1, 7]}, ErrorCode.invalid_request),
        ({"new_isr": [1, 2], "new_isr_epochs": [-1]}, ErrorCode.invalid_request),
        ({"new_isr": [1, 0]}, ErrorCode.ineligible_replica),
        ({"new_isr": [1, 2], "new_isr_epochs": [-1, 1]}, ErrorCode.ineligible_replica),
        ({"topic_id": bytes(16)}, ErrorCode.unknown_topic_id),
        ({"partition": 5}, ErrorCode.unknown_topic_or_partition),
    ],
)
def test_an_alteration_that_does_not_fit_is_refused(
    world: World, changes: dict[str, object], code: ErrorCode
) -> None:
    topic = world.create("t", [0, 1, 2])
    world.fence(0)
    before = world.partition(topic)
    assert before.leader == 1
    new_isr = changes.pop("new_isr", [1])
    assert isinstance(new_isr, list)
    assert world.alter(topic, new_isr, **changes) == code
    assert world.partition(topic) == before


def test_a_refused_leader_is_told_how_things_are(world: World) -> None:
    topic = world.create("t", [0, 1, 2])
    epoch = world.image.brokers[0].broker_epoch
    world.fence(0)
    part = PartitionIsr(topic, 0, 0, 0, [0])
    (answer,) = world.run(world.core.alter_partition(AlterPartition(0, epoch, [part]))).parts
    assert answer.error_code == ErrorCode.fenced_leader_epoch
    assert (answer.leader, answer.leader_epoch, answer.isr) == (1, 1, [1, 2])


def test_an_alteration_of_an_earlier_life_of_the_broker_is_stale(world: World) -> None:
    topic = world.create("t", [0, 1, 2])
    old = world.image.brokers[0].broker_epoch
    world.register(0, incarnation="life-2", replicas_restarted=False)
    outcome = world.core.alter_partition(
        AlterPartition(0, old, [PartitionIsr(topic, 0, 0, 0, [0])])
    )
    assert outcome.response.error_code == ErrorCode.stale_broker_epoch
    assert outcome.records == []


def test_a_follower_that_registered_anew_since_its_last_pull_may_not_join(world: World) -> None:
    topic = world.create("t", [0, 1, 2])
    world.alter(topic, [0, 1])
    seen = [-1, world.image.brokers[1].broker_epoch, world.image.brokers[2].broker_epoch]
    world.register(2, incarnation="life-2")
    world.beat(2)
    code = world.alter(topic, [0, 1, 2], new_isr_epochs=seen)
    assert code == ErrorCode.ineligible_replica
    seen[2] = world.image.brokers[2].broker_epoch
    assert world.alter(topic, [0, 1, 2], new_isr_epochs=seen) == ErrorCode.none


def test_a_broker_in_shutdown_may_not_join(world: World) -> None:
    topic = world.create("t", [0, 1, 2])
    world.beat(2, want_shutdown=True)
    assert world.image.brokers[2].in_controlled_shutdown
    assert world.alter(topic, [0, 1, 2]) == ErrorCode.ineligible_replica


def test_one_bad_partition_does_not_fail_the_others(world: World) -> None:
    topic = world.create("t", [0, 1], [0, 1])
    epoch = world.image.brokers[0].broker_epoch
    parts = [PartitionIsr(topic, 0, 5, 0, [0]), PartitionIsr(topic, 1, 0, 0, [0])]
    answer = world.run(world.core.alter_partition(AlterPartition(0, epoch, parts)))
    assert [part.error_code for part in answer.parts] == [
        ErrorCode.not_controller,
        ErrorCode.none,
    ]
    assert world.partition(topic, 1).isr == [0]


def test_two_alterations_of_one_partition_in_a_request_do_not_both_pass(world: World) -> None:
    topic = world.create("t", [0, 1])
    epoch = world.image.brokers[0].broker_epoch
    part = PartitionIsr(topic, 0, 0, 0, [0])
    answer = world.run(world.core.alter_partition(AlterPartition(0, epoch, [part, part])))
    assert [part.error_code for part in answer.parts] == [
        ErrorCode.none,
        ErrorCode.invalid_update_version,
    ]


def test_a_lost_replica_actor_gives_up_leadership_at_once(world: World) -> None:
    topic = world.create("t", [0, 1])
    answer = world.replica_actor(0, topic, online=False)
    assert answer.error_code == ErrorCode.none
    assert answer.metadata_offset == world.image.offset
    assert world.partition(topic).leader == 1
    assert world.partition(topic).isr == [1]
    assert world.alter(topic, [0, 1]) == ErrorCode.ineligible_replica
    world.replica_actor(0, topic, online=True)
    assert world.partition(topic).leader == 1
    assert world.alter(topic, [0, 1]) == ErrorCode.none


def test_a_lost_replica_actor_that_was_alone_in_sync_leads_again_in_a_new_epoch(
    world: World,
) -> None:
    topic = world.create("t", [0])
    world.replica_actor(0, topic, online=False)
    assert world.partition(topic).leader == -1
    world.register(1, incarnation="life-2")
    world.beat(1)
    assert world.core.balance_leaders() == [], "its replica actor is still away"
    world.replica_actor(0, topic, online=True)
    assert world.partition(topic).leader == 0
    assert world.partition(topic).leader_epoch == 2


def test_a_leader_whose_actor_came_back_unseen_begins_a_new_epoch(world: World) -> None:
    topic = world.create("t", [0, 1])
    world.replica_actor(0, topic, online=True)
    partition = world.partition(topic)
    assert (partition.leader, partition.leader_epoch) == (0, 1)


def test_what_a_stale_life_says_of_its_replica_actors_is_refused(world: World) -> None:
    topic = world.create("t", [0, 1])
    state = ReplicaActorState(0, 0, False, [(topic, 0)])
    outcome = world.core.replica_actor_state(state)
    assert outcome.response.error_code == ErrorCode.stale_broker_epoch
    assert outcome.records == []


def test_partitions_that_are_gone_or_not_its_own_are_no_matter(world: World) -> None:
    topic = world.create("t", [1, 2])
    epoch = world.image.brokers[0].broker_epoch
    state = ReplicaActorState(0, epoch, False, [(topic, 0), (topic, 9), (bytes(16), 0)])
    answer = world.run(world.core.replica_actor_state(state))
    assert answer.error_code == ErrorCode.none
    assert world.partition(topic).isr == [1, 2]


def test_leadership_goes_back_to_the_preferred_replica_once_it_is_in_sync(world: World) -> None:
    topic = world.create("t", [0, 1])
    world.fence(0)
    world.register(0, incarnation="life-2")
    world.beat(0)
    assert world.core.balance_leaders() == []
    assert world.alter(topic, [0, 1]) == ErrorCode.none
    world.commit(world.core.balance_leaders())
    partition = world.partition(topic)
    assert (partition.leader, partition.leader_epoch) == (0, 2)
    assert world.core.balance_leaders() == []


def test_balancing_takes_no_more_than_a_thousand_partitions_at_a_time(world: World) -> None:
    world.create("t", *([0, 1] for _ in range(1500)))
    world.fence(0)
    world.register(0, incarnation="life-2")
    world.beat(0)
    topic = world.image.topic_ids["t"]
    epoch = world.image.brokers[1].broker_epoch
    parts = [PartitionIsr(topic, index, 1, 1, [0, 1]) for index in range(1500)]
    world.run(world.core.alter_partition(AlterPartition(1, epoch, parts)))
    for expected in (1000, 500, 0):
        records = world.core.balance_leaders()
        assert len(records) == expected
        world.commit(records)


def test_counts_are_what_status_shows(world: World) -> None:
    world.create("t", [0, 1], [1, 2])
    world.create("alone", [0])
    world.fence(0)
    counts = world.core.counts()
    assert counts["topics"] == 2
    assert counts["partitions"] == 3
    assert counts["under_replicated"] == 1
    assert counts["offline"] == 1
    assert (counts["brokers"], counts["fenced_brokers"]) == (3, 1)
