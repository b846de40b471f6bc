"""Where our answers are not Apache Kafka's, and why: the whole list.

A difference without a line here fails the test, and so does a line that explains nothing
any more. In the order of the APIs' names.
"""

from __future__ import annotations

from mobula.actors.config.definitions import BROKER_KEYS, TOPIC_KEYS
from mobula.protocol.api import ApiKey
from tests.conformance.explained import Explained, any_of


def _advertised(*keys: range | int) -> str:
    """The path of APIs that Kafka has in its answer and we have not."""
    flat = [key for run in keys for key in (run if isinstance(run, range) else (run,))]
    return f"api_keys[{any_of(*map(str, flat))}]"


_KEYS = (*BROKER_KEYS.values(), *TOPIC_KEYS.values())
_OUR_KEYS = any_of(*sorted(key.name for key in _KEYS if key.ours))
_OUR_DEFAULTS = any_of(*sorted(key.name for key in _KEYS if key.why))
_ONE_OF_THE_REFUSED = any_of(
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
        ApiKey.ALTER_CONFIGS,
        "responses[*].error_message",
        "What is wrong with a configuration is said in our words, all of it at once; they name "
        "the nearest key.",
        scenario="{settings_of_*_that_cannot_be|without_changing_anything}",
        wording=True,
    ),
    Explained(
        ApiKey.ALTER_CONFIGS,
        "responses[4].error_*",
        "Kafka takes settings of a broker from that broker alone; ours from any, so it looks "
        "whether there is such a broker.",
        scenario="brokers_that_are_not_there",
    ),
    Explained(
        ApiKey.ALTER_CONFIGS,
        "responses[4].error_*",
        "Kafka takes keys of brokers that it does not know; ours refuses what would do nothing.",
        scenario="keys_that_brokers_do_not_have",
    ),
    Explained(
        ApiKey.ALTER_CONFIGS,
        "responses[4].error_*",
        "Kafka keeps min.insync.replicas in the cluster's configuration for the sake of eligible "
        "leader replicas, which are not here, and does not let it be replaced.",
        scenario="settings_of_all_brokers",
    ),
    Explained(
        ApiKey.ALTER_CONFIGS,
        "responses[{16|32}].error_*",
        "Client metrics and groups have no configuration, as there are none.",
        scenario="other_kinds_of_resources",
    ),
    Explained(
        ApiKey.API_VERSIONS,
        _advertised(68, 69),
        "There are no groups with the consumer protocol yet.",
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
        ApiKey.CREATE_PARTITIONS,
        "results[*]*",
        "Kafka fails on more than 10,000 new partitions (UNKNOWN_SERVER_ERROR); ours refuses them "
        "as both do in CreateTopics.",
        scenario="more_than_a_request_may_make",
    ),
    Explained(
        ApiKey.CREATE_PARTITIONS,
        "results[*]*",
        "Kafka's controller refuses a request with no time left before it looks at it; ours "
        "answers what became of the topic.",
        scenario="without_time_to_wait",
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
        ApiKey.DESCRIBE_CONFIGS,
        "results[*].configs[*]",
        "Kafka's keys that mean nothing here: `mobula config explain KEY` says why of each.",
        scenario="{a_broker|a_topic|an_empty_list_of_keys|documentation}",
        only_kafkas=True,
    ),
    Explained(
        ApiKey.DESCRIBE_CONFIGS,
        f"results[*].configs[{_OUR_KEYS}]",
        "Keys of our own.",
    ),
    Explained(
        ApiKey.DESCRIBE_CONFIGS,
        f"results[4].configs[{_OUR_DEFAULTS}]{{.value|.synonyms*.value}}",
        "Our default is another on purpose: docs/configuration.md says why of each.",
        scenario="a_broker",
    ),
    Explained(
        ApiKey.DESCRIBE_CONFIGS,
        "results[4].configs[{listeners|max.connections|max.connections.per.ip|num.io.threads"
        "|num.network.threads|producer.id.expiration.ms}].read_only",
        "Read once, when an actor starts, so it cannot be changed while the cluster runs.",
    ),
    Explained(
        ApiKey.DESCRIBE_CONFIGS,
        "results[4].configs[{advertised.listeners|listeners|num.network.threads}]"
        "{.value|.config_source|.synonyms*}",
        "The launcher tells each broker its address, without a controller's listener, and how "
        "many gateways it has.",
    ),
    Explained(
        ApiKey.DESCRIBE_CONFIGS,
        "results[4].configs[log.dir]*source",
        "The launcher gives the folder under both its names.",
    ),
    Explained(
        ApiKey.DESCRIBE_CONFIGS,
        "results[4].configs[broker.id].synonyms[broker.id#1]",
        "The launcher gives the number, so there is no default behind it.",
    ),
    Explained(
        ApiKey.DESCRIBE_CONFIGS,
        "results[*].configs[min.insync.replicas]{.config_source|.synonyms*|}",
        "Kafka copies the brokers' value into the cluster's configuration for the sake of "
        "eligible leader replicas, which are not here.",
    ),
    Explained(
        ApiKey.DESCRIBE_CONFIGS,
        "results[2].configs[{delete.retention.ms|max.compaction.lag.ms|min.cleanable.dirty.ratio"
        "|min.compaction.lag.ms|preallocate}].synonyms*",
        "Brokers do not have the key behind it: there is no log cleaner, and segments are not "
        "preallocated.",
    ),
    Explained(
        ApiKey.DESCRIBE_CONFIGS,
        "results[2*].error_message",
        "Kafka says nothing beside the code; ours names the topic.",
        scenario="a_topic_that_is_not_there",
    ),
    Explained(
        ApiKey.DESCRIBE_CONFIGS,
        "results[*]*",
        "Kafka fails the whole request on a type of resource that there is not; ours refuses "
        "that resource alone.",
        scenario="kinds_of_resources_that_are_not_there",
    ),
    Explained(
        ApiKey.DESCRIBE_CONFIGS,
        "results[{8|16|32}]*",
        "Loggers, client metrics and groups have no configuration, as there are none.",
        scenario="other_kinds_of_resources",
    ),
    Explained(
        ApiKey.DESCRIBE_CONFIGS,
        "results[2*",
        "A resource that is named twice is described once, with the keys of both: a few bytes "
        "of a request must not make an answer of any size.",
        scenario="the_same_resource_twice",
    ),
    Explained(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        "topics[0].*",
        "Kafka fails on an empty name (UNKNOWN_SERVER_ERROR); ours says that it is invalid.",
        scenario="a_name_that_no_topic_can_have",
    ),
    Explained(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "responses[*].error_message",
        "What is wrong with a configuration is said in our words, all of it at once; they name "
        "the nearest key.",
        scenario="{operations_that_cannot_be|values_*|without_changing_anything}",
        wording=True,
    ),
    Explained(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "responses[*].error_*",
        "Kafka fails on an operation that there is not (UNKNOWN_SERVER_ERROR); ours says so.",
        scenario="operations_that_there_are_not",
    ),
    Explained(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "responses[*].error_*",
        "Segments may be smaller than Kafka's 1 MiB, which finer retention and tests use.",
        scenario="segments_smaller_than_a_mebibyte",
    ),
    Explained(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "responses[2].error_*",
        "Ours refuses what would do nothing: a limit below -1, preallocation, unclean elections.",
        scenario="values_that_would_change_nothing",
    ),
    Explained(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "responses[4].error_*",
        "Kafka takes settings of a broker from that broker alone; ours from any, so it looks "
        "whether there is such a broker.",
        scenario="{brokers_that_are_not_there|of_another_broker_than_is_asked}",
    ),
    Explained(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "responses[4].error_*",
        "Kafka takes keys of brokers that it does not know; ours refuses what would do nothing.",
        scenario="keys_that_brokers_do_not_have",
    ),
    Explained(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "responses[{8|16|32}].error_*",
        "Loggers, client metrics and groups have no configuration, as there are none.",
        scenario="other_kinds_of_resources",
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
        "responses[*].partition_responses[*].record_errors[*].batch_index_error_message",
        "Why a record keeps its batch out is said in our words.",
        wording=True,
    ),
    Explained(
        ApiKey.PRODUCE,
        "responses[*].partition_responses[*].record_errors[*]",
        "A batch that its header alone condemns is refused without a look at its records.",
        scenario="{a_topic_with_log_append_time|times_*}",
        only_kafkas=True,
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
