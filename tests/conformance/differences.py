"""Where our answers are not Apache Kafka's, and why: the whole list.

A difference without a line here fails the test, and so does a line that explains nothing
any more. `*` in a scenario or path stands for anything, `{a|b}` for one of these. In the
order of the APIs' names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from mobula.protocol.api import ApiKey
from tests.conformance.compare import MISSING, Differs


@dataclass(frozen=True, slots=True)
class Explained:
    api: ApiKey
    path: str
    why: str
    """One sentence."""
    scenario: str = "*"
    versions: range | None = None
    """All, when not said."""
    wording: bool = False
    """Both sides say something, in other words: one that is silent is not covered."""
    ours_says: bool = False
    """Ours says something, whether Kafka does or not."""

    def covers(self, api: ApiKey, scenario: str, version: int, differs: Differs) -> bool:
        return (
            api == self.api
            and (self.versions is None or version in self.versions)
            and _matches(self.scenario, scenario)
            and _matches(self.path, differs.path)
            and (not self.wording or all(_says(v) for v in (differs.kafka, differs.ours)))
            and (not self.ours_says or _says(differs.ours))
        )


def _says(value: object) -> bool:
    return isinstance(value, str) and value not in ("", MISSING)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    wild = {"*": ".*", "{": "(?:", "|": "|", "}": ")"}
    return re.compile("".join(wild.get(char, re.escape(char)) for char in text))


def _matches(pattern: str, text: str) -> bool:
    return _pattern(pattern).fullmatch(text) is not None


def _advertised(*keys: range | int) -> str:
    """The path of APIs that Kafka has in its answer and we have not."""
    flat = [key for run in keys for key in (run if isinstance(run, range) else (run,))]
    return f"api_keys[{_any_of(*map(str, flat))}]"


def _any_of(*names: str) -> str:
    return f"{{{'|'.join(names)}}}"


_ONE_OF_THE_REFUSED = _any_of(
    "a_batch_*",
    "a_codec_*",
    "a_compacted_*",
    "a_control_batch",
    "a_gap",
    "a_length_*",
    "a_new_epoch_*",
    "a_producer_id_*",
    "a_topic_with_log_append_time",
    "an_offset_*",
    "an_old_epoch",
    "counts_*",
    "sent_again_too_late",
    "times_*",
)

EXPLAINED: tuple[Explained, ...] = (
    Explained(
        ApiKey.API_VERSIONS,
        _advertised(range(8, 17), 42, 47, 68, 69),
        "There are no consumer groups yet.",
    ),
    Explained(
        ApiKey.API_VERSIONS,
        _advertised(range(24, 29), 61, 65, 66),
        "There are no transactions yet.",
    ),
    Explained(
        ApiKey.API_VERSIONS,
        _advertised(range(76, 80), range(83, 93)),
        "There are no share groups and no streams groups.",
    ),
    Explained(
        ApiKey.API_VERSIONS,
        _advertised(17, range(29, 32), 36, range(38, 42), range(48, 52)),
        "There is no authentication, and there are no ACLs and no quotas.",
    ),
    Explained(
        ApiKey.API_VERSIONS,
        _advertised(34, 43, 45, 46, 55, 57, 64, 74, 80, 81),
        "Partitions are not moved or elected by request, and there is no quorum to change.",
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
        wording=True,
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
        ApiKey.FETCH,
        "*",
        "Followers serve no reads: that saves traffic between racks, and consumers ask the leader.",
        scenario="a_follower",
    ),
    Explained(
        ApiKey.FETCH,
        "*",
        "Followers pull on links of their own; who fetches with a replica id is a consumer here.",
        scenario="who_is_no_consumer",
    ),
    Explained(
        ApiKey.FETCH,
        "*",
        "Kafka fails on a limit below zero (UNKNOWN_SERVER_ERROR); ours takes it as 0, "
        "and the first batch comes whole.",
        scenario="a_limit_below_zero",
    ),
    Explained(
        ApiKey.FETCH,
        "*",
        "Kafka fails on an isolation level that does not exist (UNKNOWN_SERVER_ERROR); ours "
        "takes it as read_uncommitted.",
        scenario="isolation_levels_that_do_not_exist",
    ),
    Explained(
        ApiKey.FETCH,
        "*",
        "Kafka fails on an id that it never gives out (UNKNOWN_SERVER_ERROR); to ours it is "
        "as unknown as any other.",
        scenario="an_id_that_no_session_can_have",
    ),
    Explained(
        ApiKey.INIT_PRODUCER_ID,
        "error_code",
        "There are no transactions yet, so a transactional id is refused whatever its timeout.",
        scenario="a_transactional_id",
    ),
    Explained(
        ApiKey.LIST_OFFSETS,
        "*",
        "Kafka fails on an isolation level that does not exist (UNKNOWN_SERVER_ERROR); ours takes "
        "it as read_uncommitted.",
        scenario="isolation_levels_that_do_not_exist",
    ),
    Explained(
        ApiKey.LIST_OFFSETS,
        "topics[*].partitions[0].leader_epoch",
        "The epoch of the earliest offset is optional; a follower's gateway does not know it.",
        scenario="a_replica_that_is_asked_for_debugging",
    ),
    Explained(
        ApiKey.METADATA,
        "*",
        "Kafka fails on a topic with neither name nor id (UNKNOWN_SERVER_ERROR for all that was "
        "asked); ours refuses that topic alone.",
        scenario="a_null_name",
        versions=range(12, 14),
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*].partition_responses[*].error_message",
        "Ours says what is wrong with a batch; Kafka says it of some errors, in its own words.",
        ours_says=True,
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*].partition_responses[*].record_errors[*]",
        "Which of its records a batch is refused for is not listed; the message tells of the "
        "first.",
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*].partition_responses[*].log_start_offset",
        "Where the log begins is told of batches that were written; Kafka tells it of some "
        "that were refused.",
        scenario=_ONE_OF_THE_REFUSED,
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*]*",
        "Kafka writes the last of them alone, and the others are lost in silence; ours "
        "writes them all and answers each.",
        scenario="a_partition_named_twice",
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[{nobody|00000000-*}].partition_responses[0].error_code",
        "Ours refuses acks before it looks for the partitions.",
        scenario="acks_that_do_not_exist",
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*]*",
        "There are no transactions yet.",
        scenario="{a_transactional_producer|a_transactional_batch}",
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*]*",
        "Kafka cuts off what is no batch and takes the one before it; ours takes one batch "
        "and nothing else.",
        scenario="bytes_after_a_batch",
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*].partition_responses[*].error_code",
        "Kafka fails (UNKNOWN_SERVER_ERROR); ours says what is wrong.",
        scenario="{a_codec_that_does_not_exist|a_length_that_no_batch_has}",
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*]*",
        "Kafka refuses this flag only where the topic has log append time; ours always.",
        scenario="log_append_time_of_the_clients",
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*]*",
        "Kafka takes -1 as an epoch like any other; ours refuses it.",
        scenario="a_producer_id_without_an_epoch",
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*]*",
        "Records stay closed on the way to the disk: that they can be read is the client's "
        "word, and their checksum is checked.",
        scenario="records_that_are_damaged",
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*].partitions[*].records[*].{batch_length|crc}",
        "The topic's codec is another implementation of it.",
        scenario="a_topic_with_a_codec_of_its_own",
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*].partition_responses[*].log_append_time",
        "Of a batch that was sent again Kafka tells the batch's own time as log append time, "
        "also where the topic has none.",
        scenario="{sent_again*|the_largest_sequence}",
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*].partition_responses[*].error_code",
        "Ours asks who leads before it looks at the batch.",
        scenario="zstd_before_its_version_and_of_a_follower",
    ),
)
