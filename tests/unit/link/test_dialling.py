"""Which transport a link takes, and how often it looks for a peer that is not there."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mobula.actors.link.dial import AUTO, RAY, RAY_BETWEEN_BROKERS, Dialers, Dialling
from mobula.actors.link.pipe import Pipe
from mobula.actors.link.wire import VERSION, Hello, hello_frame
from mobula.actors.spec import broker_of
from tests.unit.link.fakes import FakeDialer, FakeLoop, as_loop

HERE = "node-1"
ELSEWHERE = "node-2"


class Search:
    def __init__(self, *, local: bool = True, ray: bool = True) -> None:
        self.loop = FakeLoop()
        self.local = FakeDialer("local")
        self.ray = FakeDialer("ray")
        self.opened: list[Pipe] = []
        dialers = Dialers(
            Hello(VERSION, "caller", 1, HERE),
            self.local if local else None,
            self.ray if ray else None,
        )
        self.dialling = Dialling(
            "callee", as_loop(self.loop), dialers, lambda pipe, hello: self.opened.append(pipe)
        )
        self.dialling.start()

    def no_socket(self) -> None:
        """The last local attempt finds nobody."""
        self.local.pipes[-1].receiver.lost("no socket")


def test_a_socket_on_this_node_is_taken_without_asking_ray() -> None:
    search = Search()
    search.local.pipes[0].greet()
    search.loop.advance(10.0)
    assert search.opened == [search.local.pipes[0]]
    assert search.ray.pipes == []


def test_a_peer_without_a_socket_here_is_found_through_ray() -> None:
    search = Search()
    while not search.ray.pipes:
        search.no_socket()
        search.loop.advance(0.05)
    search.ray.pipes[0].greet(node=ELSEWHERE)
    assert search.opened == [search.ray.pipes[0]]


def test_a_peer_that_was_elsewhere_is_looked_for_there_first() -> None:
    search = Search()
    search.loop.advance(0.4)
    search.ray.pipes[0].greet(node=ELSEWHERE)
    search.dialling.start()
    assert len(search.ray.pipes) == 2


def test_a_peer_that_ray_finds_on_this_node_is_reached_by_its_socket() -> None:
    search = Search()
    while not search.ray.pipes:
        search.no_socket()
        search.loop.advance(0.05)
    search.no_socket()
    attempts = len(search.local.pipes)
    search.ray.pipes[0].greet(node=HERE)
    assert search.ray.pipes[0].closed
    assert search.opened == []
    assert len(search.local.pipes) == attempts + 1, "at once"
    search.local.pipes[-1].greet()
    assert search.opened == [search.local.pipes[-1]]


def test_with_ray_alone_ray_is_asked_at_once() -> None:
    search = Search(local=False)
    search.ray.pipes[0].greet(node=HERE)
    assert search.opened == [search.ray.pipes[0]]


def test_attempts_grow_rarer_up_to_half_a_second() -> None:
    search = Search(ray=False)
    times = [search.loop.now_s]
    while len(times) < 12:
        search.no_socket()
        known = len(search.local.pipes)
        while len(search.local.pipes) == known:
            search.loop.advance(0.01)
        times.append(search.loop.now_s)
    gaps = [round(later - earlier, 2) for earlier, later in pairwise(times)]
    assert gaps[:4] == [0.01, 0.02, 0.04, 0.08]
    assert gaps[-3:] == [0.5, 0.5, 0.5]


def test_a_nudge_looks_again_at_once() -> None:
    search = Search(ray=False)
    for _ in range(10):
        search.no_socket()
        search.loop.advance(0.5)
    search.no_socket()
    attempts = len(search.local.pipes)
    search.dialling.nudge()
    assert len(search.local.pipes) == attempts + 1


def test_one_attempt_at_a_time_while_the_peer_is_slow_to_greet() -> None:
    search = Search(ray=False)
    search.loop.advance(10.0)
    assert len(search.local.pipes) == 1


def test_a_peer_of_another_version_is_not_taken() -> None:
    search = Search(ray=False)
    pipe = search.local.pipes[0]
    pipe.receive(hello_frame(Hello(VERSION + 1, "callee", 1, HERE)))
    assert pipe.closed
    assert search.opened == []


def test_the_slower_of_two_attempts_is_dropped() -> None:
    search = Search()
    search.loop.advance(0.7)
    [ray], [local] = search.ray.pipes, search.local.pipes
    local.greet()
    ray.greet(node=ELSEWHERE)
    assert search.opened == [local]
    assert ray.closed


def test_after_stop_nothing_is_dialled() -> None:
    search = Search()
    search.dialling.stop()
    search.loop.advance(10.0)
    assert search.local.pipes[0].closed
    assert len(search.local.pipes) == 1
    assert search.ray.pipes == []


@pytest.mark.parametrize(
    ("transport", "callee", "local"),
    [
        (AUTO, "broker-1/replica-0", True),
        (RAY, "broker-0/replica-0", False),
        (RAY, "controller", False),
        (RAY_BETWEEN_BROKERS, "broker-0/replica-0", True),
        (RAY_BETWEEN_BROKERS, "broker-1/replica-0", False),
        (RAY_BETWEEN_BROKERS, "controller", True),
    ],
)
def test_the_transport_decides_who_may_be_reached_by_a_socket(
    transport: str, callee: str, local: bool
) -> None:
    dialers = Dialers(
        Hello(VERSION, "broker-0/gateway-0", 1, HERE), FakeDialer("local"), FakeDialer("ray")
    )
    allowed = dialers.to(transport, 0, broker_of(callee))
    assert (allowed.local is not None) is local
    assert allowed.ray is not None
