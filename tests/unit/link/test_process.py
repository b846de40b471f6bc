"""How a process counts its lives."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from mobula.actors.process import Lives, lives_path, next_life, write_lives
from mobula.actors.spec import ActorSpec


def test_each_life_of_one_ray_actor_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.lives"
    assert [next_life(path, "actor-1").count for _ in range(3)] == [1, 2, 3]
    assert list(tmp_path.iterdir()) == [path]


def test_lives_of_a_former_cluster_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "a.lives"
    next_life(path, "actor-1")
    assert next_life(path, "actor-2") == Lives("actor-2", count=1)


def test_failed_starts_are_remembered_until_one_succeeds(tmp_path: Path) -> None:
    path = tmp_path / "a.lives"
    lives = next_life(path, "actor-1")
    lives.failed += 1
    write_lives(path, lives)
    assert next_life(path, "actor-1").failed == 1


def test_a_count_that_cannot_be_read_or_written_keeps_nobody_from_living(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.lives"
    path.write_bytes(b"torn {")
    assert next_life(path, "actor-1").count == 1
    assert next_life(tmp_path / "missing" / "a.lives", "actor-1").count == 1
    assert "lives not counted" in caplog.text


def test_the_file_is_named_after_the_actor() -> None:
    spec = ActorSpec(
        cluster="c", kind="gateway", local_name="broker-0/gateway-1", run_dir="/run", data_dir="/d"
    )
    assert lives_path(spec) == Path("/run/broker-0.gateway-1.lives")
    assert msgspec.json.decode(msgspec.json.encode(spec), type=ActorSpec) == spec
