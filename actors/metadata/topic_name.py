"""Which names a topic may have (Kafka's rules, in Kafka's words), and which are internal."""

from __future__ import annotations

import re

from mobula.protocol.errors import ErrorCode, KafkaError

MAX_NAME_LENGTH = 249
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", CLUSTER_METADATA_TOPIC}
)

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def topic_name_problem(name: str) -> str | None:
    """What is wrong with it, as one sentence; None when it is a good name."""
    reason = _illegal(name)
    return None if reason is None else f"Topic name is invalid: {reason}"


def validate_topic_name(name: str) -> None:
    """KafkaError INVALID_TOPIC_EXCEPTION with the reason when no topic can be called that."""
    problem = topic_name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.invalid_topic_exception, problem)


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def collision_key(name: str) -> str:
    """Equal for names that metrics cannot tell apart: they may not exist side by side."""
    return name.replace(".", "_")


def _illegal(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None
