"""Replication under seeded trouble: acknowledged records are never lost, logs converge byte
for byte, and no high watermark ever shows what is not committed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest

from mobula.actors.controller.messages import ReplicaActorState
from mobula.actors.rows import Role
from mobula.actors.spec import CONTROLLER_NAME
from mobula.storage.batch import iter_headers
from mobula.storage.records import iter_records
from tests.sim.cluster import SimCluster, SimNode
from tests.sim.producer import SimProducer

TOPIC = bytes(range(16))
PARTITIONS = 3


class Witness:
    """Remembers everything that any replica has ever shown as committed."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self._seen: dict[tuple[int, int], tuple[int, int, int]] = {}
        self._upto: dict[tuple[int, int, int, int], int] = {}

    def look(self) -> None:
        for node in self._cluster.nodes.values():
            for index in range(PARTITIONS):
                self._look_at(node, index)

    def _look_at(self, node: SimNode, index: int) -> None:
        partition = node.partition(TOPIC, index)
        row = node.rows.find(TOPIC, index) if partition is not None else None
        if partition is None or row is None or row.role == Role.OFFLINE:
            return
        assert row.high_watermark <= partition.log_end_offset
        assert row.log_end_offset <= partition.log_end_offset
        place = (node.broker_id, node.lives, row.generation, index)
        start = max(self._upto.get(place, 0), partition.log_start_offset)
        self._upto[place] = row.high_watermark
        for base, crc, epoch, last in headers(node, index, start, row.high_watermark):
            known = self._seen.setdefault((index, base), (crc, epoch, last))
            assert known == (crc, epoch, last), (
                f"broker {node.broker_id} shows something else as committed at "
                f"{index}/{base}: {(crc, epoch, last)} was {known}"
            )

    def check_final(self) -> None:
        """All that was ever shown is in the logs now."""
        for index in range(PARTITIONS):
            node = self._cluster.nodes[0]
            partition = node.partition(TOPIC, index)
            assert partition is not None
            final = {
                base: (crc, epoch, last)
                for base, crc, epoch, last in headers(
                    node, index, partition.log_start_offset, partition.log_end_offset
                )
            }
            shown = {base: what for (of, base), what in self._seen.items() if of == index}
            for base, what in shown.items():
                if base >= partition.log_start_offset:
                    assert final.get(base) == what


def headers(node: SimNode, index: int, start: int, end: int) -> list[tuple[int, int, int, int]]:
    """(base offset, crc, leader epoch, last offset) of the batches in a range of offsets."""
    partition = node.partition(TOPIC, index)
    assert partition is not None
    found: list[tuple[int, int, int, int]] = []
    while start < end:
        ranges, start = partition.log.ranges_from(start, 1 << 20)
        for each in ranges:
            data = partition.log.read(each)
            found += [
                (header.base_offset, header.crc, header.partition_leader_epoch, header.last_offset)
                for _, header in iter_headers(data)
                if header.base_offset < end
            ]
    return found


def values(node: SimNode, index: int) -> list[bytes | None]:
    partition = node.partition(TOPIC, index)
    assert partition is not None
    found = []
    start = partition.log_start_offset
    while start < partition.log_end_offset:
        ranges, start = partition.log.ranges_from(start, 1 << 20)
        for each in ranges:
            data = partition.log.read(each)
            for at, header in iter_headers(data):
                found += [
                    record.value for record in iter_records(data[at : at + header.size_bytes])
                ]
    return found


def bring_back(node: SimNode) -> None:
    if not node.alive:
        node.start_actor()
    if not node.broker_up:
        node.start_broker()


def bring_all_back(cluster: SimCluster) -> None:
    cluster.network.heal_all()
    cluster.full_disks.clear()
    if not cluster.controller.up:
        cluster.controller.start()
    for node in cluster.nodes.values():
        bring_back(node)


