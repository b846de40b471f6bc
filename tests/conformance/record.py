"""`make record-kafka`: asks Apache Kafka all scenarios and writes down what it answers.

ARGS names the groups to record (files of `scenarios/`); all by default.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path

from mobula.loadtest.apache_kafka import KafkaCluster
from mobula.loadtest.kafka_jars import NoKafkaError, kafka_jars
from mobula.protocol.api import ApiKey
from tests.conformance import recording
from tests.conformance.requests import digest
from tests.conformance.scenario import Scenario, all_scenarios
from tests.conformance.settings import SETTINGS
from tests.conformance.side import CLOSED, Brokers
from tests.conformance.wire import encode_request

_START_S = 120


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", help="such as metadata")
    wanted = parser.parse_args().groups
    scenarios = [s for s in all_scenarios() if not wanted or s.group in wanted]
    unknown = set(wanted) - {s.group for s in scenarios}
    if unknown:
        say(f"There are no scenarios called {', '.join(sorted(unknown))}.")
        return 2
    try:
        jars = kafka_jars()
    except NoKafkaError as error:
        say(f"Apache Kafka cannot run here: {error}.")
        return 2
    with tempfile.TemporaryDirectory(prefix="mobula-conformance-") as folder:
        cluster = KafkaCluster(jars, Path(folder), SETTINGS)
        try:
            cluster.format()
        except NoKafkaError as error:
            say(f"Apache Kafka cannot run here: {error}.")
            return 2
        cluster.start()
        try:
            brokers = ready(cluster.bootstrap)
            total = record(scenarios, brokers)
            brokers.close()
        finally:
            cluster.stop()
    say(f"{total} exchanges recorded")
    return 0


def ready(bootstrap: str) -> Brokers:
    """Returns when every broker answers and knows of every other."""
    deadline = time.monotonic() + _START_S
    brokers = Brokers(bootstrap)
    while time.monotonic() < deadline:
        try:
            if all(_sees_all(brokers, index) for index in range(len(brokers.addresses))):
                return brokers
        except ConnectionRefusedError:
            pass
        time.sleep(0.2)
    raise TimeoutError(f"Apache Kafka was not ready after {_START_S} s")


def _sees_all(brokers: Brokers, index: int) -> bool:
    body = encode_request(ApiKey.METADATA, 9, {"topics": []})
    answer = brokers.exchange(index, ApiKey.METADATA, 9, body)
    return answer != CLOSED and len(answer["brokers"]) == len(brokers.addresses)


def record(scenarios: list[Scenario], brokers: Brokers) -> int:
    """Writes each group's file; the exchanges in all."""
    total = 0
    for group, members in groupby(scenarios, key=lambda scenario: scenario.group):
        answers: recording.Answers = {}
        requests: recording.Requests = {}
        count = 0
        for scenario in members:
            for version in scenario.versions:
                try:
                    exchanges = scenario.run(brokers, version)
                except Exception as error:
                    error.add_note(f"in {group}/{scenario.name} v{version}")
                    raise
                found = [exchange.answer for exchange in exchanges]
                answers.setdefault(scenario.name, {})[version] = found
                asked = digest(exchange.asked for exchange in exchanges)
                requests.setdefault(scenario.name, {})[version] = asked
                count += len(found)
        recording.save(group, answers, requests)
        say(f"{group}: {count} exchanges of {len(answers)} scenarios")
        total += count
    return total


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
