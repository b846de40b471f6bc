"""Links between nodes (and everywhere with `link.transport=ray`): bags go by Ray actor calls.

Every actor is hosted by a Ray actor of a known name with a method `deliver`. A call costs
about a millisecond whatever it carries, so what matters is to make few of them, which is
the exchange's work.
"""

from __future__ import annotations

import struct
from concurrent.futures import Executor, Future
from typing import Any

import ray
from ray.exceptions import RayError

from mobula.actors.link.courier import NOT_TAKEN, Bag, Done
from mobula.actors.link.envelopes import pack_bag, unpack_answer
from mobula.actors.link.pieces import piece_bytes, pieces_of
from mobula.actors.spec import RAY_NAMESPACE


class RayCourier:
    """Carries bags to the hosts of one cluster. Finds each by name, and again after a
    failure."""

    def __init__(self, cluster: str, executor: Executor) -> None:
        """`executor` runs what blocks: looking up a name."""
        self._cluster = cluster
        self._executor = executor
        self._hosts: dict[str, Any] = {}
        self._piece_bytes = piece_bytes()

    def deliver(self, to_name: str, bag: Bag, done: Done) -> None:
        host = self._hosts.get(to_name)
        if host is None:
            self._executor.submit(self._find_and_send, to_name, bag, done)
        else:
            self._send(host, to_name, bag, done)

    def _find_and_send(self, to_name: str, bag: Bag, done: Done) -> None:
        try:
            host = ray.get_actor(f"{self._cluster}/{to_name}", RAY_NAMESPACE)
        except (ValueError, RayError) as error:
            done(NOT_TAKEN, f"not found: {error}")
            return
        self._hosts[to_name] = host
        self._send(host, to_name, bag, done)

    def _send(self, host: Any, to_name: str, bag: Bag, done: Done) -> None:
        def completed(future: Future[bytes]) -> None:
            error = future.exception()
            if error is not None:
                self._hosts.pop(to_name, None)
                done(NOT_TAKEN, f"{type(error).__name__}: {error}".split("\n", 1)[0])
                return
            try:
                answer = unpack_answer(future.result())
            except struct.error as problem:
                done(NOT_TAKEN, f"cannot read its answer: {problem}")
                return
            done(answer, "")

        try:
            reference = host.deliver.remote(*pieces_of(pack_bag(bag), self._piece_bytes))
        except RayError as error:
            self._hosts.pop(to_name, None)
            done(NOT_TAKEN, str(error))
            return
        reference.future().add_done_callback(completed)
