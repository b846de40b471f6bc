from __future__ import annotations

import logging
import struct

import pytest

from mobula.actors.gateway.connection import _NOT_CONNECTED
from mobula.actors.gateway.mute_causes import IN_FLIGHT, MEMORY, QUEUE_FULL, WRITE_BLOCKED
from mobula.actors.gateway.request_channel import (
    EndThrottlingResponse,
    StartThrottlingResponse,
)
from mobula.protocol.api import ApiKey

from .wire import Plane, frame


def test_replies_leave_in_request_order_whatever_ends_first() -> None:
    plane = Plane()
    client = plane.connect()
    client.send(b"".join(frame(n) for n in range(5)))
    requests = plane.handler.requests
    assert plane.handler.correlation_ids == [0, 1, 2, 3, 4]
    for n in (3, 1, 4):
        requests[n].respond(str(n).encode())
    plane.turn()
    assert client.transport.replies == []
    requests[0].respond(b"0")
    plane.turn()
    assert client.transport.replies == [(0, b"0"), (1, b"1")]
    requests[2].respond(b"2")
    plane.turn()
    assert [n for n, _ in client.transport.replies] == [0, 1, 2, 3, 4]


def test_what_ends_in_one_turn_leaves_in_one_write() -> None:
    plane = Plane()
    client = plane.connect()
    client.send(b"".join(frame(n) for n in range(10)))
    for request in plane.handler.requests:
        request.respond(b"x" * 50, b"y")
    assert client.transport.writes == []
    plane.turn()
    assert len(client.transport.writes) == 1
    assert plane.flushes == 1
    assert client.transport.replies == [(n, b"x" * 50 + b"y") for n in range(10)]


def test_large_bodies_are_written_as_they_are() -> None:
    plane = Plane()
    client = plane.connect()
    client.send(frame(1))
    records = memoryview(bytearray(100_000))
    plane.handler.requests[0].respond(b"head", records, b"tail")
    plane.turn()
    (parts,) = client.transport.parts
    assert any(part is records for part in parts), "record bytes are never copied"


def test_a_flexible_response_header_has_tagged_fields() -> None:
    plane = Plane()
    client = plane.connect()
    client.send(frame(77, key=ApiKey.METADATA, version=12))
    plane.handler.requests[0].respond(b"body")
    client.send(frame(78, key=ApiKey.API_VERSIONS, version=3, body=b""))
    plane.handler.requests[1].respond(b"body")
    plane.turn()
    assert client.transport.replies == [(77, b"\x00body"), (78, b"body")]


def test_time_stamps_are_set_at_each_crossing() -> None:
    plane = Plane()
    client = plane.connect()
    client.send(frame(1))
    (request,) = plane.handler.requests
    request.respond(b"x")
    plane.turn()
    stamps = [
        request.received_ns,
        request.dequeued_ns,
        request.local_done_ns,
        request.remote_done_ns,
        request.queued_for_response_ns,
        request.sent_ns,
    ]
    assert 0 not in stamps
    assert stamps[:2] == sorted(stamps[:2])
    assert stamps[-1] == max(stamps)


def test_past_the_in_flight_limit_the_socket_is_not_read_until_replies_left() -> None:
    plane = Plane(max_in_flight=3)
    client = plane.connect()
    client.send(b"".join(frame(n) for n in range(10)))
    assert plane.handler.correlation_ids == [0, 1, 2]
    assert client.connection.muted == IN_FLIGHT
    assert not client.transport.reading
    assert client.connection.waiting == 7, "already read, not lost"
    plane.handler.requests[1].respond(b"")
    plane.turn()
    assert plane.handler.correlation_ids == [0, 1, 2], "the head has not left"
    plane.handler.requests[0].respond(b"")
    plane.turn()
    assert plane.handler.correlation_ids == [0, 1, 2, 3, 4]
    while len(client.transport.replies) < 10:
        for request in plane.handler.requests:
            if not request.ended:
                request.respond(b"")
        plane.turn()
    assert [n for n, _ in client.transport.replies] == list(range(10))
    assert client.transport.reading
    assert client.connection.muted == 0


def test_a_full_queue_stops_reading_and_nothing_is_lost_or_reordered() -> None:
    plane = Plane(workers=1, queue=2)
    plane.handler.holding = True
    first, second = plane.connect(), plane.connect()
    first.send(b"".join(frame(n) for n in range(5)))
    assert plane.handler.correlation_ids == [0]
    assert len(plane.channel.requests) == 2
    assert first.connection.muted == QUEUE_FULL
    second.send(frame(100))
    assert second.connection.muted == QUEUE_FULL
    for _ in range(6):
        plane.handler.requests[-1].respond(b"")
        plane.turn()
    assert plane.handler.correlation_ids == [0, 1, 2, 3, 100, 4], "first come, first served"
    assert [n for n, _ in first.transport.replies] == [0, 1, 2, 3, 4]
    assert [n for n, _ in second.transport.replies] == [100]
    assert first.transport.reading
    assert second.transport.reading


