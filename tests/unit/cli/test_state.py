"""The file that says which cluster runs here."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from mobula.cluster.options import LaunchError, UsageError
from mobula.cluster.state import (
    ClusterState,
    find_cluster,
    is_alive,
    list_clusters,
    make_run_dir,
    read_state,
    remove_state,
    run_dir,
    this_process,
    write_state,
)
from tests.unit.cli.running import mobula


def _state(name: str = "mobula", *, alive: bool = True) -> ClusterState:
    pid, created_at = this_process()
    return ClusterState(
        name=name,
        pid=pid,
        # The same pid, but of a process that began long before: it was used again.
        pid_created_at=created_at if alive else created_at - 1000,
        bootstrap="127.0.0.1:1",
        data_dir="/data",
        ray_address="127.0.0.1:6379",
        brokers=3,
        started_at_ms=1,
    )


def test_what_was_written_is_read_again(run_root: Path) -> None:
    assert read_state("mobula") is None
    write_state(_state())
    assert read_state("mobula") == _state()
    remove_state("mobula")
    remove_state("mobula")
    assert read_state("mobula") is None


def test_a_dead_process_that_nobody_collected_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as process:
        created_at = psutil.Process(process.pid).create_time()
        assert process.stdout is not None
        # WNOWAIT: it has ended, and stays a zombie.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        state = msgspec.structs.replace(_state(), pid=process.pid, pid_created_at=created_at)
        assert not is_alive(state)


def test_nobody_else_can_read_it(run_root: Path) -> None:
    write_state(_state())
    folder = run_root / "mobula"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "cluster.json").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["cluster.json"]


def test_a_folder_that_others_could_enter_is_closed(run_root: Path) -> None:
    (run_root / "mobula").mkdir(parents=True)
    (run_root / "mobula").chmod(0o755)
    assert stat.S_IMODE(make_run_dir("mobula").stat().st_mode) == 0o700


def test_a_link_in_place_of_the_folder_is_refused(run_root: Path, tmp_path: Path) -> None:
    run_root.mkdir()
    (run_root / "mobula").symlink_to(tmp_path)
    with pytest.raises(LaunchError, match="belongs to another user"):
        make_run_dir("mobula")


def test_a_dead_process_makes_it_stale(run_root: Path) -> None:
    assert is_alive(_state())
    assert not is_alive(_state(alive=False))


def test_a_cluster_that_runs_is_found(run_root: Path) -> None:
    write_state(_state())
    assert find_cluster("mobula") == _state()


def test_a_cluster_that_does_not_run_says_how_to_start_it(run_root: Path) -> None:
    with pytest.raises(LaunchError, match="`mobula up` starts it"):
        find_cluster("mobula")
    write_state(_state(alive=False))
    with pytest.raises(LaunchError, match="`mobula up` starts it"):
        find_cluster("mobula")


def test_another_cluster_that_runs_is_named(run_root: Path) -> None:
    write_state(_state("other"))
    write_state(_state("dead", alive=False))
    write_state(_state("local-1234"))
    with pytest.raises(LaunchError, match=r"there is other \(`--name other`\)"):
        find_cluster("mobula")
    assert [state.name for state in list_clusters()] == ["dead", "local-1234", "other"]


def test_a_file_that_is_damaged_is_one_sentence(run_root: Path) -> None:
    write_state(_state())
    (run_root / "mobula" / "cluster.json").write_text("{")
    with pytest.raises(LaunchError, match="cannot be read; remove it"):
        read_state("mobula")


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "a b", "x" * 21])
def test_a_name_that_cannot_be_a_folder_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        run_dir(name)


def test_commands_find_the_brokers_in_it(run_root: Path) -> None:
    outcome = mobula("topic", "list")
    assert (outcome.status, outcome.stderr) == (
        2,
        "mobula: no cluster 'mobula' runs here; `mobula up` starts it\n",
    )
    write_state(_state())
    outcome = mobula("topic", "list")
    assert outcome.status == 2
    assert outcome.stderr.startswith("mobula: no broker answers at 127.0.0.1:1;")
