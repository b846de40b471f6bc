"""The keys of a broker, all of them."""

from __future__ import annotations

from mobula.actors.config.group_keys import GROUPS
from mobula.actors.config.log_keys import LOG
from mobula.actors.config.network_keys import IDENTITY, NETWORK
from mobula.actors.config.replication_keys import REPLICATION, TOPICS

BROKER = (*IDENTITY, *NETWORK, *LOG, *TOPICS, *REPLICATION, *GROUPS)