def test_a_worker_is_free_when_local_work_is_done_not_when_the_reply_leaves() -> None:
    plane = Plane(workers=1)
    plane.handler.holding = True
    client = plane.connect()
    client.send(frame(0) + frame(1))
    assert plane.handler.correlation_ids == [0]
    plane.handler.requests[0].local_done()
    plane.turn()
    assert plane.handler.correlation_ids == [0, 1]
    assert plane.pool.idle == 0
    plane.handler.requests[1].respond(b"")
    plane.handler.requests[0].respond(b"")
    assert plane.pool.idle == 1


def test_a_handler_that_parks_its_request_does_not_keep_its_worker() -> None:
    plane = Plane(workers=1)
    client = plane.connect()
    client.send(frame(0) + frame(1) + frame(2))
    assert plane.handler.correlation_ids == [0, 1, 2], "each ran inside the read"
    assert plane.pool.idle == 1


def test_a_client_that_does_not_read_gets_no_new_requests_dispatched() -> None:
    plane = Plane()
    client = plane.connect()
    client.send(frame(0))
    client.connection.pause_writing()
    client.send(frame(1))
    assert client.connection.muted == WRITE_BLOCKED
    assert client.unread_bytes > 0
    client.connection.resume_writing()
    client.resume()
    assert plane.handler.correlation_ids == [0, 1]


def test_frames_read_before_writing_was_blocked_wait() -> None:
    plane = Plane()
    client = plane.connect()
    plane.handler.at_once = lambda request: client.connection.pause_writing()
    client.send(b"".join(frame(n) for n in range(4)))
    assert plane.handler.correlation_ids == [0]
    assert client.connection.waiting == 3
    plane.handler.at_once = None
    client.connection.resume_writing()
    assert plane.handler.correlation_ids == [0, 1, 2, 3]


def test_large_replies_that_are_not_written_yet_hold_back_the_next_requests() -> None:
    plane = Plane()
    client = plane.connect()
    plane.handler.at_once = lambda request: request.respond(bytes(300_000))
    client.send(b"".join(frame(n) for n in range(4)))
    assert plane.handler.correlation_ids == [0], "one reply at a time, however many are asked for"
    for _ in range(4):
        plane.turn()
    assert [n for n, _ in client.transport.replies] == [0, 1, 2, 3]
    assert client.transport.reading
    plane.handler.at_once = None
    client.send(frame(4) + frame(5))
    plane.handler.requests[5].respond(bytes(300_000))
    client.send(frame(6))
    assert plane.handler.correlation_ids[-1] == 5, "a reply that waits for an earlier one counts"
    plane.handler.requests[4].respond(b"")
    plane.turn()
    client.resume()
    assert plane.handler.correlation_ids[-1] == 6


def test_a_throttled_connection_is_mute_until_throttling_ends() -> None:
    plane = Plane()
    client = plane.connect()
    client.send(frame(0))
    (request,) = plane.handler.requests
    plane.channel.throttle(request, StartThrottlingResponse())
    request.respond(b"slow down")
    plane.turn()
    assert client.transport.replies == [(0, b"slow down")]
    assert not client.transport.reading
    client.send(frame(1))
    assert plane.handler.correlation_ids == [0]
    plane.channel.throttle(request, EndThrottlingResponse())
    client.resume()
    assert plane.handler.correlation_ids == [0, 1]
    assert request.throttled_ns


def test_reading_goes_on_only_when_every_cause_is_gone() -> None:
    plane = Plane(max_in_flight=1)
    client = plane.connect()
    client.send(frame(0))
    client.connection.pause_writing()
    assert client.connection.muted == IN_FLIGHT | WRITE_BLOCKED
    plane.handler.requests[0].respond(b"")
    plane.turn()
    assert not client.transport.reading
    client.connection.resume_writing()
    assert client.transport.reading


def test_no_response_lets_later_replies_leave() -> None:
    plane = Plane()
    client = plane.connect()
    client.send(frame(0) + frame(1))
    plane.handler.requests[1].respond(b"one")
    plane.handler.requests[0].no_response()
    plane.turn()
    assert client.transport.replies == [(1, b"one")]


def test_closing_waits_for_the_earlier_replies() -> None:
    plane = Plane()
    client = plane.connect()
    client.send(b"".join(frame(n) for n in range(4)))
    requests = plane.handler.requests
    gone = []
    requests[3].on_abandoned = lambda: gone.append(3)
    requests[1].close_connection("an error with acks=0")
    requests[2].respond(b"never sent")
    plane.turn()
    assert not client.transport.closed
    assert not client.transport.reading
    requests[0].respond(b"zero")
    plane.turn()
    assert client.transport.replies == [(0, b"zero")]
    assert client.transport.closed
    assert gone == [3]


