"""A cluster from outside: `LocalCluster` for Python, `mobula` for the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mobula.cluster.local import LocalCluster

__all__ = ["LocalCluster"]


def __getattr__(name: str) -> Any:
    # LocalCluster brings Ray, which takes a second that `mobula --help` must not.
    if name == "LocalCluster":
        from mobula.cluster.local import LocalCluster

        return LocalCluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
