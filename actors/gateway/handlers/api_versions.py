"""ApiVersions (key 18, v0-4).

Behaviour: what this broker serves, derived from its table of handlers, and the cluster's
finalized features. A version outside the range is answered in version 0 with
UNSUPPORTED_VERSION and the range of this API, so that the client can ask again.
Versions: v3 names the client's software, which is checked (KIP-511).
"""

from __future__ import annotations

from mobula.actors.gateway.request import Request
from mobula.actors.gateway.services import Services
from mobula.protocol.api import Api, ApiKey
from mobula.protocol.api_versions import (
    VERSIONS,
    decode_api_versions_request,
    encode_api_versions_response,
    encode_unsupported_version,
)

API = Api(ApiKey.API_VERSIONS, VERSIONS)


def handle(request: Request, services: Services) -> None:
    version = request.header.api_version
    if version not in API.served:
        request.respond(encode_unsupported_version(API.versions))
        return
    decode_api_versions_request(version, request.body)
    levels = services.image.features
    request.respond(
        encode_api_versions_response(
            version,
            services.versions.advertised(),
            supported_features=[(name, 0, level) for name, level in levels.items()],
            finalized_features=[(name, level, level) for name, level in levels.items()],
            finalized_features_epoch=services.image.offset if levels else -1,
        )
    )
