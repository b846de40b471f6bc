"""`mobula topic`: create, list, describe, delete, add-partitions, config."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mobula.cluster.commands.arguments import AsJson, Bootstrap, Name, help_without_command, pairs
from mobula.cluster.commands.client import (
    TIMEOUT_S,
    admin_api,
    admin_client,
    answer,
    asked,
    find_bootstrap,
    report,
)
from mobula.cluster.commands.output import counted, print_json, print_table
from mobula.cluster.options import DEFAULT_NAME, ClusterError, UsageError

if TYPE_CHECKING:
    pass

app = typer.Typer(
    help="Create, look at and change topics.",
    invoke_without_command=True,
    callback=help_without_command,
)

Topic = Annotated[str, typer.Argument(metavar="NAME")]
Topics = Annotated[list[str], typer.Argument(metavar="NAME")]


@app.command()
def create(
    topics: Topics,
    *,
    partitions: Annotated[
        int | None, typer.Option("-p", "--partitions", help="Default: num.partitions.")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option("-r", "--replicas", help="Default: default.replication.factor.")
    ] = None,
    configs: Annotated[
        list[str] | None,
        typer.Option("-c", "--config", metavar="KEY=VALUE", help="A topic key. Repeat it."),
    ] = None,
    bootstrap: Bootstrap = None,
    name: Name = DEFAULT_NAME,
) -> None:
    """Create topics."""
    settings = dict(pairs(configs, "-c"))
    for count, option in ((partitions, "-p"), (replicas, "-r")):
        if count is not None and count < 1:
            raise UsageError(f"{option} {count}: must be at least 1")
    admin = admin_client(find_bootstrap(bootstrap, name))
    futures = admin.create_topics(
        [
            admin_api().NewTopic(
                topic,
                num_partitions=-1 if partitions is None else partitions,
                replication_factor=-1 if replicas is None else replicas,
                config=settings,
            )
            for topic in dict.fromkeys(topics)
        ],
        request_timeout=TIMEOUT_S,
    )
    report(futures, "topic", "created")


@app.command("list")
def list_topics(
    as_json: AsJson = False, bootstrap: Bootstrap = None, name: Name = DEFAULT_NAME
) -> None:
    """All topics."""
    admin = admin_client(find_bootstrap(bootstrap, name))
    metadata = asked(lambda: admin.list_topics(timeout=TIMEOUT_S), "the list of topics")
    rows = [_summary(metadata.topics[topic]) for topic in sorted(metadata.topics)]
    if as_json:
        print_json(rows)
    else:
        print_table(
            ("NAME", "PARTITIONS", "REPLICAS"),
            [(row["name"], row["partitions"], row["replicas"]) for row in rows],
        )


@app.command()
def describe(
    topic: Topic,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    name: Name = DEFAULT_NAME,
) -> None:
    """A topic's partitions and what was configured for it."""
    admin = admin_client(find_bootstrap(bootstrap, name))
    metadata = _metadata(admin, topic)
    partitions = _partitions(admin, metadata)
    configs = {entry.name: entry.value for entry in _configs(admin, topic) if not entry.is_default}
    if as_json:
        print_json({**_summary(metadata), "partitions": partitions, "configs": configs})
        return
    summary = _summary(metadata)
    typer.echo(
        f"{topic}: {counted(summary['partitions'], 'partition')}, "
        f"{counted(summary['replicas'], 'replica')}"
    )
    print_table(
        ("PARTITION", "LEADER", "REPLICAS", "ISR", "START", "END"),
        [
            (
                row["partition"],
                "none" if row["leader"] < 0 else row["leader"],
                _ids(row["replicas"]),
                _ids(row["isr"]),
                "?" if row["start"] is None else row["start"],
                "?" if row["end"] is None else row["end"],
            )
            for row in partitions
        ],
    )
    for key, value in configs.items():
        typer.echo(f"{key}={value}")


@app.command()
def delete(topics: Topics, bootstrap: Bootstrap = None, name: Name = DEFAULT_NAME) -> None:
    """Delete topics and all that is in them."""
    admin = admin_client(find_bootstrap(bootstrap, name))
    futures = admin.delete_topics(list(dict.fromkeys(topics)), request_timeout=TIMEOUT_S)
    report(futures, "topic", "deleted")


@app.command("add-partitions")
def add_partitions(
    topic: Topic,
    more: Annotated[int, typer.Option("-n", "--num", help="How many more.")],
    bootstrap: Bootstrap = None,
    name: Name = DEFAULT_NAME,
) -> None:
    """Give a topic more partitions. Keys may then go to other partitions than before."""
    if more < 1:
        raise UsageError(f"-n {more}: must be at least 1")
    admin = admin_client(find_bootstrap(bootstrap, name))
    total = len(_metadata(admin, topic).partitions) + more
    futures = admin.create_partitions(
        [admin_api().NewPartitions(topic, total)], request_timeout=TIMEOUT_S
    )
    answer(futures[topic], f"topic {topic}")
    typer.echo(f"topic {topic} has {counted(total, 'partition')}")