def test_a_second_response_is_logged_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    plane = Plane()
    client = plane.connect()
    client.send(frame(0))
    (request,) = plane.handler.requests
    request.respond(b"first")
    request.respond(b"second")
    request.no_response()
    request.close_connection("third")
    plane.turn()
    assert client.transport.replies == [(0, b"first")]
    assert not client.transport.closed
    assert caplog.text.count("a second response") == 3


def test_a_lost_connection_leaves_nothing_behind() -> None:
    plane = Plane(workers=1, queue=2, memory_bytes=10_000)
    plane.handler.holding = True
    client, other = plane.connect(), plane.connect()
    client.send(b"".join(frame(n, bytes(100)) for n in range(6)))
    other.send(frame(50))
    given_back = []
    plane.handler.requests[0].on_abandoned = lambda: given_back.append(0)
    assert plane.memory.used_bytes > 0
    client.connection.connection_lost(ConnectionResetError())
    plane.turn()
    assert given_back == [0]
    assert plane.lost == [client.connection]
    assert plane.handler.correlation_ids == [0, 50]
    assert not plane.channel.requests
    plane.handler.requests[0].respond(b"too late")
    plane.handler.requests[1].respond(b"")
    plane.turn()
    assert plane.memory.used_bytes == 0
    assert plane.pool.idle == 1
    assert client.transport.writes == []


def test_a_queued_produce_of_a_lost_connection_is_still_written() -> None:
    plane = Plane(workers=1, memory_bytes=10_000)
    plane.handler.holding = True
    client = plane.connect()
    client.send(frame(0) + frame(1, key=ApiKey.PRODUCE, version=3) + frame(2))
    client.connection.connection_lost(None)
    plane.turn()
    assert plane.handler.correlation_ids == [0, 1]
    plane.handler.requests[1].no_response()
    assert plane.memory.used_bytes == 0
    assert plane.pool.idle == 1


def test_memory_in_use_stops_reading_until_it_is_given_back() -> None:
    plane = Plane(memory_bytes=1000)
    client, other = plane.connect(), plane.connect()
    client.send(frame(0, bytes(1200)))
    assert client.connection.muted == MEMORY
    other.send(frame(1))
    assert other.connection.muted == MEMORY, "one read, then no more"
    other.send(frame(2))
    assert plane.handler.correlation_ids == [0, 1]
    plane.handler.requests[0].release_records()
    assert len(plane.handler.requests[0].body) == 0
    other.resume()
    assert plane.handler.correlation_ids == [0, 1, 2]
    assert client.transport.reading


def test_record_bytes_are_given_back_before_the_reply_leaves() -> None:
    plane = Plane(memory_bytes=10_000)
    client = plane.connect()
    client.send(frame(0, bytes(500)))
    (request,) = plane.handler.requests
    assert plane.memory.used_bytes == request.size_bytes
    request.release_records()
    assert plane.memory.used_bytes == 0
    request.respond(b"")
    assert plane.memory.used_bytes == 0


def test_a_frame_that_was_only_announced_holds_no_memory() -> None:
    plane = Plane(memory_bytes=100_000, max_frame_bytes=10_000_000)
    clients = [plane.connect() for _ in range(50)]
    for client in clients:
        client.send(struct.pack(">i", 9_000_000) + b"x" * 1000)
    assert plane.memory.used_bytes == 0
    good = plane.connect()
    good.send(frame(1))
    assert plane.handler.correlation_ids == [1]


def test_a_large_frame_is_charged_while_it_comes_and_read_to_its_end() -> None:
    plane = Plane(memory_bytes=500_000, max_frame_bytes=10_000_000)
    client, late = plane.connect(), plane.connect()
    whole = frame(7, bytes(600_000))
    client.send(whole[:200_000])
    assert plane.memory.used_bytes == len(whole) - 4
    late.send(whole[:200_000])
    assert late.connection.muted == MEMORY
    assert late.unread_bytes > 0
    client.send(whole[200_000:])
    assert plane.handler.correlation_ids == [7]
    plane.handler.requests[0].respond(b"")
    late.send(whole[200_000:])
    assert plane.handler.correlation_ids == [7, 7]
    plane.handler.requests[1].respond(b"")
    assert plane.memory.used_bytes == 0


