"""InitProducerId: for an idempotent producer, and for transactions."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.data import given_producer_id
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import Tree, encode_request

API = ApiKey.INIT_PRODUCER_ID
WITH_FORMER_ID = range(3, 6)


def asking(
    transactional_id: str | None = None,
    producer_id: int = -1,
    epoch: int = -1,
    timeout: int = 60_000,
) -> Tree:
    return {
        "transactional_id": transactional_id,
        "transaction_timeout": timeout,
        "producer_id": producer_id,
        "producer_epoch": epoch,
    }


@scenario(API, good=True)
def an_idempotent_producer(on: Side, version: int) -> None:
    ids = {given_producer_id(on, broker) for broker in range(3)}
    for broker in (0, 1, 2, 0):
        ids.add(on.ask(broker, API, version, asking())["producer_id"])
    assert len(ids) == 7


@scenario(API, good=True)
def any_timeout_without_transactions(on: Side, version: int) -> None:
    given_producer_id(on, 0)
    for timeout in (0, -1, (1 << 31) - 1):
        on.ask(0, API, version, asking(timeout=timeout))


@scenario(API, good=True, versions=WITH_FORMER_ID)
def a_producer_that_had_an_id(on: Side, version: int) -> None:
    former = given_producer_id(on, 0)
    for producer_id, epoch in ((former, 0), (former, 32_767), (1 << 40, 3)):
        given = on.ask(0, API, version, asking(None, producer_id, epoch))
        assert given["producer_id"] != producer_id


@scenario(API, good=False, versions=WITH_FORMER_ID)
def an_id_without_an_epoch_or_the_reverse(on: Side, version: int) -> None:
    for producer_id, epoch in ((5, -1), (-1, 5), (-2, 0), (0, -2), (-2, -2), (-2, -1), (-1, -2)):
        on.ask(0, API, version, asking(None, producer_id, epoch))
        on.ask(0, API, version, asking("", producer_id, epoch))


@scenario(API, good=False)
def an_empty_transactional_id(on: Side, version: int) -> None:
    for timeout in (60_000, 0, -1):
        on.ask(0, API, version, asking("", timeout=timeout))


@scenario(API, good=False)
def a_transactional_id(on: Side, version: int) -> None:
    """The timeouts are refused before anything is coordinated."""
    for timeout in (0, -1, (1 << 31) - 1):
        on.ask(0, API, version, asking(on.name("t"), timeout=timeout))


@scenario(API, good=False)
def a_request_of_another_length(on: Side, version: int) -> None:
    body = encode_request(API, version, asking())
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, b"")
    on.ask(0, API, version, body + b"more")


@scenario(API, good=False, versions=just_outside(API))
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, min(version, 5), asking()))
