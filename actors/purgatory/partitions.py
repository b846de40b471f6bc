"""Where the purgatory finds a partition's row: by the metadata, in a replica actor's table.

Invariant: nothing is read from the table of a replica actor that is known to be dead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mobula.actors.metadata.image import MetadataImage
from mobula.actors.placement import replica_actor_of
from mobula.actors.purgatory.delayed_operation import Key
from mobula.actors.rows import Row, RowsReader
from mobula.actors.runtime import Runtime
from mobula.actors.spec import rows_path
from mobula.protocol.errors import ErrorCode

_NOT_LEADER = int(ErrorCode.not_leader_or_follower)
_UNKNOWN = int(ErrorCode.unknown_topic_or_partition)


class PlacedRows:
    def __init__(self, runtime: Runtime, on_replica_changed: Callable[[], None]) -> None:
        """`on_replica_changed` runs when a replica actor is found up or down."""
        self._runtime = runtime
        self._on_replica_changed = on_replica_changed
        self._image = MetadataImage()
        self._readers: dict[str, RowsReader] = {}
        self._down: set[str] = set()
        self._placed: dict[Key, RowsReader | None] = {}

    def use(self, image: MetadataImage) -> None:
        """The metadata changed: partitions may be elsewhere."""
        self._image = image
        self._placed.clear()

    def find(self, key: Key) -> Row | None:
        try:
            reader = self._placed[key]
        except KeyError:
            reader = self._place(key)
        return None if reader is None else reader.find(key[0], key[1])

    def absent_code(self, key: Key) -> int:
        known = self._image.partition(key[0], key[1]) is not None
        return _NOT_LEADER if known else _UNKNOWN

    def _place(self, key: Key) -> RowsReader | None:
        spec = self._runtime.spec
        actor = replica_actor_of(self._image, spec.broker_id, key[0], key[1])
        reader = self._readers.get(actor)
        if reader is None:
            reader = self._readers[actor] = RowsReader(rows_path(spec.run_dir, actor))
            self._runtime.link(actor).on_state(partial(self._replica_changed, actor))
        placed = None if actor in self._down else reader
        self._placed[key] = placed
        return placed

    def _replica_changed(self, actor: str, up: bool) -> None:
        if up:
            self._down.discard(actor)
            self._readers[actor].reopen()
        else:
            self._down.add(actor)
        self._placed.clear()
        self._on_replica_changed()
