"""What every request has in common: an API that there is, in a version that there is."""

from __future__ import annotations

from mobula.protocol.api import ApiKey
from tests.conformance.scenario import scenario
from tests.conformance.side import Side


@scenario(ApiKey.API_VERSIONS, good=False, versions=[0])
def an_api_that_does_not_exist(on: Side, version: int) -> None:
    for key in (-1, 4, 7, 200, 9999):
        on.ask(0, key, version, b"")


@scenario(ApiKey.API_VERSIONS, good=False, versions=[0])
def a_negative_version(on: Side, version: int) -> None:
    on.ask(0, ApiKey.API_VERSIONS, -1, b"", answer_version=0)
    on.ask(0, ApiKey.METADATA, -1, b"")
