"""`mobula up` and `mobula down`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mobula.cluster.options import LaunchError, UpOptions, UsageError, default_data_dir
from tests.unit.cli.running import FakeLauncher, mobula


def test_up_without_options_starts_three_brokers_in_the_foreground(
    launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert mobula("up").status == 0
    ((what, options),) = launcher.asked
    assert what == "up_foreground"
    assert options == UpOptions(
        brokers=3, port=9092, data_dir=tmp_path / "mobula" / "mobula", name="mobula"
    )


def test_every_option_reaches_the_launcher(launcher: FakeLauncher, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nlog.retention.hours=1\n")
    outcome = mobula(
        *("up", "-n", "5", "--port", "19092", "--data-dir", str(tmp_path / "data")),
        *("--name", "other", "--address", "auto", "--config", str(file)),
        *("--set", "num.partitions=6", "--set", "link.transport=ray", "--detach"),
    )
    assert outcome.status == 0
    assert launcher.asked == [
        (
            "up_detached",
            UpOptions(
                brokers=5,
                port=19092,
                data_dir=tmp_path / "data",
                name="other",
                address="auto",
                settings={
                    "num.partitions": "6",
                    "log.retention.hours": "1",
                    "link.transport": "ray",
                },
                detach=True,
            ),
        )
    ]


def test_the_exit_status_is_the_launchers(launcher: FakeLauncher) -> None:
    launcher.exit_status = 1
    assert mobula("up").status == 1


def test_a_data_folder_is_made_absolute(launcher: FakeLauncher) -> None:
    mobula("up", "--data-dir", "here")
    ((_, options),) = launcher.asked
    assert isinstance(options, UpOptions)
    assert options.data_dir == Path.cwd() / "here"


def test_a_bad_setting_is_refused_before_anything_starts(launcher: FakeLauncher) -> None:
    outcome = mobula("up", "--set", "num.network.thread=3", "--set", "num.io.threads=few")
    assert outcome.status == 2
    assert outcome.stderr.splitlines() == [
        "mobula: --set: there is no broker configuration key 'num.network.thread'; "
        "the nearest match is num.network.threads",
        "mobula: --set: num.io.threads must be a whole number, but is 'few'",
    ]
    assert launcher.asked == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-n", "0"], "a cluster has at least 1 broker, not 0"),
        (["--port", "65534"], "ports 65534 to 65536 are not all between 1 and 65535"),
        (["--name", "no/good"], "'no/good' cannot name a cluster"),
        (["--name", "x" * 21], "cannot name a cluster: 1 to 20 letters"),
        (["--config", "missing.properties"], "missing.properties cannot be read"),
        (["--port", "many"], "Invalid value for '--port'"),
        (["--nonsense"], "No such option"),
    ],
)
def test_bad_usage_is_one_sentence_and_status_2(
    launcher: FakeLauncher, arguments: list[str], sentence: str
) -> None:
    outcome = mobula("up", *arguments)
    assert outcome.status == 2
    (line,) = outcome.stderr.splitlines()
    assert line.startswith("mobula: ")
    assert sentence in line
    assert launcher.asked == []


def test_what_the_launcher_refuses_is_one_sentence_and_status_2(launcher: FakeLauncher) -> None:
    launcher.error = LaunchError("port 9092 is taken")
    outcome = mobula("up")
    assert (outcome.status, outcome.stderr) == (2, "mobula: port 9092 is taken\n")


def test_a_bug_is_one_sentence_that_says_how_to_see_more(launcher: FakeLauncher) -> None:
    launcher.error = ZeroDivisionError("division by zero")
    outcome = mobula("up")
    assert outcome.status == 1
    assert outcome.stderr == (
        "mobula: this is a bug: ZeroDivisionError: division by zero "
        "(MOBULA_TRACEBACK=1 shows where)\n"
    )


def test_the_machines_refusal_is_one_sentence(launcher: FakeLauncher) -> None:
    launcher.error = PermissionError(13, "Permission denied", "/data")
    outcome = mobula("up")
    assert (outcome.status, outcome.stderr) == (2, "mobula: /data: Permission denied\n")


def test_ctrl_c_ends_quietly(launcher: FakeLauncher) -> None:
    launcher.error = KeyboardInterrupt()  # type: ignore[assignment]
    outcome = mobula("up")
    assert (outcome.status, outcome.stderr) == (130, "")


def test_down_stops_the_cluster_of_that_name(launcher: FakeLauncher) -> None:
    outcome = mobula("down", "--name", "other")
    assert (outcome.status, outcome.text) == (0, "cluster other is down\n")
    assert launcher.asked == [("down", "other")]


def test_without_a_command_there_is_help() -> None:
    for arguments in ([], ["topic"], ["config"]):
        outcome = mobula(*arguments)
        assert outcome.status == 0
        assert "Usage: mobula" in outcome.text


def test_an_unknown_command_is_refused_with_the_nearest(launcher: FakeLauncher) -> None:
    outcome = mobula("topic", "creat", "x")
    assert outcome.status == 2
    assert outcome.stderr == "mobula: No such command 'creat'. Did you mean 'create'?\n"


def test_replication_is_by_three_where_there_are_three_brokers() -> None:
    def factor(brokers: int, **settings: str) -> str:
        options = UpOptions(brokers=brokers, data_dir=Path("/d"), settings=settings)
        return options.effective_settings()["default.replication.factor"]

    assert [factor(1), factor(2), factor(3), factor(5)] == ["1", "2", "3", "3"]
    assert factor(3, **{"default.replication.factor": "2"}) == "2"


def test_options_made_in_python_are_checked_too() -> None:
    with pytest.raises(UsageError, match="nearest match is num"):
        UpOptions(data_dir=Path("/d"), settings={"num.partition": "3"})


def test_data_stays_in_the_users_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_data_dir("x") == Path("/home/someone/.local/share/mobula/x")
