"""A client process: librdkafka under load, told what to do by one line on standard input.

It says `ready` once it is connected, begins at the next line it reads, and prints what it
saw as one line of JSON.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import msgspec
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from mobula.loadtest.jobs import Consume, Done, Job, OneAtATime, Paced, Produce, Receive

_FLUSH_S = 120.0
_STAMP_BYTES = 8
_HELLO = b"hello, I am here"
_BURST = 200
"""Records sent between two looks at the clock."""

Go = Callable[[], None]


def produce(job: Produce, go: Go) -> Done:
    producers = [_producer(job.bootstrap, **job.settings) for _ in range(job.producers)]
    for producer in producers:
        _connect(producer, job.topic)
    value = bytes(job.record_bytes)
    go()
    begun = time.perf_counter()
    end = begun + job.seconds
    sent = 0
    most = -(-job.most_bytes // job.record_bytes) if job.most_bytes else sys.maxsize
    burst = _BURST if len(producers) == 1 else 1
    while sent < most and time.perf_counter() < end:
        full = 0
        for producer in producers:
            wanted = min(burst, most - sent)
            count = _burst(producer, job.topic, value, wanted)
            sent += count
            full += count < wanted
        if full == len(producers):
            producers[0].poll(0.001)
    for producer in producers:
        _flush(producer)
    return Done(sent, sent * job.record_bytes, time.perf_counter() - begun)


def _burst(producer: Producer, topic: str, value: bytes, count: int) -> int:
    for index in range(count):
        try:
            producer.produce(topic, value)
        except BufferError:
            producer.poll(0)
            return index
    return count


def one_at_a_time(job: OneAtATime, go: Go) -> Done:
    producer = _producer(job.bootstrap, **{"linger.ms": "0"})
    _connect(producer, job.topic)
    value = bytes(job.record_bytes)
    latencies = []
    go()
    begun = now = time.perf_counter()
    while now < begun + job.seconds:
        producer.produce(job.topic, value)
        _flush(producer)
        before, now = now, time.perf_counter()
        latencies.append((now - before) * 1000)
    return Done(len(latencies), len(latencies) * len(value), now - begun, latencies)


def paced(job: Paced, go: Go) -> Done:
    producer = _producer(job.bootstrap, **{"linger.ms": "0"})
    _connect(producer, job.topic)
    padding = bytes(job.record_bytes - _STAMP_BYTES)
    records = int(job.a_second * job.seconds)
    go()
    begun_ns = time.monotonic_ns()
    step_ns = 1_000_000_000 // job.a_second
    for index in range(records):
        due_ns = begun_ns + index * step_ns
        wait_ns = due_ns - time.monotonic_ns()
        if wait_ns > 0:
            time.sleep(wait_ns / 1e9)
        producer.produce(job.topic, due_ns.to_bytes(_STAMP_BYTES) + padding)
        producer.poll(0)
    _flush(producer)
    return Done(records, records * job.record_bytes, (time.monotonic_ns() - begun_ns) / 1e9)


def consume(job: Consume, go: Go) -> Done:
    consumer = _consumer(job.bootstrap)
    consumer.list_topics(job.topic, timeout=30)
    for partition in job.ends:
        # Asks its leader: what is timed begins with open connections.
        consumer.get_watermark_offsets(TopicPartition(job.topic, partition), timeout=30)
    left = sum(job.ends.values())
    expected, size = left, 0
    go()
    begun = time.perf_counter()
    consumer.assign([TopicPartition(job.topic, partition, 0) for partition in job.ends])
    while left > 0:
        messages = consumer.consume(min(left, 5_000), timeout=1.0)
        if time.perf_counter() > begun + _FLUSH_S:
            raise SystemExit(f"{left} of {expected} records were not there in {_FLUSH_S:.0f} s")
        for message in messages:
            size += len(_value(message))
        left -= len(messages)
    seconds = time.perf_counter() - begun
    consumer.close()
    return Done(expected, size, seconds)


def receive(job: Receive, go: Go) -> Done:
    consumer = _consumer(job.bootstrap)
    places = [TopicPartition(job.topic, partition) for partition in range(job.partitions)]
    for place in places:
        place.offset = consumer.get_watermark_offsets(place, timeout=30)[1]
    consumer.assign(places)
    consumer.poll(0.5)
    latencies: list[float] = []
    go()
    end = time.monotonic() + job.timeout_s
    while len(latencies) < job.records:
        message = consumer.poll(1.0)
        now_ns = time.monotonic_ns()
        value = None if message is None else _value(message)
        # The sender connects meanwhile, and may say hello after the end was looked up.
        if value is not None and value != _HELLO:
            due_ns = int.from_bytes(value[:_STAMP_BYTES])
            latencies.append((now_ns - due_ns) / 1e6)
        elif time.monotonic() > end:
            raise SystemExit(f"{len(latencies)} of {job.records} records came")
    consumer.close()
    return Done(len(latencies), latencies_ms=latencies)


def _producer(bootstrap: str, **settings: str) -> Producer:
    """The first record that it cannot deliver ends the job."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "on_delivery": _not_delivered,
            # A call for each record would cost the client a good part of its rate.
            "delivery.report.only.error": True,
            **settings,
        }
    )


def _not_delivered(error: object, _message: Message) -> None:
    raise SystemExit(f"a record was not delivered: {error}")


def _consumer(bootstrap: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            # Else a consumer that has filled its queue rests for a second, and the faster a
            # cluster fills it, the more that costs.
            "fetch.queue.backoff.ms": 5,
        }
    )


def _connect(producer: Producer, topic: str) -> None:
    """To every broker that leads a partition: the load begins with open connections."""
    partitions = producer.list_topics(topic, timeout=30).topics[topic].partitions
    for partition in partitions:
        producer.produce(topic, _HELLO, partition=partition)
    _flush(producer)


def _flush(producer: Producer) -> None:
    if producer.flush(_FLUSH_S):
        raise SystemExit(f"records were not acknowledged within {_FLUSH_S:.0f} s")


def _value(message: Message) -> bytes:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    value = message.value()
    assert isinstance(value, bytes)
    return value


def run(job: Job, go: Go) -> Done:
    match job:
        case Produce():
            return produce(job, go)
        case OneAtATime():
            return one_at_a_time(job, go)
        case Paced():
            return paced(job, go)
        case Consume():
            return consume(job, go)
        case Receive():
            return receive(job, go)


def main() -> None:
    job: Job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)

    def go() -> None:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.buffer.readline()

    done = run(job, go)
    sys.stdout.write(msgspec.json.encode(done).decode() + "\n")


if __name__ == "__main__":
    main()
