"""Producer ids: given out in blocks, each one once for as long as the cluster exists."""

from __future__ import annotations

from mobula.actors.controller.messages import AllocateProducerIds, ProducerIdBlock
from mobula.actors.controller.outcome import Outcome
from mobula.actors.metadata.image import MetadataImage
from mobula.actors.metadata.records import ProducerIdsAllocated
from mobula.protocol.errors import ErrorCode

BLOCK_SIZE = 1000
_MAX_PRODUCER_ID = 2**63 - 1


def allocate(image: MetadataImage, request: AllocateProducerIds) -> Outcome[ProducerIdBlock]:
    """The next block. One that is lost on the way to its broker is never given again."""
    if request.broker_id not in image.brokers:
        return Outcome([], ProducerIdBlock(ErrorCode.broker_id_not_registered))
    first = image.next_producer_id
    if first > _MAX_PRODUCER_ID - BLOCK_SIZE:
        return Outcome([], ProducerIdBlock(ErrorCode.unknown_server_error))
    return Outcome(
        [ProducerIdsAllocated(first + BLOCK_SIZE)],
        ProducerIdBlock(ErrorCode.none, first, BLOCK_SIZE),
    )
