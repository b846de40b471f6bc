"""Brokers: registered, fenced, unfenced, shut down."""

from __future__ import annotations

from mobula.actors.metadata.records import BrokerStateChanged
from mobula.protocol.errors import ErrorCode
from tests.unit.controller.fakes import CLUSTER_ID, SESSION_MS, World


def test_a_new_broker_is_registered_fenced_and_its_epoch_is_the_offset_of_its_record() -> None:
    world = World()
    answer = world.register(0)
    assert answer.error_code == ErrorCode.none
    assert answer.cluster_id == CLUSTER_ID
    assert answer.broker_epoch == world.image.offset
    assert world.image.brokers[0].fenced


def test_a_registration_asked_again_by_the_same_life_gets_the_same_epoch() -> None:
    world = World()
    first = world.register(0)
    records = len(world.log)
    assert world.register(0) == first
    assert len(world.log) == records


def test_a_broker_of_another_cluster_is_refused() -> None:
    world = World()
    answer = world.register(0, cluster_id="AAAAAAAAAAAAAAAAAAAAAA")
    assert answer.error_code == ErrorCode.inconsistent_cluster_id
    assert answer.detail is not None
    assert CLUSTER_ID in answer.detail
    assert world.register(0, cluster_id=CLUSTER_ID).error_code == ErrorCode.none


def test_a_second_broker_with_the_same_id_is_refused_while_the_first_one_lives() -> None:
    world = World()
    world.start(0)
    answer = world.register(0, incarnation="impostor", directory_id=b"2" * 16)
    assert answer.error_code == ErrorCode.duplicate_broker_registration
    assert answer.detail is not None
    assert "/data/broker-0" in answer.detail


def test_a_broker_that_is_still_recovering_is_alive_too() -> None:
    world = World()
    world.register(0)
    world.beat(0, want_fence=True)
    answer = world.register(0, incarnation="impostor", directory_id=b"2" * 16)
    assert answer.error_code == ErrorCode.duplicate_broker_registration


def test_an_id_is_free_again_when_its_broker_has_been_silent_for_a_session() -> None:
    world = World()
    world.start(0, 1)
    world.fence(0)
    answer = world.register(0, incarnation="new disk", directory_id=b"2" * 16)
    assert answer.error_code == ErrorCode.none


def test_a_folder_of_another_broker_is_refused() -> None:
    world = World()
    world.start(0)
    folder = world.image.brokers[0].directory_id
    answer = world.register(1, directory_id=folder)
    assert answer.error_code == ErrorCode.invalid_registration
    assert answer.detail is not None
    assert "broker 0" in answer.detail


def test_a_restarted_broker_actor_takes_over_at_once_and_its_replicas_lead_on() -> None:
    world = World()
    world.start(0, 1)
    topic = world.create("t", [0, 1])
    before = world.partition(topic)
    old_epoch = world.image.brokers[0].broker_epoch
    answer = world.register(0, incarnation="life-2", replicas_restarted=False)
    assert answer.broker_epoch > old_epoch
    assert not world.image.brokers[0].fenced
    assert not world.beat(0, want_fence=True).fenced
    assert world.partition(topic) == before
    stale = world.beat(0, broker_epoch=old_epoch)
    assert stale.error_code == ErrorCode.stale_broker_epoch


def test_a_broker_whose_replicas_restarted_loses_its_leaderships_in_the_same_commit() -> None:
    world = World()
    world.start(0, 1)
    topic, alone = world.create("t", [0, 1]), world.create("alone", [0])
    world.register(0, incarnation="life-2", replicas_restarted=True)
    assert world.image.brokers[0].fenced
    assert world.partition(topic).leader == 1
    assert world.partition(topic).isr == [1]
    assert world.partition(alone).leader == -1
    assert world.partition(alone).isr == [0]
    epoch = world.partition(alone).leader_epoch
    assert not world.beat(0).fenced
    assert world.partition(alone).leader == 0
    assert world.partition(alone).leader_epoch == epoch + 1


