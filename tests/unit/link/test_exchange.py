"""Post between two exchanges whose courier is the test: order, loss, new lives.

Time is a variable and each bag is delivered, refused or dropped by hand.
"""

from __future__ import annotations

import itertools
import random
import threading
from typing import Any

import pytest

from mobula.actors.link import exchange as exchange_module
from mobula.actors.link import peer as peer_module
from mobula.actors.link.courier import NOT_TAKEN, Answer, Bag, Done
from mobula.actors.link.exchange import KEEPALIVE_S, Exchange
from mobula.actors.link.peer import ExchangePipe
from mobula.actors.link.wire import small_frame
from tests.unit.link.fakes import FakeLoop, FakeReceiver, as_loop

KIND = 9


class Post:
    """Bags that were given to the courier and have not arrived."""

    def __init__(self) -> None:
        self.under_way: list[tuple[str, Bag, Done]] = []
        self.exchanges: dict[str, Exchange] = {}
        self.held: list[tuple[Exchange, Done]] = []
        """Bags that arrived and are not answered."""

    def deliver(self, to_name: str, bag: Bag, done: Done) -> None:
        self.under_way.append((to_name, bag, done))

    def arrive(self, at: int = 0) -> None:
        to_name, bag, done = self.under_way.pop(at)
        target = self.exchanges.get(to_name)
        if target is None:
            done(NOT_TAKEN, "nobody")
            return
        entry = (target, done)
        self.held.append(entry)

        def answered(answer: Answer) -> None:
            if entry in self.held:
                self.held.remove(entry)
                done(answer, "")

        target.deliver(bag, answered)

    def lose(self, at: int = 0) -> None:
        self.under_way.pop(at)[2](NOT_TAKEN, "lost")

    def lose_answer(self, at: int) -> None:
        """The bag arrived, and its sender does not hear of it."""
        self.held.pop(at)[1](NOT_TAKEN, "lost")

    def died(self, exchange: Exchange) -> None:
        """Whoever waits for its answer hears of it."""
        for entry in [entry for entry in self.held if entry[0] is exchange]:
            self.held.remove(entry)
            entry[1](NOT_TAKEN, "died")


class Life:
    """What a process gives to the courier until it dies."""

    def __init__(self, post: Post) -> None:
        self.dead = False
        self._post = post

    def deliver(self, to_name: str, bag: Bag, done: Done) -> None:
        if not self.dead:
            self._post.deliver(to_name, bag, done)


class AcceptedReceiver(FakeReceiver):
    """What the callee's side of a pipe received."""

    pipe: ExchangePipe


class World:
    def __init__(self) -> None:
        self.loop = FakeLoop()
        self.post = Post()
        self.ids = itertools.count(1)
        self.accepted: dict[str, list[AcceptedReceiver]] = {}
        self.lives: dict[str, Life] = {}
        for name in ("a", "b"):
            self.start(name)

    def start(self, name: str) -> Exchange:
        """A new life of that actor."""
        accepted: list[AcceptedReceiver] = []
        self.accepted[name] = accepted

        def accept() -> Any:
            accepted.append(AcceptedReceiver())
            return accepted[-1]

        life = Life(self.post)
        if name in self.lives:
            self.lives[name].dead = True
            self.post.died(self.post.exchanges[name])
        self.lives[name] = life
        started = Exchange(
            as_loop(self.loop),
            name=name,
            life=next(self.ids),
            courier=life,
            new_id=lambda: next(self.ids),
            accept=accept,
        )
        self.post.exchanges[name] = started
        return started

    def dial(self, from_name: str, to_name: str) -> tuple[ExchangePipe, FakeReceiver]:
        receiver = FakeReceiver()
        return self.post.exchanges[from_name].dial(to_name, receiver), receiver

    def echoes(self, source: str, target: str) -> bool:
        """Whether a new pipe carries one frame there and one back."""
        pipe, receiver = self.dial(source, target)
        send(pipe, 1)
        self.settle()
        if receiver.reasons:
            return False
        session = self.accepted[target][-1]
        assert numbers(session) == [1]
        send(session.pipe, 2)
        self.settle()
        if receiver.reasons:
            return False
        assert numbers(receiver) == [2]
        return True

    def settle(self) -> None:
        """Everything arrives, in order."""
        self.loop.turn()
        while self.post.under_way:
            self.post.arrive()
            self.loop.turn()


def send(pipe: ExchangePipe, number: int, bulk: bytes = b"") -> None:
    frame = small_frame(KIND, number)
    head = (len(frame) - 4 + len(bulk)).to_bytes(4) + frame[4:]
    pipe.send(head, [bulk] if bulk else [], len(head) + len(bulk))


