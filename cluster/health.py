"""Is the cluster well, and if not: why, and what to do next. Judged from the status alone."""

from __future__ import annotations

from dataclasses import dataclass

from mobula.cluster.document import StatusDocument
from mobula.cluster.options import DEFAULT_NAME


@dataclass(frozen=True, slots=True)
class Health:
    well: bool
    sentence: str
    next_command: str | None = None


def judge(document: StatusDocument) -> Health:
    """The gravest cause first: the others often follow from it."""
    option = "" if document["name"] == DEFAULT_NAME else f" --name {document['name']}"
    again = f"mobula status{option}"
    restart = f"mobula down{option} && mobula up{option}"
    if document["controller"] is None:
        return Health(
            False, "the controller does not answer, so nothing can be created or changed", again
        )
    dead = [broker["id"] for broker in document["brokers"] if broker["state"] == "dead"]
    partitions = document["partitions"]
    if partitions["offline"]:
        cause = f", because {_brokers(dead)} dead" if dead else ""
        return Health(
            False,
            f"{partitions['offline']} of {partitions['total']} partitions have no leader{cause}",
            restart if dead else again,
        )
    if dead:
        return Health(False, f"{_brokers(dead)} dead", restart)
    waiting = [broker for broker in document["brokers"] if broker["state"] != "running"]
    if waiting:
        words = ", ".join(f"broker {broker['id']} is {broker['state']}" for broker in waiting)
        return Health(False, words, again)
    if partitions["under_replicated"]:
        return Health(
            False,
            f"{partitions['under_replicated']} of {partitions['total']} partitions have "
            "replicas that are not in sync yet",
            again,
        )
    down = [link for link in document["links"] if link["transport"] == "down"]
    if down:
        first = down[0]
        more = f" (and {len(down) - 1} more)" if len(down) > 1 else ""
        return Health(False, f"the link {first['from']} -> {first['to']} is down{more}", again)
    return Health(True, "healthy")


def _brokers(ids: list[int]) -> str:
    if len(ids) == 1:
        return f"broker {ids[0]} is"
    return f"brokers {', '.join(str(number) for number in ids)} are"