def tear(segment: Path, random: Random) -> None:
    """Take some bytes off the end, never whole batches only."""
    data = segment.read_bytes()
    ends = {0} | {at + header.size_bytes for at, header in iter_headers(data)}
    left = max(len(data) - random.randint(1, 2_000), 0)
    os.truncate(segment, left + 1 if left in ends and left + 1 < len(data) else left)


class Trouble:
    """What goes wrong, chosen by the seed."""

    def __init__(self, cluster: SimCluster, *, torn_tails: bool) -> None:
        self._cluster = cluster
        self._torn_tails = torn_tails
        self.happened: list[str] = []

    def strike(self) -> None:
        random = self._cluster.random
        kinds: list[Callable[[], None]] = [
            self._crash,
            self._crash_actor,
            self._crash_actor,
            self._crash_broker,
            self._crash_controller,
            self._crash_all,
            self._fill_disk,
            self._move_leader,
            self._move_leader,
            self._cut,
            self._cut_off,
        ]
        random.choice(kinds)()

    def _note(self, what: str) -> None:
        self.happened.append(f"{self._cluster.loop.monotonic_ms()} {what}")

    def _crash(self) -> None:
        cluster, random = self._cluster, self._cluster.random
        node = self._one(lambda node: node.alive and node.broker_up)
        if node is None:
            return
        self._note(f"crash {node.broker_id}")
        node.crash()
        if self._torn_tails:
            self._tear(node)
        cluster.loop.call_later(random.uniform(0.01, 1.0), lambda: self._restart(node))

    def _one(self, wanted: Callable[[SimNode], bool]) -> SimNode | None:
        found = [node for node in self._cluster.nodes.values() if wanted(node)]
        return self._cluster.random.choice(found) if found else None

    def _soon(self, work: Callable[[], None]) -> None:
        self._cluster.loop.call_later(self._cluster.random.uniform(0.01, 1.0), work)

    def _restart(self, node: SimNode) -> None:
        self._note(f"start {node.broker_id}")
        bring_back(node)

    def _crash_actor(self) -> None:
        node = self._one(lambda node: node.alive)
        if node is not None:
            self._note(f"crash actor {node.broker_id}")
            node.crash_actor()
            self._soon(lambda: self._restart(node))

    def _crash_broker(self) -> None:
        node = self._one(lambda node: node.broker_up)
        if node is not None:
            self._note(f"crash broker {node.broker_id}")
            node.crash_broker()
            self._soon(lambda: self._restart(node))

    def _crash_controller(self) -> None:
        controller = self._cluster.controller
        if controller.up:
            self._note("crash controller")
            controller.crash()
            self._soon(lambda: None if controller.up else controller.start())

    def _crash_all(self) -> None:
        """Every process is killed; all come back, in any order."""
        self._note("crash all")
        self._crash_controller()
        for node in self._cluster.nodes.values():
            if node.alive or node.broker_up:
                node.crash()
                self._soon(partial(self._restart, node))

    def _fill_disk(self) -> None:
        """Nothing more can be written by one broker, for a while."""
        cluster = self._cluster
        node = cluster.random.choice(list(cluster.nodes.values()))
        self._note(f"full disk {node.broker_id}")
        cluster.full_disks.add(str(node.data_dir))
        self._soon(lambda: cluster.full_disks.discard(str(node.data_dir)))

    def lose_power(self) -> None:
        """Every process ends while all is well, and one broker's files lose their ends."""
        cluster = self._cluster
        bring_all_back(cluster)
        cluster.loop.run_for(3_000)
        if not all(
            (record := cluster.controller.image.partition(TOPIC, index)) is not None
            and len(record.isr) == len(cluster.nodes)
            for index in range(PARTITIONS)
        ):
            return
        torn = cluster.random.choice(list(cluster.nodes.values()))
        self._note(f"power lost, torn {torn.broker_id}")
        if cluster.random.random() < 0.5:
            self._crash_all()
        else:
            torn.crash_actor()
            self._soon(lambda: self._restart(torn))
        for index in range(PARTITIONS):
            segments = sorted((torn.data_dir / f"topic-{index}").glob("*.log"))
            if segments:
                tear(segments[-1], cluster.random)
        cluster.loop.run_for(2_500)

    def _tear(self, node: SimNode) -> None:
        """The machine went down: the end of some files never reached the disk. Only when
        all others have everything, and known to the controller at once: no log survives the
        loss of power on the machine that is the last in sync."""
        random = self._cluster.random
        records = [self._cluster.controller.image.partition(TOPIC, i) for i in range(PARTITIONS)]
        self._cluster.controller.fence(node.broker_id)
        for index, record in enumerate(records):
            assert record is not None
            others = [each for each in self._cluster.nodes.values() if each is not node]
            if not all(each.alive and each.broker_id in record.isr for each in others):
                continue
            segments = sorted((node.data_dir / f"topic-{index}").glob("*.log"))
            if segments and segments[-1].stat().st_size:
                size = segments[-1].stat().st_size
                with segments[-1].open("r+b") as file:
                    file.truncate(max(size - random.randint(1, 2_000), 0))
                self._note(f"torn {node.broker_id} {index}")

    def take_away(self) -> None:
        """The controller hears that a replica actor died, and then that it is back."""
        cluster = self._cluster
        node = cluster.random.choice(list(cluster.nodes.values()))
        partitions = [(TOPIC, index) for index in range(PARTITIONS)]
        self._note(f"away {node.broker_id}")
        for online, delay_s in ((False, 0.0), (True, cluster.random.uniform(0.0, 0.3))):
            state = ReplicaActorState(node.broker_id, node.broker_epoch, online, partitions)

            def tell(state: ReplicaActorState = state) -> None:
                outcome = cluster.controller.control.replica_actor_state(state)
                cluster.controller.commit(list(outcome.records))

            cluster.loop.call_later(delay_s, tell)

    def _move_leader(self) -> None:
        index = self._cluster.random.randrange(PARTITIONS)
        self._note(f"move {index}")
        self._cluster.controller.move_leader(TOPIC, index, self._cluster.random)

    def _cut(self) -> None:
        one, other = self._cluster.random.sample(sorted(self._cluster.nodes), 2)
        self._separate(self._cluster.nodes[one].name, self._cluster.nodes[other].name)

    def _cut_off(self) -> None:
        """From the controller: it is fenced, and does not know it."""
        cluster = self._cluster
        node = cluster.random.choice(list(cluster.nodes.values()))
        self._separate(node.name, CONTROLLER_NAME)
        if cluster.random.random() < 0.5:
            self._note(f"fence {node.broker_id}")
            cluster.controller.fence(node.broker_id)

    def _separate(self, one: str, other: str) -> None:
        self._note(f"cut {one} {other}")
        self._cluster.network.cut(one, other)
        self._cluster.loop.call_later(
            self._cluster.random.uniform(0.01, 0.8), lambda: self._cluster.network.heal(one, other)
        )


