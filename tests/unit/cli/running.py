"""Running `mobula` in this process, and a hand-written launcher behind it."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from typer.testing import CliRunner

from mobula.cluster.cli import app
from mobula.cluster.document import StatusDocument
from mobula.cluster.options import UpOptions


@dataclass(frozen=True)
class Outcome:
    status: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode()


def mobula(*arguments: str, stdin: bytes = b"") -> Outcome:
    result = CliRunner().invoke(app, list(arguments), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return Outcome(result.exit_code, result.stdout_bytes, result.stderr)


@dataclass
class FakeLauncher:
    """What `mobula.cluster.launch` offers, remembering what it was asked for."""

    asked: list[tuple[str, object]] = field(default_factory=list)
    error: Exception | None = None
    exit_status: int = 0
    document: StatusDocument | None = None

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = types.ModuleType("mobula.cluster.launch")
        functions: dict[str, Callable[..., object]] = {
            "up_foreground": self._up("up_foreground"),
            "up_detached": self._up("up_detached"),
            "down": self._down,
            "status": self._status,
        }
        for name, function in functions.items():
            setattr(module, name, function)
        monkeypatch.setitem(sys.modules, "mobula.cluster.launch", module)

    def _up(self, name: str) -> Callable[[UpOptions], int]:
        def up(options: UpOptions) -> int:
            self._ask(name, options)
            return self.exit_status

        return up

    def _down(self, name: str) -> None:
        self._ask("down", name)

    def _status(self, name: str) -> StatusDocument:
        self._ask("status", name)
        assert self.document is not None
        return self.document

    def _ask(self, what: str, argument: object) -> None:
        self.asked.append((what, argument))
        if self.error is not None:
            raise self.error
