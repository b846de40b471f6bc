"""Kafka clients for the commands, and their errors as sentences.

The commands are ordinary Kafka clients: what they can do, any client can.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from mobula.cluster.options import ClusterError, LaunchError, UsageError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka import Consumer, KafkaError, Producer

TIMEOUT_S = 15.0
_CONNECT_TIMEOUT_S = 3.0

T = TypeVar("T")


def find_bootstrap(bootstrap: str | None, name: str) -> str:
    """Brokers that answer, given or of the cluster of that name; an error says why not."""
    if bootstrap is None:
        from mobula.cluster.state import find_cluster

        bootstrap = find_cluster(name).bootstrap
    addresses = [_address(text) for text in bootstrap.split(",") if text.strip()]
    if not addresses:
        raise UsageError("--bootstrap is empty; it is HOST:PORT,...")
    # A Kafka client retries silently for many seconds; a refused port is known at once.
    if not any(_answers(address) for address in addresses):
        raise LaunchError(
            f"no broker answers at {bootstrap}; see `mobula status`, or start one with `mobula up`"
        )
    return bootstrap


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"{text.strip()!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def _answers(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=_CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def admin_api() -> Any:
    """confluent-kafka's admin module, untyped: types cannot follow what it re-exports."""
    import confluent_kafka.admin

    return confluent_kafka.admin


def admin_client(bootstrap: str) -> Any:
    return admin_api().AdminClient(_settings(bootstrap))


def producer(bootstrap: str, **settings: Any) -> Producer:
    from confluent_kafka import Producer

    return Producer({**_settings(bootstrap), **settings})


def consumer(bootstrap: str, **settings: Any) -> Consumer:
    """For `assign` alone: no group is joined and nothing is committed."""
    from confluent_kafka import Consumer

    return Consumer(
        {
            **_settings(bootstrap),
            "group.id": "mobula-cli",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            # Its default goes on at the end, and records are passed over without a word.
            "auto.offset.reset": "error",
            **settings,
        }
    )


def _settings(bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "client.id": "mobula",
        # Its own log lines would stand between ours; what matters comes back as an error.
        "log_level": 0,
        "error_cb": _ignore,
    }


def _ignore(_: object) -> None: ...


def asked(call: Callable[[], T], what: str) -> T:
    """The call's result; what the cluster refuses or fails becomes one sentence."""
    from confluent_kafka import KafkaException

    try:
        return call()
    except KafkaException as error:
        raise refusal(error.args[0], what) from None


def answer(future: Future[T], what: str) -> T:
    return asked(lambda: future.result(timeout=TIMEOUT_S + 5), what)


def report(futures: Mapping[str, Future[Any]], kind: str, done: str) -> None:
    """Each thing for itself: one that fails does not hide that others went well."""
    failures = []
    for name, future in futures.items():
        try:
            answer(future, f"{kind} {name}")
        except ClusterError as error:
            failures.append(str(error))
        else:
            typer.echo(f"{done} {kind} {name}")
    if failures:
        raise ClusterError("\n".join(failures))


def refusal(error: KafkaError, what: str) -> ClusterError:
    """`what` names the thing: "topic greetings"."""
    from confluent_kafka import KafkaError

    match error.code():
        case KafkaError.TOPIC_ALREADY_EXISTS:
            return ClusterError(f"{what} exists already")
        case KafkaError.UNKNOWN_TOPIC_OR_PART | KafkaError._UNKNOWN_TOPIC:
            return ClusterError(f"{what} does not exist")
        case KafkaError._TRANSPORT | KafkaError._TIMED_OUT | KafkaError._ALL_BROKERS_DOWN:
            return ClusterError(f"{what}: no answer in time; see `mobula status`")
        case _:
            return ClusterError(f"{what}: {error.str() or error.name()}")
