"""The Unix socket transport: what leaves when, and who may listen where."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from mobula.actors.link.interface import Buffer
from mobula.actors.link.local import LocalDialer, LocalPipe, bind_socket, new_scratch
from mobula.actors.link.pipe import LinkLimits, Outgoing
from mobula.actors.link.wire import CANCEL, small_frame
from tests.unit.link.fakes import FakeLoop, FakeReceiver, as_loop


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ml-", dir="/tmp") as path:
        yield Path(path)


class FakeTransport:
    """Remembers each write; every one of them would be a system call."""

    def __init__(self) -> None:
        self.writes: list[list[Buffer]] = []
        self.reading = True
        self.aborted = False
        self.closed = False

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def get_extra_info(self, name: str) -> Any:
        return self

    def setsockopt(self, *args: int) -> None:
        pass

    def write(self, data: Buffer) -> None:
        self.writes.append([data])

    def writelines(self, pieces: list[Buffer]) -> None:
        self.writes.append(list(pieces))

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None:
        self.closed = True


class Connected:
    def __init__(self, *, serving: bool = False, max_frame_bytes: int = 1000) -> None:
        self.loop = FakeLoop()
        self.receiver = FakeReceiver()
        self.transport = FakeTransport()
        limits = LinkLimits(max_frame_bytes=max_frame_bytes)
        self.pipe = LocalPipe(
            as_loop(self.loop), self.receiver, limits, new_scratch(), serving=serving
        )
        self.pipe.connection_made(self.transport)  # type: ignore[arg-type]

    def send(self, head: bytes, *bulk: Buffer) -> None:
        self.pipe.send(head, bulk, len(head) + sum(map(len, bulk)))

    def feed(self, data: bytes) -> None:
        buffer = self.pipe.get_buffer(-1)
        buffer[: len(data)] = data
        self.pipe.buffer_updated(len(data))


def test_frames_of_one_turn_leave_in_one_write() -> None:
    end = Connected()
    for number in range(100):
        end.send(b"%d," % number, b"bulk")
    assert end.transport.writes == []
    assert end.pipe.queued_bytes > 0
    end.loop.turn()
    [[data]] = end.transport.writes
    assert bytes(data).startswith(b"0,bulk1,bulk2,bulk")
    assert end.pipe.queued_bytes == 0


def test_large_bulk_is_passed_on_as_it_is_and_small_neighbours_are_joined() -> None:
    outgoing = Outgoing()
    large = memoryview(bytearray(100_000))
    outgoing.add(b"a", [b"b"])
    outgoing.add(b"c", [b"d", large, b"e"])
    outgoing.add(b"f", [])
    pieces = outgoing.take()
    assert [bytes(piece) for piece in (pieces[0], pieces[2])] == [b"abcd", b"ef"]
    assert pieces[1] is large
    assert outgoing.take() == []


def test_what_is_sent_before_the_connection_is_there_leaves_with_it() -> None:
    loop, receiver = FakeLoop(), FakeReceiver()
    pipe = LocalPipe(as_loop(loop), receiver, LinkLimits(), new_scratch(), serving=False)
    pipe.send(b"early", (), 5)
    loop.turn()
    transport = FakeTransport()
    pipe.connection_made(transport)  # type: ignore[arg-type]
    assert transport.writes == [[b"early"]]


def test_while_the_peer_does_not_read_frames_wait_and_a_serving_end_stops_reading() -> None:
    end = Connected(serving=True)
    end.pipe.pause_writing()
    end.send(b"waits")
    end.loop.turn()
    assert end.transport.writes == []
    assert not end.transport.reading
    assert end.pipe.queued_bytes == 5
    end.pipe.resume_writing()
    assert end.transport.writes == [[b"waits"]]
    assert end.transport.reading


def test_a_calling_end_goes_on_reading_while_it_cannot_write() -> None:
    end = Connected(serving=False)
    end.pipe.pause_writing()
    assert end.transport.reading


def test_a_frame_over_the_limit_ends_the_pipe_after_those_before_it() -> None:
    end = Connected(max_frame_bytes=50)
    good = small_frame(CANCEL, 1)
    end.feed(good + (51).to_bytes(4) + b"x")
    assert end.receiver.frames == [good[4:]]
    [reason] = end.receiver.reasons
    assert "51 bytes" in reason
    assert end.transport.aborted
    end.pipe.connection_lost(None)
    assert len(end.receiver.reasons) == 1


def test_nothing_is_received_after_close() -> None:
    end = Connected()
    frame = small_frame(CANCEL, 1)

    class ClosesAtOnce(FakeReceiver):
        def received(self, data: memoryview) -> None:
            super().received(data)
            end.pipe.close()

    end.pipe.receiver = receiver = ClosesAtOnce()
    end.send(b"last")
    end.feed(frame + frame)
    end.pipe.connection_lost(None)
    assert len(receiver.frames) == 1
    assert receiver.reasons == []
    assert end.transport.writes == [[b"last"]]
    assert end.transport.closed


def test_the_socket_lies_in_a_folder_of_its_owner_alone(folder: Path) -> None:
    path = folder / "run" / "a.sock"
    path.parent.mkdir(mode=0o755)
    bind_socket(path).close()
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_socket_of_a_dead_process_is_replaced(folder: Path) -> None:
    path = folder / "a.sock"
    bind_socket(path).close()
    with bind_socket(path), socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(path))
    assert list(folder.iterdir()) == [path]


def test_the_socket_of_a_living_process_is_left_alone(folder: Path) -> None:
    path = folder / "a.sock"
    with bind_socket(path), pytest.raises(OSError, match="another process listens"):
        bind_socket(path)


def test_a_path_too_long_for_a_socket_is_named(folder: Path) -> None:
    with pytest.raises(OSError, match=r"cannot listen on .*too long"):
        bind_socket(folder / ("x" * 120))


def test_dialling_a_socket_that_is_not_there_is_a_loss(folder: Path) -> None:
    async def scenario() -> None:
        import asyncio

        receiver = FakeReceiver()
        loop = asyncio.get_running_loop()
        dialer = LocalDialer(loop, loop, str(folder), LinkLimits(), new_scratch())
        dialer.dial("nobody", receiver)
        async with asyncio.timeout(10):
            while not receiver.reasons:
                await asyncio.sleep(0)
        assert receiver.reasons[0].startswith("cannot connect")

    uvloop.run(scenario())
