"""Placement: racks first, then even shares, then live brokers."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobula.actors.controller.replica_placer import UsableBroker, place
from mobula.protocol.errors import ErrorCode, KafkaError


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> list[UsableBroker]:
    return [UsableBroker(index, rack, index in fenced) for index, rack in enumerate(racks)]


@given(st.integers(1, 7), st.data())
def test_leaders_and_replicas_are_shared_out_evenly(count: int, data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, count))
    random = Random(data.draw(st.integers()))
    placement = place(brokers(*[None] * count), count * 4, factor, random)
    assert Counter(replicas[0] for replicas in placement) == dict.fromkeys(range(count), 4)
    assert all(len(set(replicas)) == factor for replicas in placement)
    everything = Counter(broker for replicas in placement for broker in replicas)
    assert max(everything.values()) - min(everything.values()) <= 4


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=9), st.data())
def test_replicas_lie_in_as_many_racks_as_there_are(racks: list[str], data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    random = Random(data.draw(st.integers()))
    placement = place(brokers(*racks), 20, factor, random)
    for replicas in placement:
        assert len(set(replicas)) == factor
        assert len({racks[broker] for broker in replicas}) == min(factor, len(set(racks)))
    leaders = Counter(replicas[0] for replicas in placement)
    assert max(leaders.values()) - min(leaders.get(b, 0) for b in range(len(racks))) <= 1


def test_the_leaders_of_a_lost_broker_spread_over_all_the_others() -> None:
    placement = place(brokers(*[None] * 5), 100, 3, Random(7))
    heirs = Counter(replicas[1] for replicas in placement if replicas[0] == 0)
    assert set(heirs) == {1, 2, 3, 4}


def test_a_fenced_broker_gets_replicas_only_when_live_ones_do_not_suffice() -> None:
    usable = brokers(None, None, None, fenced=(1,))
    for replicas in place(usable, 30, 2, Random(1)):
        assert 1 not in replicas
    for replicas in place(usable, 30, 3, Random(1)):
        assert replicas[2] == 1, "and it never leads"


def test_too_few_brokers_are_refused_in_kafkas_words() -> None:
    with pytest.raises(KafkaError) as caught:
        place(brokers(None, None), 1, 3, Random(1))
    assert caught.value.code is ErrorCode.invalid_replication_factor
    assert caught.value.detail == (
        "The target replication factor of 3 cannot be reached because only 2 broker(s) are "
        "registered or some brokers have all their log directories cordoned."
    )


def test_nothing_is_placed_when_all_brokers_are_fenced() -> None:
    with pytest.raises(KafkaError) as caught:
        place(brokers(None, None, fenced=(0, 1)), 1, 1, Random(1))
    assert caught.value.detail == "All brokers are currently fenced."
