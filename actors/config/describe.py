"""Every key of a topic or a broker with its value, and where the value comes from.

Invariant: the first synonym of an entry is where its value comes from (without any it is
the default), so what a tool reads here and writes back changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from mobula.actors.config import Config
from mobula.actors.config.definitions import BROKER_KEYS, TOPIC_KEYS
from mobula.actors.config.key import ConfigType, Key
from mobula.actors.config.topic import converted
from mobula.actors.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage

_FAMILIES = {
    synonym.key: [coarser.key for coarser in key.synonyms[index:]]
    for key in TOPIC_KEYS.values()
    for index, synonym in enumerate(key.synonyms)
}
"""By broker key: itself, and what counts when it is not set."""


class ConfigSource(IntEnum):
    """Kafka's numbers."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


@dataclass(frozen=True, slots=True)
class Origin:
    """One place that gives the key a value; the first of several counts."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    type: ConfigType
    synonyms: tuple[Origin, ...]
    documentation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLayers:
    """A broker's settings, each layer for itself, the strongest first."""

    own: Mapping[str, str]
    """Changed for this broker while it runs."""
    everywhere: Mapping[str, str]
    """Changed for all brokers while they run."""
    static: Mapping[str, str]
    """What it was started with."""

    @classmethod
    def of(cls, image: MetadataImage, static: Config, broker_id: int | None) -> BrokerLayers:
        own: Mapping[str, str] = {}
        if broker_id is not None:
            own = image.configs.get((BROKER_RESOURCE, str(broker_id)), {})
        everywhere = image.configs.get((BROKER_RESOURCE, ""), {})
        return cls(own=own, everywhere=everywhere, static=static.values)

    def origins(self, name: str) -> list[Origin]:
        """Where the broker key has a value, without its default."""
        layers = (
            (self.own, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (self.everywhere, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self.static, ConfigSource.STATIC_BROKER_CONFIG),
        )
        return [Origin(name, layer[name], source) for layer, source in layers if name in layer]


def describe_topic(
    image: MetadataImage, topic_name: str, broker_config: Config, broker_id: int | None = None
) -> list[Entry]:
    """All topic keys, in the order of their names."""
    own = image.configs.get((TOPIC_RESOURCE, topic_name), {})
    return describe_topic_of(own, BrokerLayers.of(image, broker_config, broker_id))


def describe_topic_of(own: Mapping[str, str], broker: BrokerLayers) -> list[Entry]:
    return [_topic_entry(TOPIC_KEYS[name], own, broker) for name in sorted(TOPIC_KEYS)]


def describe_broker(
    image: MetadataImage, broker_config: Config, broker_id: int, facts: Mapping[str, str]
) -> list[Entry]:
    """All broker keys. `facts` are what the launcher gave: the broker's number, its folder."""
    layers = BrokerLayers.of(image, broker_config, broker_id)
    layers = BrokerLayers(
        own=layers.own, everywhere=layers.everywhere, static={**layers.static, **facts}
    )
    return [_broker_entry(BROKER_KEYS[name], layers) for name in sorted(BROKER_KEYS)]


def describe_all_brokers(image: MetadataImage) -> list[Entry]:
    """What was changed for all brokers while they run: only that, as in Kafka."""
    values = image.configs.get((BROKER_RESOURCE, ""), {})
    layers = BrokerLayers(own={}, everywhere=values, static={})
    return [
        _broker_entry(BROKER_KEYS[name], layers, with_default=False)
        for name in sorted(values)
        if name in BROKER_KEYS
    ]


def _topic_entry(key: Key, own: Mapping[str, str], broker: BrokerLayers) -> Entry:
    origins = []
    value = key.default
    if key.name in own:
        value = key.shown(own[key.name])
        origins.append(Origin(key.name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG))
    origins += _family_origins([synonym.key for synonym in key.synonyms], broker)
    if origins:
        factors = {synonym.key: synonym.factor for synonym in key.synonyms}
        first = origins[0]
        inherited = first.source is not ConfigSource.DYNAMIC_TOPIC_CONFIG
        factor = factors[first.name] if inherited else 1
        value = first.value if first.value is None else converted(first.value, factor)
    if not key.synonyms:
        origins.append(Origin(key.name, key.default, ConfigSource.DEFAULT_CONFIG))
    return _entry(key, value, origins, read_only=False)


def _broker_entry(key: Key, broker: BrokerLayers, *, with_default: bool = True) -> Entry:
    origins = broker.origins(key.name)
    if with_default and not key.given_by and (origins or key.default is not None):
        origins = _family_origins(_FAMILIES.get(key.name, [key.name]), broker)
    value = origins[0].value if origins else key.default
    return _entry(key, value, origins, read_only=not key.dynamic)


def _family_origins(family: Sequence[str], broker: BrokerLayers) -> list[Origin]:
    """Of broker keys that stand in for each other, the finest first. The default of a coarser
    one is told only behind other values, as in Kafka."""
    origins = [origin for name in family for origin in broker.origins(name)]
    for name in family:
        default = BROKER_KEYS[name].default
        if default is not None and (origins or name == family[0]):
            origins.append(Origin(name, default, ConfigSource.DEFAULT_CONFIG))
    return origins


def _entry(key: Key, value: str | None, origins: list[Origin], *, read_only: bool) -> Entry:
    return Entry(
        name=key.name,
        value=None if value is None else key.shown(value),
        source=origins[0].source if origins else ConfigSource.DEFAULT_CONFIG,
        read_only=read_only,
        type=key.type,
        synonyms=tuple(origins),
        documentation=f"{key.doc} {key.why}".strip(),
    )