@app.command()
def config(
    topic: Topic,
    *,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key. Repeat it."),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="KEY", help="Back to the default. Repeat it."),
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    name: Name = DEFAULT_NAME,
) -> None:
    """A topic's configuration, after changing it if --set or --unset say so."""
    changes = pairs(settings, "--set")
    _check_known(unset or [])
    admin = admin_client(find_bootstrap(bootstrap, name))
    _metadata(admin, topic)
    if changes or unset:
        _alter(admin, topic, changes, unset or [])
        _wait_for(admin, topic, dict(changes), unset or [])
    entries = sorted(_configs(admin, topic), key=lambda entry: entry.name)
    if as_json:
        print_json([_config_document(entry) for entry in entries])
    else:
        print_table(
            ("KEY", "VALUE", "SOURCE"),
            [(entry.name, entry.value, _source(entry)) for entry in entries],
        )


_APPLIED_WITHIN_S = 3.0
_OWN_SOURCE = "dynamic_topic_config"


def _check_known(keys: list[str]) -> None:
    """A cluster takes it for done that a key it does not know is not set."""
    from mobula.actors.config import ConfigError
    from mobula.actors.config.definitions import Scope, definition

    for key in keys:
        try:
            definition(key, Scope.TOPIC)
        except ConfigError as error:
            raise UsageError(f"--unset {key}: {error}") from None


def _alter(admin: Any, topic: str, changes: list[tuple[str, str]], unset: list[str]) -> None:
    api = admin_api()
    operation = api.AlterConfigOpType
    entries = [
        api.ConfigEntry(key, value, incremental_operation=operation.SET) for key, value in changes
    ] + [api.ConfigEntry(key, None, incremental_operation=operation.DELETE) for key in unset]
    resource = api.ConfigResource(api.ResourceType.TOPIC, topic, incremental_configs=entries)
    futures = admin.incremental_alter_configs([resource], request_timeout=TIMEOUT_S)
    answer(futures[resource], f"topic {topic}")


def _wait_for(admin: Any, topic: str, changes: dict[str, str], unset: list[str]) -> None:
    """The controller has it; the broker that is asked next may hear of it a moment later."""
    deadline = time.monotonic() + _APPLIED_WITHIN_S
    while time.monotonic() < deadline:
        entries = {entry.name: entry for entry in _configs(admin, topic)}
        own = {name for name, entry in entries.items() if _source(entry) == _OWN_SOURCE}
        changed = all(entries[key].value == value for key, value in changes.items())
        if changed and own.isdisjoint(unset):
            return
        time.sleep(0.05)


def _metadata(admin: Any, topic: str) -> Any:
    """Of all topics, because asking for one by name may create it."""
    metadata = asked(lambda: admin.list_topics(timeout=TIMEOUT_S), "the list of topics")
    found = metadata.topics.get(topic)
    if found is None:
        raise ClusterError(f"topic {topic} does not exist")
    return found


def _configs(admin: Any, topic: str) -> list[Any]:
    api = admin_api()
    resource = api.ConfigResource(api.ResourceType.TOPIC, topic)
    futures = admin.describe_configs([resource], request_timeout=TIMEOUT_S)
    return list(answer(futures[resource], f"topic {topic}").values())


def _partitions(admin: Any, topic: Any) -> list[dict[str, Any]]:
    from confluent_kafka import TopicPartition

    specs = admin_api().OffsetSpec
    # A partition without a leader cannot say its offsets, and asking would take long.
    led = [index for index, partition in topic.partitions.items() if partition.leader >= 0]

    def offsets(spec: Any) -> dict[int, int]:
        if not led:
            return {}
        asks = {TopicPartition(topic.topic, index): spec for index in led}
        futures = admin.list_offsets(asks, request_timeout=TIMEOUT_S)
        return {
            partition.partition: answer(future, f"topic {topic.topic}").offset
            for partition, future in futures.items()
        }

    starts, ends = offsets(specs.earliest()), offsets(specs.latest())
    return [
        {
            "partition": index,
            "leader": partition.leader,
            "replicas": list(partition.replicas),
            "isr": list(partition.isrs),
            "start": starts.get(index),
            "end": ends.get(index),
        }
        for index, partition in sorted(topic.partitions.items())
    ]


def _summary(topic: Any) -> dict[str, Any]:
    replicas = [len(partition.replicas) for partition in topic.partitions.values()]
    return {
        "name": topic.topic,
        "partitions": len(topic.partitions),
        "replicas": max(replicas, default=0),
    }


def _config_document(entry: Any) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": _source(entry),
        "default": entry.is_default,
    }


def _source(entry: Any) -> str:
    name: str = admin_api().ConfigSource(entry.source).name
    return name.lower()


def _ids(numbers: list[int]) -> str:
    return ",".join(str(number) for number in numbers)
