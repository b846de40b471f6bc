"""Which replica actor of a broker holds a partition: a function of the metadata alone."""

from __future__ import annotations

import zlib

from mobula.actors.metadata.image import TOPIC_RESOURCE, MetadataImage
from mobula.actors.spec import dedicated_replica_name, replica_name

DEDICATED_KEY = "replica.actor"
DEDICATED = "dedicated"


def replica_actor_of(image: MetadataImage, broker_id: int, topic_id: bytes, partition: int) -> str:
    """Local name of the one actor of `broker_id` that may write this partition."""
    if is_dedicated(image, topic_id):
        return dedicated_replica_name(broker_id, topic_id, partition)
    broker = image.brokers.get(broker_id)
    shards = 1 if broker is None else broker.num_replica_actors
    topic = image.topics.get(topic_id)
    if shards == 1 or topic is None:
        return replica_name(broker_id, 0)
    # By name, like the folder: a topic that is deleted and created again stays with the actor
    # that has to remove the old folder first.
    return replica_name(broker_id, (zlib.crc32(topic.name.encode()) + partition) % shards)


def is_dedicated(image: MetadataImage, topic_id: bytes) -> bool:
    topic = image.topics.get(topic_id)
    if topic is None:
        return False
    return image.configs.get((TOPIC_RESOURCE, topic.name), {}).get(DEDICATED_KEY) == DEDICATED
