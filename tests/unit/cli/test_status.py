"""`mobula status`: the document, the view, and the sentence about health."""

from __future__ import annotations

import copy
import json

import pytest

from mobula.cluster.document import ActorDocument, BrokerDocument, StatusDocument
from mobula.cluster.health import judge
from mobula.cluster.options import LaunchError
from tests.unit.cli.running import FakeLauncher, mobula


def _actor(name: str, kind: str) -> ActorDocument:
    return {
        "name": name,
        "kind": kind,
        "pid": 100,
        "node": "0123456789abcdef",
        "restarts": 0,
        "state": "running",
    }


def _broker(number: int) -> BrokerDocument:
    return {
        "id": number,
        "host": "127.0.0.1",
        "port": 9092 + number,
        "state": "running",
        "data_dir": f"/data/broker-{number}",
        "actors": [_actor(f"broker-{number}/gateway-0", "gateway")],
    }


HEALTHY: StatusDocument = {
    "name": "mobula",
    "bootstrap": "127.0.0.1:9092,127.0.0.1:9093",
    "brokers": [_broker(0), _broker(1)],
    "controller": {
        "name": "controller",
        "pid": 99,
        "node": "0123456789abcdef",
        "restarts": 1,
        "state": "active",
    },
    "links": [
        {"from": "broker-0/gateway-0", "to": "broker-0/replica-0", "transport": "local"},
        {"from": "broker-0/replica-0", "to": "broker-1/replica-0", "transport": "ray"},
        {"from": "broker-1/replica-0", "to": "broker-0/replica-0", "transport": "ray"},
    ],
    "partitions": {"total": 6, "under_replicated": 0, "offline": 0},
}


@pytest.fixture
def document() -> StatusDocument:
    return copy.deepcopy(HEALTHY)


def test_json_is_the_launchers_document(launcher: FakeLauncher) -> None:
    launcher.document = HEALTHY
    outcome = mobula("status", "--name", "other", "--json")
    assert outcome.status == 0
    assert json.loads(outcome.stdout) == HEALTHY
    assert launcher.asked == [("status", "other")]


def test_the_view_has_brokers_actors_links_and_partitions(launcher: FakeLauncher) -> None:
    launcher.document = HEALTHY
    lines = mobula("status").text.splitlines()
    assert lines[0] == "mobula: healthy"
    assert lines[1] == "bootstrap: 127.0.0.1:9092,127.0.0.1:9093"
    words = [line.split() for line in lines]
    assert ["1", "127.0.0.1:9093", "running", "/data/broker-1"] in words
    assert ["controller", "active", "99", "01234567", "1"] in words
    assert ["broker-0/gateway-0", "running", "100", "01234567", "0"] in words
    assert "links: 1 local, 2 ray" in lines
    assert "partitions: 6, 0 under-replicated, 0 offline" in lines


def test_what_is_wrong_and_what_to_do_come_first(
    launcher: FakeLauncher, document: StatusDocument
) -> None:
    document["controller"] = None
    launcher.document = document
    lines = mobula("status").text.splitlines()
    assert lines[0].startswith("mobula: the controller does not answer")
    assert lines[1] == "next: mobula status"


def test_no_cluster_is_one_sentence_and_status_2(launcher: FakeLauncher) -> None:
    launcher.error = LaunchError("no cluster 'mobula' runs here; start one with `mobula up`")
    outcome = mobula("status")
    assert outcome.status == 2
    assert outcome.stderr == ("mobula: no cluster 'mobula' runs here; start one with `mobula up`\n")


def test_a_healthy_cluster_has_nothing_to_do(document: StatusDocument) -> None:
    health = judge(document)
    assert (health.well, health.sentence, health.next_command) == (True, "healthy", None)


def test_partitions_without_a_leader_name_the_dead_broker(document: StatusDocument) -> None:
    document["name"] = "other"
    document["brokers"][1]["state"] = "dead"
    document["partitions"] = {"total": 6, "under_replicated": 6, "offline": 2}
    health = judge(document)
    assert health.sentence == "2 of 6 partitions have no leader, because broker 1 is dead"
    assert health.next_command == "mobula down --name other && mobula up --name other"


def test_partitions_without_a_leader_while_all_brokers_live(document: StatusDocument) -> None:
    document["partitions"]["offline"] = 1
    assert judge(document).sentence == "1 of 6 partitions have no leader"


def test_dead_brokers_are_named(document: StatusDocument) -> None:
    for broker in document["brokers"]:
        broker["state"] = "dead"
    assert judge(document).sentence == "brokers 0, 1 are dead"


def test_a_broker_that_is_not_running_yet_is_named(document: StatusDocument) -> None:
    document["brokers"][1]["state"] = "fenced"
    health = judge(document)
    assert (health.sentence, health.next_command) == ("broker 1 is fenced", "mobula status")


def test_replicas_out_of_sync_are_counted(document: StatusDocument) -> None:
    document["partitions"]["under_replicated"] = 3
    assert "3 of 6 partitions have replicas that are not in sync" in judge(document).sentence


def test_a_link_that_is_down_is_named(document: StatusDocument) -> None:
    document["links"][0]["transport"] = "down"
    document["links"][1]["transport"] = "down"
    assert judge(document).sentence == (
        "the link broker-0/gateway-0 -> broker-0/replica-0 is down (and 1 more)"
    )
