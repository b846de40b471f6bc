"""How storage fails."""

from __future__ import annotations

from mobula.protocol.errors import ErrorCode, KafkaError


class RefusedRecordsError(KafkaError):
    """Some records keep their whole batch out. `record_errors` has the index of each in the
    batch and why, of the first ones at least."""

    def __init__(self, code: ErrorCode, record_errors: tuple[tuple[int, str], ...]) -> None:
        super().__init__(code, record_errors[0][1])
        self.record_errors = record_errors


class StorageError(KafkaError):
    """The disk failed, or a folder is not what it should be: KAFKA_STORAGE_ERROR."""

    def __init__(self, detail: str) -> None:
        super().__init__(ErrorCode.kafka_storage_error, detail)


class FolderError(Exception):
    """A data folder cannot be used, in one sentence for the person who started us."""


class RejectedBatchesError(Exception):
    """What a follower got does not follow on from its log, or is damaged.

    The follower's log is as it was before; it pulls again.
    """
