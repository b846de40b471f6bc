"""Broker keys: who the broker is, where it listens, how many requests it holds."""

from __future__ import annotations

from mobula.actors.config.key import (
    MAX_INT,
    ConfigType,
    at_least,
    between,
    broker_key,
    either,
)
from mobula.actors.config.listeners import LISTENERS

_INT = ConfigType.INT
_LONG = ConfigType.LONG

IDENTITY = (
    broker_key(
        "node.id",
        _INT,
        "0",
        "The broker's number.",
        at_least(0),
        given_by="brokers are numbered from 0, see `mobula up -n`",
    ),
    broker_key(
        "broker.id",
        _INT,
        "0",
        "The broker's number; the older name of node.id.",
        at_least(0),
        given_by="brokers are numbered from 0, see `mobula up -n`",
    ),
    broker_key(
        "log.dir",
        ConfigType.LIST,
        None,
        "The folder that holds the broker's partitions.",
        given_by="use `mobula up --data-dir`",
    ),
    broker_key(
        "log.dirs",
        ConfigType.LIST,
        None,
        "The folder that holds the broker's partitions (one, so far).",
        given_by="use `mobula up --data-dir`",
    ),
    broker_key(
        "broker.rack",
        ConfigType.STRING,
        None,
        "The broker's failure domain. Replicas of a partition are spread over racks.",
    ),
    broker_key(
        "listeners",
        ConfigType.LIST,
        "PLAINTEXT://:9092",
        "Where the broker listens, as PLAINTEXT://HOST:PORT; an empty host is every address of "
        "the machine. Broker i of a cluster adds i to the port. `mobula up --port` is the short "
        "way to set it.",
        LISTENERS,
    ),
    broker_key(
        "advertised.listeners",
        ConfigType.LIST,
        None,
        "Where clients are told to connect, as PLAINTEXT://HOST:PORT, when that is not where "
        "the broker listens (another network, a forwarded port). Broker i adds i to the port. "
        "Left alone it is the listener's own address, and on a Ray cluster the node's.",
        LISTENERS,
    ),
)

NETWORK = (
    broker_key(
        "num.network.threads",
        _INT,
        "2",
        "How many gateways a broker has: each is a process with an event loop that serves its "
        "share of the broker's connections. `mobula up` gives it 1 on a node with fewer than "
        "two cores for each of its brokers, unless told otherwise.",
        between(1, 64),
        why="Kafka starts 3 threads. Here each is a process of about 50 MB, and more event loops "
        "than cores only take turns: on two cores, three brokers with two each need up to a "
        "quarter more CPU than with one.",
    ),
    broker_key(
        "num.io.threads",
        _INT,
        "256",
        "How many requests of a broker may be in their first stage (decoded, not yet handed "
        "on) at once. Shared out over its gateways.",
        at_least(1),
        why="Kafka has 8, each a thread that may block. Here a request in that stage is an "
        "entry in a table and blocks nothing, so 8 would only hold requests back.",
    ),
    broker_key(
        "queued.max.requests",
        _INT,
        "500",
        "How many requests of a broker may wait for their first stage. When the queue is full "
        "sockets are not read, so clients feel it. Shared out over its gateways.",
        at_least(1),
    ),
    broker_key(
        "queued.max.request.bytes",
        _LONG,
        "268435456",
        "How many bytes of requests a broker holds at once. Past it sockets are not read. -1 is "
        "no limit. Shared out over its gateways.",
        either(-1, at_least(1)),
        why="Kafka has no limit (-1). 256 MiB keeps a laptop's memory bounded when many "
        "producers push at once: 500 queued requests of up to 100 MB each would not fit.",
    ),
    broker_key(
        "connection.max.in.flight.requests",
        _INT,
        "256",
        "How many requests of one connection may be under way at once; past it the socket is "
        "not read until replies have left. Kafka answers one at a time; several, in order, hide "
        "the time a write waits for its replicas. Clients send 5 by default.",
        at_least(1),
        ours=True,
    ),
    broker_key(
        "socket.send.buffer.bytes",
        _INT,
        "-1",
        "SO_SNDBUF of client connections; -1 leaves it to the operating system.",
        either(-1, at_least(1)),
        why="Kafka sets 100 KiB. A fixed size switches off the kernel's own tuning, which "
        "starts small and grows to megabytes where a connection can use them.",
    ),
    broker_key(
        "socket.receive.buffer.bytes",
        _INT,
        "-1",
        "SO_RCVBUF of client connections; -1 leaves it to the operating system.",
        either(-1, at_least(1)),
        why="Kafka sets 100 KiB. A fixed size switches off the kernel's own tuning, which "
        "starts small and grows to megabytes where a connection can use them.",
    ),
    broker_key(
        "socket.request.max.bytes",
        _INT,
        "104857600",
        "The largest request that is read; a larger one closes the connection.",
        at_least(1),
    ),
    broker_key(
        "socket.listen.backlog.size",
        _INT,
        "1024",
        "How many new connections the kernel keeps until they are accepted. It also lowers "
        "this to its own limit (net.core.somaxconn).",
        at_least(1),
        why="Kafka asks for 50. Here clients also wait in the backlog while a broker actor that "
        "died comes back, and a full backlog makes them wait seconds for a second try.",
    ),
    broker_key(
        "max.connections",
        _INT,
        str(MAX_INT),
        "How many connections a broker accepts; further ones are closed at once.",
        at_least(0),
    ),
    broker_key(
        "max.connections.per.ip",
        _INT,
        str(MAX_INT),
        "How many connections a broker accepts from one address.",
        at_least(0),
    ),
    broker_key(
        "connections.max.idle.ms",
        _LONG,
        "600000",
        "A connection without a request for this long is closed.",
        at_least(1),
    ),
    broker_key(
        "fetch.max.bytes",
        _INT,
        "57671680",
        "The most that one fetch response carries, whatever the client asks for.",
        at_least(1024),
    ),
    broker_key(
        "max.incremental.fetch.session.cache.slots",
        _INT,
        "1000",
        "How many fetch sessions a broker keeps. Shared out over its gateways.",
        at_least(0),
    ),
    broker_key(
        "max.request.partition.size.limit",
        _INT,
        "2000",
        "The most partitions in one DescribeTopicPartitions response.",
        at_least(1),
    ),
)
