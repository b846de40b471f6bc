"""IncrementalAlterConfigs (key 44, v0-1).

Behaviour: SET, DELETE, and for lists APPEND and SUBTRACT, on top of what is set. Topics and
brokers (a broker without a name: all of them).
Versions: all the same on the controller.
"""

from __future__ import annotations

from typing import Any

from mobula.actors.controller.configs import Resource
from mobula.actors.controller.core import ControllerCore
from mobula.actors.controller.outcome import Outcome
from mobula.actors.controller.request import ControllerRequest, ResponseTree
from mobula.actors.controller.resources import alter_resources
from mobula.actors.metadata.records import Record
from mobula.protocol.api import Api, ApiKey

API = Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, range(2))


def handle(request: ControllerRequest, controller: ControllerCore) -> Outcome[ResponseTree]:
    def alter(resource: Resource, configs: Any) -> list[Record]:
        return controller.configs.change(
            resource,
            [(config.name, config.config_operation, config.value) for config in configs],
        )

    return alter_resources(request.body, alter)
