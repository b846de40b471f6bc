"""Awaiting one call, for start-up and administration. Not for the data path."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from mobula.actors.link.interface import Link, LinkError
from mobula.actors.link.method import Message, Method

RequestT = TypeVar("RequestT", bound=Message)
ReplyT = TypeVar("ReplyT", bound=Message)


async def ask(
    link: Link, method: Method[RequestT, ReplyT], message: RequestT, *, timeout_ms: int = 30_000
) -> ReplyT:
    """The reply, or LinkError. A cancelled caller cancels the call."""
    future: asyncio.Future[ReplyT] = asyncio.get_running_loop().create_future()

    def answered(reply: ReplyT, _bulk: memoryview) -> None:
        if not future.done():
            future.set_result(reply)

    def failed(error: LinkError) -> None:
        if not future.done():
            future.set_exception(error)

    handle = link.call(method, message, answered, failed, timeout_ms=timeout_ms)
    try:
        return await future
    except asyncio.CancelledError:
        link.cancel(handle)
        raise
