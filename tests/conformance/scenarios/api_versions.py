"""ApiVersions: what a broker speaks, and whom it refuses to tell."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.scenario import just_outside, scenario
from tests.conformance.side import Side
from tests.conformance.wire import encode_request, with_null

API = ApiKey.API_VERSIONS
NAMING = range(3, 5)
"""The versions in which a client names its software."""


def software(name: str = "conformance", version: str = "1.0") -> dict[str, str]:
    return {"client_software_name": name, "client_software_version": version}


@scenario(API, good=True)
def what_a_broker_speaks(on: Side, version: int) -> None:
    on.ask(0, API, version, software())


@scenario(API, good=True)
def from_a_client_without_an_id(on: Side, version: int) -> None:
    on.ask(1, API, version, software(), client_id=None)
    on.ask(2, API, version, software(), client_id="")


@scenario(API, good=True, versions=NAMING)
def names_of_software_that_are_allowed(on: Side, version: int) -> None:
    for name in ("a", "A.b-9", "x" * 200):
        on.ask(0, API, version, software(name, name))


@scenario(API, good=False, versions=NAMING)
def names_of_software_that_are_not_allowed(on: Side, version: int) -> None:
    for bad in ("", " ", "-a", "a-", ".a", "a b", "a_b", "a/b", "é", "a\n"):
        on.ask(0, API, version, software(name=bad))
        on.ask(0, API, version, software(version=bad))


@scenario(API, good=False, versions=NAMING)
def a_null_name_of_software(on: Side, version: int) -> None:
    body = encode_request(API, version, software(name="nothing"))
    on.ask(0, API, version, with_null(body, "nothing", flexible=True))
    body = encode_request(API, version, software(version="nothing"))
    on.ask(0, API, version, with_null(body, "nothing", flexible=True))


@scenario(API, good=False, versions=NAMING)
def a_request_that_is_cut_short(on: Side, version: int) -> None:
    body = encode_request(API, version, software())
    on.ask(0, API, version, body[:-1])
    on.ask(0, API, version, body[:5])
    on.ask(0, API, version, b"")


@scenario(API, good=False)
def bytes_after_the_request(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, version, software()) + b"more")


@scenario(API, good=False, versions=[*just_outside(API), 100, 32767])
def a_version_that_does_not_exist(on: Side, version: int) -> None:
    on.ask(0, API, version, encode_request(API, 4, software()), answer_version=0)
    on.ask(0, API, version, b"", answer_version=0)
    on.ask(0, API, 4, software())
