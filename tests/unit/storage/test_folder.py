"""The files of a broker's data folder: checkpoints, owner, lock, clean-shutdown mark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mobula.storage.checkpoints import RECOVERY_POINT, OffsetCheckpoint
from mobula.storage.dir_lock import DirectoryLock
from mobula.storage.errors import FolderError, StorageError
from mobula.storage.files import parse_uuid, uuid_text, write_atomically
from mobula.storage.meta_properties import MetaProperties, check_owner, load_meta_properties
from mobula.storage.partition_metadata import check_topic_id, load_topic_id, store_topic_id

UUID = bytes(range(16))


def test_checkpoints_are_kafkas_text(tmp_path: Path) -> None:
    checkpoint = OffsetCheckpoint(tmp_path, RECOVERY_POINT)
    assert checkpoint.read() == {}
    offsets = {("orders", 3): 17, ("a.b_c-d", 0): 2**40}
    checkpoint.write(offsets)
    text = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    assert text == f"0\n2\na.b_c-d 0 {2**40}\norders 3 17\n"
    assert checkpoint.read() == offsets
    checkpoint.write({}, sync=False)
    assert checkpoint.read() == {}
    assert os.listdir(tmp_path) == [RECOVERY_POINT]


@pytest.mark.parametrize(
    "text", ["1\n0\n", "0\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na b c\n", "0\nx\n"]
)
def test_damaged_checkpoints_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / RECOVERY_POINT).write_text(text)
    with pytest.raises(ValueError, match=r".+"):
        OffsetCheckpoint(tmp_path, RECOVERY_POINT).read()


def test_the_owner_of_a_folder_is_written_as_kafka_does(tmp_path: Path) -> None:
    assert load_meta_properties(tmp_path) is None
    assert check_owner(tmp_path, 1) is None
    meta = MetaProperties(cluster_id="4L6g3nShT-eMCtK--X86sw", node_id=1, directory_id=UUID)
    meta.store(tmp_path)
    lines = (tmp_path / "meta.properties").read_text().splitlines()
    assert lines[1:] == [
        "cluster.id=4L6g3nShT-eMCtK--X86sw",
        "directory.id=AAECAwQFBgcICQoLDA0ODw",
        "node.id=1",
        "version=1",
    ]
    assert check_owner(tmp_path, 1, "4L6g3nShT-eMCtK--X86sw") == meta


def test_a_folder_of_another_broker_or_cluster_is_refused_in_a_sentence(tmp_path: Path) -> None:
    MetaProperties(cluster_id="mine", node_id=1, directory_id=UUID).store(tmp_path)
    with pytest.raises(FolderError, match="belongs to broker 1, not to broker 2"):
        check_owner(tmp_path, 2)
    with pytest.raises(FolderError, match="belongs to cluster mine, not to yours"):
        check_owner(tmp_path, 1, "yours")


@pytest.mark.parametrize(
    "text", ["", "version=0\nbroker.id=1\n", "version=1\nnode.id=x\ncluster.id=c\n", "version=1\n"]
)
def test_an_owner_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    with pytest.raises(FolderError, match=r"meta\.properties"):
        load_meta_properties(tmp_path)


def test_a_folder_is_locked_against_other_processes(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    code = (
        "import sys, pathlib\n"
        "from mobula.storage.dir_lock import DirectoryLock, FolderError\n"
        "try: DirectoryLock(pathlib.Path(sys.argv[1]))\n"
        "except FolderError as error: print(error)\n"
        "else: print('locked')\n"
    )

    def elsewhere() -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert elsewhere() == f"data folder {tmp_path} is in use by another process"
    lock.release()
    lock.release()
    assert elsewhere() == "locked"


def test_topic_ids_of_partitions(tmp_path: Path) -> None:
    store_topic_id(tmp_path, UUID)
    assert load_topic_id(tmp_path) == UUID
    check_topic_id(tmp_path, UUID)
    with pytest.raises(StorageError, match="belongs to topic id"):
        check_topic_id(tmp_path, UUID[::-1])
    for text in ("", "version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", "version: 0\ntopic_id: x"):
        (tmp_path / "partition.metadata").write_text(text)
        with pytest.raises(StorageError):
            load_topic_id(tmp_path)


def test_uuids_are_written_as_kafka_writes_them() -> None:
    assert uuid_text(UUID) == "AAECAwQFBgcICQoLDA0ODw"
    assert parse_uuid(uuid_text(UUID)) == UUID
    for text in ("", "AAEC", "not a uuid at all, not"):
        with pytest.raises(ValueError, match=r".+"):
            parse_uuid(text)


def test_a_failed_replacement_leaves_the_old_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old", sync=True)

    def full(*_: object) -> int:
        raise OSError("full")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="full"):
        write_atomically(path, b"new", sync=True)
    assert path.read_bytes() == b"old"
