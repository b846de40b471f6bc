"""The published rows, as the purgatory and the gateways read them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from mobula.actors import rows
from mobula.actors.rows import Role, RowsReader, RowsWriter
from tests.unit.purgatory.fakes import TOPIC, leader


def test_a_row_reads_back_as_it_was_published(tmp_path: Path) -> None:
    writer = RowsWriter(tmp_path / "replica.rows", 1)
    row = leader(in_sync_replicas=2, min_in_sync_replicas=3, epoch_start_offset=7)
    writer.allocate(row)
    assert RowsReader(tmp_path / "replica.rows").find(TOPIC, 0) == row
    writer.close()


def test_a_change_is_seen_by_a_reader_that_had_read_before(tmp_path: Path) -> None:
    writer = RowsWriter(tmp_path / "replica.rows", 1)
    slot = writer.allocate(leader())
    reader = RowsReader(tmp_path / "replica.rows")
    assert reader.find(TOPIC, 0) is reader.find(TOPIC, 0), "an unchanged row is not unpacked"
    writer.publish(slot, leader(high_watermark=11))
    row = reader.find(TOPIC, 0)
    assert row is not None
    assert row.high_watermark == 11
    writer.close()


def test_a_writer_that_stops_inside_a_write_leaves_the_row_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(Exception):
        pass

    class Sequence(struct.Struct):
        def pack_into(self, *_: Any) -> None:
            raise Stopped

    writer = RowsWriter(tmp_path / "replica.rows", 1)
    slot = writer.allocate(leader(high_watermark=10))
    for high_watermark in (11, 12):
        with monkeypatch.context() as patch:
            patch.setattr(rows, "_SEQUENCE", Sequence("<Q"))
            with pytest.raises(Stopped):
                writer.publish(slot, leader(high_watermark=99))
        found = RowsReader(tmp_path / "replica.rows").find(TOPIC, 0)
        assert found == leader(high_watermark=high_watermark - 1)
        writer.publish(slot, leader(high_watermark=high_watermark))
        found = RowsReader(tmp_path / "replica.rows").find(TOPIC, 0)
        assert found == leader(high_watermark=high_watermark)
    writer.close()


def test_a_released_slot_is_gone_and_may_hold_another_partition(tmp_path: Path) -> None:
    writer = RowsWriter(tmp_path / "replica.rows", 1)
    slot = writer.allocate(leader())
    reader = RowsReader(tmp_path / "replica.rows")
    assert reader.find(TOPIC, 0) is not None
    writer.release(slot)
    assert reader.find(TOPIC, 0) is None
    assert writer.allocate(leader(partition=5)) == slot
    assert reader.find(TOPIC, 0) is None
    found = reader.find(TOPIC, 5)
    assert found is not None
    assert found.role == Role.LEADER
    writer.close()


def test_a_table_made_anew_is_read_after_reopen(tmp_path: Path) -> None:
    path = tmp_path / "replica.rows"
    writer = RowsWriter(path, 1)
    writer.allocate(leader())
    reader = RowsReader(path)
    assert reader.find(TOPIC, 0) == leader()
    writer.close()
    writer = RowsWriter(path, 2)
    writer.allocate(leader(high_watermark=20))
    reader.reopen()
    assert reader.find(TOPIC, 0) == leader(high_watermark=20)
    writer.close()


def test_a_table_that_grew_is_mapped_again(tmp_path: Path) -> None:
    writer = RowsWriter(tmp_path / "replica.rows", 1)
    writer.allocate(leader())
    reader = RowsReader(tmp_path / "replica.rows")
    assert reader.find(TOPIC, 0) is not None
    for partition in range(1, 600):
        writer.allocate(leader(partition=partition))
    for partition in (1, 255, 256, 599):
        assert reader.find(TOPIC, partition) == leader(partition=partition)
    assert len(reader.all()) == 600
    writer.close()


def test_no_table_means_no_row(tmp_path: Path) -> None:
    assert RowsReader(tmp_path / "none.rows").find(TOPIC, 0) is None
