"""Whatever happens in whatever order: replies in request order, and nothing left behind."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from .wire import Client, Plane, frame

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "answer", "local", "turn", "block", "unblock", "lose"]),
        st.integers(0, 1),
        st.integers(0, 2**16),
    ),
    max_size=80,
)


def stream(client_number: int) -> bytes:
    return b"".join(frame(1000 * client_number + n, bytes((n * 37) % 500)) for n in range(40))


class Run:
    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.clients: list[Client | None] = [plane.connect(), plane.connect()]
        self.left = [stream(0), stream(1)]
        self.blocked = [False, False]

    def step(self, what: str, which: int, amount: int) -> None:
        client = self.clients[which]
        requests = self.plane.handler.requests
        if what == "turn":
            self.plane.turn()
        elif what in ("answer", "local") and requests:
            request = requests[amount % len(requests)]
            if not request.ended:
                if what == "answer":
                    request.respond(str(request.header.correlation_id).encode())
                else:
                    request.release_records()
                    request.local_done()
        elif client is None:
            return
        elif what == "send":
            chunk, self.left[which] = (
                self.left[which][: amount % 900],
                self.left[which][amount % 900 :],
            )
            client.send(chunk)
        elif what == "block" and not self.blocked[which]:
            self.blocked[which] = True
            client.connection.pause_writing()
        elif what == "unblock" and self.blocked[which]:
            self.blocked[which] = False
            client.connection.resume_writing()
        elif what == "lose" and amount % 7 == 0:
            client.connection.connection_lost(None)
            self.clients[which] = None

    def finish(self) -> None:
        """Everything is sent, answered and read."""
        for which in (0, 1):
            self.step("unblock", which, 0)
        for _ in range(200):
            for which in (0, 1):
                self.step("send", which, 899)
            for request in self.plane.handler.requests:
                if not request.ended:
                    request.respond(str(request.header.correlation_id).encode())
            self.plane.turn()


@given(
    steps=STEPS,
    workers=st.integers(1, 4),
    queue=st.integers(1, 4),
    in_flight=st.integers(1, 5),
    memory=st.sampled_from([-1, 300, 2000]),
    holding=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_replies_come_in_order_and_nothing_is_left_behind(
    *,
    steps: list[tuple[str, int, int]],
    workers: int,
    queue: int,
    in_flight: int,
    memory: int,
    holding: bool,
) -> None:
    plane = Plane(
        workers=workers,
        queue=queue,
        max_in_flight=in_flight,
        memory_bytes=memory,
        scratch_bytes=1024,
    )
    plane.handler.holding = holding
    run = Run(plane)
    for step in steps:
        run.step(*step)
    run.finish()
    for which, client in enumerate(run.clients):
        if client is not None:
            expected = [1000 * which + n for n in range(40)]
            assert [n for n, _ in client.transport.replies] == expected
            assert [body for _, body in client.transport.replies] == [
                str(n).encode() for n in expected
            ]
            assert client.transport.reading
            assert client.connection.muted == 0
            assert client.connection.in_flight == client.connection.waiting == 0
    assert plane.memory.used_bytes == 0
    assert plane.pool.idle == workers
    assert not plane.channel.requests
    assert not plane.channel.callbacks
