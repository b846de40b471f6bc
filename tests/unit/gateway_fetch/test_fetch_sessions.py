"""Incremental fetches, as a client with a session sends them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mobula.actors.metadata.records import TopicCreated, TopicRemoved
from mobula.actors.purgatory.messages import FetchDone
from mobula.actors.rows import Role
from mobula.protocol.errors import ErrorCode
from tests.unit.gateway.fakes import EVENTS, ORDERS, cluster_image, partition
from tests.unit.gateway_fetch.support import Broker, Fetch, Part


class Session:
    """A client's end of a session."""

    def __init__(self, broker: Broker, *parts: Part, version: int = 18) -> None:
        self.broker = broker
        self.version = version
        self.id = 0
        self.epoch = 0
        self.first = self.fetch(*parts, max_wait=0)
        self.id = self.first.response.session_id

    def fetch(self, *parts: Part, **fields: Any) -> Fetch:
        fetch = self.broker.fetch(
            *parts,
            version=self.version,
            session_id=self.id,
            session_epoch=self.epoch,
            **fields,
        )
        self.epoch += 1
        return fetch

    def poll(self, *parts: Part, **fields: Any) -> Fetch:
        return self.fetch(*parts, max_wait=0, **fields)


@pytest.fixture(params=[7, 12, 13, 18])
def session(request: pytest.FixtureRequest, broker: Broker) -> Session:
    broker.append(0)
    return Session(broker, Part(0, 0), Part(1, 0), version=request.param)


def test_a_full_fetch_opens_a_session_and_answers_every_partition(session: Session) -> None:
    assert session.id > 0
    assert sorted(session.first.partitions) == [0, 1]


def test_an_incremental_answer_leaves_out_what_did_not_change(session: Session) -> None:
    fetch = session.poll(Part(0, 1))
    assert fetch.response.session_id == session.id
    assert fetch.response.responses == ()


def test_partitions_that_are_not_named_again_are_still_served(session: Session) -> None:
    session.poll(Part(0, 1))
    data = session.broker.append(1)
    fetch = session.poll()
    assert list(fetch.partitions) == [1]
    assert bytes(fetch.partitions[1].records) == data


def test_a_moved_high_watermark_or_log_start_is_told_once(session: Session) -> None:
    broker = session.broker
    for _ in range(3):
        broker.append(0)
    session.poll(Part(0, 4))
    broker.logs[0].advance_log_start(2)
    broker.publish(0)
    assert session.poll().partitions[0].log_start_offset == 2
    assert session.poll().partitions == {}
    broker.append(0)
    broker.publish(0, high_watermark=4)
    assert session.poll().partitions == {}
    broker.publish(0, high_watermark=5)
    fetch = session.poll(Part(0, 5))
    assert fetch.partitions[0].high_watermark == 5
    assert bytes(fetch.partitions[0].records) == b""


def test_a_partition_with_an_error_is_always_told_and_told_again_when_it_is_gone(
    session: Session,
) -> None:
    broker = session.broker
    session.poll(Part(0, 1))
    broker.publish(0, role=Role.FOLLOWER)
    for _ in range(2):
        assert session.poll().partitions[0].error_code is ErrorCode.not_leader_or_follower
    broker.publish(0)
    assert session.poll().partitions[0].error_code is ErrorCode.none
    assert session.poll().partitions == {}


def test_forgotten_partitions_are_served_no_more(session: Session) -> None:
    session.poll(Part(0, 1), forgotten=[1])
    session.broker.append(1)
    assert session.poll().partitions == {}


def test_a_session_that_forgot_everything_is_closed(session: Session) -> None:
    fetch = session.poll(forgotten=[0, 1])
    assert fetch.response.session_id == 0
    assert fetch.response.error_code is ErrorCode.none
    assert session.poll().response.error_code is ErrorCode.fetch_session_id_not_found


def test_what_the_request_that_closes_a_session_names_is_still_served(session: Session) -> None:
    fetch = session.poll(Part(0, 0), forgotten=[0, 1])
    assert fetch.response.session_id == 0
    assert fetch.partitions[0].error_code is ErrorCode.none
    assert session.poll().response.error_code is ErrorCode.fetch_session_id_not_found


def test_a_partition_can_be_added(session: Session) -> None:
    fetch = session.poll(Part(7, 0))
    assert fetch.partitions[7].error_code is ErrorCode.unknown_topic_or_partition


def test_an_unknown_session_is_not_found(broker: Broker) -> None:
    response = broker.answer(Part(0, 0), session_id=99, session_epoch=1)
    assert response.error_code is ErrorCode.fetch_session_id_not_found
    assert response.session_id == 0
    assert response.responses == ()


