"""What both clusters are told; all else is their default."""

from __future__ import annotations

SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