def numbers(receiver: FakeReceiver) -> list[int]:
    return [int.from_bytes(frame[1:5]) for frame in receiver.frames]


def test_what_is_sent_in_one_turn_is_one_bag() -> None:
    world = World()
    pipe, _ = world.dial("a", "b")
    for number in range(5):
        send(pipe, number)
    world.loop.turn()
    assert len(world.post.under_way) == 1
    world.settle()
    assert numbers(world.accepted["b"][0]) == [0, 1, 2, 3, 4]


def test_what_is_sent_while_bags_are_under_way_goes_with_the_next() -> None:
    world = World()
    pipe, _ = world.dial("a", "b")
    send(pipe, 0)
    world.settle()
    for number in range(1, 8):
        send(pipe, number)
        world.loop.turn()
    assert len(world.post.under_way) == 3
    world.post.arrive()
    world.loop.turn()
    assert len(world.post.under_way) == 2
    world.post.arrive()
    world.loop.turn()
    assert len(world.post.under_way) == 2
    world.settle()
    assert numbers(world.accepted["b"][0]) == list(range(8))


def test_only_one_bag_is_under_way_until_the_peer_knows_the_sender() -> None:
    world = World()
    pipe, _ = world.dial("a", "b")
    for number in range(3):
        send(pipe, number)
        world.loop.turn()
    assert len(world.post.under_way) == 1


def test_bags_that_overtake_each_other_are_opened_in_order() -> None:
    world = World()
    pipe, _ = world.dial("a", "b")
    send(pipe, 0)
    world.settle()
    for number in (1, 2):
        send(pipe, number)
        world.loop.turn()
    world.post.arrive(at=1)
    world.loop.turn()
    assert numbers(world.accepted["b"][0]) == [0]
    world.settle()
    assert numbers(world.accepted["b"][0]) == [0, 1, 2]


def test_replies_go_back_on_the_same_pipe_and_both_sides_may_open_one() -> None:
    world = World()
    forth, forth_replies = world.dial("a", "b")
    back, back_replies = world.dial("b", "a")
    send(forth, 1)
    send(back, 2)
    world.settle()
    send(world.accepted["b"][0].pipe, 11)
    send(world.accepted["a"][0].pipe, 22)
    world.settle()
    assert numbers(forth_replies) == [11]
    assert numbers(back_replies) == [22]
    assert forth_replies.reasons == back_replies.reasons == []


def test_a_bag_that_is_lost_loses_every_pipe_to_that_peer_and_a_new_one_works() -> None:
    world = World()
    pipe, receiver = world.dial("a", "b")
    other, other_receiver = world.dial("a", "b")
    send(pipe, 0)
    send(other, 0)
    world.settle()
    send(pipe, 1)
    world.loop.turn()
    world.post.lose()
    world.loop.turn()
    assert receiver.reasons == other_receiver.reasons == ["lost"]
    again, again_receiver = world.dial("a", "b")
    send(again, 5)
    world.settle()
    former, other_former, new = world.accepted["b"]
    assert numbers(new) == [5]
    assert len(former.reasons) == len(other_former.reasons) == 1
    send(new.pipe, 6)
    world.settle()
    assert numbers(again_receiver) == [6]
    assert again_receiver.reasons == []


def test_a_peer_in_a_new_life_refuses_and_the_pipe_is_lost() -> None:
    world = World()
    pipe, receiver = world.dial("a", "b")
    send(pipe, 0)
    world.settle()
    world.start("b")
    send(pipe, 1)
    world.settle()
    assert receiver.reasons == ["the peer has a new life"]
    assert world.accepted["b"] == []


def test_a_caller_in_a_new_life_ends_what_the_former_left_and_is_served() -> None:
    world = World()
    pipe, _ = world.dial("a", "b")
    send(pipe, 0)
    world.settle()
    send(world.accepted["b"][0].pipe, 1)
    world.settle()
    world.start("a")
    pipe, receiver = world.dial("a", "b")
    send(pipe, 2)
    world.settle()
    former, new = world.accepted["b"]
    assert len(former.reasons) == 1
    send(new.pipe, 3)
    world.settle()
    assert numbers(receiver) == [3]