def run(tmp_path: Path, seed: int, *, ranges: bool, torn_tails: bool, min_isr: int = 2) -> None:
    print(f"seed={seed} ranges={ranges} torn_tails={torn_tails} min_isr={min_isr}")  # noqa: T201
    cluster = SimCluster(
        tmp_path,
        seed,
        config={
            "replica.pull.ranges": "auto" if ranges else "never",
            "log.segment.bytes": "20000",
            "log.index.interval.bytes": "500",
        },
    )
    trouble = Trouble(cluster, torn_tails=torn_tails)
    try:
        cluster.controller.create_topic(
            TOPIC, "topic", PARTITIONS, min_insync_replicas=str(min_isr)
        )
        producers = [
            SimProducer(cluster, TOPIC, index % PARTITIONS, index)
            for index in range(PARTITIONS * 2)
        ]
        witness = Witness(cluster)
        for _ in range(25):
            for _ in range(cluster.random.randint(1, 12)):
                cluster.loop.run_for(cluster.random.randint(1, 20))
                witness.look()
            trouble.strike()
            if torn_tails and cluster.random.random() < 0.1:
                trouble.lose_power()
        heal(cluster, producers)
        witness.look()
        check_converged(cluster)
        check_promises(cluster, producers)
        witness.check_final()
        assert sum(len(producer.promises) for producer in producers) > 50
    except BaseException:
        print("\n".join(trouble.happened))  # noqa: T201
        raise
    finally:
        cluster.close()


