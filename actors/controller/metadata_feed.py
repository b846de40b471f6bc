"""What brokers pull: the newest committed records, or the whole image.

Invariant: `end_offset` is the image's offset whenever a pull is answered, so a snapshot
made from the image and the records that follow it fit together.
"""

from __future__ import annotations

from collections.abc import Sequence

from mobula.actors.controller.messages import PulledMetadata, PullMetadata
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import encode_record

KEPT_RECORDS = 20_000
"""A broker that is further behind gets a snapshot."""


class MetadataFeed:
    def __init__(self, image: MetadataImage, records: Sequence[bytes]) -> None:
        """`records` are the last ones that the image has replayed."""
        self._image = image
        self._records = list(records[-KEPT_RECORDS:])
        self.end_offset = image.offset
        self._snapshot: PulledMetadata | None = None

    def committed(self, records: Sequence[bytes]) -> None:
        self._records += records
        self.end_offset += len(records)
        if len(self._records) > 2 * KEPT_RECORDS:
            del self._records[:-KEPT_RECORDS]

    def answer(self, pull: PullMetadata) -> PulledMetadata | None:
        """None: the broker has everything."""
        same_history = pull.cluster_id in ("", self._image.cluster_id)
        if same_history and pull.offset == self.end_offset:
            return None
        first_kept = self.end_offset + 1 - len(self._records)
        if not same_history or not max(first_kept - 1, 0) <= pull.offset < self.end_offset:
            return self._whole_image()
        return PulledMetadata(False, self.end_offset, self._records[pull.offset + 1 - first_kept :])

    def _whole_image(self) -> PulledMetadata:
        # Brokers that start together ask for the same one.
        if self._snapshot is None or self._snapshot.offset != self.end_offset:
            records = [encode_record(record) for record in self._image.snapshot()]
            self._snapshot = PulledMetadata(True, self.end_offset, records)
        return self._snapshot
