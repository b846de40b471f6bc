"""What a decision of the controller consists of."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from mobula.actors.metadata.records import Record

ResponseT = TypeVar("ResponseT")


class Outcome(NamedTuple, Generic[ResponseT]):
    """Records to commit, and what to answer once they are. They are replayed at once, so
    the next decision knows them; the answer leaves only after they are on disk."""

    records: list[Record]
    response: ResponseT
