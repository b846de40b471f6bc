"""The command line, `mobula`.

Exit status: 0 it worked; 1 the cluster refused or failed; 2 the command or the machine
does not allow it; 130 Ctrl-C. Every failure is one sentence on stderr for each problem.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from mobula.actors.config import ConfigError
from mobula.cluster.commands import config, consume, group, produce, status, topic, up
from mobula.cluster.commands.arguments import help_without_command
from mobula.cluster.options import ClusterError

_FAILED = 1
_BAD_USAGE = 2
_INTERRUPTED = 130
_TRACEBACK = "MOBULA_TRACEBACK"


class SentenceGroup(TyperGroup):
    """Turns every failure into sentences and an exit status."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        try:
            # Not standalone, so that errors arrive here instead of being drawn in boxes.
            result = super().main(args, "mobula", complete_var, False, windows_expand_args, **extra)
        except typer.TyperException as error:
            _fail(_BAD_USAGE, error.format_message())
        except ConfigError as error:
            _fail(_BAD_USAGE, *error.problems)
        except ClusterError as error:
            _fail(error.exit_status, *str(error).splitlines())
        except (typer.Abort, KeyboardInterrupt):
            sys.exit(_INTERRUPTED)
        except SystemExit as ended:
            # Typer's answer to a reader of our output that has enough (`| head`).
            sys.exit(0 if isinstance(ended.__context__, BrokenPipeError) else ended.code)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            _fail(_BAD_USAGE, f"{where}{error.strerror or error}")
        except Exception as error:
            if os.environ.get(_TRACEBACK):
                raise
            _fail(
                _FAILED,
                f"this is a bug: {type(error).__name__}: {error} ({_TRACEBACK}=1 shows where)",
            )
        sys.exit(result if isinstance(result, int) else 0)


def _fail(exit_status: int, *sentences: str) -> NoReturn:
    for sentence in sentences:
        if sentence.strip():
            typer.echo(f"mobula: {sentence}", err=True)
    sys.exit(exit_status)


def _say_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"mobula {version('mobula')}")
        raise typer.Exit


def _root(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print it and exit.", callback=_say_version, is_eager=True),
    ] = False,
) -> None:
    help_without_command(context)


app = typer.Typer(
    cls=SentenceGroup,
    name="mobula",
    help="A log cluster for any Kafka client, made of Ray actors.",
    invoke_without_command=True,
    callback=_root,
    # Plain help: rich takes longer to import than the rest of it.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
up.register(app)
status.register(app)
app.add_typer(topic.app, name="topic")
app.add_typer(group.app, name="group")
produce.register(app)
consume.register(app)
app.add_typer(config.app, name="config")


def main() -> NoReturn:
    app()
    raise AssertionError("the group exits")
