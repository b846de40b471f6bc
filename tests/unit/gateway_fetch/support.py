"""A broker's logs and rows on disk, as its replica actor would leave them, and a gateway
that serves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from mobula.actors.gateway.handlers import fetch
from mobula.actors.gateway.request import Request
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.rows import Role, Row, RowsWriter
from mobula.actors.spec import purgatory_name, replica_name, rows_path
from mobula.protocol.api import ApiKey
from mobula.protocol.messages import build_request, decode_response, encode
from mobula.storage.batch import parse_header
from mobula.storage.config import LogConfig
from mobula.storage.log import Log, LogPosition
from tests.unit.gateway.fakes import (
    BROKER_ID,
    ORDERS,
    FakeLink,
    FakeRuntime,
    FakeSink,
    batch,
    cluster_image,
    request_of,
    services_of,
)

EPOCH = 3
LATEST_VERSION = 18


class Broker:
    """Partitions 0 and 1 of `orders`, led here in epoch 3."""

    def __init__(
        self,
        folder: Path,
        image: MetadataImage | None = None,
        *,
        log_config: LogConfig | None = None,
        **config: str,
    ) -> None:
        (folder / "data").mkdir()
        self.data_dir = folder / "data"
        self.runtime = FakeRuntime(run_dir=str(folder))
        self.runtime.spec = msgspec.structs.replace(self.runtime.spec, data_dir=str(self.data_dir))
        self.services = services_of(self.runtime, image or cluster_image(), **config)
        self.rows = RowsWriter(rows_path(str(folder), replica_name(BROKER_ID, 0)), 1)
        self._log_config = log_config or LogConfig()
        self._slots: dict[int, int] = {}
        self.logs: dict[int, Log] = {}
        for index in (0, 1):
            self.add(index)

    def add(self, index: int) -> None:
        self.logs[index] = Log.open(
            self.data_dir / f"orders-{index}",
            topic_id=ORDERS,
            config=self._log_config,
            now_ms=0,
            clean=True,
            recovery_point=0,
        )
        self._slots[index] = self.rows.allocate(self.row(index))

    def close(self) -> None:
        for log in self.logs.values():
            log.close(sync=False)
        self.rows.close()

    def row(self, index: int, **changes: Any) -> Row:
        """Everything in the log is committed, unless `high_watermark` says otherwise."""
        log = self.logs[index]
        end = log.log_end
        mark = log.position_of(changes.pop("high_watermark", end.offset))
        return Row(
            topic_id=ORDERS,
            partition=index,
            role=Role.LEADER,
            leader_epoch=EPOCH,
            generation=log.generation,
            log_start_offset=log.log_start_offset,
            low_watermark=log.log_start_offset,
            high_watermark=mark.offset,
            high_watermark_segment=mark.segment,
            high_watermark_position=mark.position,
            last_stable_offset=mark.offset,
            last_stable_segment=mark.segment,
            last_stable_position=mark.position,
            log_end_offset=end.offset,
            log_end_segment=end.segment,
            log_end_position=end.position,
            epoch_start_offset=0,
        )._replace(**changes)

    def publish(self, index: int, **changes: Any) -> None:
        self.rows.publish(self._slots[index], self.row(index, **changes))

    def release(self, index: int) -> None:
        self.rows.release(self._slots[index])

    def append(self, index: int, *, records: int = 1, size: int = 100) -> bytes:
        """One batch, committed; returns it as it stands in the log."""
        data = memoryview(bytearray(batch(records=records, size=size)))
        log = self.logs[index]
        log.stage(data, parse_header(data), leader_epoch=EPOCH, now_ms=0)
        log.flush_staged()
        self.publish(index)
        return bytes(data)

    def position(self, index: int, offset: int) -> LogPosition:
        return self.logs[index].position_of(offset)

    @property
    def purgatory(self) -> FakeLink:
        link = self.runtime.link(purgatory_name(BROKER_ID))
        assert isinstance(link, FakeLink)
        return link

    @property
    def replica(self) -> FakeLink:
        link = self.runtime.link(replica_name(BROKER_ID, 0))
        assert isinstance(link, FakeLink)
        return link

    def fetch(self, *parts: Part, version: int = LATEST_VERSION, **fields: Any) -> Fetch:
        return Fetch(self, version, list(parts), fields)

    def answer(self, *parts: Part, version: int = LATEST_VERSION, **fields: Any) -> Any:
        """The response of a fetch that must not wait."""
        return self.fetch(*parts, version=version, **fields).response


class Part(msgspec.Struct, frozen=True):
    """One partition of a fetch."""

    index: int
    offset: int
    topic: str = "orders"
    topic_id: bytes = ORDERS
    max_bytes: int = 1 << 20
    epoch: int = -1
    last_fetched_epoch: int = -1


class Fetch:
    """One fetch, sent to a gateway."""

    def __init__(
        self, broker: Broker, version: int, parts: list[Part], fields: dict[str, Any]
    ) -> None:
        topics: list[dict[str, Any]] = []
        for part in parts:
            if not topics or topics[-1]["topic"] != part.topic:
                topics.append({"topic": part.topic, "topic_id": part.topic_id, "partitions": []})
            topics[-1]["partitions"].append(
                {
                    "partition": part.index,
                    "current_leader_epoch": part.epoch,
                    "fetch_offset": part.offset,
                    "last_fetched_epoch": part.last_fetched_epoch,
                    "partition_max_bytes": part.max_bytes,
                }
            )
        forgotten = fields.pop("forgotten", ())
        replica_id = fields.pop("replica_id", -1)
        tree: dict[str, Any] = {
            "max_wait": 500,
            "min_bytes": 1,
            "max_bytes": 50 << 20,
            "topics": topics,
            "forgotten_topics_data": [
                {"topic": "orders", "topic_id": ORDERS, "partitions": list(forgotten)}
            ]
            if forgotten
            else [],
            "replica_id": replica_id,
            "replica_state": {"replica_id": replica_id},
            **fields,
        }
        self.version = version
        self.sink = FakeSink()
        body = encode(build_request(ApiKey.FETCH, version, tree))
        self.request: Request = request_of(ApiKey.FETCH, version, body, self.sink)
        fetch.handle(self.request, broker.services)

    @property
    def answered(self) -> bool:
        return bool(self.sink.sent)

    @property
    def response(self) -> Any:
        (body,) = self.sink.sent
        return decode_response(ApiKey.FETCH, self.version, body)

    @property
    def partitions(self) -> dict[int, Any]:
        """By index, of all topics."""
        return {
            part.partition_index: part
            for topic in self.response.responses
            for part in topic.partitions
        }
