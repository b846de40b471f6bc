"""What the package does to others: pytest's start, the command's start, pipes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

_HEAVY = ("ray", "confluent_kafka", "rich", "kio", "uvloop")

_FAKE_CLUSTER = """
import mobula.cluster

class FakeCluster:
    def __init__(self, brokers):
        self.bootstrap = f"{brokers} brokers"
    def __enter__(self):
        print("started")
        return self
    def __exit__(self, *_):
        print("stopped")

mobula.cluster.LocalCluster = FakeCluster
"""

_USERS_TESTS = """
def test_one(mobula_cluster):
    print("one has", mobula_cluster.bootstrap)

def test_two(mobula_cluster):
    print("two has", mobula_cluster.bootstrap)
"""


def _python(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    # The plugin is named below; an installed copy of it would be loaded a second time.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        env=environment,
        check=False,
    )


def _users_run(folder: Path, *options: str) -> str:
    (folder / "conftest.py").write_text(_FAKE_CLUSTER)
    (folder / "test_users.py").write_text(_USERS_TESTS)
    plugin = ("-p", "mobula.cluster.pytest_plugin", "-p", "no:cacheprovider")
    result = _python("-m", "pytest", "-q", "-s", "--rootdir=.", *plugin, *options, cwd=folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_fixture_starts_one_cluster_for_the_whole_session(tmp_path: Path) -> None:
    output = _users_run(tmp_path)
    assert output.count("started") == output.count("stopped") == 1
    assert "one has 3 brokers" in output
    assert "two has 3 brokers" in output


def test_the_number_of_brokers_is_an_option_or_an_ini_value(tmp_path: Path) -> None:
    assert "one has 1 brokers" in _users_run(tmp_path, "--mobula-brokers", "1")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmobula_brokers = 5\n")
    assert "one has 5 brokers" in _users_run(tmp_path)
    assert "one has 2 brokers" in _users_run(tmp_path, "--mobula-brokers", "2")


@pytest.mark.parametrize("module", ["mobula.cluster.pytest_plugin", "mobula.cluster.cli"])
def test_nothing_heavy_is_imported_before_it_is_used(module: str) -> None:
    code = f"import sys, {module}; print([m for m in {_HEAVY!r} if m in sys.modules])"
    result = _python("-c", code)
    assert result.stdout == "[]\n", result.stderr


def test_the_version_is_the_packages() -> None:
    result = _python("-m", "mobula.cluster", "--version")
    assert (result.returncode, result.stdout) == (0, f"mobula {version('mobula')}\n")


def test_help_needs_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from mobula.cluster.cli import main\n"
        "sys.argv = ['mobula', 'up', '--help']\n"
        "try:\n    main()\n"
        f"finally:\n    print([m for m in {_HEAVY!r} if m in sys.modules])"
    )
    result = _python("-c", code)
    assert result.returncode == 0
    assert result.stdout.endswith("[]\n")


def test_a_reader_that_has_enough_is_no_failure() -> None:
    command = f"{sys.executable} -c 'from mobula.cluster.cli import main; main()'"
    result = subprocess.run(
        f"set -o pipefail; {command} config explain num.io.threads | :",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ("config explain num.io.threads >&-", 0, ""),
        ("config explain nothing 2>&-", 2, ""),
        ("produce t -b 127.0.0.1:1 <&-", 2, "mobula: no broker answers at 127.0.0.1:1"),
    ],
)
def test_a_closed_stream_is_an_empty_one(arguments: str, status: int, said: str) -> None:
    result = subprocess.run(
        f"{sys.executable} -m mobula.cluster {arguments}",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout) == (status, "")
    assert result.stderr.startswith(said)
    assert "bug" not in result.stderr


def test_the_streams_that_were_closed_can_be_read_and_written() -> None:
    code = (
        "from mobula.cluster.__main__ import open_standard_streams\n"
        "open_standard_streams()\n"
        "import sys\n"
        "print(sys.stdin.buffer.read(), sys.stdin.fileno(), file=sys.stderr)\n"
        "print('lost', flush=True)"
    )
    result = subprocess.run(
        [*("/bin/sh", "-c", 'exec "$0" -c "$1" <&- >&-'), sys.executable, code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "b'' 0\n")


def test_ctrl_c_before_the_command_is_imported_is_no_traceback() -> None:
    code = (
        "import builtins, signal\n"
        "from mobula.cluster.__main__ import main\n"
        "real = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        "    if name == 'typer':\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return real(name, *rest)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "builtins.__import__ = interrupted\n"
        "main()"
    )
    result = _python("-c", code)
    assert (result.returncode, result.stderr) == (130, "")


def test_the_cluster_package_has_no_other_names() -> None:
    import mobula.cluster

    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        mobula.cluster.Nonsense  # noqa: B018
