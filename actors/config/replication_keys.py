"""Broker keys: topics as they are created, replication, the broker's life."""

from __future__ import annotations

from mobula.actors.config.key import (
    ConfigType,
    at_least,
    between,
    broker_key,
    one_of,
    only,
)

_INT = ConfigType.INT
_LONG = ConfigType.LONG

TOPICS = (
    broker_key(
        "num.partitions",
        _INT,
        "1",
        "How many partitions a topic gets that does not say.",
        at_least(1),
    ),
    broker_key(
        "default.replication.factor",
        _INT,
        "1",
        "How many replicas a topic gets that does not say. `mobula up` sets it to the number of "
        "brokers, at most 3, unless told otherwise.",
        between(1, 32767),
    ),
    broker_key(
        "min.insync.replicas",
        _INT,
        "1",
        "How many replicas must be in sync for a write with acks=all.",
        at_least(1),
    ),
    broker_key(
        "unclean.leader.election.enable",
        ConfigType.BOOLEAN,
        "false",
        "Whether a replica that is not in sync may become leader when no other is left.",
        only(False, "unclean elections are not supported yet"),
    ),
    broker_key(
        "auto.create.topics.enable",
        ConfigType.BOOLEAN,
        "true",
        "Whether a client that asks for a topic that does not exist gets it created.",
    ),
    broker_key(
        "delete.topic.enable",
        ConfigType.BOOLEAN,
        "true",
        "Whether topics can be deleted; otherwise that is answered TOPIC_DELETION_DISABLED.",
    ),
)

REPLICATION = (
    broker_key(
        "num.replica.actors",
        _INT,
        "1",
        "Over how many replica actors, so processes, a broker's partitions are spread. One "
        "writes as fast as a core can; more use more cores.",
        between(1, 64),
        ours=True,
    ),
    broker_key(
        "link.transport",
        ConfigType.STRING,
        "auto",
        "How actors reach each other. `auto`: Unix sockets between actors of one node, Ray "
        "actor calls between nodes. `ray`: Ray actor calls everywhere, which is slower on one "
        "node. `ray-between-brokers`: on one node as if each broker had its own.",
        one_of("auto", "ray", "ray-between-brokers"),
        ours=True,
    ),
    broker_key(
        "replica.pull.ranges",
        ConfigType.STRING,
        "auto",
        "What a follower gets from a leader on the same node. `auto`: where the new bytes "
        "stand in the leader's files, which it then copies inside the kernel. `never`: the "
        "bytes themselves, as between nodes.",
        one_of("auto", "never"),
        ours=True,
    ),
    broker_key(
        "replica.lag.time.max.ms",
        _LONG,
        "30000",
        "A follower that has not caught up with its leader for this long leaves the ISR.",
        at_least(1),
    ),
    broker_key(
        "replica.fetch.max.bytes",
        _INT,
        "1048576",
        "How much of one partition a follower pulls at a time; a larger first batch still "
        "comes whole.",
        at_least(0),
    ),
    broker_key(
        "replica.fetch.response.max.bytes",
        _INT,
        "10485760",
        "How much of all partitions together a follower pulls at a time.",
        at_least(0),
    ),
    broker_key(
        "replica.fetch.wait.max.ms",
        _INT,
        "500",
        "How long a leader parks a pull that it has nothing for. Must be less than "
        "replica.lag.time.max.ms.",
        at_least(1),
    ),
    broker_key(
        "broker.heartbeat.interval.ms",
        _INT,
        "2000",
        "How often a broker tells the controller that it lives.",
        at_least(1),
    ),
    broker_key(
        "broker.session.timeout.ms",
        _INT,
        "9000",
        "A broker that was silent for this long is fenced: its partitions get other leaders.",
        at_least(1),
    ),
    broker_key(
        "auto.leader.rebalance.enable",
        ConfigType.BOOLEAN,
        "true",
        "Whether leadership goes back to the preferred replicas by itself.",
    ),
    broker_key(
        "leader.imbalance.check.interval.seconds",
        _LONG,
        "10",
        "How often the controller looks for partitions that another than their preferred "
        "replica leads.",
        at_least(1),
        why="Kafka looks every 300 s. After a stop and start the broker that stopped last leads "
        "everything until the others are in sync again; looking costs a millisecond for some "
        "thousand partitions, so nobody has to wait five minutes for the load to be spread.",
    ),
    broker_key(
        "controlled.shutdown.enable",
        ConfigType.BOOLEAN,
        "true",
        "Whether a broker hands over its leaderships before it stops.",
    ),
)
