from __future__ import annotations

from mobula.actors.broker.connection_quotas import ConnectionQuotas


def test_a_connection_past_the_total_is_refused_until_one_closes() -> None:
    quotas = ConnectionQuotas(max_connections=2, max_connections_per_ip=10)
    quotas.opened("a")
    quotas.opened("b")
    assert quotas.refusal("c") == "max.connections=2 reached"
    quotas.closed("a")
    assert quotas.refusal("c") is None


def test_a_connection_past_an_addresss_share_is_refused_for_that_address_alone() -> None:
    quotas = ConnectionQuotas(max_connections=100, max_connections_per_ip=1)
    quotas.opened("a")
    assert quotas.refusal("a") == "max.connections.per.ip=1 reached"
    assert quotas.refusal("b") is None


def test_an_address_without_connections_is_forgotten() -> None:
    quotas = ConnectionQuotas(max_connections=100, max_connections_per_ip=5)
    quotas.opened("a")
    quotas.opened("a")
    quotas.closed("a", 2)
    assert quotas.total == 0
    assert "a" not in quotas.by_address
