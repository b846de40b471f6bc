"""Where our answers are not Apache Kafka's, and why: the whole list.

A difference without a line here fails the test, and so does a line that explains nothing
any more. `*` in a scenario or path stands for anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mobula.protocol.api import ApiKey


@dataclass(frozen=True, slots=True)
class Explained:
    api: ApiKey
    path: str
    why: str
    """One sentence."""
    scenario: str = "*"
    versions: range | None = None
    """All, when not said."""

    def covers(self, api: ApiKey, scenario: str, version: int, path: str) -> bool:
        return (
            api == self.api
            and (self.versions is None or version in self.versions)
            and _matches(self.scenario, scenario)
            and _matches(self.path, path)
        )


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text) is not None


EXPLAINED: tuple[Explained, ...] = (
    Explained(
        ApiKey.API_VERSIONS,
        "api_keys[*]",
        "Groups, transactions, ACLs, quotas, SASL, reassignments and the requests between "
        "brokers are not served, so they are not advertised.",
    ),
    Explained(
        ApiKey.API_VERSIONS,
        "api_keys[35].max_version",
        "DescribeLogDirs v5 tells of cordoned log directories, which there are not.",
    ),
    Explained(
        ApiKey.API_VERSIONS,
        "*_features[*]",
        "Features are levels of Kafka's own formats and coordinators; none of them is here.",
    ),
    Explained(
        ApiKey.API_VERSIONS,
        "finalized_features_epoch",
        "No feature is finalized, so there is no offset at which that happened.",
    ),
    Explained(
        ApiKey.CREATE_TOPICS,
        "topics[*].configs[*.replication.throttled.replicas]",
        "There are no quotas on replication.",
    ),
    Explained(
        ApiKey.CREATE_TOPICS,
        "topics[*].configs[remote.*]",
        "There is no tiered storage.",
    ),
    Explained(
        ApiKey.CREATE_TOPICS,
        "topics[*].configs[local.retention.*]",
        "There is no tiered storage, so retention knows one limit.",
    ),
    Explained(
        ApiKey.CREATE_TOPICS,
        "topics[*].configs[replica.actor]",
        "A key of our own: which topics have a replica actor to themselves.",
    ),
    Explained(
        ApiKey.CREATE_TOPICS,
        "topics[*].configs[min.insync.replicas].config_source",
        "Kafka copies the brokers' value into the cluster's configuration for the sake of "
        "eligible leader replicas, which are not here.",
    ),
    Explained(
        ApiKey.CREATE_TOPICS,
        "topics[*].error_message",
        "What is wrong with a configuration is said in our words, all of it at once; they name "
        "the nearest key.",
        scenario="settings_that_cannot_be",
    ),
    Explained(
        ApiKey.CREATE_TOPICS,
        "topics[*]*",
        "Kafka's controller refuses a request with no time left before it looks at it; ours "
        "answers what became of the topic.",
        scenario="without_time_to_wait",
    ),
    Explained(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        "topics[0].*",
        "Kafka fails on an empty name (UNKNOWN_SERVER_ERROR); ours says that it is invalid.",
        scenario="a_name_that_no_topic_can_have",
    ),
    Explained(
        ApiKey.METADATA,
        "*",
        "Kafka fails on a topic with neither name nor id (UNKNOWN_SERVER_ERROR for all that was "
        "asked); ours refuses that topic alone.",
        scenario="a_null_name",
        versions=range(12, 14),
    ),
)
