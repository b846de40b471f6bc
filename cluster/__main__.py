"""Where the command `mobula` begins: what must hold before the rest is even imported."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

_INTERRUPTED = 130


def main() -> NoReturn:
    open_standard_streams()
    try:
        # Takes a tenth of a second, in which Ctrl-C may come.
        from mobula.cluster.cli import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def open_standard_streams() -> None:
    """One that the caller closed is empty instead: the next file or socket would get its
    number, and be written to or inherited by mistake."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            # The lowest free number, which is this one: those below are open by now.
            os.open(os.devnull, os.O_RDWR)
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


if __name__ == "__main__":
    main()
