"""Reading partitions for clients: by their rows, from their files, without asking anyone.

A gateway shares a disk and its page cache with the replica actors of its broker. A row
says how far a partition may be read and where that lies; the bytes are read from the
segment as they are.

Invariant: nothing at or above the end that the row gives for the reader's isolation is
returned; what was found in files is forgotten when the row's generation changes.
"""

from __future__ import annotations

import logging
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING

from mobula.actors.gateway.fetch_session import PartitionAnswer, SessionPartition
from mobula.actors.gateway.leadership import leadership_code
from mobula.actors.link.interface import Buffer
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import PartitionChanged
from mobula.actors.rows import Role, Row, RowsReader
from mobula.protocol.errors import ErrorCode
from mobula.storage.position import LogPosition
from mobula.storage.reader import PartitionReader, SegmentGoneError

if TYPE_CHECKING:
    from mobula.actors.gateway.services import Services

logger = logging.getLogger(__name__)

_UNKNOWN_PARTITION = int(ErrorCode.unknown_topic_or_partition)
_UNKNOWN_TOPIC_ID = int(ErrorCode.unknown_topic_id)
_INCONSISTENT_TOPIC_ID = int(ErrorCode.inconsistent_topic_id)
_OUT_OF_RANGE = int(ErrorCode.offset_out_of_range)
_STORAGE = int(ErrorCode.kafka_storage_error)
_NOT_LEADER = int(ErrorCode.not_leader_or_follower)
_LEADER = int(Role.LEADER)

_BATCH_LENGTH = Struct(">i")
_BATCH_LENGTH_AT = 8
_BATCH_OVERHEAD = 12
"""Base offset and length, which the length does not count."""


class PartitionLog:
    """One partition of this broker, as far as this gateway has read it."""

    __slots__ = (
        "_known",
        "directory",
        "partition",
        "reader",
        "rows",
        "state",
        "topic_id",
        "version",
    )

    def __init__(self, topic_id: bytes, partition: int, directory: Path) -> None:
        self.topic_id = topic_id
        self.partition = partition
        self.directory = directory
        self.reader = PartitionReader(directory)
        self.rows: RowsReader
        self.state: PartitionChanged
        self.version = -1
        """Of the metadata that `rows` and `state` come from."""
        self._known = (-1, -1, -1)

    def row(self) -> Row | None:
        return self.rows.find(self.topic_id, self.partition)

    def check(self, row: Row) -> None:
        """Forget what was found in files when they may be others now."""
        # Not the generation alone: a replica actor that was restarted counts anew, and
        # descriptors of deleted segments would keep their space on the disk.
        known = (row.generation, row.leader_epoch, row.log_start_offset)
        if known != self._known:
            self._known = known
            self.reader.invalidate()

    def forget(self) -> None:
        self.reader.invalidate()


class FetchLimits:
    """How a request wants to be served; counts down as partitions are read."""

    __slots__ = ("first", "read_committed", "remaining_bytes")

    def __init__(self, max_bytes: int, *, read_committed: bool) -> None:
        self.remaining_bytes = max_bytes
        self.read_committed = read_committed
        self.first = True
        """Nothing was read yet: the first batch comes whole, however large."""


