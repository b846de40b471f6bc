"""The Kafka wire: frames, headers, message codecs, the API table and error codes."""

from __future__ import annotations

import sys

# kio imports hypothesis wherever it is installed, to offer it strategies: 20 MB and a
# quarter of a second in every actor of a developer's machine. Tests import it first.
if "hypothesis" not in sys.modules:
    sys.modules["hypothesis"] = None  # type: ignore[assignment]
    import kio.static._phantom  # noqa: F401

    del sys.modules["hypothesis"]