def test_a_closed_pipe_tells_its_peer_and_hears_no_more() -> None:
    world = World()
    pipe, receiver = world.dial("a", "b")
    send(pipe, 0)
    world.settle()
    send(world.accepted["b"][0].pipe, 1)
    send(pipe, 2)
    pipe.close()
    world.settle()
    assert numbers(world.accepted["b"][0]) == [0, 2]
    assert world.accepted["b"][0].reasons == ["closed by the peer"]
    assert receiver.frames == []
    assert receiver.reasons == []


def test_an_idle_pair_finds_out_that_the_other_is_gone() -> None:
    world = World()
    pipe, receiver = world.dial("a", "b")
    send(pipe, 0)
    world.settle()
    del world.post.exchanges["b"]
    world.loop.advance(2 * KEEPALIVE_S)
    world.settle()
    assert receiver.reasons == ["nobody"]


def test_an_idle_pair_stays_open() -> None:
    world = World()
    pipe, receiver = world.dial("a", "b")
    send(pipe, 0)
    for _ in range(5):
        world.settle()
        world.loop.advance(KEEPALIVE_S)
    world.settle()
    assert receiver.reasons == world.accepted["b"][0].reasons == []


def test_large_queues_are_cut_into_bags_of_whole_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "MAX_BAG_BYTES", 1000)
    world = World()
    pipe, _ = world.dial("a", "b")
    for number in range(10):
        send(pipe, number, bytes(400))
    send(pipe, 10, bytes(5000))
    world.loop.turn()
    assert len(world.post.under_way[0][1].content) < 1000
    world.settle()
    assert numbers(world.accepted["b"][0]) == list(range(11))
    assert pipe.queued_bytes == 0


def test_a_bag_larger_than_what_may_wait_unopened_is_let_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchange_module, "MAX_UNOPENED_BYTES", 1000)
    world = World()
    pipe, _ = world.dial("a", "b")
    send(pipe, 0, bytes(5000))
    world.loop.turn()
    # On a thread: where it waits for itself, it waits for ever.
    arriving = threading.Thread(target=world.post.arrive, daemon=True)
    arriving.start()
    arriving.join(10)
    assert not arriving.is_alive()
    world.settle()
    assert numbers(world.accepted["b"][0]) == [0]


def test_a_bag_that_cannot_be_read_ends_the_pipes() -> None:
    world = World()
    pipe, _ = world.dial("a", "b")
    send(pipe, 0)
    world.settle()
    answers: list[Answer] = []
    world.post.exchanges["b"].deliver(Bag("a", 999_999, 1, 0, b"garbage"), answers.append)
    world.loop.turn()
    assert len(world.accepted["b"][0].reasons) == 1


@pytest.mark.parametrize("seed", range(3000))
def test_any_history_delivers_a_prefix_in_order_and_heals(seed: int) -> None:
    """Random sends, losses, delays and restarts; then everything is delivered, pipes that
    were lost are opened again, and the post must flow."""
    chance = random.Random(seed)
    world = World()
    opened: list[tuple[str, ExchangePipe, FakeReceiver, list[int]]] = []
    count = itertools.count()
    for _ in range(300):
        world.loop.turn()
        match chance.randrange(13):
            case 0 | 1:
                source, target = chance.choice([("a", "b"), ("b", "a")])
                pipe, receiver = world.dial(source, target)
                opened.append((source, pipe, receiver, []))
            case 2 | 3 | 4 | 5 if opened:
                _, pipe, receiver, sent = chance.choice(opened)
                number = next(count)
                if not receiver.reasons:
                    sent.append(number)
                send(pipe, number, bytes([len(sent) % 256]))
            case 6 | 7 | 8 | 9 if world.post.under_way:
                world.post.arrive(chance.randrange(len(world.post.under_way)))
            case 10 if world.post.under_way and chance.random() < 0.3:
                world.post.lose(chance.randrange(len(world.post.under_way)))
            case 12 if world.post.held and chance.random() < 0.3:
                world.post.lose_answer(chance.randrange(len(world.post.held)))
            case 11 if chance.random() < 0.15:
                name = chance.choice("ab")
                opened = [entry for entry in opened if entry[0] != name]
                world.start(name)
            case _:
                world.loop.advance(chance.random())
        for _, _, receiver, _ in opened:
            assert len(receiver.reasons) <= 1
    for _ in range(6):
        world.settle()
        world.loop.advance(KEEPALIVE_S)
    everything = [numbers(session) for name in "ab" for session in world.accepted[name]]
    for _, _, receiver, sent in opened:
        if not receiver.reasons and sent:
            assert sent in everything
    for received in everything:
        assert received == sorted(received)
    for source, target in (("a", "b"), ("b", "a")):
        assert any(world.echoes(source, target) for _ in range(3))
