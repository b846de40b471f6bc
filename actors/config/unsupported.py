"""Kafka's keys that mean nothing here, each with the sentence that says why.

They are refused rather than ignored: a setting that is accepted must do something.
"""

from __future__ import annotations

_GROUPS = "groups with the consumer protocol are not supported yet"
_SHARE = "there are no share groups and no streams groups"
_TRANSACTIONS = "transactions are not supported yet"
_SECURITY = "TLS, SASL and authorization are not supported yet"
_QUOTAS = "quotas are not supported yet"
_CLEANER = "no log cleaner runs yet"
_TIERED = "there is no tiered storage"
_CONTROLLER = "the controller is an actor of the cluster, not a node with a role"
_METRICS = "metrics are not reported this way"
_REMOVED = "Kafka 4 itself does not know it any more"

_EXACT = {
    "num.recovery.threads.per.data.dir": "a replica actor recovers its logs one after the other",
    "num.replica.fetchers": "a replica actor pulls once from each leader; "
    "spread a broker over cores with num.replica.actors",
    "num.replica.alter.log.dirs.threads": "a broker has one data folder",
    "background.threads": "there are no background threads",
    "request.timeout.ms": "calls between actors have their own deadlines",
    "replica.fetch.min.bytes": "a pull is answered as soon as there is anything",
    "replica.fetch.backoff.ms": "a pull that failed is repeated when its link is back",
    "replica.socket.timeout.ms": "followers pull over links, not sockets",
    "replica.socket.receive.buffer.bytes": "followers pull over links, not sockets",
    "replica.selector.class": "consumers read from the leader",
    "replica.high.watermark.checkpoint.interval.ms": "the checkpoint is written when it matters",
    "leader.imbalance.per.broker.percentage": "any imbalance is corrected",
    "inter.broker.listener.name": "brokers reach each other over links, not listeners",
    "inter.broker.protocol.version": _REMOVED,
    "security.inter.broker.protocol": "brokers reach each other over links, not listeners",
    "listener.security.protocol.map": _SECURITY,
    "authorizer.class.name": _SECURITY,
    "super.users": _SECURITY,
    "principal.builder.class": _SECURITY,
    "early.start.listeners": _SECURITY,
    "log.preallocate": "segments are never preallocated",
    "log.dir.failure.timeout.ms": "a broker has one data folder",
    "log.flush.offset.checkpoint.interval.ms": "the checkpoint is written when it matters",
    "log.flush.start.offset.checkpoint.interval.ms": "the checkpoint is written when it matters",
    "log.initial.task.delay.ms": "there are no such tasks",
    "log.message.format.version": _REMOVED,
    "log.message.downconversion.enable": _REMOVED,
    "log.message.timestamp.difference.max.ms": _REMOVED
    + "; use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms",
    "message.format.version": _REMOVED,
    "message.downconversion.enable": _REMOVED,
    "message.timestamp.difference.max.ms": _REMOVED
    + "; use message.timestamp.before.max.ms and message.timestamp.after.max.ms",
    "max.connections.per.ip.overrides": "one limit holds for all addresses, max.connections.per.ip",
    "max.connection.creation.rate": _QUOTAS,
    "broker.id.generation.enable": "brokers are numbered from 0",
    "process.roles": _CONTROLLER,
    "controlled.shutdown.max.retries": "a broker asks until the controller lets it go",
    "controlled.shutdown.retry.backoff.ms": "a broker asks until the controller lets it go",
    "unstable.api.versions.enable": "only finished versions are served",
    "unstable.feature.versions.enable": "only finished versions are served",
    "connections.max.reauth.ms": _SECURITY,
    "producer.id.expiration.check.interval.ms": "producers are forgotten when a segment rolls",
    "create.topic.policy.class.name": "there are no policy plug-ins",
    "alter.config.policy.class.name": "there are no policy plug-ins",
    "fetch.purgatory.purge.interval.requests": "the purgatory purges by itself",
    "producer.purgatory.purge.interval.requests": "the purgatory purges by itself",
    "delete.records.purgatory.purge.interval.requests": "the purgatory purges by itself",
    "initial.broker.registration.timeout.ms": "a broker tries to register until it is stopped",
    "follower.replication.throttled.replicas": _QUOTAS,
    "leader.replication.throttled.replicas": _QUOTAS,
    "follower.replication.throttled.rate": _QUOTAS,
    "leader.replication.throttled.rate": _QUOTAS,
    "config.providers": "values stand in the settings themselves",
    "connection.failed.authentication.delay.ms": _SECURITY,
    "cordoned.log.dirs": "a broker has one data folder",
    "follower.fetch.last.tiered.offset.enable": _TIERED,
    "share.fetch.purgatory.purge.interval.requests": _SHARE,
    "internal.segment.bytes": "it is for Kafka's own tests; use segment.bytes",
}

_PREFIXES = {
    "zookeeper.": "there is no ZooKeeper",
    "controller.quorum.": _CONTROLLER,
    "controller.": _CONTROLLER,
    "metadata.": "the controller keeps its log as it needs",
    "group.share.": _SHARE,
    "group.streams.": _SHARE,
    "group.coordinator.": "coordinators run in their broker's actor",
    "group.": _GROUPS,
    "offsets.retention.": "committed offsets do not expire yet",
    "offsets.": "the coordinators need no such setting",
    "share.coordinator.": _SHARE,
    "add.partitions.to.txn.": _TRANSACTIONS,
    "transaction.": _TRANSACTIONS,
    "transactional.": _TRANSACTIONS,
    "log.cleaner.": _CLEANER,
    "ssl.": _SECURITY,
    "sasl.": _SECURITY,
    "security.": _SECURITY,
    "delegation.token.": _SECURITY,
    "password.encoder.": _SECURITY,
    "listener.name.": _SECURITY,
    "quota.": _QUOTAS,
    "alter.log.dirs.replication.quota.": _QUOTAS,
    "replication.quota.": _QUOTAS,
    "client.quota.": _QUOTAS,
    "remote.log.": _TIERED,
    "remote.storage.": _TIERED,
    "remote.": _TIERED,
    "local.retention.": _TIERED,
    "log.local.retention.": _TIERED,
    "socket.connection.setup.": "brokers reach each other over links, not sockets",
    "metric.": _METRICS,
    "metrics.": _METRICS,
    "auto.include.jmx.": _METRICS,
    "kafka.metrics.": _METRICS,
    "telemetry.": _METRICS,
    "eligible.leader.replicas.": "unclean elections are not supported yet",
    "unclean.": "unclean elections are not supported yet",
    "errors.deadletterqueue.": _SHARE,
}


def reason(name: str) -> str | None:
    """Why this key of Kafka is not for us, or None when it is not one that we know of."""
    exact = _EXACT.get(name)
    if exact is not None:
        return exact
    for prefix, why in _PREFIXES.items():
        if name.startswith(prefix):
            return why
    return None