def test_when_the_whole_cluster_starts_everyone_leads_what_he_led_in_a_new_epoch() -> None:
    world = World()
    world.start(0, 1)
    first, second = world.create("a", [0, 1]), world.create("b", [1, 0])
    before = [world.partition(topic) for topic in (first, second)]
    world.restart_controller()
    for broker in (0, 1):
        world.register(broker, incarnation="life-2", replicas_restarted=True)
    for topic, old in zip((first, second), before, strict=True):
        now = world.partition(topic)
        assert (now.leader, now.isr) == (old.leader, old.isr)
        assert now.leader_epoch == old.leader_epoch + 1


def test_a_broker_is_unfenced_when_it_has_the_metadata_of_its_registration() -> None:
    world = World()
    epoch = world.register(0).broker_epoch
    assert world.beat(0, want_fence=True).fenced
    assert world.beat(0, metadata_offset=epoch - 1).fenced
    assert not world.beat(0, metadata_offset=epoch).fenced
    assert not world.image.brokers[0].fenced


def test_a_broker_that_was_fenced_must_know_of_it_before_it_is_unfenced() -> None:
    world = World()
    world.start(0, 1)
    known = world.image.offset
    world.fence(0)
    assert world.beat(0, metadata_offset=known).fenced
    assert not world.beat(0).fenced


def test_a_silent_broker_is_fenced_after_its_session_and_not_before() -> None:
    world = World()
    world.start(0, 1)
    world.pass_ms(SESSION_MS, alive=[1])
    assert not world.image.brokers[0].fenced
    world.pass_ms(500, alive=[1])
    assert world.image.brokers[0].fenced
    assert not world.image.brokers[1].fenced


def test_brokers_that_fall_silent_together_all_stay_in_the_isr() -> None:
    """Whoever is back first leads; one that lost its log's end can still be told apart."""
    world = World()
    world.start(0, 1, 2, 3)
    topic = world.create("t", [0, 1, 2])
    other = world.create("other", [1, 2, 3])
    world.pass_ms(SESSION_MS + 1000, alive=[3])
    assert [world.image.brokers[broker].fenced for broker in range(3)] == [True] * 3
    assert (world.partition(topic).leader, world.partition(topic).isr) == (-1, [0, 1, 2])
    assert (world.partition(other).leader, world.partition(other).isr) == (3, [3])

    world.register(2, incarnation="back")
    world.replica_actor(2, topic, online=False)
    world.replica_actor(2, topic, online=True)
    world.beat(2)
    assert (world.partition(topic).leader, world.partition(topic).isr) == (-1, [0, 1])
    world.register(1, incarnation="back")
    world.beat(1)
    assert (world.partition(topic).leader, world.partition(topic).isr) == (1, [0, 1])


def test_of_brokers_that_were_fenced_together_one_without_its_folder_leaves_the_isr() -> None:
    world = World()
    world.start(0, 1)
    topic = world.create("t", [0, 1])
    world.pass_ms(SESSION_MS + 1000)
    world.register(0, incarnation="new disk", directory_id=b"2" * 16)
    world.beat(0)
    assert (world.partition(topic).leader, world.partition(topic).isr) == (-1, [1])


def test_after_a_restart_of_the_controller_brokers_get_a_full_session() -> None:
    world = World()
    world.start(0, 1)
    world.pass_ms(SESSION_MS - 500, alive=[1])
    world.restart_controller()
    world.pass_ms(SESSION_MS, alive=[1])
    assert not world.image.brokers[0].fenced
    world.pass_ms(500, alive=[1])
    assert world.image.brokers[0].fenced


def test_after_a_restart_of_the_controller_a_fenced_broker_is_not_taken_for_alive() -> None:
    world = World()
    world.start(0, 1)
    world.fence(0)
    world.restart_controller()
    answer = world.register(0, incarnation="new disk", directory_id=b"2" * 16)
    assert answer.error_code == ErrorCode.none