class LogReader:
    """The logs of this broker, for one gateway."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._data_dir = Path(services.runtime.spec.data_dir)
        self._topics: dict[bytes, dict[int, PartitionLog]] = {}
        self._image: MetadataImage | None = None
        self._image_offset = -1
        self._version = 0

    def refresh(self) -> None:
        """To be called before a request's partitions are looked at."""
        image = self._services.image
        if image is self._image and image.offset == self._image_offset:
            return
        self._image, self._image_offset = image, image.offset
        self._version += 1
        for topic_id in [known for known in self._topics if known not in image.topics]:
            # Open descriptors would keep a deleted topic's space on the disk.
            for log in self._topics.pop(topic_id).values():
                log.forget()

    def resolve(self, part: SessionPartition) -> int:
        """Find the partition that the client means; the code that says why there is none."""
        log = part.log
        if log is not None and log.version == self._version:
            return 0
        part.log = part.idle = None
        image = self._services.image
        topic_id = part.key[0]
        if isinstance(topic_id, str):
            found = image.topic_ids.get(topic_id)
            if found is None:
                return _UNKNOWN_PARTITION
            topic_id = found
        topic = image.topics.get(topic_id)
        if topic is None:
            if part.name is None:
                return _UNKNOWN_TOPIC_ID
            # The session knew the topic: it was deleted, or made anew under its name.
            again = part.name in image.topic_ids
            return _INCONSISTENT_TOPIC_ID if again else _UNKNOWN_PARTITION
        part.name = topic.name
        state = topic.partitions.get(part.partition)
        if state is None:
            return _UNKNOWN_PARTITION
        part.log = self._log(topic_id, topic.name, state)
        return 0

    def _log(self, topic_id: bytes, name: str, state: PartitionChanged) -> PartitionLog:
        logs = self._topics.setdefault(topic_id, {})
        log = logs.get(state.partition)
        if log is None:
            directory = self._data_dir / f"{name}-{state.partition}"
            log = logs[state.partition] = PartitionLog(topic_id, state.partition, directory)
        log.rows = self._services.rows_reader(topic_id, state.partition)
        log.state = state
        log.version = self._version
        return log

    def read(self, part: SessionPartition, limits: FetchLimits) -> PartitionAnswer:
        """What the client gets from a partition. Only what it asked of a partition that is
        here can be urgent."""
        log = part.log
        if log is None or log.version != self._version:
            code = self.resolve(part)
            log = part.log
            if log is None:
                return PartitionAnswer(part, code, None)
        row = log.rows.find(log.topic_id, log.partition)
        idle = part.idle
        if idle is not None:
            if idle.row is row:
                return idle
            part.idle = None
        epoch = part.current_leader_epoch
        if (
            row is None
            or row.role != _LEADER
            or row.leader_epoch != epoch
            or row.leader_epoch < log.state.leader_epoch
        ):
            # Here, unlike elsewhere, every negative epoch says that the client has none.
            code = leadership_code(log.state, row, epoch if epoch >= 0 else -1)
            if code or row is None:
                return _failed(part, code)
        if limits.read_committed:
            end = row.last_stable_offset
            segment, position = row.last_stable_segment, row.last_stable_position
        else:
            end = row.high_watermark
            segment, position = row.high_watermark_segment, row.high_watermark_position
        wanted = part.fetch_offset
        if wanted == end:
            answer = PartitionAnswer(part, 0, row)
            answer.segment, answer.position = segment, position
            if row.last_stable_offset == row.high_watermark == wanted:
                part.idle = answer
            return answer
        if wanted < row.log_start_offset or wanted > row.log_end_offset:
            return _failed(part, _OUT_OF_RANGE)
        if wanted > end:
            return PartitionAnswer(part, 0, row)
        upto = LogPosition(end, segment, position)
        try:
            return _read_files(part, log, row, upto, limits)
        except SegmentGoneError:
            return _read_again(part, log, upto, limits)
        except OSError as error:
            logger.warning("cannot read folder=%s error=%s", log.directory, error)
            return _failed(part, _STORAGE)


def _failed(part: SessionPartition, code: int) -> PartitionAnswer:
    return PartitionAnswer(part, code, None, urgent=True)


def _read_files(
    part: SessionPartition,
    log: PartitionLog,
    row: Row,
    upto: LogPosition,
    limits: FetchLimits,
) -> PartitionAnswer:
    """The fetch offset is below `upto`. SegmentGoneError: it is in no file (any more)."""
    log.check(row)
    reader = log.reader
    at = reader.locate(part.fetch_offset, upto)
    if at is None:
        # Not for us to say that it is out of range: clients give up records over that.
        raise SegmentGoneError(f"no segment has offset {part.fetch_offset}")
    max_bytes = max(min(part.max_bytes, limits.remaining_bytes), 0)
    answer = PartitionAnswer(part, 0, row)
    answer.segment, answer.position = at.segment, at.position
    if max_bytes or limits.first:
        records = reader.read_batches(at, upto, max_bytes, at_least_one=limits.first)
        size = len(records)
        if at.segment == upto.segment and at.position + size == upto.position:
            # Who reads to the end comes back for what follows: the reader keeps the place.
            reader.locate(upto.offset, upto)
        elif not limits.first and not _begins_whole(records):
            return answer
        if size:
            limits.first = False
            limits.remaining_bytes -= size
            answer.records = records
    return answer


def _read_again(
    part: SessionPartition, log: PartitionLog, upto: LogPosition, limits: FetchLimits
) -> PartitionAnswer:
    """A segment was deleted since the row was read: the row knows better by now."""
    row = log.row()
    if row is None:
        return _failed(part, _NOT_LEADER)
    if part.fetch_offset < row.log_start_offset:
        return _failed(part, _OUT_OF_RANGE)
    log.forget()
    try:
        return _read_files(part, log, row, upto, limits)
    except (SegmentGoneError, OSError) as error:
        logger.warning("cannot read folder=%s error=%s", log.directory, error)
        return _failed(part, _STORAGE)


def _begins_whole(records: Buffer) -> bool:
    if len(records) < _BATCH_OVERHEAD:
        return False
    (length,) = _BATCH_LENGTH.unpack_from(records, _BATCH_LENGTH_AT)
    return bool(_BATCH_OVERHEAD + length <= len(records))