def test_a_wrong_epoch_is_refused_and_changes_nothing(session: Session) -> None:
    right = session.epoch
    for wrong in (right - 1, right + 1):
        if wrong > 0:
            session.epoch = wrong
            response = session.poll(Part(0, 77)).response
            assert response.error_code is ErrorCode.invalid_fetch_session_epoch
    session.epoch = right
    assert session.poll(Part(0, 1)).response.error_code is ErrorCode.none


@pytest.mark.parametrize(("opened", "used"), [(12, 13), (13, 12)])
def test_switching_between_names_and_ids_is_refused(broker: Broker, opened: int, used: int) -> None:
    session = Session(broker, Part(0, 0), version=opened)
    session.version = used
    response = session.poll(Part(0, 0)).response
    assert response.error_code is ErrorCode.fetch_session_topic_id_error


def test_a_final_epoch_closes_the_session_and_opens_none(session: Session) -> None:
    session.epoch = -1
    fetch = session.poll(Part(0, 0))
    assert fetch.response.session_id == 0
    assert len(fetch.partitions[0].records) > 0
    assert len(session.broker.services.fetch_sessions) == 0


def test_a_full_fetch_that_names_a_session_replaces_it(session: Session) -> None:
    session.epoch = 0
    fetch = session.poll(Part(0, 0))
    assert fetch.response.session_id not in (0, session.id)
    assert len(session.broker.services.fetch_sessions) == 1


def test_without_room_a_full_fetch_is_answered_without_a_session(tmp_path: Path) -> None:
    broker = Broker(tmp_path, max_incremental_fetch_session_cache_slots="0")
    data = broker.append(0)
    fetch = broker.fetch(Part(0, 0), session_epoch=0)
    assert fetch.response.session_id == 0
    assert bytes(fetch.partitions[0].records) == data
    broker.close()


def test_slots_are_shared_out_over_the_gateways(tmp_path: Path) -> None:
    broker = Broker(
        tmp_path, max_incremental_fetch_session_cache_slots="3", num_network_threads="2"
    )
    opened = [broker.answer(Part(0, 0), session_epoch=0, max_wait=0) for _ in range(3)]
    assert [answer.session_id > 0 for answer in opened] == [True, True, False]
    broker.close()


def test_whoever_got_records_waits_behind_the_others(broker: Broker) -> None:
    for _ in range(3):
        broker.append(0, size=900)
        broker.append(1, size=900)
    session = Session(broker, Part(0, 0), Part(1, 0))
    served = []
    for round_ in range(4):
        fetch = session.poll(Part(round_ % 2, 1 + round_ // 2), max_bytes=1000)
        served += [index for index, part in fetch.partitions.items() if len(part.records)]
    assert set(served[:2]) == {0, 1}, "one partition does not starve the other"
    assert served[2:] == served[:2]


def test_a_parked_incremental_fetch_waits_for_all_partitions_of_the_session(
    session: Session,
) -> None:
    fetch = session.fetch(Part(0, 1))
    assert not fetch.answered
    call = session.broker.purgatory.last
    assert [part.partition for part in call.message.parts] == [0, 1]
    data = session.broker.append(1)
    call.reply(FetchDone(False))
    assert list(fetch.partitions) == [1]
    assert bytes(fetch.partitions[1].records) == data


def test_a_fetch_overtaken_by_another_of_its_session_says_so(session: Session) -> None:
    parked = session.fetch(Part(0, 1))
    waiting = session.broker.purgatory.last
    session.poll()
    waiting.reply(FetchDone(True))
    assert parked.response.error_code is ErrorCode.invalid_fetch_session_epoch


def test_a_topic_made_known_later_is_served_in_the_same_session(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    session = Session(broker, Part(0, 0), Part(0, 0, topic="events", topic_id=EVENTS))
    assert session.first.response.responses[1].partitions[0].error_code is (
        ErrorCode.unknown_topic_id
    )
    broker.services.image.replay_all([TopicCreated(EVENTS, "events"), partition(EVENTS, 0)])
    again = session.poll().response.responses
    assert [t.partitions[0].error_code for t in again] == [ErrorCode.not_leader_or_follower]
    broker.close()


def test_a_topic_made_anew_under_its_name_is_another_topic(broker: Broker) -> None:
    session = Session(broker, Part(0, 0))
    image = broker.services.image
    image.replay(TopicRemoved(ORDERS))
    assert session.poll().partitions[0].error_code is ErrorCode.unknown_topic_or_partition
    image.replay_all([TopicCreated(EVENTS, "orders"), partition(EVENTS, 0)])
    assert session.poll().partitions[0].error_code is ErrorCode.inconsistent_topic_id


def test_a_new_image_is_looked_at_anew(session: Session) -> None:
    session.poll(Part(0, 1))
    session.broker.services.image = cluster_image(partition(ORDERS, 0, leader=2, epoch=9))
    assert session.poll().partitions[0].error_code is ErrorCode.not_leader_or_follower
