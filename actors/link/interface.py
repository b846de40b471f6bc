"""What the two ends of a link see, whatever carries it.

Everything here is callbacks on the event loop of the owning actor: no task and no
future per message. A call ends exactly once: by its reply, or by one `LinkError`
(the link broke, the deadline passed, the callee refused).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from mobula.actors.link.method import Message, Method

Buffer: TypeAlias = bytes | bytearray | memoryview
RequestT = TypeVar("RequestT", bound=Message)
ReplyT = TypeVar("ReplyT", bound=Message)


class LinkError(Exception):
    """A call that got no reply. `sent` is False when the callee cannot have seen it."""

    def __init__(self, target: str, reason: str, *, sent: bool) -> None:
        super().__init__(f"{target}: {reason}")
        self.target = target
        self.reason = reason
        self.sent = sent


class Link(Protocol):
    """The calling end: one per (caller, callee) pair."""

    target: str

    def call(
        self,
        method: Method[RequestT, ReplyT],
        message: RequestT,
        on_reply: Callable[[ReplyT, memoryview], None],
        on_error: Callable[[LinkError], None],
        *,
        bulk: Sequence[Buffer] = (),
        timeout_ms: int = 30_000,
    ) -> int:
        """Send with the next flush; returns a handle for `cancel`.

        Calls made in one turn of the loop leave together, in order. While the link is
        down a call waits for it to come back, within its timeout.
        """

    def notify(
        self, method: Method[RequestT, Any], message: RequestT, *, bulk: Sequence[Buffer] = ()
    ) -> None:
        """Send without a reply; lost silently when the link is down or breaks."""

    def cancel(self, handle: int) -> None:
        """Forget a call: neither callback runs any more, and the callee is told."""

    def on_state(self, listener: Callable[[bool], None]) -> None:
        """`listener(up)` runs at each change; at once with True if the link is up now."""

    def transport_name(self) -> str:
        """`local`, `ray` or `down`."""

    def close(self) -> None: ...


class Reply(Protocol):
    """The answering end of one call; may be kept and used later (a parked call)."""

    caller: str
    on_cancel: Callable[[], None] | None
    """Runs when the caller cancelled or is gone; the reply must then not be used."""

    def __call__(self, message: Message, bulk: Sequence[Buffer] = ()) -> None: ...

    def fail(self, reason: str) -> None:
        """The caller gets a LinkError with this reason."""


Handler: TypeAlias = Callable[[Any, memoryview, Reply], None]
"""`handler(message, bulk, reply)`. For a notify, `reply` ignores what it is given.

`bulk` is a view over memory that belongs to this call alone; read-only, if it came by a Ray call.
"""
