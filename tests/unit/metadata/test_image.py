"""The image: what replaying records gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mobula.actors.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from mobula.actors.metadata.records import (
    BrokerRegistered,
    BrokerStateChanged,
    BrokerUnregistered,
    ClusterCreated,
    ConfigChanged,
    Endpoint,
    FeatureChanged,
    PartitionChanged,
    ProducerIdsAllocated,
    Record,
    TopicCreated,
    TopicRemoved,
    decode_record,
    encode_record,
)

TOPIC_IDS = [bytes([n]) * 16 for n in range(1, 5)]
NAMES = ["a", "b", "c", "d"]

brokers = st.integers(0, 3)
topics = st.integers(0, 3)
epochs = st.integers(0, 5)

registered = st.builds(
    BrokerRegistered,
    broker_id=brokers,
    broker_epoch=epochs,
    incarnation=st.sampled_from(["x", "y"]),
    endpoints=st.lists(st.builds(Endpoint, st.just("PLAINTEXT"), st.text(), st.integers(0, 9))),
    rack=st.none() | st.text(),
    ray_node_id=st.text(),
    data_dir=st.text(),
    directory_id=st.binary(min_size=16, max_size=16),
    num_replica_actors=st.integers(1, 4),
    fenced=st.booleans(),
    in_controlled_shutdown=st.booleans(),
)
created = topics.map(lambda n: TopicCreated(TOPIC_IDS[n], NAMES[n]))
records: st.SearchStrategy[Record] = st.one_of(
    registered,
    st.builds(BrokerStateChanged, brokers, epochs, st.booleans(), st.booleans()),
    st.builds(BrokerUnregistered, brokers),
    created,
    topics.map(lambda n: TopicRemoved(TOPIC_IDS[n])),
    st.builds(
        ConfigChanged,
        st.sampled_from([TOPIC_RESOURCE, BROKER_RESOURCE]),
        st.sampled_from(NAMES),
        st.sampled_from(["k1", "k2"]),
        st.none() | st.text(),
    ),
    st.builds(ProducerIdsAllocated, st.integers(0, 2**62)),
    st.builds(FeatureChanged, st.sampled_from(["f", "g"]), st.integers(0, 3)),
    st.builds(
        PartitionChanged,
        topics.map(lambda n: TOPIC_IDS[n]),
        st.integers(0, 2),
        st.lists(brokers, min_size=1),
        st.lists(brokers, min_size=1),
        st.integers(-1, 3),
        epochs,
        epochs,
        st.binary(max_size=16),
    ),
)


def replayed(history: list[Record]) -> MetadataImage:
    """A partition's records come only while its topic is there, as in a real log."""
    image = MetadataImage()
    image.replay(ClusterCreated("cluster"))
    for record in history:
        if not isinstance(record, PartitionChanged) or record.topic_id in image.topics:
            image.replay(record)
    return image


@given(st.lists(records, max_size=60))
def test_replaying_a_snapshot_gives_the_same_image(history: list[Record]) -> None:
    image = replayed(history)
    copy = MetadataImage()
    copy.replay_all(decode_record(encode_record(record)) for record in image.snapshot())
    copy.offset = image.offset
    assert copy == image


@given(st.lists(records, max_size=40), st.data())
def test_replaying_the_last_record_twice_changes_nothing(
    history: list[Record], data: st.DataObject
) -> None:
    once, twice = replayed(history), replayed(history)
    last = data.draw(records)
    if isinstance(last, PartitionChanged) and last.topic_id not in once.topics:
        return
    once.replay(last)
    twice.replay_all([last, last])
    twice.offset = once.offset
    assert once == twice


def test_each_record_moves_the_offset_by_one() -> None:
    image = MetadataImage()
    assert image.offset == -1
    image.replay_all([ClusterCreated("c"), TopicCreated(TOPIC_IDS[0], "a")])
    assert image.offset == 1


def test_a_removed_topic_takes_its_partitions_and_its_configs_with_it() -> None:
    image = MetadataImage()
    image.replay_all(
        [
            TopicCreated(TOPIC_IDS[0], "a"),
            ConfigChanged(TOPIC_RESOURCE, "a", "retention.ms", "1"),
            PartitionChanged(TOPIC_IDS[0], 0, [1], [1], 1, 0, 0),
            TopicRemoved(TOPIC_IDS[0]),
        ]
    )
    assert image.topic("a") is None
    assert image.partition(TOPIC_IDS[0], 0) is None
    assert image.configs == {}
    assert list(image.partitions()) == []


def test_a_topic_created_again_has_a_new_id_and_nothing_of_the_old_one() -> None:
    image = MetadataImage()
    image.replay_all(
        [
            TopicCreated(TOPIC_IDS[0], "a"),
            PartitionChanged(TOPIC_IDS[0], 0, [1], [1], 1, 0, 0),
            TopicRemoved(TOPIC_IDS[0]),
            TopicCreated(TOPIC_IDS[1], "a"),
        ]
    )
    topic = image.topic("a")
    assert topic is not None
    assert topic.topic_id == TOPIC_IDS[1]
    assert topic.partitions == {}


def test_a_state_of_an_earlier_life_of_a_broker_is_ignored() -> None:
    image = MetadataImage()
    broker = BrokerRegistered(1, 7, "x", [], None, "n", "/d", bytes(16), 1, True, False)
    image.replay_all([broker, BrokerStateChanged(1, 6, False, False)])
    assert image.brokers[1].fenced
    assert list(image.live_brokers()) == []
    image.replay(BrokerStateChanged(1, 7, False, False))
    assert [live.broker_id for live in image.live_brokers()] == [1]


def test_a_config_set_back_to_its_default_leaves_nothing_behind() -> None:
    image = MetadataImage()
    image.replay_all(
        [
            ConfigChanged(TOPIC_RESOURCE, "a", "retention.ms", "1"),
            ConfigChanged(TOPIC_RESOURCE, "a", "retention.ms", None),
            ConfigChanged(TOPIC_RESOURCE, "b", "retention.ms", None),
        ]
    )
    assert image.configs == {}


def test_a_record_of_a_partition_written_before_it_could_await_a_folder_is_still_read() -> None:
    old = encode_record(PartitionChanged(TOPIC_IDS[0], 0, [1], [1], 1, 0, 0))
    # The last field, an empty byte string, did not exist: an array of one element less.
    assert old[0] & 0xF0 == 0x90
    shorter = bytes([old[0] - 1]) + old[1:-2]
    assert decode_record(shorter) == decode_record(old)
