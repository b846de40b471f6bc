"""`mobula group`: list, describe, seek, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mobula.cluster.commands.arguments import AsJson, Bootstrap, Name, help_without_command
from mobula.cluster.commands.client import (
    TIMEOUT_S,
    admin_client,
    answer,
    asked,
    consumer,
    find_bootstrap,
    report,
)
from mobula.cluster.commands.consume import placed
from mobula.cluster.commands.output import counted, print_json, print_table
from mobula.cluster.commands.position import parse_position
from mobula.cluster.options import DEFAULT_NAME, ClusterError

if TYPE_CHECKING:
    pass

app = typer.Typer(
    help="Look at consumer groups, move their offsets, delete them.",
    invoke_without_command=True,
    callback=help_without_command,
)

Group = Annotated[str, typer.Argument(metavar="NAME")]
Groups = Annotated[list[str], typer.Argument(metavar="NAME")]


@app.command("list")
def list_groups(
    as_json: AsJson = False, bootstrap: Bootstrap = None, name: Name = DEFAULT_NAME
) -> None:
    """All groups."""
    admin = admin_client(find_bootstrap(bootstrap, name))
    found = answer(admin.list_consumer_groups(request_timeout=TIMEOUT_S), "the list of groups")
    if found.errors:
        raise ClusterError(f"the list of groups is not whole: {found.errors[0]}")
    rows = [
        {"name": group.group_id, "state": group.state.name.lower(), "type": group.type.name.lower()}
        for group in sorted(found.valid, key=lambda group: str(group.group_id))
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(("NAME", "STATE", "TYPE"), [tuple(row.values()) for row in rows])


@app.command()
def describe(
    group: Group, as_json: AsJson = False, bootstrap: Bootstrap = None, name: Name = DEFAULT_NAME
) -> None:
    """A group's members, and how far behind it is in each partition."""
    brokers = find_bootstrap(bootstrap, name)
    admin = admin_client(brokers)
    described = _described(admin, group)
    owners = {
        (place.topic, place.partition): member
        for member in described.members
        for place in member.assignment.topic_partitions
    }
    partitions = _lags(admin, brokers, group, owners)
    members = [
        {"id": m.member_id, "client": m.client_id, "host": m.host} for m in described.members
    ]
    state = described.state.name.lower()
    if as_json:
        print_json({"name": group, "state": state, "members": members, "partitions": partitions})
        return
    typer.echo(f"{group}: {state}, {counted(len(members), 'member')}")
    print_table(
        ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT", "HOST"),
        [tuple("-" if cell is None else cell for cell in row.values()) for row in partitions],
    )


@app.command()
def seek(
    group: Group,
    *,
    topic: Annotated[str, typer.Option("-t", "--topic", help="Of the offsets to move.")],
    offset: Annotated[
        str,
        typer.Option("-o", "--offset", help="start, end, N, -N (the last N), @TIME (ms or ISO)."),
    ],
    partition: Annotated[
        int | None, typer.Option("-p", "--partition", help="Only this one.")
    ] = None,
    bootstrap: Bootstrap = None,
    name: Name = DEFAULT_NAME,
) -> None:
    """Move a group's offsets. Nobody may be in it."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    position = parse_position(offset)
    brokers = find_bootstrap(bootstrap, name)
    admin = admin_client(brokers)
    if _described(admin, group, unknown_is_empty=True).members:
        raise ClusterError(f"group {group} has members; stop them first")
    client = consumer(brokers)
    try:
        found = placed(client, topic, partition, position)
        ends = {
            place.partition: client.get_watermark_offsets(
                TopicPartition(topic, place.partition), timeout=TIMEOUT_S
            )
            for place in found
        }
    finally:
        client.close()
    for place in found:
        low, high = ends[place.partition]
        if place.offset < 0:
            place.offset = low if position_is_start(place.offset) else high
    futures = admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, found)], request_timeout=TIMEOUT_S
    )
    for place in answer(futures[group], f"group {group}").topic_partitions:
        if place.error is not None:
            raise ClusterError(f"partition {place.partition} of {topic}: {place.error.str()}")
    for place in found:
        typer.echo(f"{topic} {place.partition} is at {place.offset}")


@app.command()
def delete(groups: Groups, bootstrap: Bootstrap = None, name: Name = DEFAULT_NAME) -> None:
    """Delete groups without members, and the offsets that they committed."""
    admin = admin_client(find_bootstrap(bootstrap, name))
    futures = admin.delete_consumer_groups(list(dict.fromkeys(groups)), request_timeout=TIMEOUT_S)
    report(futures, "group", "deleted")


def position_is_start(offset: int) -> bool:
    from confluent_kafka import OFFSET_BEGINNING

    return offset == OFFSET_BEGINNING


def _described(admin: Any, group: str, *, unknown_is_empty: bool = False) -> Any:
    futures = admin.describe_consumer_groups([group], request_timeout=TIMEOUT_S)
    found = answer(futures[group], f"group {group}")
    if found.state is _states().DEAD and not unknown_is_empty:
        raise ClusterError(f"group {group} does not exist")
    return found


def _states() -> Any:
    from confluent_kafka import ConsumerGroupState

    return ConsumerGroupState


def _lags(
    admin: Any, brokers: str, group: str, owners: dict[tuple[str, int], Any]
) -> list[dict[str, Any]]:
    """A row for each partition that has a committed offset or an owner."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    futures = admin.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group)], request_timeout=TIMEOUT_S
    )
    committed = {
        (place.topic, place.partition): place.offset
        for place in answer(futures[group], f"group {group}").topic_partitions
        if place.offset >= 0
    }
    places = sorted({*committed, *owners})
    client = consumer(brokers)
    try:
        ends = {
            place: asked(
                lambda place=place: client.get_watermark_offsets(  # type: ignore[misc]
                    TopicPartition(*place), timeout=TIMEOUT_S
                ),
                f"partition {place[1]} of topic {place[0]}",
            )[1]
            for place in places
        }
    finally:
        client.close()
    return [_row(place, committed.get(place), ends[place], owners.get(place)) for place in places]


def _row(place: tuple[str, int], committed: int | None, end: int, owner: Any) -> dict[str, Any]:
    return {
        "topic": place[0],
        "partition": place[1],
        "committed": committed,
        "end": end,
        "lag": None if committed is None else max(0, end - committed),
        "client": None if owner is None else owner.client_id,
        "host": None if owner is None else owner.host,
    }
