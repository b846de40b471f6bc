"""AutoTopicCreationManager: topics that a client asked for and that do not exist yet.

The creation is forwarded as a CreateTopics request; the client is answered at once and
asks again.

Invariant: a topic has at most one creation under way from this gateway.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from mobula.actors.coordinator.partitioner import GROUP_TOPIC
from mobula.actors.gateway.forwarding_manager import ForwardingManager
from mobula.actors.gateway.request import RequestContext
from mobula.protocol.api import ApiKey
from mobula.protocol.errors import ErrorCode
from mobula.protocol.messages import build_request, decode_response, encode

if TYPE_CHECKING:
    from mobula.actors.config import Config

log = logging.getLogger(__name__)

_VERSION: Final = 7
_TIMEOUT_MS: Final = 10_000
_DEFAULT: Final = -1
"""As many partitions and replicas as the cluster's configuration says."""
_HEADER: Final = struct.pack(">hhihx", ApiKey.CREATE_TOPICS, _VERSION, 0, -1)


class AutoTopicCreationManager:
    def __init__(self, forwarding: ForwardingManager, config: Config) -> None:
        self._forwarding = forwarding
        self._config = config
        self._under_way: set[str] = set()

    def create(self, names: Iterable[str], context: RequestContext) -> None:
        """Ask the controller for these topics, in the name of the client that wants them."""
        wanted = [name for name in names if name not in self._under_way]
        if not wanted:
            return
        self._under_way.update(wanted)
        body = encode(
            build_request(
                ApiKey.CREATE_TOPICS,
                _VERSION,
                {
                    "topics": [
                        {"name": name, **self._settings(name), "assignments": []} for name in wanted
                    ],
                    "timeout": _TIMEOUT_MS,
                    "validate_only": False,
                },
            )
        )

        def answered(response: memoryview) -> None:
            self._under_way.difference_update(wanted)
            for topic in decode_response(ApiKey.CREATE_TOPICS, _VERSION, response).topics:
                if topic.error_code in (ErrorCode.none, ErrorCode.topic_already_exists):
                    log.info("topic created on request topic=%s", topic.name)
                else:
                    log.warning(
                        "topic was not created on request topic=%s code=%s reason=%s",
                        topic.name,
                        topic.error_code.name,
                        topic.error_message,
                    )

        def failed(code: ErrorCode) -> None:
            self._under_way.difference_update(wanted)
            log.warning("topics were not created on request topics=%s code=%s", wanted, code.name)

        self._forwarding.send(_HEADER + body, context, _TIMEOUT_MS, answered, failed)

    def _settings(self, name: str) -> dict[str, Any]:
        if name != GROUP_TOPIC:
            return {
                "num_partitions": _DEFAULT,
                "replication_factor": _DEFAULT,
                "configs": [],
            }
        integer = self._config.integer
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(integer("offsets.topic.segment.bytes")),
        }
        return {
            "num_partitions": integer("offsets.topic.num.partitions"),
            "replication_factor": integer("offsets.topic.replication.factor"),
            "configs": [{"name": key, "value": value} for key, value in configs.items()],
        }