def test_a_client_that_holds_memory_for_what_it_does_not_send_is_found() -> None:
    plane = Plane(memory_bytes=500_000, max_frame_bytes=10_000_000)
    client = plane.connect()
    whole = frame(7, bytes(600_000))
    client.send(whole[:200_000])
    assert not client.connection.hogs_memory(), "it has just begun"
    assert client.connection.hogs_memory()
    client.send(whole[200_000:400_000])
    assert not client.connection.hogs_memory()
    client.connection.connection_lost(None)
    assert plane.memory.used_bytes == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">i", -5), "negative length"),
        (struct.pack(">i", 2_000_000_000), "more than"),
        (bytes.fromhex("16030100dc010000d80303") + bytes(200), "TLS hello"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (struct.pack(">i", 0), "no request header"),
        (struct.pack(">ihh", 4, 18, 0), "no request header"),
        (frame(1, key=9999), "api 9999 version 1 is not served"),
        (frame(1, version=99), "api 3 version 99 is not served"),
        (frame(1, key=ApiKey.PRODUCE, version=2), "api 0 version 2 is not served"),
    ],
    ids=["negative", "too long", "tls", "http", "empty", "short", "unknown api", "version", "v2"],
)
def test_hostile_bytes_close_their_connection_with_one_log_line(
    data: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    plane = Plane(memory_bytes=10_000)
    good, bad = plane.connect(), plane.connect()
    with caplog.at_level(logging.INFO):
        bad.send(data)
    assert bad.transport.closed
    (line,) = caplog.records
    assert reason in line.getMessage()
    assert "client=127.0.0.1" in line.getMessage()
    assert plane.memory.used_bytes == 0
    good.send(frame(1))
    assert plane.handler.correlation_ids == [1]
    assert not good.transport.closed


def test_requests_before_the_hostile_bytes_are_answered_first() -> None:
    plane = Plane()
    client = plane.connect()
    client.send(frame(0) + frame(1) + struct.pack(">i", -1) + frame(2))
    assert plane.handler.correlation_ids == [0, 1]
    assert not client.transport.closed
    plane.handler.requests[0].respond(b"")
    plane.turn()
    assert not client.transport.closed
    plane.handler.requests[1].respond(b"")
    plane.turn()
    assert [n for n, _ in client.transport.replies] == [0, 1]
    assert client.transport.closed


def test_an_api_versions_request_of_any_version_is_dispatched() -> None:
    plane = Plane()
    client = plane.connect()
    client.send(frame(5, key=ApiKey.API_VERSIONS, version=99))
    assert plane.handler.correlation_ids == [5]


def test_draining_answers_what_was_read_and_then_closes() -> None:
    plane = Plane(max_in_flight=2)
    client, idle = plane.connect(), plane.connect()
    client.send(b"".join(frame(n) for n in range(3)))
    client.connection.drain()
    idle.connection.drain()
    assert idle.transport.closed
    client.send(frame(9))
    while not client.transport.closed:
        for request in plane.handler.requests:
            if not request.ended:
                request.respond(b"")
        plane.turn()
    assert [n for n, _ in client.transport.replies] == [0, 1, 2]


def test_what_may_not_be_served_is_not_read() -> None:
    plane = Plane()
    client = plane.connect()
    client.connection.serve(False)
    client.send(frame(0))
    assert plane.handler.correlation_ids == []
    client.connection.serve(True)
    client.resume()
    assert plane.handler.correlation_ids == [0]


def test_what_is_decided_before_the_loop_reads_holds_afterwards() -> None:
    plane = Plane()
    held, drained = plane.connect(), plane.connect()
    for client in (held, drained):
        client.connection._transport = _NOT_CONNECTED
    held.connection.serve(False)
    drained.connection.drain()
    for client in (held, drained):
        client.connection.connection_made(client.transport)
        client.connection.connected()
    assert not held.transport.reading
    assert drained.transport.closed
    held.connection.serve(True)
    assert held.transport.reading


def test_a_callback_never_runs_inside_a_first_stage_and_goes_before_queued_requests() -> None:
    plane = Plane(workers=1)
    plane.handler.holding = True
    client = plane.connect()
    order: list[str] = []
    client.send(frame(0) + frame(1))
    waiting = plane.handler.requests[0]

    def in_first_stage(request: object) -> None:
        order.append("begin")
        waiting.resume(order.append, "callback")
        order.append("end")

    plane.handler.at_once = in_first_stage
    waiting.local_done()
    plane.turn()
    plane.turn()
    assert order == ["begin", "end", "callback"]
    waiting.respond(b"")
    waiting.resume(order.append, "after the end")
    assert order == ["begin", "end", "callback"]


def test_a_connection_with_something_under_way_is_not_idle() -> None:
    plane = Plane()
    client = plane.connect()
    later = client.connection.last_active_ns + 10**15
    assert client.connection.is_idle(later)
    assert not client.connection.is_idle(0)
    client.send(frame(0))
    assert not client.connection.is_idle(later)
    client.connection.pause_writing()
    assert client.connection.is_idle(later), "its client does not read"
