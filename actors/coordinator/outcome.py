"""What a decision of a coordinator consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from mobula.protocol.errors import KafkaError

AnswerT = TypeVar("AnswerT")
RecordT = TypeVar("RecordT")

Settled = Callable[[KafkaError | None], None]
"""None: the records are committed. An error: they may not be, and the state that they
made is forgotten."""


class Outcome(NamedTuple, Generic[RecordT, AnswerT]):
    """Records to append, and what to answer when they are committed. They are replayed at
    once, so the next decision knows them."""

    records: Sequence[RecordT]
    answer: AnswerT | None = None
    """None: whoever asked is answered later, by another decision or by `settled`."""
    settled: Settled | None = None
