"""Records to write and to read: batches, and the requests of Produce and Fetch that carry them.

Every time in a batch is fixed, so that two clusters keep the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from mobula.protocol.api import ApiKey
from mobula.storage.batch import parse_header, reseal
from mobula.storage.records import NewRecord, build_batch
from tests.conformance.side import BASE_TIME_MS, FOREVER, Side, Topic
from tests.conformance.wire import Json, Tree

LED_BY_ONE = ((0, 1, 2), (0, 2, 1))
NOBODY = Topic("nobody", UUID(int=77))
"""Of this id no topic is."""
_READ_VERSION = 12
_LENGTH_AT, _MAGIC_AT, _ATTRIBUTES_AT, _COUNT_AT = 8, 16, 21, 57


def batch(*values: bytes | None, key: bytes | None = None, time: int = 0, **how: Any) -> bytes:
    """A record for each value, a ms apart from BASE_TIME_MS + `time` on; `how` as for
    `build_batch`."""
    first = BASE_TIME_MS + time
    records = [NewRecord(first + index, key, value, ()) for index, value in enumerate(values)]
    return bytes(build_batch(records, **how))


def changed(
    data: bytes,
    *,
    length: int | None = None,
    magic: int | None = None,
    attributes: int | None = None,
    count: int | None = None,
    records: bytes | None = None,
) -> bytes:
    """The batch with other fields than are right, and a CRC that is."""
    header = bytearray(data[:61])
    if length is not None:
        struct.pack_into(">i", header, _LENGTH_AT, length)
    if magic is not None:
        header[_MAGIC_AT] = magic
    if attributes is not None:
        struct.pack_into(">h", header, _ATTRIBUTES_AT, attributes)
    if count is not None:
        struct.pack_into(">i", header, _COUNT_AT, count)
    body = data[61:]
    if records is not None:
        body = records
        struct.pack_into(">i", header, _LENGTH_AT, 49 + len(records))
    found = header + body
    reseal(memoryview(found))
    return bytes(found)


def refusing(on: Side) -> Topic:
    """A topic to be written to only where that is refused."""
    return on.shared_topic("never-written", LED_BY_ONE, FOREVER)


def attributes_of(data: bytes) -> int:
    return parse_header(data).attributes


def written(topic: Topic, *parts: tuple[int, bytes | None]) -> Tree:
    """What a produce request says about a topic: (partition, records)."""
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "partition_data": [{"index": index, "records": records} for index, records in parts],
    }


def producing(
    *topics: Tree, acks: int = -1, timeout: int = 10_000, transactional_id: str | None = None
) -> Tree:
    return {
        "transactional_id": transactional_id,
        "acks": acks,
        "timeout": timeout,
        "topic_data": topics,
    }


def into(topic: Topic, records: bytes | None, partition: int = 0, **how: Any) -> Tree:
    return producing(written(topic, (partition, records)), **how)


def wanted(
    topic: Topic,
    *offsets: tuple[int, int],
    max_bytes: int = 1 << 20,
    **more: Any,
) -> Tree:
    """What a fetch says about a topic: (partition, offset)."""
    return {
        "topic": topic.name,
        "topic_id": topic.topic_id,
        "partitions": [
            {
                "partition": index,
                "fetch_offset": offset,
                "partition_max_bytes": max_bytes,
                **more,
            }
            for index, offset in offsets
        ],
    }


def fetching(
    *topics: Tree,
    max_wait: int = 0,
    min_bytes: int = 1,
    session: tuple[int, int] = (0, -1),
    forgotten: Sequence[Tree] = (),
    **more: Any,
) -> Tree:
    """`session`: id and epoch; by default there is none."""
    session_id, session_epoch = session
    return {
        "max_wait": max_wait,
        "min_bytes": min_bytes,
        "session_id": session_id,
        "session_epoch": session_epoch,
        "topics": topics,
        "forgotten_topics_data": forgotten,
        **more,
    }


def ask_all(on: Side, topic: Topic, *partitions: int) -> Json:
    """All that is in these partitions, which broker 0 leads."""
    parts = [(partition, 0) for partition in partitions or (0,)]
    return on.ask(0, ApiKey.FETCH, _READ_VERSION, fetching(wanted(topic, *parts)))


def given_producer_id(on: Side, broker: int = 0) -> int:
    """A fresh id. A broker that has none left, and is getting some, is asked again."""
    answer = on.wait_until(lambda: _given(on, broker), f"broker {broker} to have producer ids")
    producer_id: int = answer["producer_id"]
    return producer_id


def _given(on: Side, broker: int) -> Json:
    asked = {"transactional_id": None, "transaction_timeout": 60_000}
    answer = on.do(broker, ApiKey.INIT_PRODUCER_ID, 4, asked)
    return answer if answer["error_code"] == "none" else None
