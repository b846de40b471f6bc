"""AlterConfigs (key 33, v0-2).

Behaviour: what is given becomes all that is set for the resource; what is left out goes
back to its default. Topics and brokers (a broker without a name: all of them).
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

API = Api(ApiKey.ALTER_CONFIGS, range(3))


def handle(request: ControllerRequest, controller: ControllerCore) -> Outcome[ResponseTree]:
    def alter(resource: Resource, configs: Any) -> list[Record]:
        return controller.configs.replace(
            resource, [(config.name, config.value) for config in configs]
        )

    return alter_resources(request.body, alter)
