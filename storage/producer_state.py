"""What a log remembers of idempotent producers, and Kafka's `.snapshot` file of it.

For each producer id: its epoch and its last five batches, so that a batch sent again is
answered with the offsets it has and a gap is refused. Entries are values: replacing one
leaves the old one as it was, which is how a failed write is undone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from crc32c import crc32c

from mobula.protocol.errors import ErrorCode, KafkaError
from mobula.storage.batch import BatchHeader

BATCHES_KEPT = 5
NO_EPOCH = -1
NO_SEQUENCE = -1
MAX_SEQUENCE = 2**31 - 1

ORIGIN_CLIENT = 0
ORIGIN_COORDINATOR = 1
ORIGIN_REPLICATION = 2

_VERSION = 1
_SNAPSHOT_HEADER = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


class ProducedBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerEntry(NamedTuple):
    epoch: int
    last_timestamp: int
    batches: tuple[ProducedBatch, ...]
    """Oldest first."""
    coordinator_epoch: int = -1
    current_txn_first_offset: int = -1


_NOBODY = ProducerEntry(NO_EPOCH, -1, ())


class ProducerStates:
    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}

    def admit(self, header: BatchHeader, origin: int) -> ProducedBatch | None:
        """Judge a batch of a leader: the batch it repeats, if it is one of the producer's
        last five, or None when it may be appended.

        KafkaError invalid_producer_epoch or out_of_order_sequence_number. A producer that
        is not known (it expired, or its records are gone) may go on with any sequence, as
        in Kafka since 2.5.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return None
        epoch, sequence = header.producer_epoch, header.base_sequence
        if epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.invalid_producer_epoch,
                f"producer {header.producer_id} has epoch {epoch}, {entry.epoch} was seen before",
            )
        if origin != ORIGIN_CLIENT:
            return None
        if epoch != entry.epoch:
            if sequence != 0:
                raise _out_of_order(header, "a new epoch begins with sequence 0")
            return None
        last = entry.batches[-1].last_sequence if entry.batches else NO_SEQUENCE
        if sequence == last + 1:
            return None
        for batch in entry.batches:
            if batch.first_sequence == sequence and batch.last_sequence == header.last_sequence:
                return batch
        if sequence == 0 and last == MAX_SEQUENCE:
            return None
        raise _out_of_order(header, f"the last one was {last}")

    def record(
        self, header: BatchHeader, first_offset: int, last_offset: int, timestamp: int
    ) -> ProducerEntry | None:
        """The batch is (or will be) in the log; the entry as it was before."""
        before = self.entries.get(header.producer_id)
        batch = ProducedBatch(
            header.base_sequence, header.last_sequence, first_offset, last_offset, timestamp
        )
        if before is None or before.epoch != header.producer_epoch:
            base = before or _NOBODY
            self.entries[header.producer_id] = ProducerEntry(
                header.producer_epoch,
                timestamp,
                (batch,),
                base.coordinator_epoch,
                base.current_txn_first_offset,
            )
        else:
            self.entries[header.producer_id] = ProducerEntry(
                before.epoch,
                timestamp,
                (*before.batches[1 - BATCHES_KEPT :], batch),
                before.coordinator_epoch,
                before.current_txn_first_offset,
            )
        return before

    def replay(self, header: BatchHeader) -> None:
        """A batch that is in the log already, as its header tells."""
        if header.producer_id >= 0 and not header.is_control:
            self.record(header, header.base_offset, header.last_offset, header.max_timestamp)

    def complete(self, before: Iterable[BatchHeader]) -> None:
        """Entries that came from a snapshot know of one batch each. Here are batches of the
        log before that snapshot: what they tell of the ones before the last is added."""
        told = ProducerStates()
        for header in before:
            told.replay(header)
        for producer_id, entry in self.entries.items():
            more = told.entries.get(producer_id)
            if more is not None and more.epoch == entry.epoch and entry.batches:
                last, known = entry.batches[-1], more.batches[-1]
                if known.last_offset == last.last_offset:
                    self.entries[producer_id] = entry._replace(batches=more.batches)

    def restore(self, producer_id: int, entry: ProducerEntry | None) -> None:
        """Undo a `record`."""
        if entry is None:
            self.entries.pop(producer_id, None)
        else:
            self.entries[producer_id] = entry

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were silent for so long; how many."""
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.current_txn_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        return len(expired)


def encode_snapshot(entries: dict[int, ProducerEntry]) -> bytes:
    body = bytearray(_COUNT.pack(len(entries)))
    for producer_id, entry in entries.items():
        last = entry.batches[-1] if entry.batches else None
        body += _ENTRY.pack(
            producer_id,
            entry.epoch,
            last.last_sequence if last else NO_SEQUENCE,
            last.last_offset if last else -1,
            last.last_offset - last.first_offset if last else 0,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )
    return _SNAPSHOT_HEADER.pack(_VERSION, crc32c(body)) + bytes(body)


def decode_snapshot(data: bytes) -> dict[int, ProducerEntry]:
    """ValueError when it is damaged."""
    if len(data) < _SNAPSHOT_HEADER.size + _COUNT.size:
        raise ValueError("producer snapshot is cut short")
    version, crc = _SNAPSHOT_HEADER.unpack_from(data)
    if version != _VERSION:
        raise ValueError(f"producer snapshot of version {version}, expected {_VERSION}")
    body = memoryview(data)[_SNAPSHOT_HEADER.size :]
    if crc32c(body) != crc:
        raise ValueError("producer snapshot's CRC does not match its bytes")
    (count,) = _COUNT.unpack_from(body)
    if len(body) != _COUNT.size + count * _ENTRY.size:
        raise ValueError("producer snapshot does not hold as many entries as it says")
    entries = {}
    for fields in _ENTRY.iter_unpack(body[_COUNT.size :]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator, txn = fields
        batches: tuple[ProducedBatch, ...] = ()
        if last_offset >= 0:
            first_sequence = (last_sequence - delta) & MAX_SEQUENCE
            batches = (
                ProducedBatch(
                    first_sequence, last_sequence, last_offset - delta, last_offset, timestamp
                ),
            )
        entries[producer_id] = ProducerEntry(epoch, timestamp, batches, coordinator, txn)
    return entries


def _out_of_order(header: BatchHeader, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.out_of_order_sequence_number,
        f"producer {header.producer_id} epoch {header.producer_epoch} sent sequence "
        f"{header.base_sequence}, {why}",
    )