def test_a_controller_that_stood_still_fences_nobody_for_the_time_it_missed() -> None:
    world = World()
    world.start(0)
    world.pass_ms(1000, alive=[0])
    world.now_ms += 60_000
    world.tick()
    assert not world.image.brokers[0].fenced
    world.pass_ms(SESSION_MS + 500)
    assert world.image.brokers[0].fenced


def test_a_shutdown_moves_leadership_to_live_members_of_the_isr_and_waits_for_them() -> None:
    world = World()
    world.start(0, 1, 2)
    topic = world.create("t", [0, 1, 2])
    known = world.image.offset
    assert not world.beat(0, want_shutdown=True).may_shut_down
    partition = world.partition(topic)
    assert partition.leader in (1, 2)
    assert partition.isr == [1, 2]
    assert world.image.brokers[0].in_controlled_shutdown
    world.beat(1, metadata_offset=known)
    assert not world.beat(0, want_shutdown=True).may_shut_down
    for other in (1, 2):
        world.core.metadata_pulled(other, world.image.offset)
    answer = world.beat(0, want_shutdown=True)
    assert answer.may_shut_down
    assert world.image.brokers[0].fenced


def test_a_broker_in_shutdown_leads_on_where_nobody_else_can_and_may_still_go() -> None:
    world = World()
    world.start(0, 1)
    topic, alone = world.create("t", [0, 1]), world.create("alone", [0])
    world.beat(0, want_shutdown=True)
    assert world.partition(topic).leader == 1
    assert world.partition(alone).leader == 0
    world.core.metadata_pulled(1, world.image.offset)
    assert world.beat(0, want_shutdown=True).may_shut_down
    assert world.partition(alone).leader == -1
    assert world.partition(alone).isr == [0]


def test_a_broker_that_leads_nothing_may_shut_down_at_the_first_word() -> None:
    world = World()
    world.start(0, 1)
    assert world.beat(1, want_shutdown=True).may_shut_down


def test_a_fenced_broker_may_shut_down_at_once() -> None:
    world = World()
    world.register(0)
    assert world.beat(0, want_shutdown=True, want_fence=True).may_shut_down


def test_a_whole_cluster_can_shut_down_and_the_last_one_keeps_what_is_in_sync() -> None:
    world = World()
    world.start(0, 1, 2)
    topic = world.create("t", [0, 1, 2])
    for broker_id in (0, 1, 2):
        for _ in range(3):
            for other in (0, 1, 2):
                world.core.metadata_pulled(other, world.image.offset)
            answer = world.beat(broker_id, want_shutdown=True)
        assert answer.may_shut_down
    assert world.partition(topic).isr == [2]
    assert world.partition(topic).leader == -1


def test_a_broker_comes_back_from_a_shutdown_with_its_next_life() -> None:
    world = World()
    world.start(0, 1)
    topic = world.create("t", [0, 1])
    for _ in range(2):
        world.core.metadata_pulled(1, world.image.offset)
        answer = world.beat(0, want_shutdown=True)
    assert answer.may_shut_down
    world.register(0, incarnation="life-2")
    assert not world.beat(0).fenced
    assert not world.image.brokers[0].in_controlled_shutdown
    assert world.alter(topic, [0, 1]) == ErrorCode.none


def test_fencing_says_so_before_the_partitions_change() -> None:
    world = World()
    world.start(0, 1)
    world.create("t", [0, 1])
    world.pass_ms(SESSION_MS, alive=[1])
    known = len(world.log)
    world.pass_ms(500, alive=[1])
    assert isinstance(world.log[known], BrokerStateChanged)


def test_a_heartbeat_of_a_broker_that_never_registered_is_stale() -> None:
    world = World()
    world.start(0)
    answer = world.beat(0, broker_id=7)
    assert answer.error_code == ErrorCode.stale_broker_epoch