def heal(cluster: SimCluster, producers: list[SimProducer]) -> None:
    """All is well again: everything must come to rest, and soon."""
    bring_all_back(cluster)
    cluster.loop.run_for(3_000)
    before = [len(producer.promises) for producer in producers]
    cluster.loop.run_for(3_000)
    for producer, count in zip(producers, before, strict=True):
        assert len(producer.promises) > count, "a producer does not get on"
        producer.stopped = True
    cluster.loop.run_for(3_000)


def check_converged(cluster: SimCluster) -> None:
    for index in range(PARTITIONS):
        record = cluster.controller.image.partition(TOPIC, index)
        assert record is not None
        assert sorted(record.isr) == sorted(cluster.nodes), f"{index}: not all are in sync"
        contents = []
        for node in cluster.nodes.values():
            partition = node.partition(TOPIC, index)
            assert partition is not None
            assert partition.high_watermark_offset == partition.log_end_offset
            files = sorted((node.data_dir / f"topic-{index}").glob("*.log"))
            contents.append(b"".join(path.read_bytes() for path in files))
        assert contents[0] == contents[1] == contents[2], f"{index}: logs differ"


def check_promises(cluster: SimCluster, producers: list[SimProducer]) -> None:
    for number, producer in enumerate(producers):
        index = number % PARTITIONS
        found = [value for value in values(cluster.nodes[0], index) if value is not None]
        prefix = b"%d-" % (1_000 + number)
        mine = [value for value in found if value.startswith(prefix)]
        promised = [value for promise in producer.promises for value in promise.values]
        # Once each, in order; what was under way at the end may stand after it.
        assert mine[: len(promised)] == promised
        assert len(set(mine)) == len(mine)


@pytest.mark.parametrize("seed", range(4))
def test_acknowledged_records_survive_crashes_and_leader_changes(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed, ranges=True, torn_tails=False)


@pytest.mark.parametrize("seed", range(100, 102))
def test_the_same_with_pulls_that_carry_bytes(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed, ranges=False, torn_tails=False)


@pytest.mark.parametrize("seed", range(200, 203))
def test_the_same_when_crashes_tear_the_ends_of_files(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed, ranges=bool(seed % 2), torn_tails=True)


@pytest.mark.parametrize("seed", range(300, 302))
def test_the_same_with_one_replica_in_sync_being_enough(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed, ranges=True, torn_tails=False, min_isr=1)


@pytest.mark.parametrize("seed", range(400, 404))
def test_replicas_of_idle_partitions_come_back_into_the_isr(tmp_path: Path, seed: int) -> None:
    """Nobody writes, so no pull has anything to say; what was forgotten must be asked for."""
    print(f"seed={seed}")  # noqa: T201
    cluster = SimCluster(tmp_path, seed)
    trouble = Trouble(cluster, torn_tails=False)
    try:
        cluster.controller.create_topic(TOPIC, "topic", PARTITIONS)
        cluster.loop.run_for(200)
        for _ in range(15):
            trouble.strike()
            cluster.loop.run_for(cluster.random.randint(1, 400))
            if cluster.random.random() < 0.3:
                trouble.take_away()
        bring_all_back(cluster)
        cluster.loop.run_for(3_000)
        check_converged(cluster)
    except BaseException:
        print("\n".join(trouble.happened))  # noqa: T201
        raise
    finally:
        cluster.close()
