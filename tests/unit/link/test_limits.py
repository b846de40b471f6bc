"""How much a link holds for its actor."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mobula.actors.controller.messages import ENVELOPE, Envelope
from mobula.actors.link.interface import LinkError
from mobula.actors.local_runtime import LocalNode
from mobula.actors.spec import GATEWAY, ActorSpec, gateway_name

MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("queued", "refused"),
    [("268435456", 0), ("-1", 0), ("1000000", 3)],
)
def test_a_link_refuses_nothing_that_a_gateway_may_hold_for_its_clients(
    tmp_path: Path, queued: str, refused: int
) -> None:
    errors: list[LinkError] = []

    async def call_nobody() -> None:
        node = LocalNode()
        spec = ActorSpec(
            cluster="test",
            kind=GATEWAY,
            local_name=gateway_name(0, 0),
            broker_id=0,
            config={"queued.max.request.bytes": queued},
            run_dir=str(tmp_path),
            data_dir=str(tmp_path),
        )
        runtime = await node.runtime(spec)
        link = runtime.link("nobody")
        records = bytes(10 * MEGABYTE)
        for _ in range(10):
            link.call(
                ENVELOPE,
                Envelope("", "", "", 0),
                lambda _reply, _bulk: None,
                errors.append,
                bulk=[records],
            )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        found = len(errors)
        await node.close()
        assert found == refused

    asyncio.run(call_nobody())
