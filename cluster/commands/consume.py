"""`mobula consume`: records to stdout, from any position, without a group."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, BinaryIO, assert_never

import typer

from mobula.cluster.commands.arguments import AsJson, Bootstrap, Name
from mobula.cluster.commands.client import TIMEOUT_S, asked, consumer, find_bootstrap, refusal
from mobula.cluster.commands.position import (
    AtEnd,
    AtOffset,
    AtStart,
    AtTime,
    LastRecords,
    Position,
    parse_position,
)
from mobula.cluster.commands.record_format import (
    DEFAULT_FORMAT,
    HELP,
    Formatter,
    compile_format,
    json_line,
)
from mobula.cluster.options import DEFAULT_NAME, ClusterError, UsageError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

_BATCH = 500
_POLL_S = 0.2
_END_WAIT_MS = 100


def register(app: typer.Typer) -> None:
    app.command()(consume)


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    *,
    offset: Annotated[
        str,
        typer.Option("-o", "--offset", help="start, end, N, -N (the last N), @TIME (ms or ISO)."),
    ] = "start",
    count: Annotated[
        int | None, typer.Option("-n", "--num", help="Stop after this many records.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("-p", "--partition", help="Only this one.")
    ] = None,
    layout: Annotated[
        str, typer.Option("-f", "--format", metavar="FORMAT", help=HELP)
    ] = DEFAULT_FORMAT,
    exit_at_end: Annotated[
        bool, typer.Option("-e", "--exit-at-end", help="Stop when everything has been read.")
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    name: Name = DEFAULT_NAME,
) -> None:
    """Print records; goes on with new ones until Ctrl-C, -n or -e."""
    position = parse_position(offset)
    formatter = json_line if as_json else compile_format(layout)
    if count is not None and count < 1:
        raise UsageError(f"-n {count}: must be at least 1")
    # The end of a partition is told when a fetch found nothing, so do not let it wait long.
    waits = {"fetch.wait.max.ms": _END_WAIT_MS} if exit_at_end else {}
    brokers = find_bootstrap(bootstrap, name)
    outage = Outage(brokers)
    client = consumer(brokers, error_cb=outage.told, **waits)
    try:
        assignment = assign(client, topic, partition, position)
        printing = Printing(
            sys.stdout.buffer, formatter, len(assignment), count, exit_at_end=exit_at_end
        )
        while not printing.done:
            printing.take(_next(client))
            outage.check(ends=exit_at_end)
    except KeyboardInterrupt:
        pass  # How reading without an end is ended.
    finally:
        client.close()


def _next(client: Consumer) -> list[Message]:
    """One as soon as there is one, and with it all that are there already."""
    try:
        first = client.poll(_POLL_S)
    except SystemError:
        # How the client library ends a poll when a signal and a callback meet in it.
        raise KeyboardInterrupt from None
    return [] if first is None else [first, *client.consume(_BATCH, 0)]


def assign(
    client: Consumer, topic: str, partition: int | None, position: Position
) -> list[TopicPartition]:
    """Every partition of the topic, or the one asked for, where consuming begins."""
    found = placed(client, topic, partition, position)
    client.assign(found)
    return found


def placed(
    client: Consumer, topic: str, partition: int | None, position: Position
) -> list[TopicPartition]:
    """Where those partitions are to be read from: offsets, or librdkafka's words for the ends."""
    from confluent_kafka import TopicPartition

    metadata = asked(lambda: client.list_topics(timeout=TIMEOUT_S), "the list of topics")
    found = metadata.topics.get(topic)
    if found is None:
        raise ClusterError(f"topic {topic} does not exist")
    indexes = sorted(found.partitions) if partition is None else [partition]
    if partition is not None and partition not in found.partitions:
        raise ClusterError(
            f"topic {topic} has no partition {partition}, only 0 to {len(found.partitions) - 1}"
        )
    partitions = [TopicPartition(topic, index) for index in indexes]
    return asked(lambda: _placed(client, partitions, position), f"topic {topic}")


def _placed(
    client: Consumer, partitions: list[TopicPartition], position: Position
) -> list[TopicPartition]:
    from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    def at(partition: TopicPartition, offset: int) -> TopicPartition:
        return TopicPartition(partition.topic, partition.partition, offset)

    match position:
        case AtStart():
            return [at(partition, OFFSET_BEGINNING) for partition in partitions]
        case AtEnd():
            return [at(partition, OFFSET_END) for partition in partitions]
        case AtOffset():
            ranges = [client.get_watermark_offsets(p, timeout=TIMEOUT_S) for p in partitions]
            last = max(high for _, high in ranges)
            if position.offset > last:
                raise ClusterError(
                    f"topic {partitions[0].topic} has no offset {position.offset} there; "
                    f"the next record gets {last}"
                )
            # Records before `low` are gone, and a partition may be shorter than others.
            return [
                at(partition, min(max(position.offset, low), high))
                for partition, (low, high) in zip(partitions, ranges, strict=True)
            ]
        case LastRecords():
            placed = []
            for partition in partitions:
                low, high = client.get_watermark_offsets(partition, timeout=TIMEOUT_S)
                placed.append(at(partition, max(low, high - position.count)))
            return placed
        case AtTime():
            times = [at(partition, position.timestamp_ms) for partition in partitions]
            answers = client.offsets_for_times(times, timeout=TIMEOUT_S)
            # -1: all records are older, so it begins with what comes next.
            return [
                at(partition, OFFSET_END if partition.offset < 0 else partition.offset)
                for partition in answers
            ]
        case _:
            assert_never(position)


class Outage:
    """No broker answers any more: an error for who waits for the end, else worth a line."""

    def __init__(self, bootstrap: str) -> None:
        self._sentence = f"none of the brokers {bootstrap} answers any more"
        self._down = False
        self._said = False

    def told(self, error: KafkaError) -> None:
        """Called by the client library while it is polled."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down = True

    def check(self, *, ends: bool) -> None:
        if not self._down:
            return
        if ends:
            raise ClusterError(self._sentence)
        if not self._said:
            self._said = True
            typer.echo(f"mobula: {self._sentence}; waiting for them", err=True)


class Printing:
    """Writes records until enough were written, or every partition is at its end."""

    def __init__(
        self,
        stream: BinaryIO,
        formatter: Formatter,
        partitions: int,
        count: int | None,
        *,
        exit_at_end: bool,
    ) -> None:
        self._stream = stream
        self._formatter = formatter
        self._partitions = partitions
        self._left = count
        self._exit_at_end = exit_at_end
        self._ended: set[int | None] = set()
        self.done = False

    def take(self, messages: list[Message]) -> None:
        written = []
        for message in messages:
            error = message.error()
            if error is not None:
                self._stopped(error, message)
            elif self._left != 0:
                self._ended.discard(message.partition())
                written.append(self._formatter(message))
                if self._left is not None:
                    self._left -= 1
        if written:
            self._stream.write(b"".join(written))
            self._stream.flush()
        at_end = self._exit_at_end and len(self._ended) == self._partitions
        self.done = self._left == 0 or at_end

    def _stopped(self, error: KafkaError, message: Message) -> None:
        from confluent_kafka import KafkaError

        if error.code() == KafkaError._PARTITION_EOF:
            self._ended.add(message.partition())
        elif error.fatal() or error.code() in _final():
            raise refusal(error, f"topic {message.topic()}")
        # All else (a broker that restarts, a new leader) the client retries by itself.


def _final() -> tuple[int, ...]:
    from confluent_kafka import KafkaError

    return (
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError._AUTO_OFFSET_RESET,
    )
