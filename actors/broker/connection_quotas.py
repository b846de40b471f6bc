"""How many connections a broker takes: in all, and from one address.

Invariant: a connection counted in is counted out once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class ConnectionQuotas:
    max_connections: int
    max_connections_per_ip: int
    total: int = 0
    by_address: Counter[str] = field(default_factory=Counter)

    def refusal(self, address: str) -> str | None:
        """Why a connection from this address cannot be taken now, or None."""
        if self.total >= self.max_connections:
            return f"max.connections={self.max_connections} reached"
        if self.by_address[address] >= self.max_connections_per_ip:
            return f"max.connections.per.ip={self.max_connections_per_ip} reached"
        return None

    def opened(self, address: str) -> None:
        self.total += 1
        self.by_address[address] += 1

    def closed(self, address: str, count: int = 1) -> None:
        self.total -= count
        left = self.by_address[address] - count
        if left > 0:
            self.by_address[address] = left
        else:
            del self.by_address[address]
