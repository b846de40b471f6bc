"""A data folder as a replica actor uses it: checkpoints, the mark, folders set aside."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mobula.actors.replica.log_directory import LogDirectory
from mobula.actors.replica.partition import Partition
from mobula.storage.config import LogConfig
from mobula.storage.records import NewRecord, build_batch

TOPIC = bytes(range(16))
OTHER = bytes(16)
NOW_MS = 1_700_000_000_000


def directory(data_dir: Path, actor: str = "replica-0") -> LogDirectory:
    made = LogDirectory(data_dir, actor)
    made.load()
    return made


def open_partition(logs: LogDirectory, index: int = 0, topic_id: bytes = TOPIC) -> Partition:
    return logs.open((topic_id, index), "topic", LogConfig(), NOW_MS)


def write(partition: Partition, count: int) -> None:
    end = partition.log_end_offset
    data = build_batch([NewRecord(NOW_MS, None, b"value")] * count, base_offset=end, leader_epoch=1)
    partition.log.append_as_follower(memoryview(data))


def end_cleanly(logs: LogDirectory, *partitions: Partition) -> None:
    for partition in partitions:
        partition.log.close()
    logs.checkpoint(partitions).write()
    logs.mark_clean()


def test_offsets_survive_a_clean_end(tmp_path: Path) -> None:
    logs = directory(tmp_path)
    partition = open_partition(logs)
    write(partition, 10)
    partition.take_high_watermark(8)
    partition.log.advance_log_start(3)
    end_cleanly(logs, partition)

    again = open_partition(directory(tmp_path))
    assert again.high_watermark_offset == 8
    assert again.log_start_offset == 3
    assert again.log_end_offset == 10
    assert again.log.recovery is None
    again.log.close()


def test_a_crash_is_recovered_from(tmp_path: Path) -> None:
    logs = directory(tmp_path)
    partition = open_partition(logs)
    write(partition, 10)
    partition.log.release_files()

    again = open_partition(directory(tmp_path))
    assert again.log.recovery is not None
    assert again.log_end_offset == 10
    again.log.close()


def test_a_follower_cut_between_two_batches_has_lost_its_end(tmp_path: Path) -> None:
    """It had not heard yet that all of it is committed."""
    logs = directory(tmp_path)
    partition = open_partition(logs)
    for _ in range(3):
        write(partition, 10)
    partition.take_high_watermark(10)
    cut_at = partition.log.position_of(20).position
    segment = partition.log.segment_path(0)
    end_cleanly(logs, partition)
    os.truncate(segment, cut_at)

    again = open_partition(directory(tmp_path))
    assert (again.log_end_offset, again.lost_its_end) == (20, True)
    again.log.release_files()
    # Nor is it forgotten when the actor crashes before anything came of it.
    crashed = open_partition(directory(tmp_path))
    assert crashed.lost_its_end
    crashed.log.close()


def test_a_partition_whose_folder_is_gone_has_lost_its_end(tmp_path: Path) -> None:
    logs = directory(tmp_path)
    partition = open_partition(logs)
    write(partition, 10)
    end_cleanly(logs, partition)
    shutil.rmtree(partition.log.directory)

    fresh = directory(tmp_path)
    gone, other = open_partition(fresh), open_partition(fresh, 1)
    assert (gone.log_end_offset, gone.lost_its_end, other.lost_its_end) == (0, True, False)
    gone.log.close()
    other.log.close()


def test_the_mark_of_a_clean_end_counts_once(tmp_path: Path) -> None:
    logs = directory(tmp_path)
    partition = open_partition(logs)
    write(partition, 10)
    end_cleanly(logs, partition)
    directory(tmp_path)

    crashed = open_partition(directory(tmp_path))
    assert crashed.log.recovery is not None
    crashed.log.close()


def test_the_crash_of_one_actor_does_not_concern_another(tmp_path: Path) -> None:
    one, two = directory(tmp_path, "replica-0"), directory(tmp_path, "replica-1")
    kept, crashed = open_partition(one, 0), open_partition(two, 1)
    write(kept, 3)
    write(crashed, 3)
    end_cleanly(one, kept)
    crashed.log.release_files()

    clean = open_partition(directory(tmp_path, "replica-0"), 0)
    torn = open_partition(directory(tmp_path, "replica-1"), 1)
    assert clean.log.recovery is None
    assert torn.log.recovery is not None
    clean.log.close()
    torn.log.close()


def test_a_log_that_another_actor_had_is_not_taken_for_clean(tmp_path: Path) -> None:
    one, two = directory(tmp_path, "replica-0"), directory(tmp_path, "replica-1")
    partition = open_partition(two, 1)
    write(partition, 3)
    partition.take_high_watermark(2)
    two.checkpoint([partition]).write()
    partition.log.release_files()
    end_cleanly(one)

    moved = open_partition(directory(tmp_path, "replica-0"), 1)
    assert moved.log.recovery is not None
    assert moved.high_watermark_offset == 2
    moved.log.close()


def test_marks_of_actors_that_are_no_more_are_removed(tmp_path: Path) -> None:
    two = directory(tmp_path, "replica-1")
    end_cleanly(two, partition := open_partition(two, 1))
    assert partition.log.directory.is_dir()
    directory(tmp_path, "replica-0").forget_actors(1)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["topic-1"]


def test_a_folder_of_an_earlier_topic_of_the_same_name_is_set_aside(tmp_path: Path) -> None:
    logs = directory(tmp_path)
    old = open_partition(logs, topic_id=OTHER)
    write(old, 5)
    end_cleanly(logs, old)

    new = open_partition(directory(tmp_path))
    assert new.log_end_offset == 0
    assert new.high_watermark_offset == 0
    (stray,) = tmp_path.glob("topic-0.*-stray")
    assert list(stray.glob("*.log"))
    new.log.close()


def test_a_damaged_checkpoint_costs_a_recovery_and_no_data(tmp_path: Path) -> None:
    logs = directory(tmp_path)
    partition = open_partition(logs)
    write(partition, 10)
    end_cleanly(logs, partition)
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n7\ngarbage")

    again = open_partition(directory(tmp_path))
    assert again.log_end_offset == 10
    again.log.close()


def test_the_first_actors_checkpoints_have_kafkas_names(tmp_path: Path) -> None:
    logs = directory(tmp_path)
    partition = open_partition(logs)
    write(partition, 10)
    end_cleanly(logs, partition)
    text = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    assert text == "0\n1\ntopic 0 10\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\ntopic 0 0\n"
    assert (tmp_path / "log-start-offset-checkpoint").exists()


def test_a_name_that_is_set_aside_fits_the_file_system(tmp_path: Path) -> None:
    folder = tmp_path / ("t" * 249 + "-0")
    folder.mkdir()
    moved = directory(tmp_path).set_aside(folder, "delete")
    assert moved.is_dir()
    assert len(moved.name) <= 255
    assert directory(tmp_path).deleted() == [moved]


def test_strays_are_folders_that_nobody_expects_and_that_are_not_new(tmp_path: Path) -> None:
    for name in ("topic-0", "gone-1", "gone-1.0123-stray", "meta"):
        (tmp_path / name).mkdir()
    logs = directory(tmp_path)
    later = (tmp_path / "gone-1").stat().st_mtime + 10
    assert logs.strays({"topic-0"}, later) == [tmp_path / "gone-1"]
    assert logs.strays({"topic-0"}, later - 100) == []


def test_an_orphan_is_set_aside_only_if_it_is_of_that_topic(tmp_path: Path) -> None:
    logs = directory(tmp_path)
    partition = open_partition(logs)
    partition.log.close()
    assert logs.set_aside_orphan("topic", OTHER, 0) is None
    moved = logs.set_aside_orphan("topic", TOPIC, 0)
    assert moved is not None
    assert moved.is_dir()
    assert logs.set_aside_orphan("topic", TOPIC, 0) is None


def test_an_earlier_checkpoint_does_not_undo_a_later_one(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path, "replica-0")
    directory.load()
    earlier, later = directory.checkpoint([]), directory.checkpoint([])
    later.write()
    written = {path.name: path.stat().st_ino for path in tmp_path.iterdir()}
    earlier.write()
    assert {path.name: path.stat().st_ino for path in tmp_path.iterdir()} == written
