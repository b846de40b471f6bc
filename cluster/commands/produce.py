"""`mobula produce`: records from stdin, a line each."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mobula.cluster.commands.arguments import Bootstrap, Name, pairs
from mobula.cluster.commands.client import find_bootstrap, producer
from mobula.cluster.commands.output import counted
from mobula.cluster.options import DEFAULT_NAME, ClusterError, UsageError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_DELIVERY_TIMEOUT_MS = 60_000


def register(app: typer.Typer) -> None:
    app.command()(produce)


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    *,
    separator: Annotated[
        str | None, typer.Option("-k", "--key", metavar="SEP", help="KEY SEP VALUE in a line.")
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("-H", "--header", metavar="KEY=VALUE", help="On every record. Repeat it."),
    ] = None,
    codec: Annotated[
        str, typer.Option("-z", "--compress", metavar="CODEC", help=", ".join(CODECS))
    ] = "none",
    partition: Annotated[
        int | None, typer.Option("-p", "--partition", help="Default: by key, or spread.")
    ] = None,
    bootstrap: Bootstrap = None,
    name: Name = DEFAULT_NAME,
) -> None:
    """Write the lines of stdin, acknowledged by all in-sync replicas, each once."""
    if codec not in CODECS:
        raise UsageError(f"-z {codec}: must be one of {', '.join(CODECS)}")
    if separator == "":
        raise UsageError("-k needs a separator that is not empty")
    if partition is not None and partition < 0:
        raise UsageError(f"-p {partition}: must be at least 0")
    extra: dict[str, Any] = {"headers": pairs(headers, "-H")} if headers else {}
    if partition is not None:
        extra["partition"] = partition
    client = producer(
        find_bootstrap(bootstrap, name),
        **{
            "acks": "all",
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 5,
            "delivery.timeout.ms": _DELIVERY_TIMEOUT_MS,
        },
    )
    deliveries = Deliveries(topic)
    try:
        send_lines(client, deliveries, sys.stdin.buffer, separator, extra)
    finally:
        # Also after Ctrl-C: what was read is delivered or reported.
        client.flush()
        typer.echo(deliveries.summary(), err=True)
    deliveries.check()


class Deliveries:
    """What became of the records."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._delivered = 0
        self._failed = 0
        self._partitions: set[int] = set()
        self._first_failure: str | None = None

    def on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self._delivered += 1
            self._partitions.add(message.partition() or 0)
            return
        self.refused(error, message.partition())

    def refused(self, error: KafkaError, partition: int | None = None) -> None:
        from confluent_kafka import KafkaError

        self._failed += 1
        if self._first_failure is not None:
            return
        if error.code() == KafkaError._UNKNOWN_PARTITION:
            self._first_failure = f"it has no partition {partition}"
        else:
            self._first_failure = error.str() or error.name()

    def summary(self) -> str:
        where = f" in {counted(len(self._partitions), 'partition')}" if self._partitions else ""
        failed = f", {self._failed} failed" if self._failed else ""
        return f"{counted(self._delivered, 'record')} to {self.topic}{where}{failed}"

    def check(self) -> None:
        if self._first_failure is not None:
            raise ClusterError(
                f"{counted(self._failed, 'record')} not delivered to {self.topic}: "
                f"{self._first_failure}"
            )


def send_lines(
    client: Producer,
    deliveries: Deliveries,
    lines: Iterable[bytes],
    separator: str | None,
    extra: dict[str, Any],
) -> None:
    from confluent_kafka import KafkaException

    split_at = None if separator is None else separator.encode()
    for line in lines:
        key, value = split(line.removesuffix(b"\n"), split_at)
        while True:
            try:
                client.produce(
                    deliveries.topic,
                    value,
                    key,
                    on_delivery=deliveries.on_delivery,
                    **extra,
                )
            except BufferError:
                # The client's queue is full: wait for some to be delivered.
                client.poll(0.1)
                continue
            except KafkaException as error:
                deliveries.refused(error.args[0], extra.get("partition"))
            break
        client.poll(0)


def split(line: bytes, separator: bytes | None) -> tuple[bytes | None, bytes]:
    """(key, value). A line without the separator is a value without a key."""
    if separator is None or separator not in line:
        return None, line
    key, _, value = line.partition(separator)
    return key, value
